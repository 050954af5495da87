"""Sets of tables to learn from, in batches: rows of a set are brought together by DuckDB, out of core."""

from __future__ import annotations

__all__ = ["Columns", "Reading", "Sets", "examples_in", "read_sets"]

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abelnet.engines.columns import Columns
from abelnet.engines.reading import Array, FaultError, Table, open_table
from abelnet.engines.sources import Reading
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from abelnet.multisets import Multisets

_ROWS = 100_000  # of a batch
_CELLS = 1_000_000  # of a batch; decides in tables of more than ten columns


class Sets(NamedTuple):
    """A batch of sets: rows of all, where each set begins and the last ends, and their targets, if there are any."""

    values: Array
    ptr: np.ndarray[Any, np.dtype[np.int64]]
    targets: Array | None

    def multisets(self) -> Multisets:
        """Returns the same as tensors, of which reading has no need."""
        import torch

        from abelnet.multisets import Multisets

        values, ptr = torch.from_numpy(self.values), torch.from_numpy(self.ptr)
        targets = None if self.targets is None else torch.from_numpy(self.targets)
        return Multisets(values, self.values.shape[1], ptr=ptr, targets=targets)


def examples_in(
    source: Any, columns: Columns, *, skip_missing: bool = False, reading: Reading | None = None
) -> Iterator[Multisets]:
    """Reads the sets of a table in batches, with their targets if ``columns`` has any.

    Sets are in the order of their first rows, and rows of a set in the order of the table.

    Arguments:
        source: A file, a folder, a glob pattern, or a data frame; see :func:`~abelnet.engines.reading.open_table`.
        columns: Columns to read.
        skip_missing: Whether to skip sets with missing numbers and rows without a set; otherwise they raise.
        reading: How to read the table.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"s": ["a", "b", "a"], "x": [1.0, 5.0, 2.0], "y": [3.0, 5.0, 3.0]})
        >>> (examples,) = examples_in(frame, Columns(("x",), "s", ("y",)))
        >>> examples.values[:, 0].tolist(), examples.ptr.tolist(), examples.targets.tolist()
        ([1.0, 2.0, 5.0], [0, 2, 3], [3.0, 5.0])
    """
    for sets in read_sets(source, columns, skip_missing=skip_missing, reading=reading):
        yield sets.multisets()


def read_sets(
    source: Any, columns: Columns, *, skip_missing: bool = False, reading: Reading | None = None
) -> Iterator[Sets]:
    """Reads the sets of a table as :func:`examples_in` does, as arrays of NumPy, without PyTorch."""
    with open_table(source, columns, reading) as table:
        table.attempt(lambda: _store(table, skip_missing), skip_unnamed=skip_missing)
        yield from (_wide if columns.set is None else _long)(table, skip_missing)


def _store(table: Table, skip_missing: bool) -> None:
    table.store()
    queries = [f"SELECT 1 FROM stored WHERE {table.is_fault} LIMIT 1"]
    if table.columns.set is not None and not skip_missing:
        queries.append(f"SELECT 1 FROM (SELECT DISTINCT s FROM stored) WHERE {table.is_unnamed} LIMIT 1")
    if any(table.database.run(query) for query in queries):
        raise FaultError("a row that is wrong")


def _size(columns: Columns) -> int:
    return max(1, min(_ROWS, _CELLS // len(columns.numbers)))


def _wide(table: Table, skip_missing: bool) -> Iterator[Sets]:
    split = len(table.columns.values)
    values, targets = table.numbers[:split], table.numbers[split:]
    missing = " OR ".join([f"coalesce({', '.join(values)}) IS NULL", *(f"{name} IS NULL" for name in targets)])
    _check_missing(table, "numbered", missing, skip_missing)
    for start in range(0, _count(table, "stored"), _size(table.columns)):
        end = start + _size(table.columns)
        rows = _fetch(table, f"FROM stored WHERE rowid >= {start} AND rowid < {end} AND NOT ({missing})", table.numbers)
        there = ~np.isnan(rows[:, :split])
        ptr = np.concatenate(([0], there.sum(1).cumsum()))
        if len(rows):
            yield _sets(table.columns, rows[:, :split][there][:, None], ptr, rows[:, split:])


def _long(table: Table, skip_missing: bool) -> Iterator[Sets]:
    split = len(table.columns.values)
    values, targets = table.numbers[:split], table.numbers[split:]
    differs = " OR ".join(f"(count({y}) NOT IN (0, count(*)) OR min({y}) <> max({y}))" for y in targets) or "false"
    gaps = " OR ".join(f"{name} IS NULL" for name in table.numbers)
    firsts = "".join(f", first({y}) AS {y}" for y in targets)
    table.database.run(
        f"CREATE OR REPLACE TEMP TABLE sets AS SELECT s, min(rowid) AS start, max(rowid) AS stop, count(*) AS size, "
        f"{differs} AS differs, bool_or({gaps}) AS missing{firsts} FROM stored GROUP BY s HAVING NOT {table.is_unnamed}"
    )
    found = table.database.run("SELECT s FROM sets WHERE differs ORDER BY start LIMIT 1")
    if found:
        raise AbelnetError(f"target: expected the same on each row of a set, got different ones in set {found[0][0]}")
    _check_missing(table, "(SELECT * FROM sets ORDER BY start)", "missing", skip_missing)
    # Batches of whole sets: each starts where a set does, with about as many rows.
    table.database.run(
        f"CREATE OR REPLACE TEMP TABLE parts AS SELECT *, (sum(size) OVER (ORDER BY start) - size) // "
        f"{_size(table.columns)} AS part FROM sets WHERE NOT missing ORDER BY start"
    )
    table.database.run(
        f"CREATE OR REPLACE TEMP TABLE sorted AS SELECT {', '.join(f'stored.{name}' for name in values)} "
        "FROM stored JOIN parts USING (s) ORDER BY parts.start, stored.rowid"
    )
    sets = rows = 0
    counts = table.database.run("SELECT count(*), sum(size) FROM parts GROUP BY part ORDER BY part")
    for count, size in counts:
        chosen = f"FROM parts WHERE rowid >= {sets} AND rowid < {sets + count}"
        ends = _fetch(table, chosen, ["size", *targets])
        numbers = _fetch(table, f"FROM sorted WHERE rowid >= {rows} AND rowid < {rows + size}", values)
        ptr = np.concatenate(([0], ends[:, 0].astype(np.int64).cumsum()))
        yield _sets(table.columns, numbers, ptr, ends[:, 1:])
        sets, rows = sets + count, rows + int(size)


def _check_missing(table: Table, source: str, missing: str, skip_missing: bool) -> None:
    if skip_missing:
        return
    ((count, name),) = table.database.run(f"SELECT count(*), first(s) FROM {source} WHERE {missing}")
    if count:
        raise AbelnetError(
            f"{table.name}: expected no missing numbers, got {count} sets with missing ones, the first {name}; use "
            "--skip-missing to skip them"
        )


def _count(table: Table, name: str) -> int:
    ((count,),) = table.database.run(f"SELECT count(*) FROM {name}")
    return int(count)


def _fetch(table: Table, source: str, names: list[str]) -> Array:
    """Returns columns as a matrix, with NaN for NULL."""
    found = table.database.columns(f"SELECT {', '.join(names)} {source}")
    return np.stack([found[name].astype(np.float64) for name in names], 1)


def _sets(columns: Columns, values: Array, ptr: Any, targets: Array) -> Sets:
    wanted = None if not columns.targets else np.ascontiguousarray(targets[:, 0] if columns.dim == 1 else targets)
    return Sets(np.ascontiguousarray(values), ptr, wanted)
