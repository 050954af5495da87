"""The commands ``abelnet learn`` and ``abelnet apply``."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from abelnet import cli

RUNNER = CliRunner()


def test_learn_then_apply(returns: Path, tmp_path: Path) -> None:
    options = ["--set", "account", "--value", "x", "--target", "y", "--out", str(tmp_path / "model")]
    result = RUNNER.invoke(cli.app, ["learn", str(returns), *options])
    assert result.exit_code == 0, result.output
    assert "x∘y = x + y + x·y" in result.output
    assert "absorbing element: −1" in result.output
    assert "Error by multiset size" in result.output
    assert f"written: {tmp_path / 'model' / 'report.html'}" in result.output
    assert "Worst-fitting examples" in (tmp_path / "model" / "report.html").read_text(encoding="utf-8")
    data = tmp_path / "data.csv"
    data.write_text("customer,x\nb,0.5\na,0.1\nb,1.0\na,0.1\na,-1\nc,0.25\n")  # rows of a set anywhere
    out = tmp_path / "result.csv"
    options = ["--set", "customer", "--value", "x", "--out", str(out)]
    result = RUNNER.invoke(cli.app, ["apply", str(tmp_path / "model"), str(data), *options])
    assert result.exit_code == 0, result.output
    assert f"written: {out}, 3 multisets of 6 rows" in result.output
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["customer", "result"]
    assert [row[0] for row in rows[1:]] == ["b", "a", "c"]
    assert [float(row[1]) for row in rows[1:]] == pytest.approx([2.0, -1.0, 0.25])


def test_no_law_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    rows = generator.uniform(-5, 5, (100, 2))
    lines = ["a,b,y", *(f"{a!r},{b!r},{a - b!r}" for a, b in rows.tolist())]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    options = ["--value", "a", "--value", "b", "--target", "y", "--out", str(tmp_path / "m")]
    monkeypatch.setattr("sys.argv", ["abelnet", "learn", str(tmp_path / "t.csv"), *options])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "expected the results of a commutative, associative law" in capsys.readouterr().err


def test_vectors(tmp_path: Path) -> None:
    lines = ["s,u,v,tu,tv"]
    for i, (a, b) in enumerate(np.random.default_rng(2).uniform(0.5, 2, (60, 2, 2)).tolist()):
        targets = f"{a[0] + b[0]!r},{max(a[1], b[1])!r}"
        lines += [f"{i},{u!r},{v!r},{targets}" for u, v in (a, b)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    options = ["--set", "s", "--value", "u", "--value", "v", "--target", "tu", "--target", "tv"]
    result = RUNNER.invoke(cli.app, ["learn", str(tmp_path / "t.csv"), *options, "--out", str(tmp_path / "m")])
    assert result.exit_code == 0, result.output
    for text in ("─ u ─", "x∘y = x + y", "─ v ─", "x∘y = max(x, y)"):
        assert text in result.output
