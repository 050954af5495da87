r"""Monotone smoothing: the curve of a group or a mean by convex least squares, finer than the closed form.

With :math:`\varphi = \sum_k c_k B_k` in cubic B-splines, :math:`c_0 \le c_1 \le \dots` makes :math:`\varphi` increase.
The error of a result, linearized at a curve :math:`\varphi_0` with predictions :math:`\hat y_r`, is

.. math:: \hat y_r - y_r + a_r^\top c, \quad
   a_r = \frac{\sum_i B(x_{ri}) - B(\hat y_r)}{\varphi_0'(\hat y_r)} ,

so each step of a Gauss-Newton iteration is one convex problem, nonnegative least squares in the differences of
:math:`c`: the mean squared error plus a penalty on curvature, with the mean slope fixed to 1. The first step minimizes
:math:`\sum_i \varphi(x_{ri}) - \varphi(y_r)`, which takes no linearization and hence no initial curve.
"""

from __future__ import annotations

__all__ = ["MonotoneFit"]

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from abelnet.bijections import FAMILIES
from abelnet.discovery.spectral import COORDINATES, Spectral, spline_knots
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# scipy is imported on use, as in the closed form.
Array = np.ndarray[Any, np.dtype[np.float64]]
# Sets for each knot, and the fewest and the most knots: smoothness is left to the penalty.
_SETS_PER_KNOT, _FEWEST_KNOTS, _MOST_KNOTS = 4, 20, 200
# Smallest slope, in mean slopes: on a flat part, results are not determined.
_LEAST_SLOPE = 1e-4
# Weight of the condition that the mean slope is 1, in variances of the results.
_NORMALIZED = 100.0
_STEPS = 6


class MonotoneFit:
    r"""Least squares for a smooth increasing curve, the :math:`\varphi` of a group or of a mean.

    Arguments:
        examples: One-dimensional multisets with their results.
        hypothesis: ``"group"`` or ``"mean"``.
        coordinate: Key of :data:`~abelnet.discovery.spectral.COORDINATES`; the domain must contain all numbers.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> sets = generator.uniform(0, 2, (200, 2))
        >>> results = (np.sqrt(1 + 4 * (sets**2 + sets).sum(1)) - 1) / 2
        >>> law = MonotoneFit(Multisets.from_arrays(sets, results)).solve(1e-6).operation()
        >>> x = torch.tensor([1.0], dtype=torch.float64)
        >>> round(law(x, x).item(), 3)  # φ(x) = x² + x, and 1.562² + 1.562 = 2 + 2
        1.562
    """

    def __init__(self, examples: Multisets, hypothesis: str = "group", *, coordinate: str = "x") -> None:
        from scipy.sparse import csr_array

        if hypothesis not in ("group", "mean"):
            raise AbelnetError(f"hypothesis: expected 'group' or 'mean', got {hypothesis!r}")
        self.hypothesis, self.coordinate = hypothesis, coordinate
        examples = examples.ordered()
        kind, parameters = COORDINATES[coordinate]
        family, targets = FAMILIES[kind], examples.targets
        values, results = (family.forward(x, *parameters).numpy() for x in (examples.values[:, 0], targets))
        # Numbers are scaled to the unit interval, so that penalties do not depend on their unit.
        both = np.concatenate((values, results))
        self._low, self._span = both.min(), np.ptp(both) or 1.0
        both = (both - self._low) / self._span
        values, self._results = np.split(both, [len(values)])
        knots = int(np.clip(len(results) // _SETS_PER_KNOT, _FEWEST_KNOTS, _MOST_KNOTS))
        self._edges = _knots(values, self._results, knots)
        # Errors count in the results themselves, in standard deviations, whatever the coordinate.
        spread = float(targets.std(correction=0)) or 1.0
        self._weights = self._span / spread * (-family.log_slope(targets, *parameters)).exp().numpy()

        ptr = examples.ptr.numpy()
        sizes = np.diff(ptr)
        shares = np.repeat(1 / sizes if hypothesis == "mean" else np.ones(len(sizes)), sizes)
        self._sums = csr_array((shares, np.arange(len(values)), ptr)) @ self._splines(values)
        self._mean_slope = self._slopes(both).mean(0)
        self._rough = self._roughness()

    def solve(self, penalty: float, steps: int = _STEPS) -> Spectral:
        """Returns the curve of least squared error.

        Arguments:
            penalty: Weight of the mean squared second derivative.
            steps: Number of Gauss-Newton steps on the errors of results, after the first step.
        """
        a = self._sums - self._splines(self._results)
        c = self._least_squares(a, np.zeros(len(self._results)), penalty)
        best, loss = c, self._loss(c, penalty)
        for _ in range(steps):
            found = self._predict(best)
            slope = self._slopes(found) @ best
            scale = (self._weights / slope)[:, None]
            a = (self._sums - self._splines(found)).multiply(scale).tocsr()
            c = self._least_squares(a, self._weights * (found - self._results), penalty)
            for part in (1.0, 0.3, 0.1):
                trial = best + part * (c - best)
                new = self._loss(trial, penalty)
                if new < loss:
                    break
            else:
                break
            gain, best, loss = loss - new, trial, new
            if gain < 1e-3 * loss:
                break
        points = self._places()
        return Spectral(
            self.hypothesis,
            loss,
            None,
            self._low + self._span * points,
            self._splines(points) @ best,
            self._slopes(points) @ best / self._span,
            self.coordinate,
        )

    def _loss(self, c: Array, penalty: float) -> float:
        errors = self._weights * (self._predict(c) - self._results)
        return float(np.mean(errors**2) + penalty * c @ self._rough @ c)

    def _predict(self, c: Array) -> Array:
        """Returns the results of the law, in the unit interval or beyond."""
        points = self._places()
        sums, curve, slopes = self._sums @ c, self._splines(points) @ c, self._slopes(points) @ c
        found = np.interp(sums, curve, points)
        for _ in range(3):
            # Newton steps within the cell; curves are straight beyond the ends.
            found += (sums - self._splines(found) @ c) / (self._slopes(found) @ c)
        found = np.where(sums < curve[0], (sums - curve[0]) / slopes[0], found)
        return np.where(sums > curve[-1], 1 + (sums - curve[-1]) / slopes[-1], found)

    def _least_squares(self, a, b, penalty) -> Array:
        from scipy.linalg import cho_solve, cholesky, solve_triangular
        from scipy.optimize import nnls

        gram = (a.T @ a).toarray() / len(b) + penalty * self._rough
        gram += _NORMALIZED * np.outer(self._mean_slope, self._mean_slope)
        linear = _NORMALIZED * self._mean_slope - a.T @ b / len(b)
        # Unknowns are the first coefficient, of either sign, and the increments, beyond the smallest ones.
        width = len(gram)
        steps = np.tril(np.ones((width, width)))
        greville = sum(self._edges[k : k + width] for k in (1, 2, 3)) / 3
        base = _LEAST_SLOPE * greville
        linear = steps.T @ (linear - gram @ base)
        gram = steps.T @ gram @ steps
        first = 1 if self.hypothesis == "mean" else 0
        gram, linear = gram[first:, first:], linear[first:]
        gram = gram + 1e-13 * np.trace(gram) / len(gram) * np.eye(len(gram))
        factor = cholesky(gram)  # upper
        rhs = solve_triangular(factor, linear, trans="T")
        x = solve_triangular(factor, rhs)
        free = 1 - first
        if (x[free:] < 0).any():
            rest = nnls(factor[free:, free:], rhs[free:])[0]
            x[free:] = rest
            if free:
                x[0] = (rhs[0] - factor[0, 1:] @ rest) / factor[0, 0]
        c = base + steps[:, first:] @ x
        return c / (self._mean_slope @ c)

    def _splines(self, z: Array) -> csr_array:
        from scipy.interpolate import BSpline
        from scipy.sparse import csr_array, diags_array

        inside = np.clip(z, 0, 1)
        design = csr_array(BSpline.design_matrix(inside, self._edges, 3))
        if (inside != z).any():
            design = design + diags_array(z - inside) @ self._slopes(inside)
        return design

    def _slopes(self, z):
        from scipy.interpolate import BSpline
        from scipy.sparse import csr_array
        t = self._edges
        inner = BSpline.design_matrix(np.clip(z, 0, 1), t[1:-1], 2)
        return csr_array(inner @ self._difference(t, 3))

    @staticmethod
    def _difference(edges, degree):
        from scipy.sparse import diags_array
        n = len(edges) - degree - 1
        scale = degree / (edges[degree + 1 : degree + n] - edges[1:n])
        return diags_array([-scale, scale], offsets=[0, 1], shape=(n - 1, n))

    def _places(self) -> Array:
        knots = np.unique(self._edges)
        return np.unique(np.concatenate([knots[:-1] + part * np.diff(knots) for part in (0, 1 / 3, 2 / 3)] + [knots[-1:]]))

    def _roughness(self):
        # second derivative is piecewise linear: exact integral from hat functions
        from scipy.interpolate import BSpline
        t = self._edges
        d2 = self._difference(t[1:-1], 2) @ self._difference(t, 3)
        knots = t[3:-3]
        h = np.diff(knots)
        n = len(knots)
        mass = np.zeros((n, n))
        i = np.arange(n - 1)
        mass[i, i] += h / 3; mass[i + 1, i + 1] += h / 3; mass[i, i + 1] += h / 6; mass[i + 1, i] += h / 6
        return d2.T @ mass @ d2.toarray()


def _knots(values: Array, results: Array, count: int) -> Array:
    """Returns knots that are as dense as elements, results and the points of a grid together, each with a third."""
    levels = np.linspace(0, 1, 10 * count)
    return spline_knots(np.concatenate((np.quantile(values, levels), np.quantile(results, levels), levels)), count)
