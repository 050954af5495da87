r"""Intervals of predicted results: laws that the examples hardly tell from the learned one, and how far they disagree.

A learned law :math:`f` is kept with an *ensemble* of laws :math:`f_k` and weights :math:`w_k` that add to 1. The
standard deviation of its result at a multiset :math:`X` is

.. math:: s(X) = \Big(\sum_k w_k (f_k(X) - f(X))^2\Big)^{1/2} ,

and :math:`f(X) \pm t s(X)` an interval, with :math:`t` of Student's distribution. It is the uncertainty of the value of
the law, without the noise of a single observation. The ensemble of a formula has two members for each of its
:math:`p` parameters, :math:`\hat\theta \pm \sqrt p\, C^{1/2} e_k` around the least-squares fit with covariance
:math:`C`, so that :math:`s` is to first order that of the delta method, and includes the rounding of parameters. That
of a curve has fits to resampled examples (bootstrap), each with knots of its own.
"""

from __future__ import annotations

__all__ = ["Ensemble", "EnsembleAccumulator", "sigma_points", "student_quantile"]

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.operation import Operation

Array = np.ndarray[Any, np.dtype[np.float64]]

# Changes of the results, in their standard deviations, by which derivatives are measured: well above rounding, and
# small enough for a straight line.
_SMALLEST_CHANGE, _CHANGE, _LARGEST_CHANGE = 1e-8, 1e-6, 1e-4
# Directions in which the results change less than this, relative to the steepest one, are not determined at all.
_FLAT = 1e-10
# A step that changes the results by more than this many times what the derivatives say is halved.
_CURVED = 2.0
_HALVINGS = 20
# Nodes of the quadrature of Student's distribution; with more degrees of freedom than this, it is expanded around the
# normal one.
_NODES, _NEARLY_NORMAL = 64, 1000


@dataclass(frozen=True)
class Ensemble(Configurable):
    """Laws that the examples hardly tell from a learned one.

    Arguments:
        operations: The laws, all on the same number of dimensions.
        weights: Weight of each, with sum 1.
        freedom: Degrees of freedom of the standard deviation, for Student's distribution.

    Example:
        >>> from abelnet import AbelianGroup, Generator, Multisets
        >>> powers = [AbelianGroup(Generator(1, "positive power", [p], dtype=torch.float64)) for p in (1.9, 2.1)]
        >>> sets = Multisets.from_arrays([[3.0, 4.0]])
        >>> Ensemble(powers, [0.5, 0.5], 100).std(sets, torch.tensor([5.0])).round(decimals=3)
        tensor([0.0820], dtype=torch.float64)
    """

    operations: Sequence[Operation]
    weights: Sequence[float]
    freedom: float

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.operations) or not all(weight >= 0 for weight in self.weights):
            raise AbelnetError(
                f"weights: expected {len(self.operations)} numbers of at least 0, got {len(self.weights)}: "
                f"{list(self.weights)!s:.80}"
            )
        if not self.freedom >= 1:
            raise AbelnetError(f"freedom: expected a number of at least 1, got {self.freedom}")

    @staticmethod
    def even(operations: Sequence[Operation], freedom: float) -> Ensemble:
        """Returns the ensemble with equal weights."""
        return Ensemble(operations, [1 / len(operations)] * len(operations), max(1.0, freedom))

    def mix(self, other: Ensemble, share: float) -> Ensemble:
        """Returns both ensembles in one, where the other has this share of the weight."""
        weights = [(1 - share) * weight for weight in self.weights] + [share * weight for weight in other.weights]
        return Ensemble([*self.operations, *other.operations], weights, min(self.freedom, other.freedom))

    def accumulator(self, count: int = 0) -> EnsembleAccumulator:
        """Returns the running states of all laws for a number of sets."""
        return EnsembleAccumulator(self, count)

    def std(self, sets: Multisets, results: Tensor, limits: Tensor | None = None) -> Tensor:
        """Returns the standard deviation of each result, in the shape of the results.

        Arguments:
            sets: The multisets.
            results: Results of the learned law, :math:`(B)` in one dimension, or :math:`(B, d)`.
            limits: Largest deviation of a law that counts, in the same shape; also counted if a law has no result.
        """
        accumulator = self.accumulator(len(results))
        accumulator.add_at(sets.index, sets.values)
        return accumulator.std(results, limits)

    def quantile(self, level: float) -> float:
        """Returns the half-width of an interval with this probability, in standard deviations."""
        if not 0 < level < 1:
            raise AbelnetError(f"level: expected a probability between 0 and 1, got {level}")
        return student_quantile(self.freedom, level)

    def config(self) -> dict[str, Any]:
        return {"operations": list(self.operations), "weights": list(self.weights), "freedom": self.freedom}


class EnsembleAccumulator:
    """Running states of the laws of an ensemble, for sets whose elements come in any order and in parts.

    Arguments:
        ensemble: The ensemble.
        count: Number of sets.
    """

    def __init__(self, ensemble: Ensemble, count: int) -> None:
        self._ensemble = ensemble
        self._states = [operation.accumulator((count,)) for operation in ensemble.operations]
        # Sets with elements outside the domain of a law, which has no result for them.
        self._without = torch.zeros(len(self._states), count, dtype=torch.bool)

    def grow(self, count: int) -> None:
        """Appends empty sets, up to ``count`` in total."""
        more = self._without.new_zeros(len(self._states), count - self._without.shape[1])
        self._without = torch.cat((self._without, more), 1)
        for state in self._states:
            state.grow(count)

    @torch.no_grad()
    def add_at(self, index: Tensor, values: Tensor) -> None:
        """Adds each of the elements :math:`(N, d)` to the set given by ``index`` :math:`(N)`."""
        for operation, state, without in zip(self._ensemble.operations, self._states, self._without, strict=True):
            defined = operation.bijection.is_defined(values).all(1)
            without[index[~defined]] = True
            if bool(defined.any()):
                state.add_at(index[defined], values[defined])

    @torch.no_grad()
    def std(self, results: Tensor, limits: Tensor | None = None) -> Tensor:
        """Returns the standard deviation of each result, :math:`(B)` or :math:`(B, d)`.

        It is infinite, or limited, if a law has no result.
        """
        variance = torch.zeros_like(results, dtype=torch.float64)
        most = torch.full_like(variance, math.inf) if limits is None else limits
        for weight, state, without in zip(self._ensemble.weights, self._states, self._without, strict=True):
            if weight > 0 and state.count > 0:
                deviations = (state.value().reshape(results.shape) - results).abs().nan_to_num(math.inf)
                deviations = deviations.masked_fill(without.reshape(-1, *[1] * (results.ndim - 1)), math.inf)
                variance += weight * torch.minimum(deviations, most).square()
        return variance.sqrt()


def student_quantile(freedom: float, level: float) -> float:
    r"""Returns the number :math:`t` with :math:`P(|T| < t) = p` for Student's distribution.

    .. math:: P(|T| < t) = \frac{2 \, \Gamma(\frac{\nu + 1}{2})}{\sqrt\pi \, \Gamma(\frac{\nu}{2})}
        \int_0^{\arctan(t / \sqrt\nu)} \cos^{\nu - 1} \vartheta \, d\vartheta

    It is accurate to 1e-6 for levels up to 0.999. The function of scipy would take 20 MB of imports, for this alone.

    Arguments:
        freedom: Degrees of freedom :math:`\nu`, at least 1.
        level: Probability :math:`p`, between 0 and 1.

    Example:
        >>> round(student_quantile(10, 0.95), 6), round(student_quantile(1, 0.5), 6)
        (2.228139, 1.0)
    """
    t = NormalDist().inv_cdf((1 + level) / 2)
    if freedom > _NEARLY_NORMAL:
        first = (t**3 + t) / 4
        second, third = (5 * t**5 + 16 * t**3 + 3 * t) / 96, (3 * t**7 + 19 * t**5 + 17 * t**3 - 15 * t) / 384
        return t + first / freedom + second / freedom**2 + third / freedom**3
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    log_factor = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(math.pi) / 2
    for _ in range(100):
        # The probability is concave in t, so that Newton's method from the left approaches its root from the left.
        angle = math.atan(t / math.sqrt(freedom))
        integral = angle / 2 * float(weights @ np.cos(angle / 2 * (1 + nodes)) ** (freedom - 1))
        missing = level - 2 * math.exp(log_factor) * integral
        density = math.exp(log_factor) / math.sqrt(freedom) * math.cos(angle) ** (freedom + 1)
        step = missing / (2 * density)
        t += step
        if not step > 1e-13 * t:
            break
    return t


def sigma_points(predict: Callable[[Array], Array], fit: Array, targets: Array) -> list[Array]:
    r"""Returns two points for each parameter around a least-squares fit, whose spread is that of the parameters.

    .. math:: \hat\theta \pm \sqrt p\, C^{1/2} e_k, \qquad C = J^+ \operatorname{diag}(r_i / (1 - h_i))^2 J^{+\top}

    The mean over the points of :math:`(g(\theta) - g(\hat\theta))^2` is to first order the variance of :math:`g`, for
    any function. :math:`J` is the Jacobian of the results, :math:`r` are the residuals and :math:`h` the leverages, so
    noise may differ between examples (the HC3 estimator). Where the derivatives are wrong at this distance, a
    point is moved closer.

    Arguments:
        predict: Returns the results of all examples for given parameters, NaN where there are none.
        fit: Parameters of the fit :math:`(p)`.
        targets: Results of the examples.

    Example:
        >>> x = np.linspace(-1, 1, 400)
        >>> noise = np.random.default_rng(0).normal(size=400)
        >>> low, high = sigma_points(lambda theta: theta[0] * x, np.array([2.0]), 2 * x + 0.1 * noise)
        >>> bool(0.007 < abs(high[0] - 2) < 0.01)  # 0.1 / |x|
        True
    """
    results = predict(fit)
    columns = [_derivative(predict, fit, k, results, float(targets.std()) or 1.0) for k in range(len(fit))]
    jacobian = np.stack(columns, 1)
    sound = np.isfinite(jacobian).all(1) & np.isfinite(results)
    jacobian, residuals = jacobian[sound], (results - targets)[sound]
    if not jacobian.any():
        return [fit]
    # Columns in units of their own, for a cutoff that does not depend on those of the parameters.
    units = np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
    u, s, v = np.linalg.svd(jacobian / units, full_matrices=False)
    kept = s > _FLAT * s[0]
    u, s, v = u[:, kept], s[kept], v[kept]
    leverage = np.minimum((u**2).sum(1), 1 - 1e-6)
    root = (v.T / s) @ (u.T * (residuals / (1 - leverage))) / units[:, None]
    axes, lengths, _ = np.linalg.svd(root / np.linalg.norm(root) if root.any() else root, full_matrices=False)
    steps = math.sqrt(len(fit)) * (axes * lengths * np.linalg.norm(root)).T

    def moved(step: Array) -> Array:
        wanted = float(np.linalg.norm(jacobian @ step))
        for _ in range(_HALVINGS):
            with np.errstate(over="ignore"):
                change = float(np.linalg.norm((predict(fit + step) - results)[sound]))
            if change <= _CURVED * wanted + 1e-12 * float(np.linalg.norm(results[sound])):
                break
            step = step / 2
        return np.asarray(fit + step)

    return [moved(sign * step) for step in steps for sign in (1.0, -1.0)]


def _derivative(predict: Callable[[Array], Array], fit: Array, k: int, results: Array, scale: float) -> Array:
    """Returns the derivative of the results by one parameter, from a step that changes them measurably."""
    step, change = 1e-6 * (abs(float(fit[k])) or 1.0), np.zeros_like(results)
    for _ in range(_HALVINGS):
        there = fit.copy()
        there[k] += step
        change = predict(there) - results
        with np.errstate(invalid="ignore", over="ignore"):
            size = float(np.sqrt(np.nanmean(change**2))) / scale if np.isfinite(change).any() else math.inf
        if _SMALLEST_CHANGE <= size <= _LARGEST_CHANGE:
            break
        step *= min(max(_CHANGE / size, 1e-3), 1e3) if size > 0 else 1e3
    return np.asarray(change / step)
