"""Terminal output of commands: status, progress and results. rich is imported on use."""

from __future__ import annotations

__all__ = ["progress", "say", "say_written", "show", "show_table", "status"]

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from abelnet.reporting.report import Report
    from abelnet.reporting.table import Table


@cache
def _console() -> Console:
    from rich.console import Console

    return Console()


def say(text: str) -> None:
    """Prints text verbatim: brackets are not markup, and lines are not wrapped."""
    _console().print(text, highlight=False, markup=False, soft_wrap=True)


def say_written(paths: Iterable[Path]) -> None:
    """Prints the paths of written files."""
    for path in paths:
        say(f"written: {path}")


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

    with _console().status(Text(text), spinner="line") as shown:
        yield lambda text: shown.update(Text(text))


@contextmanager
def progress(text: str) -> Iterator[Callable[[float], None]]:
    """Shows a progress bar on a terminal; yields a function to call with the completed fraction, from 0 to 1."""
    from rich.progress import Progress

    console = _console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(text, total=1.0)
        yield lambda part: bar.update(task, completed=part)
