"""Aggregations that are no commutative, associative law and no quasi-arithmetic mean, with ranges of their elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from laws_of_practice import Fold

Step = Callable[[float, float], float]


def in_order(step: Step) -> Fold:
    """Returns the fold of a step that is not associative, or not commutative, from the first element to the last."""
    return lambda x: reduce(step, x.tolist())


def _second(x: np.ndarray[Any, Any]) -> float:
    return float(np.sort(x)[-2])


def _pairs(x: np.ndarray[Any, Any]) -> float:
    return float((x.sum() ** 2 - (x**2).sum()) / 2)


NON_LAWS: dict[str, tuple[float, float, Fold]] = {
    # The order of the elements matters.
    "difference": (-5, 5, lambda x: x[0] - x[1:].sum()),
    "weighted sum": (-5, 5, lambda x: x[0] + 2 * x[1:].sum()),
    "first element": (-5, 5, lambda x: x[0]),
    "last element": (-5, 5, lambda x: x[-1]),
    "exponential smoothing": (0, 10, in_order(lambda a, b: 0.7 * a + 0.3 * b)),
    "ratio": (1, 5, in_order(lambda a, b: a / b)),
    "power": (1, 1.6, in_order(lambda a, b: a**b)),
    "fold of x + y + 0.1 x² y": (-2, 2, in_order(lambda a, b: a + b + 0.1 * a * a * b)),
    "fold of x + y + 0.1 x y²": (-3, 3, in_order(lambda a, b: a + b + 0.1 * a * b * b)),
    "fold of x + y/2": (-5, 5, in_order(lambda a, b: a + b / 2)),
    "fold of the mean of two": (-5, 5, in_order(lambda a, b: (a + b) / 2)),
    "fold of the geometric mean of two": (0.5, 5, in_order(lambda a, b: math.sqrt(a * b))),
    # Commutative on two elements, but not associative.
    "fold of x² + y²": (-1, 1, in_order(lambda a, b: a * a + b * b)),
    "fold of x² + y², positive": (0, 1.2, in_order(lambda a, b: a * a + b * b)),
    "fold of x y + x² + y²": (-1, 1, in_order(lambda a, b: a * b + a * a + b * b)),
    "fold of |x − y|": (-5, 5, in_order(lambda a, b: abs(a - b))),
    "fold of x y + 1": (-2, 2, in_order(lambda a, b: a * b + 1)),
    "fold of x y + x + y + 3": (-2, 2, in_order(lambda a, b: a * b + a + b + 3)),
    "fold of 2 (x + y)": (-5, 5, in_order(lambda a, b: 2 * (a + b))),
    "fold of x y / (x + y) + 1": (1, 5, in_order(lambda a, b: a * b / (a + b) + 1)),
    # Order statistics.
    "median": (-5, 5, np.median),
    "upper quartile": (-5, 5, lambda x: np.quantile(x, 0.75)),
    "range": (-5, 5, np.ptp),
    "midrange": (-5, 5, lambda x: (x.min() + x.max()) / 2),
    "second largest": (-5, 5, _second),
    "sum without the smallest": (0, 5, lambda x: x.sum() - x.min()),
    "smallest + largest": (-5, 5, lambda x: x.min() + x.max()),
    "smallest · largest": (0.5, 3, lambda x: x.min() * x.max()),
    "weighted by rank": (-5, 5, lambda x: (np.sort(x) * np.arange(1, len(x) + 1)).sum()),
    # Moments and polynomials of symmetric sums.
    "variance": (-5, 5, np.var),
    "standard deviation": (-5, 5, np.std),
    "sum of products of pairs": (-5, 5, _pairs),
    "sum of squares": (-3, 3, lambda x: (x**2).sum()),
    "sum of squares, positive": (0, 5, lambda x: (x**2).sum()),
    "sum and product": (-2, 2, lambda x: x.sum() + x.prod()),
    "sum, and half the largest": (0, 5, lambda x: x.sum() + x.max() / 2),
    "mean and largest": (-5, 5, lambda x: x.mean() + x.max()),
    "contraharmonic mean": (0.5, 5, lambda x: (x**2).sum() / x.sum()),
    # Functions of a sum that do not undo what is summed.
    "square of the sum": (-3, 3, lambda x: x.sum() ** 2),
    "square of the sum, positive": (0, 2, lambda x: x.sum() ** 2),
    "sine of the sum": (-2, 2, lambda x: math.sin(x.sum())),
    "3 + sum of logarithms": (0.3, 8, lambda x: 3 + np.log(x).sum()),
    "root of the sum": (0, 5, lambda x: math.sqrt(x.sum())),
    "exponential of the sum": (-1, 1, lambda x: math.exp(x.sum())),
    "2 · sum": (-5, 5, lambda x: 2 * x.sum()),
    "sum + 1": (-5, 5, lambda x: x.sum() + 1),
    "square of the mean": (0, 3, lambda x: x.mean() ** 2),
    "sum of sines": (-3, 3, lambda x: np.sin(x).sum()),
    # Clipped on both sides, or not a function of the elements at all.
    "sum, clipped on both sides": (-5, 5, lambda x: float(np.clip(x.sum(), -4, 4))),
    "sum of clipped elements": (-5, 5, lambda x: np.clip(x, -2, 2).sum()),
    "sign of the sum": (-5, 5, lambda x: np.sign(x.sum())),
    "count": (-5, 5, lambda x: float(len(x))),
    "count above zero": (-5, 5, lambda x: float((x > 0).sum())),
    "a hash": (-5, 5, lambda x: math.sin(1e3 * x[0])),
}
"""The smallest and the largest element, and the aggregation."""
