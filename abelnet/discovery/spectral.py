r"""Closed form: fits a law by a generalized eigenproblem, without local minima.

If :math:`y = x_1 \circ \dots \circ x_n` is a group, :math:`\sum_i \varphi(x_i) - \varphi(y) = 0`, which is linear in
:math:`\varphi`. With :math:`\varphi = \sum_k c_k B_k` in a spline basis, :math:`a_r = \sum_i B(x_{ri}) - B(y_r)` and
the centered values :math:`P` of the basis, the best :math:`\varphi` of unit variance is a generalized eigenvector,

.. math:: \lambda = \min_c \frac{c^\top (A^\top A / R + \mu \Omega) c}{c^\top (P^\top P / N) c} ,

and :math:`\lambda` measures how well *any* group explains the examples: 0 exactly, 1 not at all. For a semigroup the
same holds for :math:`\psi = \log |\varphi|`, which has a pole where :math:`\varphi` crosses zero, at the absorbing
element: :math:`\log |x - x_0|` is added to the basis, and :math:`x_0` is searched on a grid. For a mean the rows are
:math:`\frac{1}{n} \sum_i B(x_{ri}) - B(y_r)`. The fit only needs sums over examples, so it is streaming and mergeable.
"""

from __future__ import annotations

__all__ = ["COORDINATES", "Spectral", "SpectralFit", "fits_coordinate", "spline_knots", "spline_places"]

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from abelnet.bijections import FAMILIES, Chain, Generator
from abelnet.bijections.spline import spline_through
from abelnet.discovery.splines import cubic_splines
from abelnet.errors import AbelnetError
from abelnet.laws import Mean, Polynomial, Product, Sum
from abelnet.multisets import Multisets
from abelnet.operation import Operation

Array = np.ndarray[Any, np.dtype[np.float64]]
# Inner knots: the fewest, for first batches of up to this many sets, and the most, which bounds the cost of a stream.
_FEWEST_KNOTS, _BATCH_OF_FEWEST, _MOST_KNOTS = 20, 2_000, 60
_CHUNK = 2048  # sets, and elements of them, whose basis functions are in memory at a time

COORDINATES: dict[str, tuple[str, tuple[float, ...]]] = {
    "x": ("affine", ()),
    "log x": ("logarithm", (0.0,)),
    "logit x": ("logit", ()),
}
"""Coordinates in which curves are fitted: the family of each, and its parameters."""


def fits_coordinate(examples: Multisets, coordinate: str) -> bool:
    """Returns whether all values and results are in the domain of a coordinate."""
    kind, parameters = COORDINATES[coordinate]
    low, high = FAMILIES[kind].domain(*parameters)
    return all(bool((x > low).all() and (x < high).all()) for x in (examples.values, examples.targets))


def spline_knots(points: Array, count: int) -> Array:
    """Returns knots of cubic splines at quantiles of points, those at the ends fourfold.

    Arguments:
        points: Numbers, not all equal.
        count: Number of inner knots; fewer if they would coincide.
    """
    inner = np.unique(np.quantile(points, np.linspace(0, 1, count + 2)))
    low, high = inner[0], inner[-1]
    if not high > low:
        raise AbelnetError("examples: expected at least two different values, got one")
    # Closer knots would split values that are indistinguishable.
    keep = np.concatenate(([True], np.diff(inner) > 1e-4 * (high - low) / count))
    inner = inner[keep]
    if len(inner) < 3:
        inner = np.linspace(low, high, 5)
    return np.concatenate(([inner[0]] * 3, inner, [inner[-1]] * 3))


def spline_places(edges: Array) -> Array:
    """Returns the knots, and two points between each pair: splines are interpolated there."""
    knots = np.unique(edges)
    return np.unique(np.concatenate([knots[:-1] + part * np.diff(knots) for part in (0, 1 / 3, 2 / 3)] + [knots[-1:]]))


@dataclass(frozen=True)
class Spectral:
    """Solution of the closed form under one hypothesis.

    Attributes:
        hypothesis: ``"group"``, ``"mean"`` or ``"semigroup"``.
        eigenvalue: Distance of the examples from such a law, from 0 to about 1.
        absorbing: Absorbing element; for semigroups.
        points: Interpolation points :math:`(K)`.
        curve: :math:`\\varphi` at the points, increasing.
        slopes: Slopes at the points; unreliable if not positive.
        coordinate: Coordinate of the points, a key of :data:`COORDINATES`.
        falling: Whether :math:`\\varphi` is the negative of the curve; for semigroups, where the sign matters.
    """

    hypothesis: str
    eigenvalue: float
    absorbing: float | None
    points: Array
    curve: Array
    slopes: Array
    coordinate: str = "x"
    falling: bool = False

    def operation(self) -> Operation:
        """Returns the law as a one-dimensional operation with a spline."""
        bijection = spline_through(self.points, self.curve, self.slopes)
        if self.coordinate != "x":
            generator = Generator(1, *COORDINATES[self.coordinate], dtype=torch.float64).requires_grad_(False)
            bijection = Chain(generator, *bijection)
        if self.hypothesis != "semigroup":
            return Operation(bijection, Mean() if self.hypothesis == "mean" else Sum())
        # -φ(z) = φ(x) φ(y) for the negative of the curve is u * v = -uv.
        return Operation(bijection, Polynomial(-1.0, 1.0) if self.falling else Product())


class SpectralFit:
    r"""Streaming, mergeable fit of the closed form.

    Knots are quantiles of the values and results of the first batch; beyond them the splines are extrapolated linearly.

    Arguments:
        knots: Number of inner knots; None for as many as the size of the first batch allows, 20 to 60.
        coordinate: ``"x"``; ``"log x"``, for positive numbers; or ``"logit x"``, for numbers between 0 and 1.

    Example:
        >>> from abelnet.experiments.synthetic.data import make_dataset
        >>> data = make_dataset("shifted_product", 0).train
        >>> group, mean, semigroup, _ = SpectralFit().partial_fit(data).refine(data).solve()
        >>> bool(min(group.eigenvalue, mean.eigenvalue) > 1e-2 > 1e-6 > semigroup.eigenvalue)
        True
        >>> round(semigroup.absorbing, 4)
        -2.0
    """

    def __init__(self, knots: int | None = None, *, coordinate: str = "x") -> None:
        if coordinate not in COORDINATES:
            raise AbelnetError(f"coordinate: expected one of {', '.join(COORDINATES)}, got {coordinate!r}")
        self.knots, self.coordinate = knots, coordinate
        self.count, self.points = 0, 0
        self._basis: _Basis | None = None
        self.residual = self.mean_residual = self.square = np.zeros((0, 0))
        self.total = np.zeros(0)

    def partial_fit(self, examples: Multisets) -> SpectralFit:
        """Adds a batch of examples: nonempty one-dimensional multisets with their results."""
        examples = examples.ordered()
        if bool((examples.sizes == 0).any()):
            raise AbelnetError("examples: expected no empty set to learn from, got some")
        if not fits_coordinate(examples, self.coordinate):
            raise AbelnetError(f"examples: expected numbers in the domain of {self.coordinate}")
        kind, parameters = COORDINATES[self.coordinate]
        values, target = (FAMILIES[kind].forward(x, *parameters).numpy() for x in (examples.values, examples.targets))
        values, ptr = values[:, 0], examples.ptr.numpy()
        if self._basis is None:
            growth = math.sqrt(len(target) / _BATCH_OF_FEWEST)
            knots = self.knots or round(min(max(1.0, growth) * _FEWEST_KNOTS, _MOST_KNOTS))
            self._start(_Basis.of(np.concatenate((values, target)), knots))
        assert self._basis is not None
        for low in range(0, len(target), _CHUNK):
            ends = ptr[low : low + _CHUNK + 1]
            of_target = self._basis(target[low : low + _CHUNK])
            self._count(of_target)
            sums = np.zeros_like(of_target)
            for start in range(ends[0], ends[-1], _CHUNK):
                # The sets with elements in this part; the first and the last may have more of them in other parts.
                stop = min(start + _CHUNK, ends[-1])
                first, last = np.searchsorted(ends, (start, stop - 1), "right") - 1
                of_values = self._basis(values[start:stop])
                self._count(of_values)
                begins = np.maximum(ends[first : last + 1], start) - start
                sums[first : last + 1] += np.add.reduceat(of_values, begins, axis=0)
            a = sums - of_target
            self.residual += a.T @ a
            k = self._basis.splines
            a = sums[:, :k] / np.diff(ends)[:, None] - of_target[:, :k]
            self.mean_residual += a.T @ a
            self.count += len(a)
        return self

    def merge(self, other: SpectralFit) -> SpectralFit:
        """Adds the examples of another fit with the same knots."""
        if self._basis is None or other._basis is None or not self._basis.same(other._basis):
            raise AbelnetError("other: expected a fit with the same knots; create it with empty_copy()")
        self._add(other, 1)
        return self

    def empty_copy(self) -> SpectralFit:
        """Returns a fit with the same knots and no examples, to fit elsewhere and merge."""
        fit = SpectralFit(self.knots, coordinate=self.coordinate)
        if self._basis is not None:
            fit._start(self._basis)
        return fit

    def without(self, examples: Multisets) -> SpectralFit:
        """Returns a fit without these examples, which must be among those added."""
        fit = self.empty_copy()
        fit._add(self, 1)
        fit._add(self.empty_copy().partial_fit(examples), -1)
        return fit

    def _add(self, other: SpectralFit, sign: int) -> None:
        self.residual = self.residual + sign * other.residual
        self.mean_residual = self.mean_residual + sign * other.mean_residual
        self.square, self.total = self.square + sign * other.square, self.total + sign * other.total
        self.count, self.points = self.count + sign * other.count, self.points + sign * other.points

    def refine(self, examples: Multisets, penalty: float = 1e-7, rounds: int = 9) -> SpectralFit:
        """Returns a fit to these examples that locates the absorbing element between grid points."""
        fit = self
        for _ in range(rounds):
            basis, best = fit._basis, fit._best_pole(penalty)
            assert basis is not None
            poles = basis.poles
            low, high = poles[max(0, best - 1)], poles[min(len(poles) - 1, best + 1)]
            fit = SpectralFit(self.knots, coordinate=self.coordinate)
            fit._start(replace(basis, poles=np.linspace(low, high, 9)))
            fit.partial_fit(examples)
        return fit

    def solve(self, penalty: float = 1e-7) -> list[Spectral]:
        """Returns the best group, the best mean, and the best semigroup with a rising and with a falling curve.

        Arguments:
            penalty: Curvature penalty :math:`\\mu`, against noise.
        """
        found = self.solve_sums(penalty)
        assert self._basis is not None
        basis, places = self._basis, self._basis.places
        j = self._best_pole(penalty)
        value, c = self._smallest(self.residual, j, penalty)
        pole = float(basis.poles[j])
        # ψ is determined up to a factor; this one makes φ cross zero with a finite slope.
        c = c / c[-1]
        points = np.unique(np.append(places[np.abs(places - pole) > 1e-9 * np.ptp(places)], pole))
        # Numbers that are almost equal differ by little more than rounding.
        step = max(1e-6 * np.ptp(places), 2 * np.spacing(abs(pole)))
        beside = np.where(points == pole, points + step, points)
        psi = np.clip(basis.curve(beside) @ c[:-1] + np.log(np.abs(beside - pole)), -300, 300)
        size, away = np.exp(psi), beside - pole
        slopes = np.where(points == pole, size / away, size * np.abs(basis.slope(points) @ c[:-1] + 1 / away))
        curve, slopes = _rising(np.where(points == pole, 0.0, np.sign(away) * size), slopes)
        kind, parameters = COORDINATES[self.coordinate]
        absorbing = FAMILIES[kind].inverse(torch.tensor(pole, dtype=torch.float64), *parameters).item()
        found += [
            Spectral("semigroup", value, absorbing, points, curve, slopes, self.coordinate, falling)
            for falling in (False, True)
        ]
        return found

    def solve_sums(self, penalty: float = 1e-7) -> list[Spectral]:
        """Returns the best group and the best mean, which take no search for an absorbing element.

        Arguments:
            penalty: Curvature penalty :math:`\\mu`, against noise.
        """
        if self._basis is None:
            raise AbelnetError("solve: expected a fit with examples, got none; call partial_fit first")
        basis, places = self._basis, self._basis.places
        found = []
        for hypothesis, residual in (("group", self.residual), ("mean", self.mean_residual)):
            value, c = self._smallest(residual, None, penalty)
            curve, slopes = _rising(basis.curve(places) @ c, basis.slope(places) @ c)
            if hypothesis == "mean":  # known up to a constant
                curve = curve - curve.mean()
            found.append(Spectral(hypothesis, value, None, places, curve, slopes, self.coordinate))
        return found

    def _count(self, points: Array) -> None:
        self.square += points.T @ points
        self.total += points.sum(0)
        self.points += len(points)

    def _start(self, basis: _Basis) -> None:
        self._basis, width = basis, basis.width
        self.residual, self.square, self.total = np.zeros((width, width)), np.zeros((width, width)), np.zeros(width)
        self.mean_residual = np.zeros((basis.splines, basis.splines))

    def _best_pole(self, penalty: float) -> int:
        assert self._basis is not None
        return min(range(len(self._basis.poles)), key=lambda j: self._smallest(self.residual, j, penalty)[0])

    def _smallest(self, residual: Array, pole: int | None, penalty: float) -> tuple[float, Array]:
        """Returns the smallest eigenvalue and its eigenvector, in the spline basis alone or with one pole."""
        assert self._basis is not None
        columns = np.arange(self._basis.splines)
        if pole is not None:
            columns = np.append(columns, self._basis.splines + pole)
        pick = np.ix_(columns, columns)
        mean = self.total / self.points
        spread = (self.square / self.points - np.outer(mean, mean))[pick]
        residual = residual[pick] / self.count
        rough = self._basis.roughness
        residual[: len(rough), : len(rough)] += penalty * rough
        scale = np.sqrt(np.maximum(np.diag(spread), 1e-30 * np.diag(spread).max()))
        residual, spread = residual / np.outer(scale, scale), spread / np.outer(scale, scale)
        # Constants have zero variance, so solve for the largest inverse ratio: variance over residual.
        residual += 1e-13 * np.trace(residual) / len(columns) * np.eye(len(columns))
        # With R = L Lᵀ it is the ordinary eigenproblem of L⁻¹ S L⁻ᵀ.
        root = np.linalg.inv(np.linalg.cholesky(residual))
        values, vectors = np.linalg.eigh(root @ spread @ root.T)
        return 1 / max(values[-1], 1e-300), root.T @ vectors[:, -1] / scale


@dataclass(frozen=True)
class _Basis:
    """Cubic splines with linear extrapolation, followed by logarithms with poles on a grid."""

    edges: Array
    poles: Array

    @staticmethod
    def of(points: Array, knots: int) -> _Basis:
        edges = spline_knots(points, knots)
        low, high = edges[0], edges[-1]
        middle = np.quantile(points, np.linspace(0.02, 0.98, 33))
        span = np.quantile(points, 0.95) - np.quantile(points, 0.05)
        beyond = np.array(
            [end + sign * part * span for end, sign in ((low, -1), (high, 1)) for part in (0.02, 0.1, 0.4)]
        )
        return _Basis(edges, np.unique(np.concatenate((middle, beyond, [0.0] if low <= 0 <= high else []))))

    @property
    def splines(self) -> int:
        return len(self.edges) - 4

    @property
    def width(self) -> int:
        return self.splines + len(self.poles)

    @property
    def places(self) -> Array:
        return spline_places(self.edges)

    @cached_property
    def roughness(self) -> Array:
        """Gram matrix of second derivatives, in units of the range."""
        low, high = self.edges[0], self.edges[-1]
        places = self.places
        second = cubic_splines(self.edges, places, 2) * (high - low) ** 2
        weights = np.gradient(places) / (high - low)
        gram: Array = (second * weights[:, None]).T @ second / 1e4
        return gram

    def curve(self, x: Array) -> Array:
        """Returns the values of the splines, with shape :math:`(N, K)`."""
        low, high = self.edges[0], self.edges[-1]
        inside = np.clip(x, low, high)
        result = cubic_splines(self.edges, inside)
        outside = inside != x
        if outside.any():
            result[outside] += cubic_splines(self.edges, inside[outside], 1) * (x - inside)[outside, None]
        return result

    def slope(self, x: Array) -> Array:
        """Returns the slopes of the splines, with shape :math:`(N, K)`."""
        return cubic_splines(self.edges, np.clip(x, self.edges[0], self.edges[-1]), 1)

    def __call__(self, x: Array) -> Array:
        span = self.edges[-1] - self.edges[0]
        logs = x[:, None] - self.poles  # in place from here on: these tables are the largest of a search
        np.abs(logs, out=logs)
        np.maximum(logs, 1e-12 * span, out=logs)
        np.log(logs, out=logs)
        return np.concatenate((self.curve(x), logs), 1)

    def same(self, other: _Basis) -> bool:
        return np.array_equal(self.edges, other.edges) and np.array_equal(self.poles, other.poles)


def _rising(curve: Array, slopes: Array) -> tuple[Array, Array]:
    """Returns the curve oriented upward, with dips flattened to a minimal rise, and its slopes."""
    if curve[-1] < curve[0]:
        curve, slopes = -curve, -slopes
    up, down = np.maximum.accumulate(curve), np.minimum.accumulate(curve[::-1])[::-1]
    level = (up + down) / 2 + np.linspace(0, 1e-9, len(curve)) * np.ptp(curve)
    return level, np.where(up == down, slopes, 0.0)
