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


def test_table_of_nothing(tmp_path: Path) -> None:
    result = RUNNER.invoke(cli.app, ["analogies", "table", "--out", str(tmp_path)])
    assert isinstance(result.exception, AbelnetError)


def test_help_names_all_models() -> None:
    text = " ".join(RUNNER.invoke(cli.app, ["analogies", "run", "--help"]).output.split())
    for name in MODELS:
        assert name in text
