"""Markdown renderer of tables and reports."""

from __future__ import annotations

__all__ = ["markdown_report", "markdown_table"]

import re
from collections.abc import Iterable

from abelnet.reporting.printable import printable
from abelnet.reporting.report import Report, figure_suffix
from abelnet.reporting.table import Cell, Table

# Characters that end a cell, or start emphasis, code or a tag. An underscore inside a word is plain text already.
_SPECIAL = re.compile(r"[\\|*`<]|(?<![^\W_])_|_(?![^\W_])")
_RULES = {"left": "---", "right": "--:"}


def markdown_table(table: Table) -> str:
    r"""Renders the rows of a table, winners in bold, without title and notes.

    Example:
        >>> from abelnet.reporting.table import Column
        >>> columns = [Column("model"), Column("|x|", "right")]
        >>> print(markdown_table(Table("Norms", columns, [[Cell("AGN"), Cell("2", winner=True)]])))
        | model | \|x\| |
        |---|--:|
        | AGN | **2** |
    """
    rules = "|".join(_RULES[column.align] for column in table.columns)
    lines = [_line(map(_escaped, table.headings)), f"|{rules}|"]
    return "\n".join([*lines, *(_line(map(_cell, row)) for row in table.rows)])


def markdown_report(report: Report) -> str:
    """Renders a report as a Markdown document; its figures are files in the same folder.

    Example:
        >>> print(markdown_report(Report("Law of x", [], ["Learned from 60 examples."])))
        # Law of x
        <BLANKLINE>
        Learned from 60 examples.
        <BLANKLINE>
    """
    blocks = [f"# {_escaped(report.title)}", *map(_escaped, report.notes)]
    for section in report.sections:
        if section.heading:
            blocks.append(f"## {_escaped(section.heading)}")
        blocks += map(_escaped, section.notes)
        if section.facts:
            blocks.append("\n".join(f"- {_escaped(name)}: {_escaped(fact)}" for name, fact in section.facts))
        if section.text:
            blocks.append(_fenced(section.text))
        for table in section.tables:
            blocks += [f"### {_escaped(table.title)}", markdown_table(table)]
            if table.notes:
                blocks.append("\n".join(f"- {_escaped(note)}" for note in table.notes))
        blocks += [f"![{_escaped(name)}]({name}.{figure_suffix(figure)})" for name, figure in section.figures.items()]
        for title, code in section.listings.items():
            blocks += [f"### {_escaped(title)}", _fenced(code)]
        if section.commands:
            first, *others = (f"`{command}`" for command in section.commands)
            blocks.append(f"Made by {first}" + (f"; see also {' '.join(others)}" if others else ""))
    return "\n\n".join(blocks) + "\n"


def _fenced(text: str) -> str:
    lines = "\n".join(map(printable, text.splitlines()))
    return f"```text\n{lines}\n```"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    return f"**{text}**" if cell.winner else text


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", printable(" ".join(text.splitlines())))
