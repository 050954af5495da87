"""Tables that are pasted or uploaded: a file for the readers of tables, and a guess at what its columns are."""

from __future__ import annotations

__all__ = ["MOST_ROWS", "guess", "inspect_table", "stored"]

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from abelnet.engines.columns import Columns, repeated
from abelnet.engines.text import Layout, layout_of, layouts_of, parse_number, records
from abelnet.errors import AbelnetError
from abelnet.explore.tasks import Arguments
from abelnet.files import scratch_folder

MOST_ROWS = 200_000
"""Rows of a table; longer ones are for the command line, which reads them in streaming fashion."""
_MOST_COLUMNS = 100
_SAMPLED = 2_000  # rows that a guess is made from
_SHOWN = 6  # rows of the preview
_LONGEST_CELL = 60
_RESULTS = ("result", "results", "target", "total", "y", "sum", "output", "combined")
# Options of the command line, as the page has them.
_PHRASES = {
    "use --skip-missing to skip": 'tick "skip incomplete sets" to skip',
    " in learning": "",
    "; if commas separate decimals, use --decimal ,": "; if commas separate decimals, separate cells by semicolons",
}


@contextmanager
def stored(text: str) -> Iterator[Path]:
    """Yields a file with a table; errors that name the file name the table instead.

    A table whose first line has only numbers gets a header: ``x1``, ``x2``, …, ``result``.

    Arguments:
        text: The table, CSV or TSV.
    """
    if not text.strip():
        raise AbelnetError("table: expected rows, got an empty text; paste a table with a header line")
    rows = text.count("\n") + (not text.endswith("\n")) - 1
    if rows > MOST_ROWS:
        raise AbelnetError(
            f"table: expected at most {MOST_ROWS:,} rows, got {rows:,}; take a sample of its sets, or run "
            "abelnet learn FILE on the command line, which has no limit"
        )
    with scratch_folder() as folder:
        path = Path(folder) / "table.csv"
        try:
            path.write_text(_header(text) + text, encoding="utf-8", newline="")
            yield path
        except UnicodeEncodeError:
            raise AbelnetError("table: expected text, got half of a surrogate pair") from None
        except AbelnetError as error:
            message = str(error).replace(f"file: expected a header line in {path}", "table: expected a header line")
            message = message.replace(str(path), "table")
            for phrase, ours in _PHRASES.items():
                message = message.replace(phrase, ours)
            error.args = (message, *error.args[1:])
            raise


def _header(text: str) -> str:
    """Returns a header for a table without one, and nothing otherwise."""
    line = next((line for line in text.splitlines() if line.strip()), "")[:10_000].removeprefix("\ufeff")
    for delimiter in ("\t", ";", ",", "|"):
        if delimiter in line:
            cells = next(csv.reader([line], delimiter=delimiter))
            if all(parse_number(cell, "," if delimiter != "," else ".") is not None for cell in cells):
                names = [f"x{i}" for i in range(1, len(cells))]
                return delimiter.join([*names, "result"]) + "\n"
            return ""
    return ""


def inspect_table(arguments: Arguments, say: Callable[[str], None]) -> dict[str, Any]:
    """Returns the columns of a table, its first rows, and a guess at which are sets, elements and results."""
    with stored(arguments.text("text")) as path:
        layout = max(layouts_of(path), key=lambda one: len(one.header))
        twice = repeated(layout.header)
        if twice is not None:
            raise AbelnetError(f"table: expected columns of different names, got {twice:.80} twice")
        if len(layout.header) > _MOST_COLUMNS:
            raise AbelnetError(f"table: expected at most {_MOST_COLUMNS} columns, got {len(layout.header)}")
        if len(layout.header) < 2:
            raise AbelnetError("table: expected at least two columns, separated by commas, semicolons or tabs, got one")
        rows = [row for _, row in islice(records(path, layout), _SAMPLED)]
        lines = Layout.count_lines(path) - layout.lines
        if not rows:
            raise AbelnetError("table: expected rows below the header, got none")
        # Whether commas are decimal, is known to the reader that is told the columns of numbers.
        decimals = layout_of(path, Columns(layout.header), layout.delimiter)
    found = guess(layout.header, rows, decimals.decimal)
    shown = [[cell[:_LONGEST_CELL] for cell in row] for row in rows[:_SHOWN]]
    return {
        "columns": list(layout.header),
        "rows": shown,
        "count": lines,
        "added_header": _header(arguments.text("text")) != "",
        **found,
    }


def guess(header: Sequence[str], rows: Sequence[Sequence[str]], decimal: str = ".") -> dict[str, Any]:
    """Returns which columns look like sets, elements and results, and which have numbers.

    In a table in long form, one column has each of its values on several rows, and some columns of numbers, the
    results, are the same on each row of a set. Otherwise each row is a multiset, and its last number the result.

    Arguments:
        header: Names of the columns.
        rows: Some rows.
        decimal: Separator of decimals.

    Example:
        >>> rows = [["a", "1", "3"], ["a", "2", "3"], ["b", "5", "9"], ["b", "4", "9"]]
        >>> guess(["order", "price", "total"], rows)
        {'numbers': ['price', 'total'], 'set': 'order', 'values': ['price'], 'targets': ['total']}
        >>> guess(["first", "second", "both"], [["1", "2", "3"], ["4", "5", "9"]])["targets"]
        ['both']
    """
    cells = list(zip(*rows, strict=True))
    parsed = [[parse_number(cell, decimal) for cell in column] for column in cells]
    is_number = [None not in column and not all(map(math.isnan, column)) for column in parsed]  # type: ignore[arg-type]
    numbers = [name for name, own in zip(header, is_number, strict=True) if own]
    for i in sorted(range(len(header)), key=lambda i: is_number[i]):
        if is_number[i] and not all("." not in cell and "e" not in cell.lower() for cell in cells[i]):
            continue  # a set is named by words or whole numbers
        names = set(cells[i])
        if not 1 < len(names) <= 0.75 * len(rows):
            continue
        constant = {
            header[j]: len(set(zip(cells[i], cells[j], strict=True))) == len(names)
            for j in range(len(header))
            if is_number[j] and j != i
        }
        values = [name for name, same in constant.items() if not same]
        targets = [name for name, same in constant.items() if same]
        if values and targets:
            count = min(len(values), len(targets))
            return {"numbers": numbers, "set": header[i], "values": values[:count], "targets": targets[:count]}
    named = [name for name in numbers if name.strip().lower() in _RESULTS]
    target = named[-1:] or numbers[-1:]
    return {"numbers": numbers, "set": None, "values": [n for n in numbers if n not in target], "targets": target}
