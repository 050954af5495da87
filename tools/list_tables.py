"""Lists awkward tables and what happens to each, for docs/tables.md.

    python tools/list_tables.py

The tables are those of tests/awkward_tables.py; each is made and read. tests/engines/test_tables.py checks that the
listing is up to date.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from abelnet.reporting.markdown import markdown_table
from abelnet.reporting.printable import printable
from abelnet.reporting.table import Cell, Column, Table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "tables.md"
BEGIN, END = "<!-- listing: made by tools/list_tables.py -->", "<!-- end of listing -->"
LONGEST = 160  # characters of a cell


def listing() -> str:
    """Returns the table of files and what happens to them."""
    sys.path.insert(0, str(ROOT / "tests"))
    from awkward_tables import CASES, outcome

    rows = []
    for case in CASES:
        found = outcome(case)
        if isinstance(found, dict):
            text = "read: " + ", ".join(f"{name} = {_shown(x)}" for name, x in found.items())
        else:
            # What follows is the message of a library or of the system, which have several versions.
            text = "error: " + found.partition(", got: ")[0]
        text = printable(text)
        rows.append([Cell(case.name), Cell(case.what), Cell(text if len(text) <= LONGEST else f"{text[:LONGEST]} …")])
    return markdown_table(Table("", [Column("file"), Column("awkward"), Column("what happens")], rows))


def _shown(x: float) -> str:
    return repr(x).removesuffix(".0") if math.isfinite(x) else "no result"


def page() -> str:
    """Returns the page with a fresh listing."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{listing()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
