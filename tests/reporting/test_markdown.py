"""Markdown: tables that stay tables whatever is in their cells."""

from __future__ import annotations

import pytest

from abelnet.reporting.markdown import markdown_report, markdown_table
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("|ψ| ≥ 1", r"\|ψ\| ≥ 1"),
        ("two\nlines", "two lines"),
        ("a*b*c", r"a\*b\*c"),
        ("`x`", r"\`x\`"),
        ("<script>", r"\<script>"),
        ("back\\", "back\\\\"),  # would escape the end of the cell
        ("__init__", r"\_\_init\_\_"),
        ("plural_reg", "plural_reg"),
    ],
)
def test_cells_and_headings_are_escaped(text: str, expected: str) -> None:
    table = Table("t", [Column(text), Column("b", "right")], [[Cell(text), Cell(text, winner=True)]])
    assert markdown_table(table).split("\n") == [
        f"| {expected} | b |",
        "|---|--:|",
        f"| {expected} | **{expected}** |",
    ]


def test_report() -> None:
    table = Table("Errors", [Column("size", "right")], [[Cell("2")]], ["a | b"])
    sections = [Section("x", "x∘y = x + y", [table], {"curve": b"PNG"}), Section(tables=[table])]
    assert (
        markdown_report(Report("Law", sections, ["First."]))
        == """# Law

First.

## x

```text
x∘y = x + y
```

### Errors

| size |
|--:|
| 2 |

- a \\| b

![curve](curve.png)

### Errors

| size |
|--:|
| 2 |

- a \\| b
"""
    )


def test_control_characters_are_escaped() -> None:
    bad = "x\x1b\u202e"
    table = Table(bad, [Column(bad)], [[Cell(bad)]], [bad])
    text = markdown_report(Report(bad, [Section(bad, f"one\ntwo {bad}", [table])], [bad]))
    assert not set(bad[1:]) & set(text)
    assert "one\ntwo x\\x1b\\u202e\n" in text
