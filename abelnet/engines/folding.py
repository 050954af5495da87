"""Results of sets by the running states of a law: for laws without a closed form, and for intervals."""

from __future__ import annotations

__all__ = ["fold_states"]

from functools import partial

import numpy as np
import torch
from torch import Tensor

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.estimator import places as coordinates
from abelnet.engines.reading import FaultError, Table
from abelnet.errors import AbelnetError

_CELLS = 1_000_000  # of a batch


def fold_states(table: Table, model: LawRegressor, intervals: bool = False, condition: str = "true") -> int:
    """Aggregates the sets of a table to a temporary table ``results``, and returns the number of its rows.

    It has the set ``s``, the results ``y0``, ``y1``, …, the ends of their intervals ``low0``, ``high0``, … if wanted,
    and ``strange``: whether they are extrapolated.

    Arguments:
        table: The table.
        model: The fitted model.
        intervals: Whether to find the 95 % interval of each result.
        condition: Which rows to aggregate, in SQL.
    """
    table.store(condition)
    sets, rows = _number_sets(table, model)
    if rows == 0:
        return 0
    laws, blocks, dim = model.laws_, model.blocks_, table.columns.dim
    accumulators = [law.operation.accumulator((0,)) for law in laws]
    spreads = [law.known_ensemble.accumulator() for law in laws] if intervals else []
    for state in (*accumulators, *spreads):
        state.grow(sets)
    filled, strange = torch.zeros(2, sets, dtype=torch.bool)
    size = max(1, _CELLS // len(table.numbers))
    for start in range(0, rows, size):
        where, values = _elements(table, start, start + size)
        filled[where] = True
        for law, block, *states in zip(laws, blocks, accumulators, *([spreads] if intervals else []), strict=True):
            try:
                law.check_domain(values[:, coordinates(block)], str)
            except AbelnetError as error:
                raise FaultError(str(error)) from None
            for state in states:
                state.add_at(where, values[:, list(block)])
            for i, seen in zip(block, law.ranges, strict=False):
                strange[where[~seen.covers(values[:, i])]] = True
    results = torch.empty(sets, dim, dtype=torch.float64)
    low, high = torch.empty_like(results), torch.empty_like(results)
    for i, (law, block, accumulator) in enumerate(zip(laws, blocks, accumulators, strict=True)):
        results[:, list(block)] = accumulator.value()
        for j, seen in zip(block, law.ranges, strict=False):
            strange |= ~seen.covers(results[:, j]) & filled
        if intervals:
            own = results[:, coordinates(block)]
            ends = law.interval(own, law.std_of(own, partial(spreads[i].std, own)))
            low[:, coordinates(block)], high[:, coordinates(block)] = ends
    _return(table, {"y": results} | ({"low": low, "high": high} if intervals else {}), strange)
    return rows


def _number_sets(table: Table, model: LawRegressor) -> tuple[int, int]:
    """Numbers the stored sets from 0, in any order; returns how many sets and rows there are."""
    empty = " AND ".join(f"{name} IS NULL" for name in table.numbers)
    gap = " OR ".join(f"{name} IS NULL" for name in table.numbers)
    # In wide form a row without numbers is the identity, which some laws do not have.
    missing = "false" if model.laws_[0].identity is not None else empty
    wrong, database = missing if table.columns.set is None else gap, table.database
    if database.run(f"SELECT 1 FROM stored WHERE {table.is_fault} OR {wrong} LIMIT 1"):
        raise FaultError("a row that is wrong")
    if table.columns.set is None:
        database.run("CREATE OR REPLACE TEMP TABLE sets AS SELECT s FROM numbered")
        database.run("CREATE OR REPLACE TEMP VIEW placed AS SELECT rowid AS place, * FROM stored")
    else:
        database.run("CREATE OR REPLACE TEMP TABLE sets AS SELECT DISTINCT s FROM stored")
        if database.run(f"SELECT 1 FROM sets WHERE {table.is_unnamed} LIMIT 1"):
            raise FaultError("a row without a set")
        database.run(
            "CREATE OR REPLACE TEMP TABLE placed AS SELECT sets.rowid AS place, stored.* EXCLUDE (s) "
            "FROM stored JOIN sets USING (s) ORDER BY stored.rowid"
        )
    counts = database.run("SELECT (SELECT count(*) FROM sets), (SELECT count(*) FROM stored)")
    return int(counts[0][0]), int(counts[0][1])


def _elements(table: Table, start: int, end: int) -> tuple[Tensor, Tensor]:
    """Returns the number of the set of each element, and the elements."""
    number = "place" if table.columns.set is None else "rowid"
    found = table.database.columns(
        f"SELECT place, {', '.join(table.numbers)} FROM placed WHERE {number} >= {start} AND {number} < {end}"
    )
    rows = np.stack([found[name].astype(np.float64) for name in table.numbers], 1)
    elements = rows.reshape(-1, table.columns.dim)
    there = ~np.isnan(elements).any(1)
    where = np.repeat(found["place"], len(elements) // max(1, len(rows)))
    return torch.from_numpy(where[there]), torch.from_numpy(elements[there])


def _return(table: Table, found: dict[str, Tensor], strange: Tensor) -> None:
    columns = {f"{kind}{i}": numbers[:, i].numpy() for kind, numbers in found.items() for i in range(numbers.shape[1])}
    table.database.add("found", columns | {"strange": strange.numpy(), "place": np.arange(len(strange))})
    table.database.run(
        "CREATE OR REPLACE TEMP TABLE results AS SELECT sets.s, found.* EXCLUDE (place) "
        "FROM sets JOIN found ON sets.rowid = found.place"
    )
    table.database.remove("found")
