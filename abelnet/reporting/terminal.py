"""Terminal renderer of tables and reports."""

from __future__ import annotations

__all__ = ["print_report", "print_table"]

import rich.table
from rich.box import SIMPLE
from rich.console import Console
from rich.text import Text

from abelnet.reporting.report import Report
from abelnet.reporting.table import Table

_WIDEST = 10_000  # characters; wider than any table


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
            console.rule(Text(section.heading))
        if section.text:
            _print(section.text, console)
        for table in section.tables:
            print_table(table, console)
    for note in report.notes:
        _print(note, console)


def print_table(table: Table, console: Console) -> None:
    """Prints a table with its winners in bold: wrapped to fit a terminal, at full width elsewhere.

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
    shown = rich.table.Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for column in table.columns:
        shown.add_column(Text(column.heading), justify=column.align, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(cell.text, style="bold" if cell.winner else "") for cell in row))
    _print(table.title, console, style="table.title")
    if console.is_terminal:
        console.print(shown)
    else:
        width = console.measure(shown, options=console.options.update(width=_WIDEST)).maximum
        Console(file=console.file, width=width).print(shown)
    for note in table.notes:
        _print(note, console)


def _print(text: str, console: Console, style: str = "") -> None:
    """Prints text without markup, wrapped on terminals only."""
    console.print(Text(text, style), soft_wrap=not console.is_terminal)
