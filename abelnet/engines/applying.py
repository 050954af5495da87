"""Laws applied to tables of any size: one result per set."""

from __future__ import annotations

__all__ = ["Applied", "apply_law", "count_results", "results_query"]

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.estimator import places as coordinates
from abelnet.engines.columns import Columns
from abelnet.engines.database import Database
from abelnet.engines.folding import fold_states
from abelnet.engines.native import aggregate
from abelnet.engines.reading import Array, open_table
from abelnet.engines.sources import Reading, column, is_numeric
from abelnet.engines.writing import check_out, write_results
from abelnet.errors import AbelnetError

_NAME = "CAST(results.s AS VARCHAR)"  # a column that is written may be named s as well


class Applied(NamedTuple):
    """Numbers of sets that a law was applied to: all, those with extrapolated results, and those without a result."""

    sets: int
    extrapolated: int
    without_result: int


def apply_law(
    model: LawRegressor,
    source: Any,
    columns: Columns,
    out: str | Path,
    *,
    table: str = "results",
    intervals: bool = False,
    for_spreadsheets: bool = False,
    reading: Reading | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Applied:
    """Aggregates each set of a table, of any size, and writes one row per set, in the order of their names.

    A row has the set, the result, its interval if wanted, and whether it is extrapolated: whether the law was
    needed outside the range of its examples. A result that the law does not have is an empty cell. Rows of the table
    may be in any order. Results do not depend on the number of threads.

    Arguments:
        model: The fitted model.
        source: A file, a folder, a glob pattern, or a data frame; see :func:`~abelnet.engines.reading.open_table`.
        columns: Columns of the table; ``targets`` are not read.
        out: File to write: CSV, ``.parquet``, or a ``.duckdb`` or ``.sqlite`` database.
        table: Name of the table in a database.
        intervals: Whether to write the 95 % interval of each result, in columns ``low`` and ``high``; it takes a
            running state per set for each law of the ensemble.
        for_spreadsheets: Whether to write an apostrophe before names that a spreadsheet would run as formulas.
        reading: How to read the table.
        on_rows: Called with the number of rows when they are read.

    Returns:
        Numbers of sets.
    """
    out = Path(out)
    check_out(out, source)
    dim = sum(map(len, model.blocks_))
    if columns.dim != dim:
        raise AbelnetError(f"value: expected {dim} columns, one per learned coordinate, got {columns.dim}")
    columns = Columns(columns.values, columns.set)
    with open_table(source, columns, reading) as opened:
        if intervals or columns.set is None:
            work = partial(fold_states, opened, model, intervals)
        else:
            work = partial(aggregate, opened, model)
        rows = opened.attempt(work, _checked(model, columns))
        if rows == 0:
            raise AbelnetError(f"{opened.name}: expected at least one row, got none")
        if on_rows is not None:
            on_rows(rows)
        query = results_query(opened.database, columns, intervals=intervals)
        write_results(opened.database, query, out, table, for_spreadsheets=for_spreadsheets)
        return count_results(opened.database, dim)


def _checked(model: LawRegressor, columns: Columns) -> Callable[[Array, Sequence[tuple[str, str | None]]], None]:
    """Returns a check of the rows of a table that raises where it has no numbers that the law takes."""

    def check(values: Array, places: Sequence[tuple[str, str | None]]) -> None:
        gaps = np.isnan(values)
        if columns.set is None and gaps.all(1).any():
            model.laws_[0].check_identity(places[int(gaps.all(1).argmax())][0])
        if columns.set is not None and gaps.any():
            place, name = places[int(gaps.any(1).argmax())]
            raise AbelnetError(f"{place}: expected a number in each column, got none in set {name}")
        elements = values.reshape(-1, columns.dim)
        there = np.flatnonzero(~np.isnan(elements).any(1))
        each = len(elements) // len(places)

        def named(element: int) -> str:
            place, name = places[there[element] // each]
            return f"{place}, set {name}"

        for law, block in zip(model.laws_, model.blocks_, strict=True):
            law.check_domain(torch.from_numpy(elements[there])[:, coordinates(block)], named)

    return check


def results_query(database: Database, columns: Columns, *, intervals: bool) -> str:
    """Returns the query of what is written from a table ``results``; columns of a law are beside each other."""
    kinds = {"result": "y", "low": "low", "high": "high"} if intervals else {"result": "y"}
    suffixes = [""] if columns.dim == 1 else [f"_{name}" for name in columns.values]
    chosen = [
        f"CASE WHEN isfinite({name}{i}) THEN {name}{i} END AS {column(kind + suffix)}"
        for i, suffix in enumerate(suffixes)
        for kind, name in kinds.items()
    ]
    return (
        f"SELECT {_NAME} AS {column(columns.set or 'row')}, {', '.join(chosen)}, "
        f"CASE WHEN strange THEN 'yes' ELSE 'no' END AS extrapolated FROM results ORDER BY {_order(database)}"
    )


def _order(database: Database) -> str:
    """Returns what results are sorted by in SQL: the numbers among the names as such, then other names."""
    ((kind,),) = database.run("SELECT typeof(s) FROM results LIMIT 1")
    # Numbers start with characters before the colon: signs, points and digits.
    may_be_number = f"{_NAME} < ':'"
    if is_numeric(kind) or not database.run(f"SELECT 1 FROM results WHERE {may_be_number} LIMIT 1"):
        return "results.s"  # a single key takes half as long
    return f"CASE WHEN {may_be_number} THEN TRY_CAST({_NAME} AS DOUBLE) END NULLS LAST, results.s"


def count_results(database: Database, dim: int) -> Applied:
    """Returns the numbers of the sets in a table ``results``."""
    finite = " AND ".join(f"coalesce(isfinite(y{i}), false)" for i in range(dim))
    ((sets, strange, without),) = database.run(
        f"SELECT count(*), count_if(strange), count_if(NOT ({finite})) FROM results"
    )
    return Applied(sets, strange, without)
