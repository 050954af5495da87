"""Streaming reads of tables: CSV, and Parquet if pyarrow is installed."""

from __future__ import annotations

__all__ = ["Columns", "apply_law", "examples_in", "read_rows"]

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from abelnet.discovery.estimator import LawRegressor
from abelnet.errors import AbelnetError
from abelnet.files import replacing
from abelnet.multisets import Multisets

_ROWS = 100_000
Array = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]


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

    @property
    def dim(self) -> int:
        """Number of dimensions of an element."""
        return len(self.values) if self.set is not None else 1


@dataclass(frozen=True)
class Rows:
    """Rows of a table: names of sets (in wide form, line numbers), numbers, and results; NaN for empty cells."""

    sets: list[str]
    values: Array
    targets: Array


def read_rows(path: str | Path, columns: Columns) -> Iterator[Rows]:
    """Reads a table of any size in batches of rows.

    Arguments:
        path: A ``.csv`` or ``.parquet`` file.
        columns: Columns to read.
    """
    path = Path(path)
    if not path.exists():
        raise AbelnetError(f"file: no such file: {path}")
    if path.suffix == ".parquet":
        return _read_parquet(path, columns)
    if path.suffix not in (".csv", ".tsv", ".txt"):
        raise AbelnetError(f"file: expected .csv, .tsv or .parquet, got {path.name}")
    return _read_csv(path, columns)


def _read_csv(path: Path, columns: Columns) -> Iterator[Rows]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        header = next(reader, None)
        if header is None:
            raise AbelnetError(f"file: expected a header line in {path}, got an empty file")
        _check_header(path, header, columns)
        places = [header.index(name) for name in (*columns.values, *columns.targets)]
        set_place = None if columns.set is None else header.index(columns.set)
        width = max([*places, set_place or 0]) + 1
        line, rows = 1, []
        for row in reader:
            line += 1
            if not row:
                continue
            if len(row) < width:
                raise AbelnetError(f"{path}, line {line}: expected {len(header)} cells, got {len(row)}")
            rows.append((str(line) if set_place is None else row[set_place], [row[place] for place in places], line))
            if len(rows) == _ROWS:
                yield _rows(path, columns, rows)
                rows = []
        if rows:
            yield _rows(path, columns, rows)


def _rows(path: Path, columns: Columns, rows: list[tuple[str, list[str], int]]) -> Rows:
    cells = [cells for _, cells, _ in rows]
    try:
        table = np.array(cells, dtype=np.float64)
    except ValueError:
        table = np.array(
            [[_number(path, line, name, cell) for name, cell in _named(columns, row)] for _, row, line in rows]
        )
    split = len(columns.values)
    return Rows([name for name, _, _ in rows], table[:, :split], table[:, split:])


def _named(columns: Columns, cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip((*columns.values, *columns.targets), cells, strict=True)


def _number(path: Path, line: int, column: str, cell: str) -> float:
    if cell.strip().lower() in ("", "na", "nan", "null", "none"):
        return math.nan
    try:
        return float(cell)
    except ValueError:
        raise AbelnetError(f"{path}, line {line}: expected a number in column {column}, got {cell!r}") from None


def _read_parquet(path: Path, columns: Columns) -> Iterator[Rows]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise AbelnetError('file: expected pyarrow to read Parquet; run pip install "abelnet[tables]"') from None
    file = parquet.ParquetFile(path)
    _check_header(path, file.schema_arrow.names, columns)
    wanted = [*columns.values, *columns.targets] + ([columns.set] if columns.set is not None else [])
    line = 0
    for batch in file.iter_batches(_ROWS, columns=wanted):
        numbers = []
        for name in (*columns.values, *columns.targets):
            try:
                numbers.append(np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64))
            except (TypeError, ValueError):
                raise AbelnetError(f"{path}: expected numbers in column {name}") from None
        table = np.stack(numbers, 1)
        count = len(table)
        names = (
            [str(line + i + 1) for i in range(count)]
            if columns.set is None
            else [str(name) for name in batch.column(columns.set).to_pylist()]
        )
        line += count
        yield Rows(names, table[:, : len(columns.values)], table[:, len(columns.values) :])


def _check_header(path: Path, header: Sequence[str], columns: Columns) -> None:
    for name in (*columns.values, *columns.targets, *([columns.set] if columns.set is not None else [])):
        if name not in header:
            raise AbelnetError(f"{path}: expected a column {name}, got {', '.join(header)}")


def examples_in(path: str | Path, columns: Columns, *, skip_missing: bool = False) -> Iterator[Multisets]:
    """Reads the sets of a table in batches, with their targets if ``columns`` has any.

    In long form the rows of a set should be adjacent, so that only one batch is in memory; otherwise the whole table is
    read into memory, or an error asks to sort it.

    Arguments:
        path: The table.
        columns: Columns to read.
        skip_missing: Whether to skip sets with missing numbers; otherwise they raise.
    """
    for part in _wide(path, columns) if columns.set is None else _long(path, columns):
        sound = part.without_missing(skip_missing)
        if sound.names:
            yield sound.multisets(columns)


@dataclass(frozen=True)
class _Sets:
    """Sets of a table, possibly with NaN: set :math:`i` is ``values[ptr[i]:ptr[i + 1]]``."""

    names: list[str]
    values: Array
    ptr: Places
    targets: Array

    def without_missing(self, skip: bool) -> _Sets:
        """Returns the sets without missing numbers; raises if there are others, unless they are to be skipped."""
        sizes = np.diff(self.ptr)
        sets = np.repeat(np.arange(len(sizes)), sizes)
        gaps = np.bincount(sets[np.isnan(self.values).any(1)], minlength=len(sizes))
        missing = (sizes == 0) | (gaps > 0) | np.isnan(self.targets).any(1)
        if not missing.any():
            return self
        if not skip:
            raise AbelnetError(
                f"file: expected no missing numbers, got {missing.sum()} sets with missing ones, the first "
                f"{self.names[missing.argmax()]}; use --skip-missing to skip them"
            )
        names = [name for name, gap in zip(self.names, missing, strict=True) if not gap]
        ptr = np.concatenate(([0], sizes[~missing].cumsum()))
        return _Sets(names, self.values[~missing[sets]], ptr, self.targets[~missing])

    def multisets(self, columns: Columns) -> Multisets:
        values, ptr, targets = (torch.from_numpy(x) for x in (self.values, self.ptr, self.targets))
        results = None if not columns.targets else targets[:, 0] if columns.dim == 1 else targets
        return Multisets(values, columns.dim, ptr=ptr, targets=results)


def _wide(path: str | Path, columns: Columns) -> Iterator[_Sets]:
    for rows in read_rows(path, columns):
        there = ~np.isnan(rows.values)
        ptr = np.concatenate(([0], there.sum(1).cumsum()))
        yield _Sets(rows.sets, rows.values[there][:, None], ptr, rows.targets)


def _long(path: str | Path, columns: Columns) -> Iterator[_Sets]:
    seen: set[str] = set()
    try:
        for part in _neighbours(path, columns):
            if not seen.isdisjoint(part.names):
                raise _ScatteredError
            seen.update(part.names)
            yield part
    except _ScatteredError:
        if seen:
            raise AbelnetError(
                f"{path}: expected the rows of each {columns.set} to be adjacent in a table of this size; sort it first"
            ) from None
        yield _gathered(path, columns)


class _ScatteredError(Exception):
    pass


def _neighbours(path: str | Path, columns: Columns) -> Iterator[_Sets]:
    """Yields sets whose rows are adjacent; the last set of each batch is carried over to the next."""
    names: list[str] = []
    values = np.empty((0, len(columns.values)))
    targets = np.empty((0, len(columns.targets)))
    for rows in read_rows(path, columns):
        names += rows.sets
        values, targets = np.concatenate((values, rows.values)), np.concatenate((targets, rows.targets))
        starts = _starts(names)
        last = starts[-1]
        if last > 0:
            yield _cut(names[:last], values[:last], targets[:last], starts[:-1])
        names, values, targets = names[last:], values[last:], targets[last:]
    if names:
        yield _cut(names, values, targets, _starts(names))


def _starts(names: Sequence[str]) -> list[int]:
    return [0, *(i for i in range(1, len(names)) if names[i] != names[i - 1])]


def _cut(names: list[str], values: Array, targets: Array, starts: list[int]) -> _Sets:
    heads = [names[start] for start in starts]
    if len(set(heads)) < len(heads):
        raise _ScatteredError
    ptr = np.array([*starts, len(names)])
    same = np.repeat(targets[starts], np.diff(ptr), axis=0)
    differs = ~((targets == same) | (np.isnan(targets) & np.isnan(same))).all(1)
    if differs.any():
        raise AbelnetError(
            f"target: expected the same on each row of a set, got different ones in set {names[differs.argmax()]}"
        )
    return _Sets(heads, values, ptr, targets[starts])


def _gathered(path: str | Path, columns: Columns) -> _Sets:
    """Returns all sets of a table with rows in any order."""
    parts = list(read_rows(path, columns))
    names = [name for part in parts for name in part.sets]
    values, targets = (np.concatenate([getattr(part, key) for part in parts]) for key in ("values", "targets"))
    places = {name: i for i, name in enumerate(dict.fromkeys(names))}
    order = np.argsort([places[name] for name in names], kind="stable")
    names = [names[i] for i in order]
    return _cut(names, values[order], targets[order], _starts(names))


def apply_law(
    model: LawRegressor,
    path: str | Path,
    columns: Columns,
    out: str | Path,
    *,
    on_rows: Callable[[int], None] | None = None,
) -> int:
    """Aggregates each set of a table, of any size, and writes a CSV file with one row per set: the set and the result.

    The table is read in batches; only a running state per set is kept in memory, so rows may be in any order.

    Arguments:
        model: The fitted model.
        path: The table.
        columns: Columns of the table; ``targets`` are not read.
        out: CSV file to write.
        on_rows: Called with the number of rows after each batch.

    Returns:
        Number of sets.
    """
    laws = model.laws_
    if columns.dim != len(laws):
        raise AbelnetError(f"value: expected {len(laws)} columns, one per learned law, got {columns.dim}")
    accumulators = [law.operation.accumulator((0,)) for law in laws]
    places: dict[str, int] = {}
    for rows in read_rows(path, columns):
        if columns.set is None:
            row, element = np.nonzero(~np.isnan(rows.values))
            names, values = [rows.sets[i] for i in row], rows.values[row, element][:, None]
            index = [places.setdefault(name, len(places)) for name in rows.sets]
            index = [index[i] for i in row]
        else:
            names, values = rows.sets, rows.values
            index = [places.setdefault(name, len(places)) for name in names]
        if not np.isfinite(values).all():
            bad = names[int((~np.isfinite(values)).any(1).argmax())]
            raise AbelnetError(f"{path}: expected finite numbers, got a missing or infinite one in set {bad}")
        where, elements = torch.tensor(index, dtype=torch.long), torch.from_numpy(np.ascontiguousarray(values))
        for i, accumulator in enumerate(accumulators):
            accumulator.grow(len(places))
            accumulator.add_at(where, elements[:, i : i + 1])
        if on_rows is not None:
            on_rows(len(rows.sets))
    if not places:
        raise AbelnetError(f"{path}: expected at least one row, got none")
    results = torch.cat([accumulator.value() for accumulator in accumulators], 1).tolist()
    titles = ["result"] if columns.dim == 1 else [f"result_{name}" for name in columns.values]
    with replacing(Path(out)) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([columns.set or "row", *titles])
        writer.writerows([name, *result] for name, result in zip(places, results, strict=True))
    return len(places)
