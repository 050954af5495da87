"""Operations and learning on Dask dataframes, larger than memory and on many machines; the extra ``dask``.

Running states merge, so that a partition is reduced where it is, and a killed worker costs only the partitions it held.
"""

from __future__ import annotations

__all__ = ["aggregate", "aggregation", "fit"]

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from abelnet.checks import check_finite
from abelnet.discovery.estimator import LawRegressor
from abelnet.errors import AbelnetError, needs_extra
from abelnet.multisets import Multisets
from abelnet.operation import Operation

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

_STATE = "abelnet state {}"


def aggregate(
    frame: dd.DataFrame, by: str | Sequence[str], columns: str | Sequence[str], operation: Operation, **how: Any
) -> dd.DataFrame:
    """Aggregates each group of a Dask dataframe: vectors too, whose coordinates are in several columns.

    States are computed by partition, and summed by Dask's own group-by. Rows with missing values count for nothing;
    elements outside the domain of the operation raise an error.

    Arguments:
        frame: The dataframe.
        by: Column or columns of the group.
        columns: Column of each coordinate.
        operation: The operation.
        how: Arguments of Dask's ``agg``, such as ``split_out``, the number of partitions of the result.

    Returns:
        Dataframe of the results, in ``columns``, with the groups as index.

    Example:
        >>> import dask.dataframe as dd, pandas as pd
        >>> from abelnet import AbelianGroup, Triangular
        >>> from abelnet.bijections.terms import Monomial, Power
        >>> terms = [[Monomial((Power(0),))], [Monomial((Power(0), Power(1)))]]
        >>> center = AbelianGroup(Triangular(2, terms, [[1.0], [1.0]], signs=[1, 0], dtype=torch.float64))
        >>> table = pd.DataFrame({"set": [1, 1, 2], "m": [1.0, 3.0, 2.0], "x": [0.0, 4.0, 5.0]})
        >>> aggregate(dd.from_pandas(table, npartitions=2), "set", ["m", "x"], center).compute(scheduler="sync")
               m    x
        set
        1    4.0  3.0
        2    2.0  5.0
    """
    by, columns = _names(by), _names(columns)
    if len(columns) != operation.dim:
        raise AbelnetError(f"columns: expected {operation.dim}, as the operation has, got {len(columns)}")
    known = list(frame.columns)
    absent = [name for name in (*by, *columns) if name not in known]
    if absent:
        raise AbelnetError(f"by, columns: expected columns of the dataframe, {known}, got {absent}")
    law = operation.folding.law
    states = [_STATE.format(i) for i in range(len(law.empty(operation.dim)))]
    lift = partial(_lift, by=by, columns=columns, states=states, operation=operation)
    lifted = frame.map_partitions(lift, meta=_like(frame[by], states))
    merge = law.aggregate if law.aggregate in ("sum", "max") else _log_sums()
    merged = lifted.groupby(by).agg(dict.fromkeys(states, merge), **how)
    lower = partial(_lower, columns=columns, states=states, operation=operation)
    return merged.map_partitions(lower, meta=_like(merged[[]], columns))


def aggregation(operation: Operation, name: str = "fold") -> Any:
    """Returns an operation as a ``dask.dataframe.Aggregation``, for ``groupby(…).agg({column: …})``.

    It is for operations on numbers; :func:`aggregate` has those on vectors. Missing values count for nothing, and a
    group without others is NaN. So is one with an element outside the domain of the operation: Dask itself calls
    aggregations with numbers that are not data, so that these cannot raise.

    Arguments:
        operation: An operation of one dimension.
        name: Name of the aggregation, another one for each of those in one call of ``agg``.

    Example:
        >>> import dask.dataframe as dd, pandas as pd
        >>> from abelnet import AbelianGroup, Generator
        >>> compound = AbelianGroup(Generator(1, "logarithm", [1.0], dtype=torch.float64))
        >>> table = pd.DataFrame({"account": ["a", "b", "a"], "x": [0.1, 0.2, -0.5]})
        >>> grouped = dd.from_pandas(table, npartitions=2).groupby("account")
        >>> grouped.agg({"x": aggregation(compound)}).compute(scheduler="sync").round(6)["x"].to_dict()
        {'a': -0.45, 'b': 0.2}
    """
    with needs_extra("dask", "aggregation"):
        import dask.dataframe as dd

    if operation.dim != 1:
        raise AbelnetError(f"operation: expected one of one dimension, got {operation.dim}; call aggregate")
    parts = (partial(part, operation=operation) for part in (_chunk, _agg, _finalize))
    return dd.Aggregation(name, *parts)


def fit(
    frame: dd.DataFrame,
    by: str | Sequence[str],
    columns: str | Sequence[str],
    targets: str | Sequence[str],
    *,
    model: LawRegressor | None = None,
) -> LawRegressor:
    """Learns a law from the groups of a Dask dataframe and their results.

    Groups are brought together by a shuffle; each partition is then fitted in closed form where it is, and the fits are
    merged in a tree. The law is solved for at the end, in this process.

    Arguments:
        frame: Dataframe with a row for each element, which has the result of its group too.
        by: Column or columns of the group.
        columns: Column of each coordinate of an element.
        targets: Column of each coordinate of the result.
        model: An unfitted model with the arguments to use.

    Returns:
        The fitted model.

    Example:
        >>> import dask, dask.dataframe as dd, pandas as pd
        >>> generator = np.random.default_rng(0)
        >>> table = pd.DataFrame({"set": np.arange(900) // 3, "x": generator.uniform(-0.5, 1, 900)})
        >>> table["y"] = (1 + table["x"]).groupby(table["set"]).transform("prod") - 1
        >>> with dask.config.set(scheduler="sync"):
        ...     print(fit(dd.from_pandas(table, npartitions=3), "set", "x", "y").laws_[0].formula)
        x∘y = x + y + x·y
    """
    import dask

    by, columns, targets = _names(by), _names(columns), _names(targets)
    if len(columns) != len(targets):
        raise AbelnetError(f"targets: expected as many as columns, {len(columns)}, got {len(targets)}")
    together = frame[list(dict.fromkeys((*by, *columns, *targets)))].shuffle(on=by)
    parts = together.to_delayed()
    examples = [dask.delayed(_examples)(part, by, columns, targets) for part in parts]
    model = LawRegressor() if model is None else model
    rest = iter(examples)
    # The first that is not empty has units and knots for all.
    first = next((found for part in rest for found in dask.compute(part) if found is not None), None)
    if first is None:
        raise AbelnetError("frame: expected at least one group with its result, got none")
    model.partial_fit(first, names=columns)
    fits = [dask.delayed(_fitted)(model, part, seed) for seed, part in enumerate(rest, model.seed + 1)]
    while len(fits) > 1:
        fits = [dask.delayed(_merged)(*fits[k : k + 2]) for k in range(0, len(fits), 2)]
    for other in dask.compute(*fits):
        model.merge(other)
    _ = model.laws_  # solved on first access
    return model


def _names(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _like(frame: dd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Returns an empty frame with further columns of numbers, by which Dask knows the result without computing it."""
    from dask.dataframe.dispatch import make_meta

    return make_meta(frame).assign(**{name: np.empty(0) for name in columns})


def _lift(
    part: pd.DataFrame, *, by: list[str], columns: list[str], states: list[str], operation: Operation
) -> pd.DataFrame:
    values = _numbers(part[columns])
    there = ~np.isnan(values).any(1)
    lifted = _states(operation, values[there]).numpy()
    return part.loc[there, by].assign(**dict(zip(states, lifted.T, strict=True)))


def _lower(part: pd.DataFrame, *, columns: list[str], states: list[str], operation: Operation) -> pd.DataFrame:
    results = _results(operation, torch.from_numpy(part[states].to_numpy(copy=True)))
    return part[[]].assign(**dict(zip(columns, results.numpy().T, strict=True)))


def _chunk(grouped: Any, *, operation: Operation) -> tuple[pd.Series[Any], ...]:
    import pandas as pd

    groups, values = grouped.size().index, _numbers(grouped.obj.to_frame())
    x = torch.from_numpy(values)
    states = np.full((len(values), len(operation.folding.law.empty(1))), np.nan)
    inside = (operation.bijection.is_defined(x) & x.isfinite()).all(1).numpy()
    states[inside] = _states(operation, values[inside]).numpy()
    states[~inside & ~np.isnan(values).any(1)] = np.inf
    merged = _merge(pd.DataFrame(states).groupby(_codes(grouped)), operation)
    return tuple(pd.Series(merged[k].reindex(range(len(groups))).to_numpy(), index=groups) for k in merged)


def _agg(*grouped: Any, operation: Operation) -> tuple[pd.Series[Any], ...]:
    return tuple(_merge(one, operation) for one in grouped)


def _finalize(*states: pd.Series[Any], operation: Operation) -> pd.Series[Any]:
    import pandas as pd

    table = torch.from_numpy(np.stack([one.to_numpy() for one in states], 1))
    finite = table.isfinite().all(1)
    results = torch.full((len(table),), torch.nan, dtype=torch.float64)
    results[finite] = _results(operation, table[finite])[:, 0]
    return pd.Series(results.numpy(), index=states[0].index)


def _merge(grouped: Any, operation: Operation) -> Any:
    """Merges the states of each group; missing ones are left out, and a group of these alone is missing."""
    aggregate = operation.folding.law.aggregate
    if aggregate == "sum":
        return grouped.sum(min_count=1)
    return grouped.max() if aggregate == "max" else _log_sum(grouped)


def _log_sums() -> Any:
    import dask.dataframe as dd

    return dd.Aggregation("log_sum", _log_sum, _log_sum)


def _log_sum(grouped: Any) -> Any:
    """Returns the logarithm of the sum of the exponentials of each group, measured from its largest number."""
    import pandas as pd

    codes, top = _codes(grouped), grouped.max()
    kept, numbers = codes >= 0, grouped.obj.to_numpy()
    highest = top.to_numpy()[codes[kept]]
    with np.errstate(invalid="ignore", divide="ignore"):
        # Infinity marks elements outside the domain; NaN is left out, and a group of NaN alone has no sum.
        powers = np.where(numbers[kept] == highest, 1.0, np.exp(numbers[kept] - highest))
        table = pd.DataFrame(powers) if powers.ndim == 2 else pd.Series(powers)
        return top + np.log(table.groupby(codes[kept]).sum().to_numpy())


def _codes(grouped: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the number of the group of each row, -1 if its key is missing."""
    codes: np.ndarray[Any, np.dtype[np.int64]] = grouped.ngroup().fillna(-1).to_numpy().astype(np.int64)
    return codes


def _numbers(columns: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        numbers: np.ndarray[Any, np.dtype[np.float64]] = columns.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    except (TypeError, ValueError):
        raise AbelnetError(f"columns: expected numbers, got {', '.join(map(str, columns.dtypes))}") from None
    return numbers


@torch.no_grad()
def _states(operation: Operation, values: np.ndarray[Any, np.dtype[np.float64]]) -> Tensor:
    like = next(operation.bijection.parameters(), torch.empty(0, dtype=torch.float64))
    encode, law, _ = operation.folding
    x = torch.from_numpy(values).to(like.device, like.dtype)
    check_finite("columns", x)
    return law.lift(encode(x)).double().cpu()


@torch.no_grad()
def _results(operation: Operation, states: Tensor) -> Tensor:
    like = next(operation.bijection.parameters(), torch.empty(0, dtype=torch.float64))
    _, law, decode = operation.folding
    return decode(law.lower(states.to(like.device), like.dtype)).double().cpu()


def _examples(part: pd.DataFrame, by: list[str], columns: list[str], targets: list[str]) -> Multisets | None:
    """Returns the groups of a partition with their results; None if there are none."""
    grouped = part.groupby(by, sort=False)
    index = _codes(grouped)
    part, index = part[index >= 0], index[index >= 0]
    if len(part) == 0:
        return None
    results = grouped[targets].agg(["min", "max"])
    low, high = (results.xs(end, axis=1, level=1).to_numpy(dtype=np.float64, copy=True) for end in ("min", "max"))
    if not (low == high).all():
        group = results.index[int((low != high).any(1).argmax())]
        raise AbelnetError(f"targets: expected one result for each group, got several or none for {group!r}")
    order = index.argsort(kind="stable")
    ptr = np.searchsorted(index[order], np.arange(len(low) + 1))
    return Multisets(
        torch.from_numpy(_numbers(part[columns])[order]),
        len(columns),
        ptr=torch.from_numpy(ptr),
        targets=torch.from_numpy(low[:, 0] if len(targets) == 1 else low),
    )


def _fitted(model: LawRegressor, examples: Multisets | None, seed: int) -> LawRegressor:
    part = model.empty_copy(seed)
    return part if examples is None else part.partial_fit(examples)


def _merged(one: LawRegressor, *others: LawRegressor) -> LawRegressor:
    # A copy: Dask may use the same object again.
    merged = one.empty_copy(one.seed).merge(one)
    for other in others:
        merged.merge(other)
    return merged
