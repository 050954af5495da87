r"""Laws run by DuckDB itself, :math:`\mathrm{lift} \to \sum \to \mathrm{lower}`, in parallel and out of core.

The sum of floating-point numbers depends on their order, and that of rows on the threads. So each number is split into
three that are multiples of powers of 2, coarse enough that their sums are exact in any order.
"""

from __future__ import annotations

__all__ = ["aggregate"]

import math

import numpy as np
import torch

from abelnet.bijections import Generator
from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.formula import is_short
from abelnet.discovery.seen import Seen
from abelnet.engines.folding import fold_states
from abelnet.engines.reading import FaultError, Table
from abelnet.engines.sql import aggregate_query
from abelnet.errors import AbelnetError
from abelnet.laws import Maximum
from abelnet.operation import Operation

_ROWS_TO_SCALE = 1000
# In units of the largest number of the first rows: numbers from 2^-30 to 2^8 are summed, up to 2^24 of them.
_SMALLEST, _LARGEST, _LARGEST_COUNT = -30, 8, 24
_BITS = 53  # of float64


def aggregate(table: Table, model: LawRegressor) -> int:
    """Aggregates the sets of a table in long form as :func:`~abelnet.engines.folding.fold_states` does, but natively.

    Sets without a finite result are left to it: those with an element outside the domain, and those of numbers whose
    sizes differ too much, or that are too many, for exact sums.

    Arguments:
        table: The table.
        model: The fitted model.
    """
    # A curve has a query as well, but of hundreds of kilobytes, which takes DuckDB twice as long as states.
    if not all(is_short(law.operation.bijection) for law in model.laws_):
        return fold_states(table, model)
    try:
        query = _query(table, model)
    except AbelnetError:  # the law has no closed form
        return fold_states(table, model)
    database, dim = table.database, table.columns.dim
    outside = " OR ".join(f"NOT {_is_covered(f'y{i}', seen)}" for i, seen in _ranges(model)) or "false"
    database.run(
        f"CREATE OR REPLACE TEMP TABLE results AS SELECT s, {', '.join(f'y{i}' for i in range(dim))}, "
        f"coalesce(mark > 0 OR {outside}, true) AS strange, mark, n FROM ({query})"
    )
    finite = " AND ".join([f"n <= {2**_LARGEST_COUNT}", *(f"coalesce(isfinite(y{i}), false)" for i in range(dim))])
    ((rows, is_wrong, unsolved),) = database.run(
        f"SELECT coalesce(sum(n), 0), bool_or(mark > 1 OR {table.is_unnamed}), count_if(NOT ({finite})) FROM results"
    )
    if is_wrong:
        raise FaultError("a row that is wrong")
    if unsolved:
        database.run(f"CREATE OR REPLACE TEMP TABLE solved AS SELECT * EXCLUDE (mark, n) FROM results WHERE {finite}")
        database.run(f"CREATE OR REPLACE TEMP TABLE unsolved AS SELECT s FROM results WHERE NOT ({finite})")
        fold_states(table, model, condition="s IN (FROM unsolved)")
        database.run("INSERT INTO results BY NAME FROM solved")
    return int(rows)


def _query(table: Table, model: LawRegressor) -> str:
    values = table.numbers[: table.columns.dim]
    right = " AND ".join(f"isfinite({name})" for name in values)
    far = " OR ".join(f"NOT {_is_covered(f'x{i}', seen)}" for i, seen in _ranges(model)) or "false"
    # 2 for what is no number, 1 for an element that the law was not learned from.
    source = (
        f"(SELECT *, CASE WHEN {right} THEN CASE WHEN {far} THEN 1 ELSE 0 END ELSE 2 END AS mark FROM ({table.rows}))"
    )
    largest = Operation(Generator(1, "affine", dtype=torch.float64), Maximum())
    laws = [(law.operation, list(block)) for law, block in zip(model.laws_, model.blocks_, strict=True)]
    query = aggregate_query(
        [*laws, (largest, [len(values)])],
        source,
        ["s"],
        [*values, "mark"],
        results=[*(f"y{i}" for i in range(len(values))), "mark"],
        compensated=True,
        count="n",
    )
    # Instead of DuckDB's own compensated sum, which depends on the order.
    table.database.run(f"CREATE OR REPLACE TEMP MACRO fsum(v) AS {_exact_sum('v', _exponent(table, model))}")
    return query


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
    r"""Returns the exact sum of numbers as DuckDB's SQL, or NaN if one of them is much larger or smaller than expected.

    A number is split into three, rounded to multiples of powers of 2: adding and subtracting
    :math:`1.5 \cdot 2^{52 + e}` rounds to multiples of :math:`2^e`. What is left is less than :math:`10^{-14}` of it.
    """
    low, high = math.ldexp(1.0, exponent + _SMALLEST), math.ldexp(1.0, exponent + _LARGEST)
    rest = (
        f"(CASE WHEN {number} = 0 OR abs({number}) BETWEEN {low!r} AND {high!r} THEN {number} ELSE 'nan'::DOUBLE END)"
    )
    bits, sums = exponent + _LARGEST, []
    for _ in range(3):
        bits += _LARGEST_COUNT - _BITS
        shift = f"{math.ldexp(1.5, bits + _BITS - 1)!r}::DOUBLE"
        part = f"({rest} + {shift} - {shift})"
        sums.append(f"sum({part})")
        rest = f"({rest} - {part})"
    return f"({sums[0]} + ({sums[1]} + {sums[2]}))"


@torch.no_grad()
def _exponent(table: Table, model: LawRegressor) -> int:
    """Returns the exponent of the largest of the first numbers that are summed."""
    values = table.numbers[: table.columns.dim]
    found = table.database.columns(f"SELECT {', '.join(values)} FROM ({table.rows}) LIMIT {_ROWS_TO_SCALE}")
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
