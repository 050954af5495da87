"""Headers and rows of CSV files by Python's csv module: what DuckDB is told of a file, and where a file is wrong."""

from __future__ import annotations

__all__ = ["LONGEST_LINE", "MISSING", "Layout", "check_header", "layout_of", "layouts_of", "parse_number", "records"]

import csv
import gzip
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TextIO, cast

from abelnet.engines.columns import Columns, repeated
from abelnet.errors import AbelnetError

LONGEST_LINE = 2**21  # characters; the longest that DuckDB reads, in bytes
MISSING = ("", "na", "nan", "null", "none")
_SEPARATORS = (",", ";", "\t", "|")
_ROWS_TO_SNIFF = 1000
# float() also takes underscores and the digits of all scripts.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)", re.ASCII | re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,(?!\d{3}\s*$)\d+(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """How a CSV file is written.

    Attributes:
        delimiter: Between cells.
        decimal: Separator of decimals, a point or a comma.
        header: Names of the columns.
        skip: Records up to and including the header; blank lines count.
        lines: Lines up to and including the header.
    """

    delimiter: str
    decimal: str
    header: tuple[str, ...]
    skip: int
    lines: int

    @staticmethod
    def count_lines(path: Path) -> int:
        """Returns the number of lines of a file that end in a line feed, or not at all."""
        opener = gzip.open if path.suffix.lower() == ".gz" else open
        count, last = 0, b"\n"
        with opener(path, "rb") as file:
            while chunk := file.read(2**20):
                count, last = count + chunk.count(b"\n"), chunk[-1:]
        return count + (last != b"\n")


def layout_of(path: Path, columns: Columns, delimiter: str | None = None, decimal: str | None = None) -> Layout:
    """Returns the layout of a CSV file: the delimiter by which its header has most of the columns that are wanted.

    Commas are decimal if cells are separated by something else, and numbers have commas but no points. Three digits
    after each comma may be thousands as well; then numbers with commas are refused.

    Arguments:
        path: The file, possibly compressed.
        columns: Columns to read.
        delimiter: Delimiter, if it is known.
        decimal: Separator of decimals, if it is known.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "t.csv")
        ...     _ = path.write_text("order;price\\na;1,5\\n")
        ...     layout_of(path, Columns(("price",), "order"))
        Layout(delimiter=';', decimal=',', header=('order', 'price'), skip=1, lines=1)
    """
    found = layouts_of(path, delimiter, decimal)
    best = max(found, key=lambda one: (len(set(columns.all) & set(one.header)), len(one.header)))
    check_header(path, best.header, columns)
    if decimal is None and best.delimiter != "," and _has_decimal_commas(path, columns, best):
        return replace(best, decimal=",")
    return best


def layouts_of(path: Path, delimiter: str | None = None, decimal: str | None = None) -> list[Layout]:
    """Returns the layouts that a CSV file may have, one for each delimiter; raises if it has no header.

    Arguments:
        path: The file, possibly compressed.
        delimiter: Delimiter, if it is known.
        decimal: Separator of decimals, if it is known.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "t.csv")
        ...     _ = path.write_text("order;price\\n")
        ...     max(layouts_of(path), key=lambda layout: len(layout.header)).header
        ('order', 'price')
    """
    usual = "\t" if ".tsv" in path.name.lower() else ","
    found = []
    for separator in [delimiter] if delimiter else sorted(_SEPARATORS, key=lambda one: one != usual):
        with _opened(path) as file, suppress(csv.Error):
            for blank, (_, end, row) in enumerate(_rows(path, file, separator)):
                if row:
                    header = tuple(name.strip() for name in row)
                    found.append(Layout(separator, decimal or ".", header, blank + 1, end))
                    break
    if not found:
        next(records(path, Layout(usual, ".", (), 0, 0)), None)  # raises if there is a line, which is no header then
        raise AbelnetError(f"file: expected a header line in {path}, got an empty file")
    return found


def check_header(path: object, header: Sequence[str], columns: Columns) -> None:
    """Raises unless a header has each column once."""
    for name in columns.all:
        if name not in header:
            raise AbelnetError(f"{path}: expected a column {name}, got {', '.join(header):.200}")
    twice = repeated(name for name in header if name in columns.all)
    if twice is not None:
        raise AbelnetError(f"{path}: expected one column {twice}, got several of that name")


def _has_decimal_commas(path: Path, columns: Columns, layout: Layout) -> bool:
    places = [layout.header.index(name) for name in columns.numbers]
    with _opened(path) as file, suppress(csv.Error):
        rows = islice(_rows(path, file, layout.delimiter), layout.skip, layout.skip + _ROWS_TO_SNIFF)
        cells = [row[place] for *_, row in rows for place in places if place < len(row)]
        return not any("." in cell for cell in cells) and any(map(_DECIMAL_COMMA.fullmatch, cells))
    return False


def records(path: Path, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yields each row of a CSV file with the line on which it starts; raises at the first that cannot be read.

    Arguments:
        path: The file, possibly compressed.
        layout: Its layout.
    """
    line = 1
    with _opened(path) as file:
        try:
            for i, (start, end, row) in enumerate(_rows(path, file, layout.delimiter)):
                line = end + 1
                if i >= layout.skip and row:
                    if len(row) != len(layout.header):
                        raise AbelnetError(f"{path}, line {start}: expected {len(layout.header)} cells, got {len(row)}")
                    yield start, row
        except csv.Error as error:
            raise AbelnetError(f"{path}, line {line}: expected a row of a table, got: {error}") from None


def parse_number(text: str | None, decimal: str = ".") -> float | None:
    """Returns the number in a cell, NaN if it is missing, and None if there is something else.

    Example:
        >>> parse_number(" 1e3 "), parse_number("NA"), parse_number("1_000"), parse_number("1,5", ",")
        (1000.0, nan, None, 1.5)
    """
    plain = "" if text is None else text.strip()
    if plain.lower() in MISSING:
        return math.nan
    if decimal == ",":
        plain = plain.translate({ord(","): ".", ord("."): ","})
    return float(plain) if _NUMBER.fullmatch(plain) else None


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with cast(TextIO, opener(path, "rt", newline="", encoding="utf-8-sig")) as file:
            yield file
    except UnicodeDecodeError as error:
        got = f"byte {error.object[error.start]:#04x}"
        raise AbelnetError(f"{path}: expected text in UTF-8, got {got}; save the table as UTF-8") from None
    except (EOFError, zlib.error, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AbelnetError(f"{path}: expected a readable file, got: {' '.join(reason.split())}") from None


def _rows(path: Path, file: TextIO, delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yields each record, also blank ones, with its first and last line."""
    # In strict mode an unbalanced quote is an error; otherwise it hides all rows that follow.
    reader = csv.reader(_lines(path, file), delimiter=delimiter, strict=True)
    limit, start = csv.field_size_limit(LONGEST_LINE), 1
    try:
        for row in reader:
            yield start, reader.line_num, row
            start = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise AbelnetError(f"{path}: expected lines of less than {LONGEST_LINE:,} characters, got a longer one")
        if "\0" in line:
            raise AbelnetError(f"{path}: expected text, got a NUL byte; is it a binary file, or text in UTF-16?")
        yield line
