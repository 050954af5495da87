"""The terminal: nothing is cut off, and text is no markup."""

from __future__ import annotations

import io
import re

import pytest
from report_samples import reports
from rich.cells import cell_len
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


@pytest.fixture(scope="module")
def all_reports() -> dict[str, Report]:
    return reports()


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


def test_columns_that_do_not_fit_are_continued_below() -> None:
    lines = printed(WIDE, terminal=True).splitlines()
    assert max(map(len, lines)) <= 80
    for i in range(12):
        (line, *_) = [line for line in lines if f"{i}.000e+00 [bold]x" in line]  # whole, on one line
        assert "0.000e+00" in line  # beside what names the row


@pytest.mark.parametrize("width", [60, 80])
def test_every_report_fits(width: int, all_reports: dict[str, Report]) -> None:
    for name, report in all_reports.items():
        console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
        print_report(report, console)
        assert isinstance(console.file, io.StringIO)
        text = console.file.getvalue()
        assert max(cell_len(line) for line in text.splitlines()) <= width, name
        assert "…" not in text.replace(" …", ""), name
        for table in (table for section in report.sections for table in section.tables):
            for row in table.rows:
                for column, cell in zip(table.columns, row, strict=True):
                    if column.align == "right":
                        assert re.search(rf"(?<!\S){re.escape(cell.text)}(?!\S)", text), (name, cell.text)


def test_width_is_that_of_the_environment_if_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    output = io.StringIO()
    print_table(WIDE, Console(file=output))
    assert max(map(len, output.getvalue().splitlines())) <= 70


def test_control_characters_are_escaped() -> None:
    bad = "a\x1b[31m\x9b\u202eb\r\nc"
    table = Table(bad, [Column(bad), Column(bad, "right")], [[Cell(bad), Cell(bad)]], [bad])
    console = Console(file=io.StringIO(), width=200)
    print_report(Report(bad, [Section(bad, "one\ntwo\x1b", [table])], [bad]), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert text.count(r"a\x1b[31m\x9b\u202eb\r\nc") == 8
    assert "one\ntwo\\x1b\n" in text
    assert not set("\x1b\x9b\u202e\r") & set(text)


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
