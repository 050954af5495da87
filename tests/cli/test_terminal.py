"""What commands show."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from abelnet.cli import terminal


def test_text_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("[bold]" + "x" * 200, "[/]")
    terminal.say_written([path])
    assert capsys.readouterr().out == f"written: {path}\n"


def test_where_there_is_no_terminal_nothing_moves(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.status("reading [/]") as update, terminal.progress("training") as on_progress:
        update("learning [/]")
        on_progress(0.5)
    assert capsys.readouterr() == ("", "")


def test_control_characters_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say_written([Path("a\x1b[2J:smile:\nb")])
    terminal.say_error("x\x1b[2J\n[red]y")
    output = capsys.readouterr()
    assert output.out == "written: a\\x1b[2J:smile:\\nb\n"
    assert output.err == "abelnet: x\\x1b[2J [red]y\n"


def test_progress_text_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, force_interactive=True, color_system=None)
    monkeypatch.setattr(terminal, "_console", lambda: console)
    with terminal.status("reading v [/s]\x07"):
        pass
    with terminal.progress("training [/] \x07") as on_progress:
        on_progress(0.5)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert r"reading v [/s]\x07" in text
    assert r"training [/] \x07" in text


def test_progress_goes_to_stderr_if_results_are_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    results = Console(file=io.StringIO())
    errors = Console(file=io.StringIO(), force_terminal=True, force_interactive=True)
    monkeypatch.setattr(terminal, "_console", lambda *, stderr=False: errors if stderr else results)
    with terminal.status("reading"):
        pass
    with terminal.progress("training") as on_progress:
        on_progress(0.5)
        terminal.say("done: x")
    assert isinstance(results.file, io.StringIO)
    assert results.file.getvalue() == "done: x\n"
    assert isinstance(errors.file, io.StringIO)
    assert "reading" in errors.file.getvalue()
    assert "training" in errors.file.getvalue()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("NO_COLOR", "")])
def test_errors_are_red_unless_colors_are_not_wanted(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    printed: list[str] = []
    monkeypatch.setattr("typer.echo", lambda text, err: printed.append(text))
    terminal.say_error("wrong")
    assert printed == ["abelnet: wrong" if value else "\x1b[31mabelnet: wrong\x1b[0m"]


def test_reports_without_plots_say_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    terminal.say_report([Path("table.md")])
    line = 'without plots: matplotlib is not installed; pip install "abelnet[plots]"'
    assert capsys.readouterr().out.splitlines() == ["written: table.md", line]
