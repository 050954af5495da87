r"""Yardstick: how well results can be predicted without any law, and what of that no bend of a law explains.

Let :math:`r = y - F(x)` be the residuals of a law :math:`F`. If the examples follow a law, :math:`r` is noise plus the
error of its curve. A slightly different curve is the same law after a map :math:`x + \varepsilon\,\eta(x)`, and changes
the results by

.. math:: \varepsilon \Bigl( \sum_i \frac{\partial F}{\partial x_i}\, \eta(x_i) - \eta(F(x)) \Bigr) ,

so the *bends* of a law are a linear space, which splines :math:`\eta` span. A ridge regression on bends is compared
with one on bends and features of the multisets, which assumes no law. Both predict each example from all the others, in
closed form: the difference of their errors is a misfit that no curve repairs.
"""

from __future__ import annotations

__all__ = [
    "Comparison",
    "Features",
    "bend",
    "compare",
    "compare_errors",
    "describe_sets",
    "mean_ranks",
    "natural_splines",
    "standard",
]

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]
# A bend for this many examples, up to the most: the curve of a law has about as many knots.
_EXAMPLES_PER_BEND, _MOST_BENDS = 8, 32
# Closer knots, in ranges of the points, are one.
_CLOSEST_KNOTS = 1e-9
# Centers of radial functions, and their widths, in standard deviations per root of the number of dimensions.
_CENTERS, _WIDTHS = 100, (0.7, 2.0)
# Ridge penalties of bends and weights of features, in units of the noise: from none to all of the residuals.
_PENALTIES = np.logspace(-9, 1, 11)
_WEIGHTS = np.logspace(-2, 5, 8)
# Squares of singular values below this fraction of the largest are rounding errors.
_LEAST_SQUARE = 1e-11
# Sizes that have an intercept and slopes of their own: the most frequent ones with this many examples.
_MOST_SIZES, _FEWEST_OF_SIZE = 5, 12
# Draws of the noise, with random signs.
_DRAWS = 60


@dataclass(frozen=True)
class Features:
    """Features of multisets, one row for each, standardized.

    Attributes:
        symmetric: Features that do not depend on the order of elements, and the results of the law.
        ordered: Features that do.
        of_size: Whether each multiset has each of the most frequent sizes.
    """

    symmetric: Array
    ordered: Array
    of_size: Array


@dataclass(frozen=True)
class Comparison:
    """Errors of a law, of a law with the best bend, and of the best regression that assumes no law.

    Attributes:
        law: Error of the law, for each example.
        bent: Error of the law with a bend that is fitted to all other examples.
        plain: Error of the regression that is fitted to all other examples.
        features: Name of the features of that regression.
        gain: Fraction of the squared error with bends that the regression removes.
        by_chance: The gains if the signs of the errors were random.
        gains: The gain by name of the features.
    """

    law: Array
    bent: Array
    plain: Array
    features: str
    gain: float
    by_chance: Array
    gains: Mapping[str, float]


def compare(examples: Multisets, results: Callable[[Multisets], Tensor], *, seed: int = 0) -> Comparison:
    """Compares a law with regressions that assume none.

    Arguments:
        examples: One-dimensional multisets with their results.
        results: The law: returns differentiable results of multisets.
        seed: Random seed of the signs.
    """
    found, bends = _bends(examples, results)
    return compare_errors(examples.targets.numpy() - found, bends, describe_sets(examples, found), seed=seed)


def compare_errors(errors: Array, bends: Array, features: Features, *, seed: int = 0) -> Comparison:
    """Compares the errors of a law with those of regressions on features.

    Arguments:
        errors: Result minus that of the law, for each example :math:`(R)`.
        bends: How the results of the law change with its curve or parameters, in columns of unit length :math:`(R, b)`.
        features: Features of the examples.
        seed: Random seed of the signs.
    """
    scale = float(np.abs(errors).max()) or 1.0
    residual = errors / scale
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (len(residual), _DRAWS))
    base = _Base.of(bends, residual)
    bent = base.left_out(residual)
    drawn = bent[:, None] * signs
    least = np.finfo(np.float64).tiny  # errors may be exactly 0
    reference = max(float(np.mean(bent**2)), least), np.maximum(np.mean(base.left_out(drawn) ** 2, 0), least)
    gains: dict[str, float] = {}
    best, plain, by_chance = "", bent, np.full(_DRAWS, -np.inf)
    every = np.column_stack((residual, drawn))
    for name, columns in _designs(features).items():
        path = base.with_features(columns, every)
        for weight in _WEIGHTS:
            left_out = path(weight)
            left = np.mean(left_out**2, 0)
            gain = 1 - left[0] / reference[0]
            by_chance = np.maximum(by_chance, 1 - left[1:] / reference[1])
            if gain > max(gains.values(), default=-np.inf):
                best, plain = name, left_out[:, 0]
            gains[name] = max(gain, gains.get(name, -np.inf))
    return Comparison(scale * residual, scale * bent, scale * plain, best, gains[best], by_chance, gains)


def bend(examples: Multisets, results: Callable[[Multisets], Tensor]) -> tuple[Array, Array]:
    """Returns the errors of a law, and those with a bend of its curve that is fitted to all other examples.

    Arguments:
        examples: One-dimensional multisets with their results.
        results: The law: returns differentiable results of multisets.
    """
    found, bends = _bends(examples, results)
    residual = examples.targets.numpy() - found
    scale = float(np.abs(residual).max()) or 1.0
    return residual, scale * _Base.of(bends, residual / scale).left_out(residual / scale)


def describe_sets(examples: Multisets, found: Array) -> Features:
    """Returns the features of multisets and of the results of a law on them.

    Arguments:
        examples: One-dimensional multisets, none of them empty.
        found: Results of the law.
    """
    x = examples.values[:, 0].numpy()
    scale = float(np.abs(x).max()) or 1.0
    x = x / scale
    begins, sizes = examples.ptr[:-1].numpy(), examples.sizes.numpy()
    last = begins + sizes - 1

    def total(values: Array) -> Array:
        return np.add.reduceat(values, begins)

    magnitude = np.maximum(np.abs(x), 1e-12)
    ranked = x[np.lexsort((x, np.repeat(np.arange(len(sizes)), sizes)))]
    middle = (ranked[begins + (sizes - 1) // 2] + ranked[begins + sizes // 2]) / 2
    logs = total(np.log(magnitude))
    symmetric = [
        found,
        sizes.astype(np.float64),
        *(total(x**power) for power in (1, 2, 3, 4)),
        total(x) / sizes,
        logs,
        np.multiply.reduceat(x, begins),
        total(1 / (np.copysign(magnitude, x))),
        ranked[begins],
        ranked[last],
        middle,
        ranked[begins + np.minimum(1, sizes - 1)],
    ]
    place = np.arange(len(x)) - np.repeat(begins, sizes)
    ordered = [x[begins], x[last], x[begins + np.minimum(1, sizes - 1)], total(place * x)]
    kinds, counts = np.unique(sizes, return_counts=True)
    kinds = kinds[np.argsort(-counts, kind="stable")][: max(1, (counts >= _FEWEST_OF_SIZE).sum())]
    of_size = (sizes[:, None] == kinds[:_MOST_SIZES]).astype(np.float64)
    return Features(standard(np.stack(symmetric, 1)), standard(np.stack(ordered, 1)), of_size)


def natural_splines(points: Array, count: int) -> Callable[[Array], Array]:
    """Returns natural cubic splines with knots at quantiles of points, as a function :math:`(N)` to :math:`(N, K)`.

    Arguments:
        points: Finite numbers.
        count: Largest number :math:`K` of splines.

    Example:
        >>> splines = natural_splines(np.arange(9.0), 3)
        >>> splines(np.array([0.0, 4.0])).round(6).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    from scipy.interpolate import CubicSpline

    low, width = points.min(), np.ptp(points) or 1.0
    knots = np.quantile((points - low) / width, np.linspace(0, 1, count))
    knots = knots[np.concatenate(([True], np.diff(knots) > _CLOSEST_KNOTS))]
    if len(knots) < 2:
        return lambda x: np.ones((len(x), 1))
    spline = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
    return lambda x: np.asarray(spline((x - low) / width))


def _bends(examples: Multisets, results: Callable[[Multisets], Tensor]) -> tuple[Array, Array]:
    """Returns the results of a law, and how each bend changes them, in columns of unit length."""
    values = examples.values.clone().requires_grad_()
    found = results(Multisets(values, 1, ptr=examples.ptr))
    (slopes,) = torch.autograd.grad(found.sum(), values)
    x, slope = values.detach().numpy()[:, 0], np.nan_to_num(slopes.numpy()[:, 0], posinf=0.0, neginf=0.0)
    y = found.detach().numpy()
    count = min(_MOST_BENDS, max(2, len(y) // _EXAMPLES_PER_BEND))
    spline = natural_splines(np.concatenate((x, y)), count)
    bends = np.add.reduceat(slope[:, None] * spline(x), examples.ptr[:-1].numpy(), axis=0) - spline(y)
    lengths = np.linalg.norm(bends, axis=0)
    return y, bends[:, lengths > 0] / lengths[lengths > 0]


@dataclass(frozen=True)
class _Base:
    """Ridge regression on bends, to which others add features.

    Attributes:
        vectors: Left singular vectors of the bends.
        left: Part of each that the ridge leaves in the residuals.
    """

    vectors: Array
    left: Array

    @staticmethod
    def of(bends: Array, residual: Array) -> _Base:
        vectors, sizes = _singular(bends)
        options = [_Base(vectors, penalty / (penalty + sizes**2)) for penalty in _PENALTIES]
        options.append(_Base(vectors, np.ones(len(sizes))))
        return min(options, key=lambda one: float(np.mean(one.left_out(residual) ** 2)))

    def left_out(self, residual: Array) -> Array:
        """Returns the errors if each example is predicted from all others."""
        removed = 1 - self.left
        rest = residual - self.vectors @ (removed.reshape(-1, *[1] * (residual.ndim - 1)) * (self.vectors.T @ residual))
        kept = 1 - (self.vectors**2) @ removed
        return rest / kept.reshape(-1, *[1] * (residual.ndim - 1))

    def half(self, columns: Array) -> Array:
        """Applies the square root of the matrix that maps residuals to what the ridge leaves of them."""
        return columns - self.vectors @ ((1 - np.sqrt(self.left))[:, None] * (self.vectors.T @ columns))

    def with_features(self, columns: Array, residual: Array) -> Callable[[float], Array]:
        """Returns a function of a weight of the features: the errors of residuals, left out one by one."""
        vectors, sizes = _singular(self.half(columns))
        vectors = self.half(vectors)
        removed = 1 - self.left
        rest = residual - self.vectors @ (removed[:, None] * (self.vectors.T @ residual))
        kept = 1 - (self.vectors**2) @ removed
        along, squares = vectors.T @ residual, vectors**2

        def left_out(weight: float) -> Array:
            part = weight * sizes**2 / (1 + weight * sizes**2)
            errors: Array = (rest - vectors @ (part[:, None] * along)) / np.maximum(kept - squares @ part, 1e-9)[
                :, None
            ]
            return errors

        return left_out


def _singular(columns: Array) -> tuple[Array, Array]:
    """Returns left singular vectors and singular values, without those that are 0 up to rounding.

    By the Gram matrix: the decomposition of columns that depend on each other may fail to converge.
    """
    values, vectors = np.linalg.eigh(columns.T @ columns)
    kept = values > _LEAST_SQUARE * max(values.max(initial=0.0), 1e-300)
    sizes = np.sqrt(values[kept])
    return columns @ (vectors[:, kept] / sizes), sizes


def _designs(features: Features) -> dict[str, Array]:
    """Returns the columns of each regression, of unit mean square: linear, by size, quadratic and radial."""
    symmetric, ordered, of_size = features.symmetric, features.ordered, features.of_size
    both = np.concatenate((symmetric, ordered), 1)
    by_size = [np.concatenate((of_size, _products(one, of_size)), 1) for one in (symmetric, both)]
    designs = {
        "symmetric": by_size[0],
        "symmetric, quadratic": np.concatenate((by_size[0], _squares(symmetric)), 1),
        "ordered": by_size[1],
        "ordered, quadratic": np.concatenate((by_size[1], _squares(both)), 1),
    }
    for width in _WIDTHS:
        designs[f"symmetric, radial {width:g}"] = _radial(_normal(symmetric), width)
        designs[f"ordered, radial {width:g}"] = _radial(_normal(both), width)
    return {name: columns / np.sqrt(columns.shape[1]) for name, columns in designs.items()}


def _products(one: Array, other: Array) -> Array:
    return np.reshape(one[:, :, None] * other[:, None, :], (len(one), -1))


def _squares(columns: Array) -> Array:
    i, j = np.triu_indices(columns.shape[1])
    return standard(columns[:, i] * columns[:, j])


def standard(columns: Array) -> Array:
    """Returns columns of zero mean and unit variance, without those that are constant."""
    columns = columns - columns.mean(0)
    spread = np.sqrt(np.mean(columns**2, 0))
    kept = spread > 1e-12 * np.maximum(np.abs(columns).max(0, initial=0.0), 1e-300)
    return np.asarray(columns[:, kept] / spread[kept])


def mean_ranks(numbers: Array) -> Array:
    """Returns the rank of each number, from 1; equal numbers share the mean of their ranks.

    Example:
        >>> mean_ranks(np.array([5.0, 2.0, 5.0, 7.0])).tolist()
        [2.5, 1.0, 2.5, 4.0]
    """
    _, places, ties = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(ties) - (ties - 1) / 2)[places])


def _normal(columns: Array) -> Array:
    """Returns the normal scores of each column, so that no example is far from all others."""
    from scipy.special import ndtri

    return np.asarray(ndtri((np.stack([mean_ranks(column) for column in columns.T], 1) - 0.5) / len(columns)))


def _radial(columns: Array, width: float) -> Array:
    """Returns radial functions of columns, whitened so that ridge regression on them is a Gaussian process."""
    centers = columns[:: max(1, len(columns) // _CENTERS)][:_CENTERS]
    scale = 2 * width**2 * columns.shape[1]

    def kernel(one: Array, other: Array) -> Array:
        squares = (one**2).sum(1)[:, None] + (other**2).sum(1) - 2 * one @ other.T
        return np.asarray(np.exp(-np.maximum(squares, 0) / scale))

    among = kernel(centers, centers)
    values, vectors = np.linalg.eigh(among)
    kept = values > 1e-9 * values[-1]
    root = kernel(columns, centers) @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(root * np.sqrt(root.shape[1]))
