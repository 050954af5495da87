"""Sets of tables on disk, to learn from and to aggregate, in streaming fashion."""

from __future__ import annotations

__all__ = ["Applied", "Columns", "apply_law", "examples_in", "read_rows"]

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.estimator import places as coordinates
from abelnet.engines.reading import Columns, Rows, locate, read_rows
from abelnet.errors import AbelnetError
from abelnet.files import replacing
from abelnet.multisets import Multisets
from abelnet.saving import FILE_NAME

Array = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]

# Spreadsheets run a cell that starts like this.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def examples_in(path: str | Path, columns: Columns, *, skip_missing: bool = False) -> Iterator[Multisets]:
    """Reads the sets of a table in batches, with their targets if ``columns`` has any.

    In long form the rows of a set should be adjacent, so that only one batch is in memory; otherwise the whole table is
    read into memory, or an error asks to sort it.

    Arguments:
        path: The table.
        columns: Columns to read.
        skip_missing: Whether to skip sets with missing numbers and rows without a set; otherwise they raise.
    """
    for part in (_wide if columns.set is None else _long)(path, columns, skip_missing):
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


def _wide(path: str | Path, columns: Columns, skip_missing: bool) -> Iterator[_Sets]:
    for rows in read_rows(path, columns, skip_missing=skip_missing):
        there = ~np.isnan(rows.values)
        ptr = np.concatenate(([0], there.sum(1).cumsum()))
        yield _Sets(rows.sets, rows.values[there][:, None], ptr, rows.targets)


def _long(path: str | Path, columns: Columns, skip_missing: bool) -> Iterator[_Sets]:
    seen: set[str] = set()
    try:
        for part in _neighbours(path, columns, skip_missing):
            if not seen.isdisjoint(part.names):
                raise _ScatteredError
            seen.update(part.names)
            yield part
    except _ScatteredError:
        if seen:
            raise AbelnetError(
                f"{path}: expected the rows of each {columns.set} to be adjacent in a table of this size; sort it first"
            ) from None
        yield _gathered(path, columns, skip_missing)


class _ScatteredError(Exception):
    pass


def _neighbours(path: str | Path, columns: Columns, skip_missing: bool) -> Iterator[_Sets]:
    """Yields sets whose rows are adjacent; the last set of each batch is carried over to the next."""
    names: list[str] = []
    values = np.empty((0, len(columns.values)))
    targets = np.empty((0, len(columns.targets)))
    for rows in read_rows(path, columns, skip_missing=skip_missing):
        names += rows.sets
        values, targets = np.concatenate((values, rows.values)), np.concatenate((targets, rows.targets))
        starts = _starts(names)
        if len({names[start] for start in starts}) < len(starts):
            raise _ScatteredError
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
    ptr = np.array([*starts, len(names)])
    same = np.repeat(targets[starts], np.diff(ptr), axis=0)
    differs = ~((targets == same) | (np.isnan(targets) & np.isnan(same))).all(1)
    if differs.any():
        raise AbelnetError(
            f"target: expected the same on each row of a set, got different ones in set {names[differs.argmax()]}"
        )
    return _Sets(heads, values, ptr, targets[starts])


def _gathered(path: str | Path, columns: Columns, skip_missing: bool) -> _Sets:
    """Returns all sets of a table with rows in any order."""
    parts = list(read_rows(path, columns, skip_missing=skip_missing))
    names = [name for part in parts for name in part.sets]
    values, targets = (np.concatenate([getattr(part, key) for part in parts]) for key in ("values", "targets"))
    places = {name: i for i, name in enumerate(dict.fromkeys(names))}
    order = np.argsort([places[name] for name in names], kind="stable")
    names = [names[i] for i in order]
    return _cut(names, values[order], targets[order], _starts(names))


class Applied(NamedTuple):
    """Numbers of sets that a law was applied to: all, those with extrapolated results, and those without a result."""

    sets: int
    extrapolated: int
    without_result: int


def apply_law(
    model: LawRegressor,
    path: str | Path,
    columns: Columns,
    out: str | Path,
    *,
    intervals: bool = False,
    for_spreadsheets: bool = False,
    on_rows: Callable[[int], None] | None = None,
) -> Applied:
    """Aggregates each set of a table, of any size, and writes a CSV file with one row per set.

    A row has the set, the result, its interval if wanted, and whether it is extrapolated: whether the law was
    needed outside the range of its examples. A result that the law does not have is an empty cell. The table is
    read in batches; only a running state per set is kept in memory, so rows may be in any order.

    Arguments:
        model: The fitted model.
        path: The table.
        columns: Columns of the table; ``targets`` are not read.
        out: CSV file to write.
        intervals: Whether to write the 95 % interval of each result, in columns ``low`` and ``high``; it takes a
            running state per set for each law of the ensemble.
        for_spreadsheets: Whether to write an apostrophe before names that a spreadsheet would run as formulas.
        on_rows: Called with the number of rows after each batch.

    Returns:
        Numbers of sets.
    """
    path, out = Path(path), Path(out)
    if out.exists() and path.exists() and out.samefile(path):
        raise AbelnetError(f"out: expected another file than the table, got {out}")
    if out.is_dir():
        raise AbelnetError(f"out: expected a file to write, got the folder {out}")
    if out.name == FILE_NAME:
        raise AbelnetError(f"out: expected a CSV file to write, got {out}, the name of a saved model")
    laws, blocks = model.laws_, model.blocks_
    dim = sum(map(len, blocks))
    if columns.dim != dim:
        raise AbelnetError(f"value: expected {dim} columns, one per learned coordinate, got {columns.dim}")
    accumulators = [law.operation.accumulator((0,)) for law in laws]
    spreads = [law.known_ensemble.accumulator() for law in laws] if intervals else []
    places: dict[str, int] = {}
    filled = strange = torch.zeros(0, dtype=torch.bool)
    for rows in read_rows(path, columns):
        gaps = np.isnan(rows.values)
        if columns.set is None and gaps.all(1).any():
            laws[0].check_identity(locate(path, rows.places[int(gaps.all(1).argmax())]))
        if columns.set is not None and gaps.any():
            i = int(gaps.any(1).argmax())
            raise AbelnetError(
                f"{locate(path, rows.places[i])}: expected a number in each column, got none in set {rows.sets[i]}"
            )
        index = np.array([places.setdefault(name, len(places)) for name in rows.sets])
        elements = rows.values.reshape(-1, columns.dim)
        there = ~np.isnan(elements).any(1)
        each = len(elements) // len(index)
        row = np.repeat(np.arange(len(index)), each)[there]
        where, values = torch.from_numpy(index[row]), torch.from_numpy(elements[there])
        more = strange.new_zeros(len(places) - len(strange))
        filled, strange = torch.cat((filled, more)), torch.cat((strange, more))
        filled[where] = True
        named = partial(_name_of, path, rows, row)
        for law, block, *states in zip(laws, blocks, accumulators, *([spreads] if intervals else []), strict=True):
            law.check_domain(values[:, coordinates(block)], named)
            for state in states:
                state.grow(len(places))
                state.add_at(where, values[:, list(block)])
            for i, seen in zip(block, law.ranges, strict=False):
                strange[where[~seen.covers(values[:, i])]] = True
        if on_rows is not None:
            on_rows(len(rows.sets))
    if not places:
        raise AbelnetError(f"{path}: expected at least one row, got none")
    names, results = list(places), torch.empty(len(places), dim, dtype=torch.float64)
    for law, block, accumulator in zip(laws, blocks, accumulators, strict=True):
        results[:, list(block)] = accumulator.value()
        for i, seen in zip(block, law.ranges, strict=False):
            strange |= ~seen.covers(results[:, i]) & filled
    table, kinds = [results], ["result"]
    if intervals:
        low, high = torch.empty_like(results), torch.empty_like(results)
        for law, block, spread in zip(laws, blocks, spreads, strict=True):
            own = results[:, coordinates(block)]
            low[:, coordinates(block)], high[:, coordinates(block)] = law.interval(
                own, law.std_of(own, partial(spread.std, own))
            )
        table += [low, high]
        kinds += ["low", "high"]
    # The columns of a law are beside each other.
    cells = [[x if math.isfinite(x) else "" for x in row] for row in torch.stack(table, 2).flatten(1).tolist()]
    names_of = [""] if columns.dim == 1 else [f"_{name}" for name in columns.values]
    titles = [f"{kind}{name}" for name in names_of for kind in kinds]
    shown = _without_formula if for_spreadsheets else str
    with replacing(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*map(shown, [columns.set or "row", *titles]), "extrapolated"])
        marks = ("yes" if mark else "no" for mark in strange.tolist())
        writer.writerows([shown(name), *row, mark] for name, row, mark in zip(names, cells, marks, strict=True))
    return Applied(len(names), int(strange.sum()), int((~results.isfinite()).any(1).sum()))


def _name_of(path: Path, rows: Rows, row: Places, element: int) -> str:
    return f"{locate(path, rows.places[row[element]])}, set {rows.sets[row[element]]}"


def _without_formula(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULAS) else text
