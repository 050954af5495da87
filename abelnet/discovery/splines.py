"""Bases of cubic splines, in numpy alone: scipy's take 40 MB of imports, which most laws are learned without."""

from __future__ import annotations

__all__ = ["cubic_splines"]

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
_DEGREE = 3


def cubic_splines(edges: Array, x: Array, derivative: int = 0) -> Array:
    r"""Returns the values of all cubic B-splines at some points, or those of a derivative.

    .. math::
        B_{k,d}(x) = \frac{x - t_k}{t_{k+d} - t_k} B_{k,d-1}(x)
        + \frac{t_{k+d+1} - x}{t_{k+d+1} - t_{k+1}} B_{k+1,d-1}(x) , \qquad
        B_{k,d}'(x) = \frac{d \, B_{k,d-1}(x)}{t_{k+d} - t_k} - \frac{d \, B_{k+1,d-1}(x)}{t_{k+d+1} - t_{k+1}}

    Arguments:
        edges: Knots :math:`t` with shape :math:`(K + 4)`, increasing, those at the ends fourfold.
        x: Points :math:`(N)` from the first to the last knot.
        derivative: Order of the derivative.

    Returns:
        Values :math:`(N, K)`.

    Example:
        >>> cubic_splines(np.array([0.0, 0, 0, 0, 1, 1, 1, 1]), np.array([0.0, 0.5])).tolist()
        [[1.0, 0.0, 0.0, 0.0], [0.125, 0.375, 0.375, 0.125]]
    """
    # Each point lies in one interval, from knot i on, where only B_{i-3} to B_i differ from 0. Knots coincide if
    # numbers are as close as rounding, but not those around a point.
    last = np.searchsorted(edges, edges[-1], "left") - 1
    i = np.clip(np.searchsorted(edges, x, "right") - 1, _DEGREE, last)
    local = np.ones((1, len(x)))
    for degree in range(1, _DEGREE + 1):
        raised = np.zeros((degree + 1, len(x)))
        for j in range(degree):
            start, end = edges[i + 1 + j - degree], edges[i + 1 + j]
            part = local[j] / (end - start)
            if degree <= _DEGREE - derivative:
                raised[j] += part * (end - x)
                raised[j + 1] += part * (x - start)
            else:
                raised[j] -= degree * part
                raised[j + 1] += degree * part
        local = raised
    values = np.zeros((len(x), len(edges) - _DEGREE - 1))
    rows = np.arange(len(x))
    for j in range(_DEGREE + 1):
        values[rows, i - _DEGREE + j] = local[j]
    return values
