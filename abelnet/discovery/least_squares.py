"""Nonlinear least squares from several initial values side by side."""

from __future__ import annotations

__all__ = ["least_squares"]

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Function = Callable[[Array, np.ndarray[Any, np.dtype[np.int64]]], Array]
# Relative step of differences: the root of the rounding error.
_STEP = 2**-26
# Steps, angles between residuals and their derivatives, and decreases below this are rounding errors.
_ROUNDING = 1e-15
# The constants of MINPACK: radius of the first trust region, in the size of the initial values; part of the predicted
# decrease that a step has to reach; below and above these parts of it, the region shrinks and grows; the length of a
# step agrees with the radius up to this part.
_RADIUS, _ACCEPTED, _POOR, _GOOD, _NEAR = 100.0, 1e-4, 0.25, 0.75, 0.1
_SECULAR = 30


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # a step to where nothing is finite is not taken
def least_squares(
    function: Function, starts: Array, *, evaluations: int, settled: float, exact: float = 0.0
) -> tuple[Array, Mask]:
    r"""Minimizes sums of squares by the Levenberg–Marquardt method, from all initial values at once.

    The steps are those of MINPACK, which ``scipy.optimize.leastsq`` calls for one initial value at a time. Functions
    of a few hundred residuals take less time than their calls: here, one call has the residuals and the differences for
    all of them.

    Arguments:
        function: Returns the residuals :math:`(P, R)` at points :math:`(P, k)`, given the initial value :math:`(P)` of
            each.
        starts: Initial values :math:`(S, k)`, with :math:`k \le R`.
        evaluations: Number of steps at most.
        settled: The last step lowers the sum of squares by no more than this fraction.
        exact: Once a sum of squares is at most this, the others are given up.

    Returns:
        The minima :math:`(S, k)`, and which of them settled :math:`(S)`: more evaluations would not change them.

    Example:
        >>> t = np.linspace(0, 1, 20)
        >>> wave = np.exp(-2 * t) - 0.5
        >>> found, settled = least_squares(
        ...     lambda x, of: np.exp(-x[:, :1] * t) + x[:, 1:] - wave,
        ...     np.array([[1.0, 0.0], [5.0, 1.0]]),
        ...     evaluations=50,
        ...     settled=1e-15,
        ... )
        >>> found.round(6).tolist()
        [[2.0, -0.5], [2.0, -0.5]]
    """
    of = np.arange(len(starts))
    at = _evaluate(function, starts, of)
    found, squares, done = starts.copy(), at.squares.copy(), at.squares == 0
    scale = np.where(at.sizes > 0, at.sizes, 1.0)
    radius = _RADIUS * np.linalg.norm(scale * starts, axis=1)
    radius[radius == 0] = _RADIUS
    first = np.ones(len(starts), dtype=bool)
    left = (at.squares > 0) & at.is_finite
    for _ in range(evaluations):
        best = int(squares.argmin())
        left &= (squares[best] > exact) | (of == best)
        if not left.all():
            at = _Point(*(part[left] for part in at))
            of, scale, radius, first = of[left], scale[left], radius[left], first[left]
        if len(of) == 0:
            break
        step, length, damping, change = _trust_region_step(at, scale, radius)
        radius = np.where(first, np.minimum(radius, length), radius)
        there = _evaluate(function, at.x + step / scale, of)
        # Everything is relative to the sum of squares.
        linear, damped = change / at.squares, damping * length**2 / at.squares
        predicted, slope = linear + 2 * damped, -(linear + damped)
        actual = np.where(0.01 * there.squares < at.squares, 1 - there.squares / at.squares, -1.0)
        ratio = np.where(predicted > 0, actual / np.where(predicted > 0, predicted, 1.0), 0.0)
        shrunk = np.where(actual >= 0, 0.5, 0.5 * slope / np.minimum(slope + 0.5 * actual, -1e-300))
        shrunk = np.where((0.01 * there.squares >= at.squares) | (shrunk < 0.1), 0.1, shrunk)
        smaller = shrunk * np.minimum(radius, length / 0.1)
        larger = np.where((damping == 0) | (ratio >= _GOOD), 2 * length, radius)
        radius = np.where(ratio <= _POOR, smaller, larger)
        better = (ratio >= _ACCEPTED) & there.is_finite
        first &= ~better
        size = np.linalg.norm(scale * np.where(better[:, None], there.x, at.x), axis=1)
        settles = (np.abs(actual) <= settled) & (predicted <= settled) & (ratio <= 2)
        if better.any():
            at = at.replaced(there, better)
            scale = np.maximum(scale, at.sizes)
            found[of], squares[of] = at.x, at.squares
        left = ~settles & (radius > _ROUNDING * size) & (at.squares > 0)
        done[of] = ~left
    return found, done


class _Point(NamedTuple):
    """Where the minimizations are.

    Attributes:
        x: Parameters :math:`(S, k)`.
        squares: Sum of squares :math:`(S)`.
        sizes: Norm of each column of the Jacobian :math:`(S, k)`.
        factor: Triangular factor of the Jacobian, with the residuals as its last column, :math:`(S, k, k + 1)`.
    """

    x: Array
    squares: Array
    sizes: Array
    factor: Array

    @property
    def is_finite(self) -> Mask:
        """Whether a step can be taken from each point."""
        return np.asarray(np.isfinite(self.sizes).all(1) & np.isfinite(self.factor).all((1, 2)))

    def replaced(self, other: _Point, where: Mask) -> _Point:
        """Returns the other point where a mask is true."""
        if where.all():
            return other
        pairs = zip(self, other, strict=True)
        return _Point(*(np.where(where.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in pairs))


def _evaluate(function: Function, x: Array, of: np.ndarray[Any, np.dtype[np.int64]]) -> _Point:
    """Returns points with their Jacobians by forward differences."""
    count, dim = x.shape
    points = np.repeat(x[:, None], dim + 1, axis=1)
    steps = np.copysign(_STEP * np.maximum(1.0, np.abs(x)), x)
    places = np.arange(dim)
    points[:, places + 1, places] += steps
    values = function(points.reshape(-1, dim), np.repeat(of, dim + 1)).reshape(count, dim + 1, -1)
    residuals, widths = values[:, 0], points[:, places + 1, places] - x
    table = np.concatenate(((values[:, 1:] - residuals[:, None]) / widths[..., None], residuals[:, None]), 1)
    factor = np.asarray(np.linalg.qr(np.swapaxes(table, 1, 2), mode="r"))[:, :dim]
    sizes = np.sqrt(np.einsum("skl,skl->sl", factor[:, :, :dim], factor[:, :, :dim]))
    return _Point(x, np.einsum("sr,sr->s", residuals, residuals), sizes, factor)


def _trust_region_step(at: _Point, scale: Array, radius: Array) -> tuple[Array, Array, Array, Array]:
    r"""Returns the scaled step, its length, its damping :math:`\lambda` and the squared change of linearized residuals.

    In the singular vectors of the scaled Jacobian, the step is :math:`-s g / (s^2 + \lambda)`; :math:`\lambda` is 0, or
    such that its length is the radius. The inverse of the length is concave in :math:`\lambda`, so that Newton's method
    approaches its root from below.
    """
    dim = scale.shape[1]
    u, s, v = np.linalg.svd(at.factor[:, :, :dim] / scale[:, None])
    g = np.einsum("ski,sk->si", u, at.factor[:, :, dim])
    square = s**2 + 1e-300
    # Directions that are flat up to rounding take no step of their own.
    g = np.where(s > 1e-16 * s[:, :1], g, 0.0)
    damping = np.zeros(len(s))
    for _ in range(_SECULAR):
        step = s * g / (square + damping[:, None])
        length = np.sqrt((step**2).sum(1))
        excess = length - radius
        far = excess > _NEAR * radius
        if not far.any():
            break
        slope = (step**2 / (square + damping[:, None])).sum(1)
        damping = np.where(far, damping + excess / radius * length**2 / np.maximum(slope, 1e-300), damping)
    return -np.einsum("sij,si->sj", v, step), length, damping, ((s * step) ** 2).sum(1)
