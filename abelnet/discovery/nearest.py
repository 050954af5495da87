"""Names what aggregated the elements if no law did: a statistic, a function of a sum, the order, a polynomial."""

from __future__ import annotations

__all__ = ["FUNCTIONS", "STATISTICS", "left_out", "nearest"]

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from abelnet.discovery.yardstick import natural_splines
from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]
# Knots of the function of a sum.
_KNOTS = 20
# Results within this many standard deviations of a statistic are that, and not an affine function of it.
_CLOSE = 0.02
# The simplest description is taken of those with at most this many times the least squared error, or an error of this
# fraction of the spread: a spline is not exact where a polynomial is.
_AS_GOOD, _SMALL = 1.2, 0.03
# A column whose part beyond the others is this fraction of the largest depends on them.
_DEPENDENT = 1e-9
# A part of the results this large that is equal to the largest, or to the smallest, is clipped.
_CLIPPED = 0.02

STATISTICS: dict[str, Callable[[Array], Array]] = {
    "number of elements": lambda x: np.full(len(x), float(x.shape[1])),
    "first element": lambda x: x[:, 0],
    "last element": lambda x: x[:, -1],
    "median": lambda x: np.median(x, 1),
    "lower quartile": lambda x: np.quantile(x, 0.25, 1),
    "upper quartile": lambda x: np.quantile(x, 0.75, 1),
    "range": lambda x: np.ptp(x, 1),
    "midrange": lambda x: (x.min(1) + x.max(1)) / 2,
    "second largest": lambda x: np.sort(x, 1)[:, -2],
    "second smallest": lambda x: np.sort(x, 1)[:, 1],
    "sum without the smallest": lambda x: x.sum(1) - x.min(1),
    "sum without the largest": lambda x: x.sum(1) - x.max(1),
    "variance": lambda x: x.var(1),
    "sample variance": lambda x: x.var(1, ddof=1),
    "standard deviation": lambda x: x.std(1),
    "sample standard deviation": lambda x: x.std(1, ddof=1),
    "mean absolute deviation": lambda x: np.abs(x - x.mean(1, keepdims=True)).mean(1),
    "sum of products of pairs": lambda x: (x.sum(1) ** 2 - (x**2).sum(1)) / 2,
}
"""Statistics of multisets of one size, :math:`(R, n)` to :math:`(R)`, that are no laws."""

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "x": lambda x: x,
    "x^2": lambda x: x**2,
    "x^3": lambda x: x**3,
    "|x|": np.abs,
    "log(x)": lambda x: np.log(x, where=x > 0, out=np.full_like(x, np.nan)),
    "1/x": lambda x: np.divide(1, x, where=x != 0, out=np.full_like(x, np.nan)),
    "exp(x)": lambda x: np.exp(np.minimum(x, 700)),
}
"""Functions of elements of which the results may be a function of the sum, or of the mean."""


def nearest(examples: Multisets, allowed: float, *, by_order: bool = False) -> str:
    """Returns what the results are if no law made them, and what to try, as the end of a sentence.

    Arguments:
        examples: One-dimensional multisets of two or more elements, with their results.
        allowed: Largest mean squared error of a description that holds, in variances of the results.
        by_order: Whether the results are known to depend on the order of elements.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> sets = generator.uniform(0, 1, (40, 5))
        >>> nearest(Multisets.from_arrays(sets, np.median(sets, 1)), 1e-9)
        'the results are the median, which no law gives; compute it from the sorted elements'
    """
    # Powers of large numbers may be infinite: these describe nothing.
    with np.errstate(all="ignore"):
        found = [(float(np.mean(errors**2)), text) for errors, text in _descriptions(examples)]
    best = min(error for error, _ in found if math.isfinite(error))
    if best <= allowed:
        close = max(_AS_GOOD * best, min(allowed, _SMALL**2))
        return next(text for error, text in found if error <= close)
    if by_order:
        return (
            "the results depend on the order of the elements; give elements signs or weights first, as x − y is the "
            "sum of x and −y"
        )
    return (
        "the results are no statistic, no function of a sum and no polynomial that was tried; look for a column "
        "besides the elements that determines them"
    )


def left_out(columns: Array, y: Array) -> Array:
    """Returns the errors of the least-squares fit of ``y`` by columns if each row is predicted from all others.

    They are NaN if a column is not finite.
    """
    from scipy.linalg import qr

    if not np.isfinite(columns).all():
        return np.full(len(y), np.nan)
    largest = np.abs(columns).max(0)
    vectors, triangle, _ = qr(columns / np.where(largest > 0, largest, 1.0), mode="economic", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    vectors = vectors[:, : len(sizes)][:, sizes > _DEPENDENT * sizes[0]]
    kept = 1 - (vectors**2).sum(1)
    return np.asarray((y - vectors @ (vectors.T @ y)) / np.maximum(kept, 1e-9))


def _descriptions(examples: Multisets) -> Iterator[tuple[Array, str]]:
    """Yields descriptions, simplest first, each with its errors in standard deviations of the results."""
    y = examples.targets.numpy()
    unit = float(np.abs(y).max()) or 1.0
    unit *= float((y / unit).std()) or 1.0
    y = y / unit
    one, sizes, exact = np.ones(len(y)), examples.sizes.numpy().astype(np.float64), np.zeros(1)
    for name, statistic in STATISTICS.items():
        values = _by_size(examples, statistic)
        errors = left_out(np.stack((one, values), 1), y)
        itself = np.mean((values / unit - y) ** 2) <= _AS_GOOD * np.mean(errors**2) + _CLOSE**2
        what = f"the {name}" if itself else f"an affine function of the {name}"
        yield errors, f"the results are {what}, which no law gives; {_advice(name)}"
    ends = [float((y == end).mean()) for end in (y.min(), y.max())]
    if len(np.unique(y)) > 2 and min(ends) > _CLIPPED:
        yield (
            exact,
            f"{100 * ends[0]:.2g} % of the results are equal to the smallest and {100 * ends[1]:.2g} % to the largest, "
            "as if they were clipped on both sides; leave these out to learn the law of the others",
        )
    for name, function in FUNCTIONS.items():
        total = _by_size(examples, lambda x, function=function: function(x).sum(1))  # type: ignore[misc]
        for what, sums in ((f"Σ {name}", total), (f"the mean of {name}", total / sizes)):
            if np.isfinite(sums).all():
                yield left_out(natural_splines(sums, min(_KNOTS, len(y) // 5))(sums), y), _function_of(what, name)
    if 3 * sum(int(size) + 1 for size in np.unique(sizes)) <= len(y):
        ranked = np.concatenate([_ranked(examples, int(size)) for size in np.unique(sizes)], 1)
        yield (
            left_out(ranked, y),
            "at each size the results are a weighted sum of the sorted elements, as combinations of minimum, maximum "
            "and quantiles are; learn the minimum and the maximum apart",
        )
    first, second, third = (_by_size(examples, lambda x, p=p: (x**p).sum(1)) for p in (1, 2, 3))  # type: ignore[misc]
    product = _by_size(examples, lambda x: x.prod(1))
    terms = (one, sizes, first, second, third, product, first**2, first * second, first**3, sizes * first)
    if 3 * len(terms) <= len(y):
        yield (
            left_out(np.stack(terms, 1), y),
            "the results are a polynomial of Σ x, Σ x^2, Σ x^3 and Π x; learn these one by one",
        )


def _function_of(what: str, name: str) -> str:
    advice = "transform the results" if name == "x" else f"take {name} as elements, and transform the results"
    return (
        f"the results are a function of {what} that does not return the element of a set of one; {advice} until it does"
    )


def _advice(name: str) -> str:
    if "variance" in name or "deviation" in name or "pairs" in name:
        return "learn Σ x and Σ x^2, of which it is a function"
    if name == "number of elements":
        return "count the rows of each set"
    if "element" in name:
        return "look it up, since the other elements have no effect"
    if "range" in name:
        return "learn the maximum and the minimum, of which it is a function"
    return "compute it from the sorted elements"


def _by_size(examples: Multisets, statistic: Callable[[Array], Array]) -> Array:
    """Applies a statistic of multisets of one size to all."""
    result = np.empty(len(examples))
    for size in sorted(set(examples.sizes.tolist())):
        rows = examples.sizes == size
        result[rows.numpy()] = statistic(_elements(examples, size))
    return result


def _ranked(examples: Multisets, size: int) -> Array:
    """Returns an intercept and the sorted elements of sets of one size, and zeros for all others."""
    columns = np.zeros((len(examples), size + 1))
    columns[(examples.sizes == size).numpy()] = np.pad(
        np.sort(_elements(examples, size), 1), ((0, 0), (1, 0)), constant_values=1.0
    )
    return columns


def _elements(examples: Multisets, size: int) -> Array:
    found: Array = examples.take(examples.sizes == size).values.reshape(-1, size).numpy()
    return found
