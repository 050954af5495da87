r"""Screening of examples before any law is assumed: which results are gross outliers, and how noise scales.

A linear regression,

.. math:: y_r \approx w_n^\top f(x_{r1}, \dots, x_{rn}) ,

on features that common aggregations are made of, is fitted with bounded influence at each size :math:`n`, in
milliseconds. Examples with residuals of more than 6 standard deviations, estimated from the median, are suspects.
Noise is constant, or its standard deviation is :math:`s \sqrt{\hat y^2 + \varepsilon^2}`, in proportion to large
results; likelihood decides.
"""

from __future__ import annotations

__all__ = ["CUT", "ROUNDING", "Noise", "Screening", "choose_noise", "log_likelihood", "scale_of", "screen"]

import math
from typing import Any, NamedTuple

import numpy as np

from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
CUT = 6.0
"""Residuals of outliers, in standard deviations; those of Gaussian noise exceed it once in 5e8 examples."""
ROUNDING = 1e-9
"""Residuals below this part of a result are rounding errors."""
# The median of |residual| of Gaussian noise, in standard deviations.
_MEDIAN = 0.6745
# Influence of a residual ends at this many standard deviations, which has 95% efficiency with Gaussian noise.
_BISQUARE = 4.685
_SWEEPS = 30
# Fewer examples tell too little about their distribution.
_FEWEST = 30
# At most this part of the examples is suspected, so that enough are left to search a law.
_MOST_SUSPECTS = 0.3
# Sizes with fewer examples share one regression; features are at most this part of the examples.
_OWN_REGRESSION, _FEATURES = 30, 0.2
# Elements in their order are features at sizes up to this one.
_IN_ORDER = 6
# Likelihoods are those of a t distribution with this many degrees of freedom, so that outliers do not decide.
_DEGREES = 3.0
# Noise proportional to the result is less common, and needs this much more log-likelihood.
_EVIDENCE = 10.0
# Floors of proportional noise that are tried, in medians of |result|.
_FLOORS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


class Noise(NamedTuple):
    r"""Model of noise: constant, or with standard deviation proportional to :math:`\sqrt{\hat y^2 + \varepsilon^2}`.

    Attributes:
        floor: :math:`\varepsilon`, or None if noise is constant.

    Example:
        >>> Noise(3.0).units(np.array([0.0, 4.0]))
        array([3., 5.])
    """

    floor: float | None = None

    @property
    def is_constant(self) -> bool:
        """Whether noise is the same for all results."""
        return self.floor is None

    def units(self, predicted: Array) -> Array:
        """Returns the standard deviation at each predicted result, up to a factor."""
        return np.ones(len(predicted)) if self.floor is None else np.hypot(predicted, self.floor)


class Screening(NamedTuple):
    """Result of the regression.

    Attributes:
        suspects: Which examples are far from the regression.
        residuals: Its residual on each example.
        features: Features of the elements of each example.
        noise: Model of noise.
        units: Standard deviation of the noise of each example, up to a factor.
    """

    suspects: Mask
    residuals: Array
    features: Array
    noise: Noise
    units: Array


def screen(examples: Multisets) -> Screening:
    """Screens one-dimensional multisets with targets; fewer than 30 are not suspected.

    Example:
        >>> rows = np.random.default_rng(0).uniform(-1, 1, (60, 3))
        >>> results = rows.prod(1)
        >>> results[5] = 2.0
        >>> screen(Multisets.from_arrays(rows, results)).suspects.nonzero()[0]
        array([5])
    """
    examples = examples.ordered()
    target, features = examples.targets.numpy(), _aggregates(examples)
    units = np.ones(len(target))
    if len(target) < _FEWEST:
        return Screening(np.zeros(len(target), dtype=bool), np.zeros(len(target)), features, Noise(), units)
    residuals, scales = _regressions(examples, features, units)
    noise = choose_noise(residuals, target - residuals)
    if not noise.is_constant:
        units = noise.units(target - residuals)
        residuals, scales = _regressions(examples, features, units)
    tolerance = CUT * scales * units + ROUNDING * np.abs(target)
    excess = np.abs(residuals) / np.maximum(tolerance, 1e-300)
    limit = max(1.0, float(np.quantile(excess, 1 - _MOST_SUSPECTS)))
    return Screening(excess > limit, residuals, features, noise, units)


def choose_noise(residuals: Array, predicted: Array) -> Noise:
    """Returns the model of noise with the highest likelihood; constant if residuals are rounding errors.

    Arguments:
        residuals: Residuals :math:`(R)`.
        predicted: Predicted results :math:`(R)`.

    Example:
        >>> predicted, noise = np.linspace(-9, 9, 500), np.random.default_rng(0).normal(size=500)
        >>> choose_noise(noise, predicted), choose_noise(0.1 * predicted * noise, predicted).is_constant
        (Noise(floor=None), False)
    """
    size = float(np.median(np.abs(predicted))) or float(np.abs(predicted).max()) or 1.0
    best = Noise()
    if scale_of(residuals) > ROUNDING * size:
        likelihood = log_likelihood(residuals, np.ones(len(residuals))) + _EVIDENCE
        for floor in _FLOORS:
            noise = Noise(floor * size)
            better = log_likelihood(residuals, noise.units(predicted))
            if better > likelihood:
                best, likelihood = noise, better
    return best


def log_likelihood(residuals: Array, units: Array, smallest: float = 1e-300) -> float:
    """Returns the log-likelihood, up to a constant, of residuals in the given units, with scale from their median.

    Arguments:
        residuals: Residuals :math:`(R)`.
        units: Standard deviation of the noise of each, up to a factor, :math:`(R)`.
        smallest: Smallest scale.
    """
    scale = max(scale_of(residuals / units), smallest)
    with np.errstate(over="ignore"):  # far beyond all others: a likelihood of 0
        # Not log1p of the square, which overflows sooner.
        tails = (_DEGREES + 1) * np.log(np.hypot(1, residuals / (math.sqrt(_DEGREES) * scale * units)))
    return -float(np.sum(np.log(scale) + np.log(units) + tails))


def scale_of(residuals: Array) -> float:
    """Returns the standard deviation of residuals, estimated from their median."""
    return float(np.median(np.abs(residuals))) / _MEDIAN


def _regressions(examples: Multisets, features: Array, units: Array) -> tuple[Array, Array]:
    """Returns residuals of the regression, result minus prediction, and the scale of noise at each example."""
    sizes, target = examples.sizes.numpy(), examples.targets.numpy()
    residuals, scales = np.zeros(len(target)), np.zeros(len(target))
    for chosen in _groups(sizes):
        rows, size = features[chosen], int(sizes[chosen].max())
        if size == sizes[chosen].min() and size <= _IN_ORDER:
            # A result that depends on the order of elements is no outlier.
            places = examples.ptr.numpy()[:-1][chosen][:, None] + np.arange(size)
            rows = np.concatenate((rows, examples.values[:, 0].numpy()[places]), 1)
        residuals[chosen], scales[chosen] = _robust_regression(rows, target[chosen], units[chosen])
    return residuals, scales


def _groups(sizes: np.ndarray[Any, Any]) -> list[Mask]:
    """Returns the examples that share a regression: those of one size, or of all rare sizes together."""
    names, counts = np.unique(sizes, return_counts=True)
    common = names[counts >= _OWN_REGRESSION]
    groups = [sizes == size for size in common]
    rare = ~np.isin(sizes, common)
    return [*groups, rare] if rare.any() else groups


def _aggregates(examples: Multisets) -> Array:
    """Returns features of each multiset: aggregates that people use, and power sums, on values of unit size."""
    starts, counts = examples.ptr.numpy()[:-1], examples.sizes.numpy().astype(np.float64)
    x = examples.values[:, 0].numpy()
    x = x / (float(np.abs(x).max()) or 1.0)

    def total(values: Array) -> Array:
        sums: Array = np.add.reduceat(values, starts)
        return sums

    with np.errstate(all="ignore"):
        logs, magnitudes = total(np.log(np.abs(x))), np.abs(x)
        cubes, squares = total(x**3), total(x**2)
        columns = [
            total(x),
            np.multiply.reduceat(x, starts),
            np.minimum.reduceat(x, starts),
            np.maximum.reduceat(x, starts),
            np.multiply.reduceat(1 - x, starts),
            np.multiply.reduceat(1 + x, starts),
            np.sqrt(squares),
            np.cbrt(cubes),
            1 / total(1 / magnitudes),
            logs,
            np.exp(logs / counts),
            squares,
            cubes,
            total(x) ** 2,
            np.log(total(np.exp(5 * x))),
            total(magnitudes),
            counts,
        ]
    table: Array = np.nan_to_num(np.stack(columns, 1), nan=0.0, posinf=0.0, neginf=0.0)
    return table


def _robust_regression(features: Array, target: Array, units: Array) -> tuple[Array, float]:
    """Returns residuals, and their scale in the given units, of a linear regression with bounded influence.

    Iteratively reweighted least squares: absolute errors first, which have one minimum, then the bisquare.
    """
    most = max(1, int(_FEATURES * len(target)))
    center, size = features.mean(0), features.std(0)
    varying = size > 1e-12 * np.abs(features).max(0)
    rows = ((features - center) / np.where(varying, size, 1.0))[:, varying][:, : most - 1]
    rows = np.concatenate((np.ones((len(target), 1)), rows), 1) / units[:, None]
    target = target / units
    smallest = 1e-12 * (scale_of(target - np.median(target)) or float(np.abs(target).max()) or 1.0)
    freedom = math.sqrt(len(target) / max(1, len(target) - rows.shape[1]))
    residuals, weights, scale = target, np.ones(len(target)), 0.0
    for sweep in range(_SWEEPS):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(rows * root[:, None], target * root, rcond=1e-10)[0]
        residuals = target - rows @ solution
        scale = max(scale_of(residuals) * freedom, smallest)
        ratio = np.abs(residuals) / scale
        if sweep < _SWEEPS // 2:
            weights = 1 / np.maximum(ratio, 0.1)
        else:
            weights = np.square(1 - np.minimum(1, np.square(ratio / _BISQUARE)))
    return residuals * units, scale
