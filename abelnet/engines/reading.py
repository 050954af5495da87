"""Readers of tables in batches of rows: CSV, and Parquet if pyarrow is installed."""

from __future__ import annotations

__all__ = ["Columns", "Rows", "locate", "read_rows"]

import csv
import gzip
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np

from abelnet.errors import AbelnetError

Array = np.ndarray[Any, np.dtype[np.float64]]

_ROWS = 100_000  # of a batch
_CELLS = 1_000_000  # of a batch; decides in tables of more than ten columns
_CELLS_OF_TEXT = 10_000  # held as Python objects, which take ten times the memory of numbers
_LONGEST_LINE = 2**24  # characters
_SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t"}
_MISSING = ("", "na", "nan", "null", "none")
# float() also takes underscores and the digits of all scripts.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Columns:
    """Columns of a table.

    In long form, each row is an element: ``set`` identifies its multiset and ``values`` are its coordinates. In wide
    form, without ``set``, each row is a multiset and ``values`` are its elements; empty cells are skipped.

    Attributes:
        values: Columns of the numbers.
        set: Column that identifies the multiset.
        targets: Columns of the results; in long form, repeated on each row of a set.
    """

    values: tuple[str, ...]
    set: str | None = None
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.values:
            raise AbelnetError("value: expected at least one column, got none")
        wanted = len(self.values) if self.set is not None else 1
        if self.targets and len(self.targets) != wanted:
            raise AbelnetError(f"target: expected {wanted} columns, one per dimension, got {len(self.targets)}")
        twice = _repeated(self.all)
        if twice is not None:
            raise AbelnetError(f"value, target, set: expected different columns, got {twice} twice")

    @property
    def dim(self) -> int:
        """Number of dimensions of an element."""
        return len(self.values) if self.set is not None else 1

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that contain numbers: values, then targets."""
        return self.values + self.targets

    @property
    def all(self) -> tuple[str, ...]:
        """All columns that are read."""
        return self.numbers if self.set is None else (*self.numbers, self.set)


@dataclass(frozen=True)
class Rows:
    """Rows of a table.

    Attributes:
        places: Line of each row in a CSV file, number of each row in a Parquet file.
        sets: Name of the set of each row; in wide form, its place.
        values: Numbers, :math:`(N, k)`, with NaN for empty cells.
        targets: Results, with NaN for empty cells.
    """

    places: list[int]
    sets: list[str]
    values: Array
    targets: Array


def read_rows(path: str | Path, columns: Columns, *, skip_missing: bool = False) -> Iterator[Rows]:
    """Reads a table of any size in batches of rows.

    Arguments:
        path: A ``.csv``, ``.tsv`` or ``.txt`` file, possibly with ``.gz``, or a ``.parquet`` file.
        columns: Columns to read.
        skip_missing: Whether to skip rows without the name of a set; otherwise they raise.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "t.csv")
        ...     _ = path.write_text("order,price\\na,1.5\\na,2\\n")
        ...     (rows,) = read_rows(path, Columns(("price",), "order"))
        >>> rows.places, rows.sets, rows.values.tolist()
        ([2, 3], ['a', 'a'], [[1.5], [2.0]])
    """
    path = Path(path)
    if not path.exists():
        raise AbelnetError(f"file: no such file: {path}")
    if not path.is_file():
        # A pipe could not be read a second time, and a table with scattered rows is.
        raise AbelnetError(f"file: expected a regular file, got {path}")
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix != ".parquet" and suffix not in _SEPARATORS:
        raise AbelnetError(f"file: expected .csv, .tsv, .txt, .csv.gz or .parquet, got {path.name}")
    if name.endswith(".parquet.gz"):
        raise AbelnetError(f"file: expected .parquet without .gz, got {path.name}; decompress it first")
    read = _read_parquet if suffix == ".parquet" else _read_csv
    return _batches(_checked(path, columns, part, skip_missing) for part in _readable(path, read(path, columns)))


def locate(path: str | Path, place: int) -> str:
    """Returns a place of a table for a message: file and line, or row.

    Example:
        >>> locate("t.csv", 3)
        't.csv, line 3'
    """
    return f"{path}, {'row' if Path(path).suffix.lower() == '.parquet' else 'line'} {place}"


# One part of a table: the place of each row, the name of its set (None if it has none), its numbers, and the same as
# they are in the file.
_Part = tuple[list[int], list[str | None], Array, Sequence[Sequence[object]]]


def _readable(path: Path, parts: Iterator[_Part]) -> Iterator[_Part]:
    try:
        yield from parts
    except UnicodeDecodeError as error:
        got = f"byte {error.object[error.start]:#04x}"
        raise AbelnetError(f"{path}: expected text in UTF-8, got {got}; save the table as UTF-8") from None
    except (EOFError, zlib.error, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AbelnetError(f"{path}: expected a readable file, got: {' '.join(reason.split())}") from None


def _checked(path: Path, columns: Columns, part: _Part, skip_missing: bool) -> Rows:
    """Returns a part without rows that have no name; raises if they are not to be skipped, and for infinities."""
    places, names, table, cells = part
    unnamed = [i for i, name in enumerate(names) if name is None or not name.strip()]
    if unnamed and not skip_missing:
        raise AbelnetError(
            f"{locate(path, places[unnamed[0]])}: expected the name of a set in column {columns.set}, got "
            "none; use --skip-missing to skip such rows in learning"
        )
    infinite = np.isinf(table)
    if infinite.any():
        i, j = np.argwhere(infinite)[0].tolist()
        of_set = "" if columns.set is None else f" of set {names[i]}"
        raise AbelnetError(
            f"{locate(path, places[i])}: expected a finite number in column {columns.numbers[j]}{of_set}, "
            f"got {cells[i][j]!s:.80}"
        )
    if unnamed:
        kept = sorted(set(range(len(names))) - set(unnamed))
        places, names, table = [places[i] for i in kept], [names[i] for i in kept], table[kept]
    split = len(columns.values)
    return Rows(places, cast(list[str], names), table[:, :split], table[:, split:])


def _batches(parts: Iterable[Rows]) -> Iterator[Rows]:
    """Joins parts into batches that are as large as allowed."""
    batch: list[Rows] = []
    count = 0
    for part in parts:
        width = part.values.shape[1] + part.targets.shape[1]
        if batch and count + len(part.sets) > max(1, min(_ROWS, _CELLS // width)):
            joined, batch, count = _join(batch), [], 0  # parts are not kept beside what they are joined to
            yield joined
        if part.sets:
            batch.append(part)
            count += len(part.sets)
    if batch:
        joined, batch = _join(batch), []
        yield joined


def _join(parts: Sequence[Rows]) -> Rows:
    places, names = ([x for part in parts for x in getattr(part, key)] for key in ("places", "sets"))
    return Rows(
        places, names, *(np.concatenate([getattr(part, key) for part in parts]) for key in ("values", "targets"))
    )


def _part_size(columns: Columns) -> int:
    return max(1, min(_ROWS, _CELLS_OF_TEXT // len(columns.numbers)))


def _read_csv(path: Path, columns: Columns) -> Iterator[_Part]:
    packed = path.suffix.lower() == ".gz"
    suffix = Path(path.stem if packed else path.name).suffix.lower()
    with cast(TextIO, (gzip.open if packed else open)(path, "rt", newline="", encoding="utf-8-sig")) as file:
        records = _records(path, file, _SEPARATORS[suffix])
        _, header = next(records, (0, None))
        if header is None:
            raise AbelnetError(f"file: expected a header line in {path}, got an empty file")
        header = [name.strip() for name in header]
        _check_header(path, header, columns)
        numbers = [header.index(name) for name in columns.numbers]
        name = None if columns.set is None else header.index(columns.set)
        while part := list(islice(records, _part_size(columns))):
            for line, row in part:
                if len(row) != len(header):
                    raise AbelnetError(f"{path}, line {line}: expected {len(header)} cells, got {len(row)}")
            lines = [line for line, _ in part]
            cells = [[row[place] for place in numbers] for _, row in part]
            names: list[str | None] = [str(line) if name is None else row[name] for line, row in part]
            yield lines, names, _table(path, columns, lines, cells), cells


def _records(path: Path, file: TextIO, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yields each record of a CSV file that is no blank line, with the line on which it starts."""
    # In strict mode an unbalanced quote is an error; otherwise it hides all rows that follow.
    reader = csv.reader(_lines(path, file), delimiter=separator, strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise AbelnetError(f"{path}, line {line}: expected a row of a table, got: {error}") from None


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise AbelnetError(f"{path}: expected lines of less than {_LONGEST_LINE:,} characters, got a longer one")
        if "\0" in line:
            raise AbelnetError(f"{path}: expected text, got a NUL byte; is it a binary file, or text in UTF-16?")
        yield line


def _table(path: Path, columns: Columns, lines: Sequence[int], cells: Sequence[Sequence[str]]) -> Array:
    text = "".join("".join(row) for row in cells)
    # numpy reads plain numbers fast, but takes more than that: see _NUMBER.
    if text.isascii() and "_" not in text:
        try:
            return np.array(cells, dtype=np.float64)
        except ValueError:  # empty cells, or text
            pass
    return np.array(
        [
            [_number(path, line, *named) for named in zip(columns.numbers, row, strict=True)]
            for line, row in zip(lines, cells, strict=True)
        ]
    )


def _number(path: Path, line: int, column: str, cell: str) -> float:
    text = cell.strip()
    if text.lower() in _MISSING:
        return math.nan
    if not _NUMBER.fullmatch(text):
        raise AbelnetError(f"{path}, line {line}: expected a number in column {column}, got {cell!r:.80}")
    return float(text)


def _read_parquet(path: Path, columns: Columns) -> Iterator[_Part]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise AbelnetError('file: expected pyarrow to read Parquet; run pip install "abelnet[tables]"') from None
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            _check_header(path, schema.names, columns)
            for name in columns.all:
                _check_type(path, name, schema.field(name).type, is_number=name != columns.set)
            row = 1
            for batch in file.iter_batches(_part_size(columns), columns=list(columns.all)):
                table = np.stack([_float64(batch.column(name)) for name in columns.numbers], 1)
                places = list(range(row, row + len(table)))
                names = map(str, places) if columns.set is None else map(_name, batch.column(columns.set).to_pylist())
                yield places, list(names), table, cast(Sequence[Sequence[object]], table)
                row += len(table)
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise AbelnetError(f"{path}: expected a readable Parquet file, got: {reason:.200}") from None


def _check_type(path: Path, name: str, kind: Any, *, is_number: bool) -> None:
    """Raises unless a column of Parquet has numbers, or names of sets. Dates and booleans are no numbers."""
    from pyarrow import types

    plain = kind.value_type if types.is_dictionary(kind) else kind
    is_real = types.is_integer(plain) or types.is_floating(plain) or types.is_decimal(plain) or types.is_null(plain)
    if is_number and not is_real:
        raise AbelnetError(f"{path}: expected numbers in column {name}, got {kind}")
    if not is_number and (types.is_nested(plain) or "binary" in str(plain)):
        raise AbelnetError(f"{path}: expected names of sets in column {name}, got {kind}")


def _float64(column: Any) -> Array:
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    # Integers beyond 2^53 are rounded to the nearest float64, as they are in text.
    numbers: Array = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _name(name: Any) -> str | None:
    return None if name is None or name != name else str(name)


def _check_header(path: Path, header: Sequence[str], columns: Columns) -> None:
    for name in columns.all:
        if name not in header:
            raise AbelnetError(f"{path}: expected a column {name}, got {', '.join(header):.200}")
    twice = _repeated([name for name in header if name in columns.all])
    if twice is not None:
        raise AbelnetError(f"{path}: expected one column {twice}, got several of that name")


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)
