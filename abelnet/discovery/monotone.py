r"""Monotone smoothing: increasing curves by convex least squares on the errors of results, finer than the closed form.

With :math:`\varphi = \sum_k c_k B_k` in cubic B-splines, :math:`c_0 \le c_1 \le \dots` makes :math:`\varphi` increase.
For a group with predictions :math:`\hat y_r` of a curve :math:`\varphi_0`, the error of a result is, to first order,

.. math:: \hat y_r - y_r + a_r^\top c, \quad
   a_r = \frac{\sum_i B(x_{ri}) - B(\hat y_r)}{\varphi_0'(\hat y_r)} ,

so each step of a Gauss-Newton iteration is one convex problem, nonnegative least squares in the differences of
:math:`c`: the mean squared error plus a penalty on curvature, with the mean slope fixed to 1. The initial curve has the
smallest :math:`\sum_i \varphi(x_{ri}) - \varphi(y_r)`, which takes no linearization. Means have :math:`\frac{1}{n}
\sum_i`, and semigroups :math:`\sum_i B(x_{ri}) \prod_{j \ne i} \varphi_0(x_{rj})`, from the curve of the closed form.
"""

from __future__ import annotations

__all__ = ["MonotoneFit"]

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abelnet.bijections import FAMILIES
from abelnet.discovery.spectral import COORDINATES, Spectral, spline_knots, spline_places
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# scipy is imported on use: it takes 40 MB, and most laws are learned, and all of them applied, without.
Array = np.ndarray[Any, np.dtype[np.float64]]
# Sets for each knot, and the fewest and the most knots: smoothness is left to the penalty.
_SETS_PER_KNOT, _FEWEST_KNOTS, _MOST_KNOTS = 4, 20, 200
# Smallest slope, in mean slopes: a flat part would not determine results.
_LEAST_SLOPE = 1e-4
# Weight of the condition that the mean slope is 1, in variances of the results.
_NORMALIZED = 100.0
# Steps of the iteration, parts of a step that are tried, and the relative gain below which it ends.
_STEPS, _PARTS, _GAIN = 8, (1.0, 0.3, 0.1, 0.01), 1e-3
_NEWTON = 3  # steps that invert the curve, from an interpolation
_ROUNDS = 10  # of nonnegative least squares, for each unknown
_DEFINITE = 1e-15  # smallest eigenvalue of normal equations, relative to the largest
_STEEPEST = 1e6  # initial curves that rise more at their ends than this, relative to their middle, are no start
_LARGEST = 1e100  # errors whose squares, and their sums, are still finite
_TINY = 1e-30  # factors are divided by, so they are at least this


class MonotoneFit:
    r"""Least squares for a smooth increasing curve.

    Arguments:
        examples: One-dimensional multisets with their results.
        found: Solution of the closed form, whose kind of law is fitted in its coordinate.

    Example:
        >>> import torch
        >>> from abelnet.discovery.spectral import SpectralFit
        >>> generator = np.random.default_rng(0)
        >>> sets = generator.uniform(0, 2, (200, 2))
        >>> results = (np.sqrt(1 + 4 * (sets**2 + sets).sum(1)) - 1) / 2
        >>> examples = Multisets.from_arrays(sets, results)
        >>> group = SpectralFit().partial_fit(examples).solve()[0]
        >>> law = MonotoneFit(examples, group).solve(1e-6).operation()
        >>> x = torch.tensor([1.0], dtype=torch.float64)
        >>> round(law(x, x).item(), 3)  # φ(x) = x² + x, and 1.562² + 1.562 = 2 + 2
        1.562
    """

    def __init__(self, examples: Multisets, found: Spectral) -> None:
        examples = examples.ordered()
        self.found = found
        kind, parameters = COORDINATES[found.coordinate]
        family, targets = FAMILIES[kind], examples.targets
        values, results = (family.forward(x, *parameters).numpy() for x in (examples.values[:, 0], targets))
        # Numbers are scaled to the unit interval, so that penalties do not depend on their unit.
        both = np.concatenate((values, results))
        self._low, self._span = float(both.min()), float(np.ptp(both)) or 1.0
        both = (both - self._low) / self._span
        values, self._results = both[: len(values)], both[len(values) :]
        # Errors count in the results themselves, in standard deviations, whatever the coordinate.
        spread = float(targets.std(correction=0)) or 1.0
        self._weights = self._span / spread * (-family.log_slope(targets, *parameters)).exp().numpy()
        self._splines = _Splines(_knots(values, self._results))
        self._ptr, self._values = examples.ptr.numpy(), self._splines(values)
        self._mean_slope: Array = self._splines.slope(both).mean(0)
        # The curve of a semigroup has a scale of its own; that of others is normalized. Its ends may be very steep.
        middle = np.interp(self._low + self._span * np.quantile(both, (0.1, 0.9)), found.points, found.curve)
        self._rise = float(middle[1] - middle[0]) if self._is_semigroup else 1.0
        if self._is_semigroup and not np.ptp(found.curve) < _STEEPEST * self._rise:
            raise AbelnetError(
                f"found: expected a curve that rises by at most {_STEEPEST:g} times what its middle does"
            )
        self._roughness = self._splines.roughness() / self._rise**2
        self._last: list[Array] = []
        sizes = np.diff(self._ptr)
        self._signs = (-1.0 if found.falling else 1.0) ** (sizes - 1)
        self._sums = self._folded(np.repeat(1 / sizes if found.hypothesis == "mean" else np.ones(len(sizes)), sizes))

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")  # products of many factors; such a step is not taken
    def solve(self, penalty: float) -> Spectral:
        """Returns the curve with the least sum of mean squared error and penalty; its eigenvalue is that sum.

        The last curve is an initial curve of the next one, so penalties are best given in descending order.

        Arguments:
            penalty: Weight of the mean squared second derivative.
        """
        starts = [self._first(penalty), *self._last]
        best = min(starts, key=lambda c: self._loss(c, penalty))
        loss = self._loss(best, penalty)
        for _ in range(_STEPS):
            towards = self._step(best, penalty)
            trials = ((self._loss(c, penalty), c) for c in (best + part * (towards - best) for part in _PARTS))
            new, c = next((trial for trial in trials if trial[0] < loss), (loss, best))
            gain, best, loss = loss - new, c, new
            if gain <= _GAIN * loss:
                break
        self._last = [best]
        places = self._splines.places
        return replace(
            self.found,
            eigenvalue=loss,
            points=self._low + self._span * places,
            curve=self._splines(places) @ best,
            slopes=self._splines.slope(places) @ best / self._span,
        )

    @property
    def _is_semigroup(self) -> bool:
        return self.found.hypothesis == "semigroup"

    def _first(self, penalty: float) -> Array:
        """Returns coefficients of the initial curve."""
        if not self._is_semigroup:
            return self._least_squares(self._sums - self._splines(self._results), 0 * self._results, penalty)
        places = self._splines.places
        curve = np.interp(self._low + self._span * places, self.found.points, self.found.curve)
        return self._least_squares(self._splines(places), -curve, penalty=0.0)

    def _step(self, c: Array, penalty: float) -> Array:
        """Returns the coefficients of least squares with errors linearized at a curve."""
        found, rows = self._predict(c), self._sums
        if self._is_semigroup:
            factors = self._values @ c
            rows = self._folded(np.repeat(self._latent(c), np.diff(self._ptr)) / _nonzero(factors))
        scale = self._weights / (self._splines.slope(found) @ c)
        a = (rows - self._splines(found)).multiply(scale[:, None]).tocsr()
        b = self._weights * (found - self._results) - a @ c
        return self._least_squares(a, b, penalty) if max(np.abs(a.data).max(), np.abs(b).max()) < _LARGEST else c

    def _loss(self, c: Array, penalty: float) -> float:
        errors = self._weights * (self._predict(c) - self._results)
        return float(np.mean(errors**2) + penalty * c @ self._roughness @ c)

    def _latent(self, c: Array) -> Array:
        if not self._is_semigroup:
            latent: Array = self._sums @ c
            return latent
        products: Array = np.multiply.reduceat(_nonzero(self._values @ c), self._ptr[:-1])
        return self._signs * products

    def _predict(self, c: Array) -> Array:
        """Returns the results of the law, in the unit interval or beyond."""
        places, latent = self._splines.places, np.nan_to_num(self._latent(c), nan=np.inf, posinf=np.inf, neginf=-np.inf)
        curve, slopes = self._splines(places) @ c, self._splines.slope(places) @ c
        found = np.interp(latent, curve, places)
        for _ in range(_NEWTON):
            step = (latent - self._splines(found) @ c) / (self._splines.slope(found) @ c)
            found = np.clip(found + np.nan_to_num(step), places[0], places[-1])
        # Curves are straight beyond the ends.
        found = np.where(latent < curve[0], places[0] + (latent - curve[0]) / slopes[0], found)
        result: Array = np.where(latent > curve[-1], places[-1] + (latent - curve[-1]) / slopes[-1], found)
        return result

    def _least_squares(self, a: csr_array, b: Array, penalty: float) -> Array:
        r"""Returns increasing coefficients with the least :math:`|a c + b|^2 / R` plus penalty, of mean slope 1."""
        from scipy.linalg import eigh, qr, solve_triangular
        from scipy.optimize import nnls

        slope = self._mean_slope * (not self._is_semigroup)
        gram = (a.T @ a).toarray() / len(b) + penalty * self._roughness + _NORMALIZED * np.outer(slope, slope)
        linear = _NORMALIZED * slope - a.T @ b / len(b)
        # The unknowns are the first coefficient, which may have any sign, and increments beyond the smallest ones.
        least = _LEAST_SLOPE * self._rise * self._splines.identity
        steps = np.tril(np.ones_like(gram))
        if self.found.hypothesis == "mean":
            # The mean does not change with a constant, so the first coefficient is 0.
            steps = steps[:, 1:]
        free = steps.shape[1] - len(gram) + 1
        linear, gram = steps.T @ (linear - gram @ least), steps.T @ gram @ steps
        # A triangular factor, as Cholesky's, which rounding cannot make indefinite.
        values, vectors = eigh(gram)
        factor = qr(np.sqrt(np.maximum(values, _DEFINITE * values[-1]))[:, None] * vectors.T, mode="r")[0]
        right = solve_triangular(factor, linear, trans="T")
        x = solve_triangular(factor, right)
        if (x[free:] < 0).any():
            try:
                x[free:] = nnls(factor[free:, free:], right[free:], maxiter=_ROUNDS * len(x))[0]
            except RuntimeError:  # no convergence; these coefficients increase, too
                x[free:] = np.maximum(x[free:], 0)
            x[:free] = (right[:free] - factor[:free, free:] @ x[free:]) / np.diag(factor)[:free]
        c: Array = least + steps @ x
        return c if self._is_semigroup else c / (slope @ c)

    def _folded(self, weights: Array) -> csr_array:
        """Returns the sums of the splines at the elements of each set, with weights of elements."""
        from scipy.sparse import csr_array

        return csr_array((weights, np.arange(len(weights)), self._ptr)) @ self._values


class _Splines:
    """Cubic B-splines between the outer knots, straight beyond them, as sparse matrices with a row for each point."""

    def __init__(self, edges: Array) -> None:
        self.edges, self.places = edges, spline_places(edges)
        width = len(edges) - 4
        # Coefficients of the identity map: the mean of the three inner knots of each spline.
        self.identity = np.stack([edges[k : k + width] for k in (1, 2, 3)]).mean(0)

    def __call__(self, x: Array) -> csr_array:
        from scipy.interpolate import BSpline
        from scipy.sparse import csr_array, diags_array

        inside = self._inside(x)
        values = csr_array(BSpline.design_matrix(inside, self.edges, 3))
        return values if np.array_equal(inside, x) else values + diags_array(x - inside) @ self.slope(inside)

    def slope(self, x: Array) -> csr_array:
        """Returns the slopes of the splines."""
        from scipy.interpolate import BSpline
        from scipy.sparse import csr_array

        return csr_array(BSpline.design_matrix(self._inside(x), self.edges[1:-1], 2)) @ _derivative(self.edges, 3)

    def _inside(self, x: Array) -> Array:
        # The last knot is below 1 if numbers near 1 are indistinguishable.
        return np.clip(x, self.edges[0], self.edges[-1])

    def roughness(self) -> Array:
        """Returns the Gram matrix of second derivatives, which are linear between knots."""
        second = (_derivative(self.edges[1:-1], 2) @ _derivative(self.edges, 3)).toarray()
        width = np.diff(self.edges[3:-3])[:, None]
        left, right = second[:-1], second[1:]
        gram: Array = left.T @ (width * (2 * left + right)) / 6 + right.T @ (width * (2 * right + left)) / 6
        return gram


def _derivative(edges: Array, degree: int) -> csr_array:
    """Returns the matrix from coefficients of splines to those of their derivatives, splines of one degree less."""
    from scipy.sparse import csr_array, diags_array

    width = len(edges) - degree - 1
    scale = degree / (edges[degree + 1 : degree + width] - edges[1:width])
    return csr_array(diags_array([-scale, scale], offsets=[0, 1], shape=(width - 1, width)))


def _knots(values: Array, results: Array) -> Array:
    """Returns knots that are as dense as elements, results and the points of a grid, a third each.

    Without results, the curve would be coarse where they are and elements are not; without a grid, at rare results.
    """
    count = int(np.clip(len(results) // _SETS_PER_KNOT, _FEWEST_KNOTS, _MOST_KNOTS))
    levels = np.linspace(0, 1, 10 * count)
    return spline_knots(np.concatenate((np.quantile(values, levels), np.quantile(results, levels), levels)), count)


def _nonzero(x: Array) -> Array:
    return np.where(np.abs(x) < _TINY, _TINY, x)
