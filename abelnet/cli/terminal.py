"""Terminal output of commands: status, progress and results. rich is imported on use."""

from __future__ import annotations

__all__ = [
    "prepare",
    "progress",
    "reader_is_gone",
    "say",
    "say_error",
    "say_report",
    "say_written",
    "show",
    "show_table",
    "status",
]

import codecs
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from abelnet.reporting.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from abelnet.reporting.report import Report
    from abelnet.reporting.table import Table


# What is printed instead of characters that a terminal cannot show.
_ASCII = {"∘": "o", "φ": "phi", "−": "-", "–": "-", "·": "*", "×": "x", "…": "...", "─": "-", "²": "^2", "∞": "inf"}


def prepare() -> None:
    """Makes both streams print something similar instead of characters outside their encoding."""
    codecs.register_error("abelnet", _similar)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="abelnet")


def _similar(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(_ASCII.get(character, "?") for character in error.object[error.start : error.end]), error.end


@cache
def _console(*, stderr: bool = False) -> Console:
    import rich.console

    class Console(rich.console.Console):
        def on_broken_pipe(self) -> None:
            # Whoever read the output has left, as head does. What the command computes is still to be saved.
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    return Console(stderr=stderr)


def _lively() -> Console:
    """Returns the console of what moves: that of results, or that of errors if results go to a file or a pipe."""
    console = _console()
    return console if console.is_terminal else _console(stderr=True)


def reader_is_gone() -> bool:
    """Returns whether the process that read the output has closed it before its end."""
    return _console.cache_info().currsize > 0 and _console().quiet


def say(text: str) -> None:
    """Prints one line of text: brackets are not markup, control characters are escaped, and it is not wrapped."""
    from rich.text import Text

    _console().print(Text(printable(text)), soft_wrap=True)


def say_error(text: str) -> None:
    """Prints an error in one line: red on a terminal, unless ``NO_COLOR`` is set."""
    line = f"abelnet: {printable(' '.join(text.splitlines()))}"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    typer.echo(line if plain else typer.style(line, fg="red"), err=True)


def say_written(paths: Iterable[Path]) -> None:
    """Prints the paths of written files."""
    for path in paths:
        say(f"written: {path}")


def say_report(paths: Iterable[Path]) -> None:
    """Prints the paths of a report and its figures, or how to get figures if they could not be drawn."""
    say_written(paths)
    if importlib.util.find_spec("matplotlib") is None:
        say('without plots: matplotlib is not installed; pip install "abelnet[plots]"')


def show(report: Report) -> None:
    """Prints a report."""
    from abelnet.reporting.terminal import print_report

    print_report(report, _console())


def show_table(table: Table) -> None:
    """Prints a table."""
    from abelnet.reporting.terminal import print_table

    print_table(table, _console())


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Shows a status on a terminal; yields a function that updates its text."""
    from rich.text import Text

    console = _lively()
    if not console.is_interactive:
        yield lambda _: None
        return
    with console.status(Text(printable(text)), spinner="line") as shown:
        yield lambda text: shown.update(Text(printable(text)))


@contextmanager
def progress(text: str) -> Iterator[Callable[[float], None]]:
    """Shows a progress bar on a terminal; yields a function to call with the completed fraction, from 0 to 1."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = _lively()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=_console().is_terminal,  # a pipe gets the lines, and nothing of the bar
        disable=not console.is_interactive,
    ) as bar:
        task = bar.add_task(printable(text), total=1.0)
        yield lambda part: bar.update(task, completed=part)
