"""The terminal: nothing is cut off, and text is no markup."""

from __future__ import annotations

import io

from rich.console import Console

from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table
from abelnet.reporting.terminal import print_report, print_table

WIDE = Table(
    "An [italic]title[/italic]",
    [Column(f"column number {i}", "right") for i in range(12)],
    [[Cell(f"{i}.000e+00 [bold]x", winner=i == 3) for i in range(12)]],
    ["a note [1]"],
)


def printed(table: Table, *, terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
    print_table(table, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_as_wide_as_it_needs_where_there_is_no_terminal() -> None:
    lines = printed(WIDE, terminal=False).splitlines()
    assert lines[0] == "An [italic]title[/italic]"
    assert lines[-1] == "a note [1]"
    assert any(all(f"column number {i}" in line for i in range(12)) for line in lines)
    assert any(all(f"{i}.000e+00 [bold]x" in line for i in range(12)) for line in lines)


def test_folded_on_a_narrow_terminal() -> None:
    table = Table("t", WIDE.columns[:6], [row[:6] for row in WIDE.rows])
    text = printed(table, terminal=True)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("[bold]x") == 6


def test_winners_are_bold_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    print_table(Table("t", [Column("a"), Column("b")], [[Cell("loser"), Cell("winner", winner=True)]]), console)
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[1mwinner" in console.file.getvalue()
    assert "\x1b[1mloser" not in console.file.getvalue()


def test_report() -> None:
    console = Console(file=io.StringIO(), width=80)
    formula = "x∘y = " + "x + " * 40 + "y [0]"
    table = Table("Errors", [Column("size")], [[Cell("2")]])
    print_report(Report("not shown", [Section("[x]", formula, [table], {"curve": b""})], ["the end"]), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "─ [x] ─" in text
    assert formula in text  # on one line
    assert text.index("Errors") < text.index("the end")
