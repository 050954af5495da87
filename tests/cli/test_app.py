"""The command line."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import abelnet
from abelnet import cli


def test_reproduce_prints_both_experiments() -> None:
    result = CliRunner().invoke(cli.app, ["reproduce", "--epochs", "1"])
    assert result.exit_code == 0
    for text in ("x + y + 1", "cbrt(x³ + y³)", "x + y + 0.5·x·y", "10–12", "assoc.", "Google pairs test", "Syntactic"):
        assert text in result.output
    assert "…" not in result.output


def test_version_and_help() -> None:
    assert abelnet.__version__ in CliRunner().invoke(cli.app, ["--version"]).output
    assert "reproduce" in CliRunner().invoke(cli.app, ["--help"]).output


def test_what_a_caller_gets_wrong_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise abelnet.AbelnetError("seed: expected a number")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert "abelnet: seed: expected a number" in capsys.readouterr().err
