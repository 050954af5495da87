"""Terminal renderer of tables and reports."""

from __future__ import annotations

__all__ = ["print_report", "print_table"]

import os
from collections.abc import Iterator, Sequence

import rich.table
from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

from abelnet.reporting.printable import printable
from abelnet.reporting.report import Report
from abelnet.reporting.table import Table

_WIDEST = 10_000  # characters; wider than any table
# Text is not wrapped into columns narrower than this, and longer words in headings are folded.
_NARROWEST = 16


def print_report(report: Report, console: Console) -> None:
    """Prints the sections of a report, then its notes. Figures are omitted.

    Example:
        >>> from abelnet.reporting.report import Section
        >>> print_report(Report("Law of x", [Section(text="x∘y = x + y")], ["Learned from 60 examples."]), Console())
        x∘y = x + y
        Learned from 60 examples.
    """
    for section in report.sections:
        if section.heading:
            console.rule(Text(printable(section.heading)))
        for note in section.notes:
            _print(note, console)
        for line in section.text.splitlines():
            _print(line, console)
        for table in section.tables:
            print_table(table, console)
    for note in report.notes:
        _print(note, console)


def print_table(table: Table, console: Console) -> None:
    """Prints a table with its winners in bold: at full width to a file or a pipe, unless ``COLUMNS`` is set.

    Otherwise text is wrapped to fit, and columns of numbers, which are never broken, are continued below.

    Example:
        >>> from abelnet.reporting.table import Cell, Column
        >>> table = Table("Sizes", [Column("model"), Column("RMSE", "right")], [[Cell("AGN"), Cell("0.04")]])
        >>> print_table(table, Console())
        Sizes
        <BLANKLINE>
         model RMSE
         ────────────
         AGN   0.04
        <BLANKLINE>
    """
    _print(table.title, console, style="table.title")
    whole = _rendered(table, range(len(table.columns)))
    width = _measure(whole, console).maximum
    if not _has_width(console):
        Console(file=console.file, width=width).print(whole)
    elif width <= console.width:
        console.print(whole)
    else:
        for places in _blocks(table, console):
            console.print(_rendered(table, places, narrow=True))
    for note in table.notes:
        _print(note, console)


def _has_width(console: Console) -> bool:
    return console.is_terminal or "COLUMNS" in os.environ


def _blocks(table: Table, console: Console) -> Iterator[list[int]]:
    """Yields the columns of each block: those that name a row, and as many others as fit beside them."""
    texts = [i for i, column in enumerate(table.columns) if column.align == "left"]
    names = list(range(max(texts, default=0) + 1))
    block = names.copy()
    for i in range(len(names), len(table.columns)):
        if (
            len(block) > len(names)
            and _measure(_rendered(table, [*block, i], narrow=True), console).minimum > console.width
        ):
            yield block
            block = names.copy()
        block.append(i)
    yield block


def _measure(shown: rich.table.Table, console: Console) -> Measurement:
    return console.measure(shown, options=console.options.update(width=_WIDEST))


def _rendered(table: Table, places: Sequence[int], *, narrow: bool = False) -> rich.table.Table:
    shown = rich.table.Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for i in places:
        column = table.columns[i]
        shown.add_column(Text(printable(column.heading)), justify=column.align, overflow="fold")
        if narrow:
            _limit(shown.columns[-1], [column.heading.split(), [row[i].text for row in table.rows]])
    for row in table.rows:
        cells = [row[i] for i in places]
        shown.add_row(*(Text(printable(cell.text), style="bold" if cell.winner else "") for cell in cells))
    return shown


def _limit(column: rich.table.Column, texts: Sequence[Sequence[str]]) -> None:
    """Sets the least width of a column of text; the width of a column of numbers, where only the heading is wrapped."""
    heading, cells = (max((cell_len(printable(text)) for text in part), default=0) for part in texts)
    if column.justify == "left":
        column.min_width = min(max(heading, cells), _NARROWEST)
    else:
        column.width = max(min(heading, _NARROWEST), cells)


def _print(text: str, console: Console, style: str = "") -> None:
    """Prints one line of text without markup, wrapped on terminals only."""
    console.print(Text(printable(text), style), soft_wrap=not _has_width(console))
