"""The commands ``abelnet analogies ...``."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from abelnet import AbelnetError, cli
from abelnet.experiments.analogies.experiment import MODELS

RUNNER = CliRunner()
pytestmark = pytest.mark.usefixtures("_saved_before_shown", "_units_here")


def test_run_then_table(tmp_path: Path) -> None:
    options = ["--model", "wv", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path)]
    result = RUNNER.invoke(cli.app, ["analogies", "run", *options])
    assert result.exit_code == 0, result.output
    assert "done: WV, seed 0" in result.output
    again = RUNNER.invoke(cli.app, ["analogies", "table", "--out", str(tmp_path)])
    assert again.exit_code == 0, again.output
    assert result.output.endswith(again.output)
    assert "Google pairs test, all words are candidates" in again.output
    assert "…" not in again.output  # nothing is cut where there is no terminal
    for name in ("tables.md", "tables.html"):
        assert f"written: {tmp_path / name}" in again.output
        assert "Google News" in (tmp_path / name).read_text(encoding="utf-8")


def test_run_then_several(tmp_path: Path) -> None:
    options = ["--model", "wv", "--seeds", "1", "--jobs", "1", "--limit", "3000", "--out", str(tmp_path)]
    result = RUNNER.invoke(cli.app, ["analogies", "run", *options])
    assert result.exit_code == 0, result.output
    options = ["--shots", "1", "--shots", "all", "--method", "3cosavg", "--method", "lrcos", "--jobs", "1"]
    result = RUNNER.invoke(cli.app, ["analogies", "several", "--out", str(tmp_path), *options])
    assert result.exit_code == 0, result.output
    for text in (
        "done: 3cosavg wv, 1 pair, seed 0",
        "Google pairs test, all but the query are candidates",
        "3cosavg wv",
        "lrcos",
    ):
        assert text in result.output
    assert "…" not in result.output
    for name in ("several.md", "several.html"):
        assert f"written: {tmp_path / name}" in result.output
        assert "Examples of test pairs" in (tmp_path / name).read_text(encoding="utf-8")


def test_table_of_nothing(tmp_path: Path) -> None:
    result = RUNNER.invoke(cli.app, ["analogies", "table", "--out", str(tmp_path)])
    assert isinstance(result.exception, AbelnetError)


def test_help_names_all_models() -> None:
    text = " ".join(RUNNER.invoke(cli.app, ["analogies", "run", "--help"]).output.split())
    for name in MODELS:
        assert name in text
