"""Tables: learn and apply from the command line, long and wide, in parts, and what is wrong with them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from typer.testing import CliRunner

from abelnet import AbelnetError, Multisets, cli
from abelnet.discovery.estimator import LawRegressor
from abelnet.engines import tables

RUNNER = CliRunner()


@pytest.fixture
def returns(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    path = tmp_path / "returns.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["account", "x", "y"])
        for account in range(100):
            values = generator.uniform(-0.2, 0.3, generator.integers(2, 5))
            writer.writerows([f"a{account}", repr(float(x)), repr(float(np.prod(1 + values) - 1))] for x in values)
    return path


def test_learn_then_apply(returns: Path, tmp_path: Path) -> None:
    options = ["--set", "account", "--value", "x", "--target", "y", "--out", str(tmp_path / "model")]
    result = RUNNER.invoke(cli.app, ["learn", str(returns), *options])
    assert result.exit_code == 0, result.output
    assert "x∘y = x + y + x·y" in result.output
    assert "absorbing element: −1" in result.output
    page = (tmp_path / "model" / "report.html").read_text()
    assert "<polyline" in page
    assert "Examples fitted worst" in page
    data = tmp_path / "data.csv"
    data.write_text("customer,x\nb,0.5\na,0.1\nb,1.0\na,0.1\na,-1\nc,0.25\n")  # rows of a set anywhere
    out = tmp_path / "result.csv"
    options = ["--set", "customer", "--value", "x", "--out", str(out)]
    result = RUNNER.invoke(cli.app, ["apply", str(tmp_path / "model"), str(data), *options])
    assert result.exit_code == 0, result.output
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["customer", "result"]
    assert [row[0] for row in rows[1:]] == ["b", "a", "c"]
    assert [float(row[1]) for row in rows[1:]] == pytest.approx([2.0, -1.0, 0.25])


def test_wide_form_and_parquet(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    table = generator.uniform(-5, 5, (80, 3))
    table[::3, 2] = np.nan
    columns = {"a": table[:, 0], "b": table[:, 1], "c": table[:, 2], "y": np.nansum(table, 1)}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "wide.parquet")
    options = ["--value", "a", "--value", "b", "--value", "c", "--target", "y", "--out", str(tmp_path / "model")]
    result = RUNNER.invoke(cli.app, ["learn", str(tmp_path / "wide.parquet"), *options])
    assert result.exit_code == 0, result.output
    assert "x∘y = x + y" in result.output
    (tmp_path / "wide.csv").write_text("a,b\n1,2\n,3\n,\n")
    applied = tables.apply_law(
        LawRegressor.load(tmp_path / "model"), tmp_path / "wide.csv", tables.Columns(("a", "b")), tmp_path / "r.csv"
    )
    assert applied == 3
    assert (tmp_path / "r.csv").read_text().split() == ["row,result", "2,3.0", "3,3.0", "4,0.0"]


def test_vectors(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    lines = ["s,u,v,tu,tv"]
    for i in range(60):
        values = generator.uniform(0.5, 2, (3, 2))
        targets = f"{float(values[:, 0].sum())!r},{float(values[:, 1].max())!r}"
        lines += [f"{i},{float(u)!r},{float(v)!r},{targets}" for u, v in values]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    options = ["--set", "s", "--value", "u", "--value", "v", "--target", "tu", "--target", "tv"]
    result = RUNNER.invoke(cli.app, ["learn", str(tmp_path / "t.csv"), *options, "--out", str(tmp_path / "m")])
    assert result.exit_code == 0, result.output
    assert "x∘y = x + y" in result.output
    assert "x∘y = max(x, y)" in result.output
    columns = tables.Columns(("u", "v"), "s")
    tables.apply_law(LawRegressor.load(tmp_path / "m"), tmp_path / "t.csv", columns, tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith("s,result_u,result_v\n0,")


def test_in_parts_whatever_the_order(returns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = tables.Columns(("x",), "account", ("y",))
    whole = Multisets.join(list(tables.examples_in(returns, columns)))
    monkeypatch.setattr(tables, "_ROWS", 7)
    parts = list(tables.examples_in(returns, columns))
    assert len(parts) > 10
    joined = Multisets.join(parts)
    assert torch.equal(joined.values, whole.values)
    assert torch.equal(joined.ptr, whole.ptr)
    assert torch.equal(joined.targets, whole.targets)
    lines = returns.read_text().splitlines()
    body = lines[1:]
    np.random.default_rng(0).shuffle(body)
    monkeypatch.setattr(tables, "_ROWS", 1000)
    returns.write_text("\n".join([lines[0], *body]))
    (scattered,) = tables.examples_in(returns, columns)
    assert len(scattered) == len(whole)
    # Each set has all of its elements, and its own result.
    torch.testing.assert_close(scattered.sum((1 + scattered.values).log())[:, 0].expm1(), scattered.targets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a header line"),
        ("s,x\n1,2\n", "expected a column y"),
        ("s,x,y\n1,two,3\n", "line 2: expected a number in column x, got 'two'"),
        ("s,x,y\n1,,3\n1,2,3\n", "1 sets with missing ones, the first 1; --skip-missing"),
        ("s,x,y\n1,2,3\n1,1,4\n", "expected the same on each row of a set"),
        ("s,x,y\n1,2\n", "line 2: expected 3 cells, got 2"),
    ],
)
def test_bad_tables(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(AbelnetError, match=message):
        list(tables.examples_in(tmp_path / "t.csv", tables.Columns(("x",), "s", ("y",))))


def test_missing_numbers_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,x,y\n1,,3\n1,2,3\n2,1,4\n2,3,4\n")
    columns = tables.Columns(("x",), "s", ("y",))
    parts = tables.examples_in(tmp_path / "t.csv", columns, skip_missing=True)
    (part,) = parts
    assert (part.values[:, 0].tolist(), part.ptr.tolist(), part.targets.tolist()) == ([1.0, 3.0], [0, 2], [4.0])


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
    assert "expected the results of a commutative, associative law" in capsys.readouterr().err.replace("\n", " ")


def test_bad_columns(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="target: expected 2 columns"):
        tables.Columns(("u", "v"), "s", ("t",))
    with pytest.raises(AbelnetError, match=r"no such file: .*missing.csv"):
        tables.read_rows(tmp_path / "missing.csv", tables.Columns(("u",)))
    with pytest.raises(AbelnetError, match="no such file"):
        LawRegressor.load(tmp_path)
