"""The commands ``abelnet learn`` and ``abelnet apply``."""

from __future__ import annotations

import csv
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner

from abelnet import AbelnetError, LawRegressor, cli
from abelnet.cli import terminal

RUNNER = CliRunner()


@pytest.fixture
def speeds(tmp_path: Path) -> list[str]:
    """Arguments of ``abelnet learn`` on a table whose columns look like markup."""
    rows = np.random.default_rng(0).uniform(0.5, 2, (60, 2)).tolist()
    lines = ["x [mm],v [/s],[bold]y\x1b[2J", *(f"{a!r},{b!r},{a * b!r}" for a, b in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    columns = ["--value", "x [mm]", "--value", "v [/s]", "--target", "[bold]y\x1b[2J"]
    return ["learn", str(tmp_path / "t.csv"), *columns, "--out", str(tmp_path / "law")]


def run(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "abelnet", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, check=False)


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
    assert rows[0] == ["customer", "result", "extrapolated"]
    assert [row[0] for row in rows[1:]] == ["a", "b", "c"]
    assert [float(row[1]) for row in rows[1:]] == pytest.approx([-1.0, 2.0, 0.25])


def test_apply_for_spreadsheets(tmp_path: Path) -> None:
    pairs = np.random.default_rng(0).uniform(1, 2, (20, 2))
    LawRegressor().fit(pairs, pairs.max(1)).save(tmp_path / "model")
    (tmp_path / "t.csv").write_text("s,x\n=cmd(),1\n=cmd(),2\n")
    options = ["--set", "s", "--value", "x", "--out", str(tmp_path / "r.csv")]
    for option, name in ((), "=cmd()"), (("--for-spreadsheets",), "'=cmd()"):
        result = RUNNER.invoke(cli.app, ["apply", str(tmp_path / "model"), str(tmp_path / "t.csv"), *options, *option])
        assert result.exit_code == 0, result.output
        assert (tmp_path / "r.csv").read_text().splitlines() == ["s,result,extrapolated", f"{name},2.0,yes"]


def test_a_cluster_has_no_intervals(tmp_path: Path) -> None:
    pairs = np.random.default_rng(0).uniform(1, 2, (20, 2))
    LawRegressor().fit(pairs, pairs.max(1)).save(tmp_path / "model")
    options = ["--set", "s", "--value", "x", "--out", str(tmp_path / "r.csv"), "--scheduler", "tcp://127.0.0.1:9"]
    result = RUNNER.invoke(cli.app, ["apply", str(tmp_path / "model"), "t.csv", *options, "--intervals"])
    assert isinstance(result.exception, AbelnetError)
    assert "neither --intervals nor --memory-limit" in str(result.exception)


def test_export_to_onnx(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pairs = np.random.default_rng(0).uniform(1, 2, (60, 2))
    LawRegressor().fit(pairs, 1 / (1 / pairs).sum(1)).save(tmp_path / "model")
    path = tmp_path / "law.onnx"
    result = RUNNER.invoke(cli.app, ["export", str(tmp_path / "model"), "--to", "onnx", "--out", str(path)])
    assert result.exit_code == 0, result.output
    session = runtime.InferenceSession(path)
    (results,) = session.run(None, {"values": np.array([[1.0], [1.0], [3.0], [6.0]]), "ptr": np.array([0, 1, 4])})
    np.testing.assert_allclose(results, [[1.0], [1 / 1.5]], rtol=1e-12)


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
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("abelnet: no law: the results depend on the order of the elements (the nearest law explains")
    assert line.endswith("as x − y is the sum of x and −y; --verbose shows the evidence")
    monkeypatch.setattr("sys.argv", [*sys.argv, "--verbose"])
    with pytest.raises(SystemExit):
        cli.main()
    first, *details = capsys.readouterr().err.splitlines()
    assert first + "; --verbose shows the evidence" == line
    assert details[0].startswith("abelnet: nearest law: ")
    assert details[-1].startswith("abelnet: eigenvalues (0 for a law, about 1 for none): group, x: ")


def test_vectors(tmp_path: Path) -> None:
    lines = ["s,u,v,tu,tv"]
    for i, (a, b) in enumerate(np.random.default_rng(2).uniform(0.5, 2, (60, 2, 2)).tolist()):
        targets = f"{a[0] + b[0]!r},{max(a[1], b[1])!r}"
        lines += [f"{i},{u!r},{v!r},{targets}" for u, v in (a, b)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    options = ["--set", "s", "--value", "u", "--value", "v", "--target", "tu", "--target", "tv"]
    arguments = ["learn", str(tmp_path / "t.csv"), *options, "--out", str(tmp_path / "m"), "--verbose"]
    result = RUNNER.invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    for text in ("─ u ─", "x∘y = x + y", "─ v ─", "x∘y = max(x, y)", "eigenvalue", "Worst-fitting examples"):
        assert text in result.output


def test_names_of_columns_are_no_markup(speeds: list[str], tmp_path: Path) -> None:
    result = RUNNER.invoke(cli.app, speeds)
    assert result.exit_code == 0, result.output
    assert r" [bold]y\x1b[2J " in result.output
    assert "\x1b" not in result.output
    speeds[speeds.index("v [/s]")] = "w [/s]"
    result = RUNNER.invoke(cli.app, speeds)
    assert "expected a column w [/s], got x [mm], v [/s]" in str(result.exception)


def test_the_law_is_saved_though_nobody_reads_the_output(speeds: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "abelnet", *speeds]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141
    assert (tmp_path / "law" / "model.safetensors").is_file()
    assert (tmp_path / "law" / "report.html").is_file()


def test_characters_of_an_encoding_are_kept_and_others_replaced() -> None:
    terminal.prepare()
    assert "x∘y = x·y".encode("cp1252", errors="abelnet") == "xoy = x·y".encode("cp1252")
    assert "∘ ≈".encode("ascii", errors="abelnet") == b"o ?"


def test_a_terminal_that_cannot_show_every_character(speeds: list[str], tmp_path: Path) -> None:
    done = run(speeds, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert "xoy = x*y" in done.stdout.decode("ascii").splitlines()
    assert (tmp_path / "law" / "report.html").is_file()


@pytest.mark.parametrize("option", [["--delimiter", ";;"], ["--decimal", "x"], ["--memory-limit", "much"]])
def test_options_of_reading_are_checked(option: list[str], speeds: list[str]) -> None:
    result = RUNNER.invoke(cli.app, [*speeds, *option])
    assert str(result.exception).startswith(f"{option[0].removeprefix('--')}: expected ")
    assert repr(option[1]) in str(result.exception)


def test_decimal_commas_to_a_database(tmp_path: Path) -> None:
    lines = ["s;x;y", *(f"{i};{x};{3 * x}" for i in range(20) for x in (i + 1000, i + 1000, i + 1000))]
    (tmp_path / "t.csv").write_text("\n".join(lines).replace("000", ",000"))
    columns, reading = ["--set", "s", "--value", "x"], ["--decimal", ",", "--memory-limit", "100MB"]
    options = [str(tmp_path / "t.csv"), *columns, *reading]
    result = RUNNER.invoke(cli.app, ["learn", *options, "--target", "y", "--out", str(tmp_path / "law")])
    assert result.exit_code == 0, result.output
    out = tmp_path / "results.sqlite"
    result = RUNNER.invoke(cli.app, ["apply", str(tmp_path / "law"), *options, "--out", str(out), "--table", "sums"])
    assert result.exit_code == 0, result.output
    with closing(sqlite3.connect(out)) as database:
        found = database.execute("SELECT s, result, extrapolated FROM sums").fetchall()
    assert found[0] == ("0", 3.0, "no")
    assert len(found) == 20


def test_a_folder_that_cannot_be_written_is_one_line(speeds: list[str], tmp_path: Path) -> None:
    (tmp_path / "law").write_text("a file where the folder should be")
    done = run(speeds)
    assert done.returncode in (1, 2)
    assert done.stdout == b""
    assert done.stderr.startswith(b"abelnet: ")
    assert done.stderr.count(b"\n") == 1


def test_export(returns: Path, tmp_path: Path) -> None:
    model = str(tmp_path / "model")
    options = ["--set", "account", "--value", "x", "--target", "y", "--out", model]
    assert RUNNER.invoke(cli.app, ["learn", str(returns), *options]).exit_code == 0
    columns = ["--table", "months", "--set", "account", "--value", "x"]
    result = RUNNER.invoke(cli.app, ["export", model, "--to", "sql", *columns, "--dialect", "postgres"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("SELECT")
    assert "DOUBLE PRECISION" in result.output
    with duckdb.connect() as connection:
        query = RUNNER.invoke(cli.app, ["export", model, "--to", "sql", *columns]).output
        connection.execute(f"CREATE VIEW months AS SELECT * FROM read_csv('{returns}')")
        found = connection.sql(f"SELECT * FROM ({query}) JOIN months USING (account)").fetchall()
    assert len(found) > 100
    assert np.allclose([row[1] for row in found], [row[-1] for row in found], rtol=1e-9)
    out = tmp_path / "law.py"
    assert RUNNER.invoke(cli.app, ["export", model, "--to", "python", "--out", str(out)]).exit_code == 0
    assert "x∘y = x + y + x·y" in out.read_text(encoding="utf-8")
    assert "aggregate" in RUNNER.invoke(cli.app, ["export", model, "--to", "javascript"]).output
    assert "circ" in RUNNER.invoke(cli.app, ["export", model, "--to", "latex"]).output
    wrong = RUNNER.invoke(cli.app, ["export", model, "--to", "onnx"])
    assert "out: expected a file to write" in str(wrong.exception)
