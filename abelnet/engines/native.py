r"""Laws run by DuckDB itself, :math:`\mathrm{lift} \to \sum \to \mathrm{lower}`, in parallel and out of core.

The sum of floating-point numbers depends on their order, and that of rows on the threads. So numbers are summed
as integers of 128 bits, multiples of a power of 2, which is exact in any order.
"""

from __future__ import annotations

__all__ = ["aggregate"]

import math
from functools import partial

import numpy as np
import torch

from abelnet.bijections import Bijection
from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.seen import Seen
from abelnet.engines.database import DatabaseError, MemoryLimitError
from abelnet.engines.folding import fold_states
from abelnet.engines.reading import FaultError, Table
from abelnet.errors import AbelnetError
from abelnet.sql import aggregate_query

_FIRST = 1000  # rows, from which sizes and signs are expected
_FEW = 100  # one of so many sets may be left to running states
# In units of the largest number of the first rows: numbers from 2^-30 to 2^8 are summed, up to 2^28 of them.
_SMALLEST, _LARGEST, _LARGEST_COUNT = -30, 8, 28
_DIGITS = 47  # binary ones that are kept of the smallest of them


def aggregate(table: Table, model: LawRegressor) -> int:
    """Aggregates the sets of a table in long form as :func:`~abelnet.engines.folding.fold_states` does, but natively.

    Sets without a finite result are left to it: those with an element outside the domain, and those of numbers whose
    sizes differ too much, or that are too many, for exact sums.

    Arguments:
        table: The table.
        model: The fitted model.
    """
    if not all(_is_fast(law.operation.bijection) for law in model.laws_):
        return fold_states(table, model)
    names, database = ["s", *table.numbers[: table.columns.dim]], table.database
    database.run(f"CREATE OR REPLACE TEMP TABLE first AS SELECT {', '.join(names)} FROM ({table.rows}) LIMIT {_FIRST}")
    database.run("CREATE OR REPLACE TEMP VIEW elements AS FROM first")
    known = table.count()
    # No set has more rows than the table; then none is counted, which takes a running state of each.
    is_counted = known is None or known > 2**_LARGEST_COUNT
    query_of = partial(_query, table, model, is_counted=is_counted)
    try:
        exponent, query = _exponent(table, model), query_of(is_signed=False)
    except AbelnetError:  # the law has no closed form, or an element is outside its domain
        return fold_states(table, model)
    # Instead of DuckDB's own compensated sum, which depends on the order.
    database.run(f"CREATE OR REPLACE TEMP MACRO fsum(v) AS {_exact_sum('v', exponent)}")
    try:
        is_signed = bool(database.run(f"SELECT 1 FROM ({query}) WHERE NOT ({_is_solved(table)}) LIMIT 1"))
        database.run(f"CREATE OR REPLACE TEMP VIEW elements AS {table.rows}")
        sets, rows, unsolved = _solve(table, model, query) if not is_signed else (0, 0, 1)
        if unsolved > sets // _FEW:
            sets, rows, unsolved = _solve(table, model, query_of(is_signed=True))
    except MemoryLimitError:
        raise
    except DatabaseError:  # too many numbers of a set are much larger or smaller than the first, or a row is wrong
        return fold_states(table, model)
    if unsolved:
        finite = _is_solved(table)
        database.run(f"CREATE OR REPLACE TEMP TABLE solved AS SELECT * EXCLUDE (mark, n) FROM results WHERE {finite}")
        database.run(f"CREATE OR REPLACE TEMP TABLE unsolved AS SELECT s FROM results WHERE NOT ({finite})")
        fold_states(table, model, condition="s IN (FROM unsolved)")
        database.run("INSERT INTO results BY NAME FROM solved")
    return rows if known is None else known


def _is_fast(bijection: Bijection) -> bool:
    """Returns whether queries of a bijection are fast: it has a formula, or its numbers are looked up in lists."""
    from sympy import Symbol

    # Other curves have queries of hundreds of kilobytes, which take DuckDB twice as long as states.
    return bijection.is_short or all(
        part.is_short or part.pieces(Symbol("x", real=True)) is not None for part in bijection.parts()
    )


def _solve(table: Table, model: LawRegressor, query: str) -> tuple[int, int, int]:
    """Writes the table ``results``, and returns the number of sets, of rows, and of sets without a result."""
    outside = " OR ".join(f"NOT {_is_covered(f'y{i}', seen)}" for i, seen in _ranges(model)) or "false"
    found = ", ".join(f"y{i}" for i in range(table.columns.dim))
    table.database.run(
        f"CREATE OR REPLACE TEMP TABLE results AS SELECT s, {found}, "
        f"coalesce(mark > 0 OR {outside}, true) AS strange, mark, n FROM ({query})"
    )
    ((sets, rows, is_wrong, unsolved),) = table.database.run(
        f"SELECT count(*), coalesce(sum(n), 0), bool_or(mark > 1 OR {table.is_unnamed}), "
        f"coalesce(count_if(NOT ({_is_solved(table)})), 0) FROM results"
    )
    if is_wrong:
        raise FaultError("a row that is wrong")
    return sets, int(rows), unsolved


def _is_solved(table: Table) -> str:
    finite = (f"coalesce(isfinite(y{i}), false)" for i in range(table.columns.dim))
    return " AND ".join([f"n <= {2**_LARGEST_COUNT}", *finite])


def _query(table: Table, model: LawRegressor, *, is_counted: bool, is_signed: bool) -> str:
    """Returns the query of the view ``elements``: sets with results, marks, and numbers of rows, 0 if not counted."""
    values, ranges = table.numbers[: table.columns.dim], dict(_ranges(model))
    right = " AND ".join(f"isfinite({name})" for name in values)
    covered = " AND ".join(
        _is_covered(name, ranges[i]) if i in ranges else f"isfinite({name})" for i, name in enumerate(values)
    )
    # 2 for what is no number, 1 for an element that the law was not learned from.
    mark = f"CAST(CASE WHEN {covered} THEN 0 WHEN {right} THEN 1 ELSE 2 END AS TINYINT)"
    query = aggregate_query(
        [(law.operation, list(block)) for law, block in zip(model.laws_, model.blocks_, strict=True)],
        f"(SELECT *, {mark} AS mark FROM elements)",
        ["s"],
        values,
        results=[f"y{i}" for i in range(len(values))],
        compensated=True,
        is_signed=is_signed,
        count="n" if is_counted else None,
        largest="mark",
    )
    return query if is_counted else f"SELECT *, 0 AS n FROM ({query})"


def _ranges(model: LawRegressor) -> list[tuple[int, Seen]]:
    """Returns the range of the examples of each coordinate that has one."""
    return [
        (i, seen)
        for law, block in zip(model.laws_, model.blocks_, strict=True)
        for i, seen in zip(block, law.ranges, strict=False)
    ]


def _is_covered(number: str, seen: Seen) -> str:
    low, high = seen.limits
    return f"({number} BETWEEN {low!r}::DOUBLE AND {high!r}::DOUBLE)"


def _exact_sum(number: str, exponent: int) -> str:
    r"""Returns the exact sum of numbers in SQL, or NULL if one of them is much larger or smaller than expected.

    Numbers are rounded to multiples of a power of 2, by less than :math:`10^{-14}` of their size, and summed as
    integers.
    """
    low, high = math.ldexp(1.0, exponent + _SMALLEST), math.ldexp(1.0, exponent + _LARGEST)
    unit = exponent + _SMALLEST - _DIGITS
    limit = 2 ** (_LARGEST - _SMALLEST + _DIGITS + _LARGEST_COUNT)  # of the sizes of sums
    scaled = f"CAST({number} * {math.ldexp(1.0, -unit)!r}::DOUBLE AS HUGEINT)"
    # Another number becomes so large an integer that the sum is beyond the limit, or raises an error.
    # Zero comes after, since a condition with OR takes twice as long.
    is_usual = f"abs({number}) BETWEEN {low!r} AND {high!r}"
    part = f"CASE WHEN {is_usual} THEN {scaled} WHEN {number} = 0 THEN 0 ELSE {2 * limit} END"
    total = f"sum({part})"
    return f"(CASE WHEN abs({total}) <= {limit} THEN CAST({total} AS DOUBLE) * {math.ldexp(1.0, unit)!r}::DOUBLE END)"


@torch.no_grad()
def _exponent(table: Table, model: LawRegressor) -> int:
    """Returns the exponent of the largest of the first numbers that are summed."""
    values = table.numbers[: table.columns.dim]
    found = table.database.columns(f"SELECT {', '.join(values)} FROM first")
    rows = torch.from_numpy(np.stack([found[x].astype(np.float64) for x in values], 1))
    largest = 0.0
    for law, block in zip(model.laws_, model.blocks_, strict=True):
        operation = law.operation
        if operation.bijection.folds_in_logs and operation.law.in_logs() is not None:
            largest = max(largest, 1.0)  # the largest exponential of each set is 1
            continue
        states = operation.law.lift(operation.bijection(rows[:, list(block)])).abs().double()
        largest = max([largest, *states[states.isfinite()].flatten().tolist()])
    return max(-800, min(900, math.frexp(largest or 1.0)[1]))  # nothing underflows or overflows
