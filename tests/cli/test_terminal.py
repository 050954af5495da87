"""What commands show."""

from __future__ import annotations

from pathlib import Path

import pytest

from abelnet.cli import terminal


def test_text_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("[bold]" + "x" * 200, "[/]")
    terminal.say_written([path])
    assert capsys.readouterr().out == f"written: {path}\n"


def test_where_there_is_no_terminal_nothing_moves(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.status("reading [/]") as update, terminal.progress("training") as on_progress:
        update("learning [/]")
        on_progress(0.5)
    assert capsys.readouterr().out == ""
