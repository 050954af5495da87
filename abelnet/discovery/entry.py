r"""Parametric laws: a sum, a product or a mean over a generator of a known family.

With :math:`u = g_\theta(x)`, a law is one of

.. math::
    z = g_\theta^{-1}\Big(\sum_i u_i + (n - 1) s\Big), \qquad
    z = g_\theta^{-1}\Big(u_0 + \gamma^{n - 1} \prod_i (u_i - u_0)\Big), \qquad
    z = g_\theta^{-1}\Big(n^{-a} \sum_i u_i\Big) ,

a group; a semigroup with the absorbing element :math:`g_\theta^{-1}(u_0)`; or a quasi-arithmetic mean at
:math:`a = 1`, in general a sum divided by a power of the count. With the affine generator, the first two are the
non-constant forms of Theorem 2. A sum may be capped: its results stop at a bound, beyond which they are censored
observations.
"""

from __future__ import annotations

__all__ = ["MAGNITUDES", "PLAINEST", "Entry"]

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import FAMILIES, Bijection, Even, Generator
from abelnet.bijections.families import Family
from abelnet.discovery.intervals import sigma_points
from abelnet.errors import AbelnetError
from abelnet.laws import CappedSum, Law, Mean, Polynomial, Sum
from abelnet.multisets import Multisets
from abelnet.operation import Operation

# Residual where a law has no result, in standard deviations of the results.
_IMPOSSIBLE = 1e3
# Tolerance of least squares, and relative step of its differences.
_ROUNDING, _STEP = 1e-15, 2**-26
# A larger parameter is that of a simpler law, as arcsinh(x / c) of a sum, and its square is not finite.
_LARGEST = 1e100
# Factors of a product beyond this, or its inverse, are those of no law but of a fit that diverges.
_SMALLEST_FACTOR = 1e-100
PLAINEST = next(iter(FAMILIES))
"""The simplest family."""
MAGNITUDES = "positive power"
"""Family of laws of magnitudes, besides the affine one."""


@dataclass(frozen=True)
class Entry:
    """Law with a generator of a parametric family.

    Attributes:
        kind: Family of the generator, a key of :data:`~abelnet.bijections.FAMILIES`.
        form: ``"sum"``, ``"product"`` or ``"mean"``.
        theta: Parameters of the generator.
        coefficients: ``()`` for a sum with :math:`s = 0`, otherwise :math:`(s)`; for a product, :math:`(u_0, \\gamma)`;
            ``()`` for a mean with :math:`a = 1`, otherwise :math:`(a)`.
        bound: Result at which a sum is capped, or None.
    """

    kind: str
    form: str
    theta: tuple[float, ...]
    coefficients: tuple[float, ...]
    bound: float | None = None

    @property
    def family(self) -> Family:
        """Family of the generator."""
        return FAMILIES[self.kind]

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return len(self.theta) + len(self.coefficients) + (self.bound is not None)

    @property
    def complexity(self) -> int:
        """Number of parameters, plus one unless the family is affine, plus one if it is that of special laws."""
        return self.parameters + (self.kind != PLAINEST) + (not self.family.is_common)

    @property
    def title(self) -> str:
        """Name in tables."""
        if self.form == "mean" and self.coefficients:
            return f"scaled sum of {self.kind}"
        return f"{'capped ' if self.bound is not None else ''}{self.form} of {self.kind}"

    @property
    def name(self) -> str:
        """Name that people use for the law; empty if it has none."""
        if self.form == "mean":
            return "" if self.coefficients else self.family.mean_name(*self.theta) or ""
        name = self.family.name_of(self.form, self.theta, self.coefficients) or ""
        if not name or self.bound is None:
            return name
        positive = name.removesuffix(", where positive")
        return positive if positive != name and self.bound == 0 else f"{name}, capped at {self.bound:g}"

    def predict(self, examples: Multisets) -> Tensor:
        """Returns the result of each multiset; NaN if the law has none."""
        # Least squares evaluates a few hundred sets about a thousand times. The fold of the law, which has gradients
        # and is exact near its identity, takes ten times as long as these two sums; a test checks that they agree.
        u = self.family.forward(examples.values, *self.theta).numpy()[:, 0]
        starts, more = examples.ptr.numpy()[:-1], examples.sizes.numpy() - 1
        with np.errstate(all="ignore"):
            if self.form == "mean":
                w = np.add.reduceat(u, starts) / (more + 1.0) ** self.exponent
            elif self.form == "sum":
                w = np.add.reduceat(u, starts) + more * self.shift
                if self.bound is not None:
                    end = self._latent_bound
                    # Sums move away from the identity, toward the bound.
                    w = np.minimum(w, end) if end + self.shift > 0 else np.maximum(w, end)
            else:
                absorbing, gamma = self.coefficients
                signs = np.multiply.reduceat(np.sign(u - absorbing), starts) * math.copysign(1, gamma) ** more
                logs = np.add.reduceat(np.log(np.abs(u - absorbing)), starts) + more * math.log(abs(gamma))
                w = absorbing + signs * np.exp(logs)
        return self.family.inverse(torch.from_numpy(w), *self.theta)

    def loss(self, examples: Multisets) -> float:
        """Returns the mean squared error."""
        return float(self.squared_errors(examples).mean())

    def squared_errors(self, examples: Multisets) -> Tensor:
        """Returns the weighted squared error of each example; infinite if the law has no result."""
        if not self._is_sound(examples):
            return torch.full_like(examples.targets, math.inf)
        return ((self.predict(examples) - examples.targets).square() * examples.weights).nan_to_num(math.inf)

    def operation(self, *, even: bool = False) -> Operation:
        """Returns the law as a one-dimensional operation, of magnitudes if ``even``."""
        bijection: Bijection
        if even:
            # On magnitudes, the affine family is the first power.
            theta = (1.0,) if self.kind == PLAINEST else self.theta
            bijection = Even(Generator(1, MAGNITUDES, theta, dtype=torch.float64))
        else:
            bijection = Generator(1, self.kind, self.theta, dtype=torch.float64)
        return Operation(bijection, self._law())

    def _law(self) -> Law:
        if self.form == "mean":
            return Mean(self.exponent)
        if self.form == "product":
            absorbing, gamma = self.coefficients
            return Polynomial(gamma, -1 / gamma - absorbing)
        if self.bound is not None:
            return CappedSum(self._latent_bound + self.shift, self.shift)
        return Polynomial(0.0, self.shift) if self.shift else Sum()

    @property
    def shift(self) -> float:
        """The shift :math:`s` of a sum."""
        return self.coefficients[0] if self.coefficients else 0.0

    @property
    def exponent(self) -> float:
        """The exponent :math:`a` of the count in a mean."""
        return self.coefficients[0] if self.coefficients else 1.0

    @property
    def _latent_bound(self) -> float:
        return self.family.forward(torch.tensor(self.bound, dtype=torch.float64), *self.theta).item()

    def polish(self, examples: Multisets, evaluations: int = 400, settled: float = _ROUNDING) -> Entry:
        """Returns the least-squares fit of the same family and form, started from this entry.

        Arguments:
            examples: Examples to fit.
            evaluations: Number of steps at most.
            settled: The last step lowers the squared errors by no more than this fraction. Those of an exact law fall
                until they are rounding errors.
        """
        limits = self.family.lower_limits(examples.values)
        raw = self._to_raw(limits)
        if not 0 < len(raw) <= len(examples.targets):  # nothing to fit, or more than the examples determine
            return self
        from scipy.optimize import leastsq

        scale = (float(examples.targets.std()) or 1.0) / examples.weights.sqrt()
        ends = _ends(examples)

        def residuals(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            entry = self._from_raw(raw, limits)
            if not entry._is_sound(examples, ends):
                return np.full(len(examples.targets), _IMPOSSIBLE)
            errors = (entry.predict(examples) - examples.targets) / scale
            result: np.ndarray[Any, Any] = errors.nan_to_num(_IMPOSSIBLE).clamp(-_IMPOSSIBLE, _IMPOSSIBLE).numpy()
            return result

        # Differences of our own: those of scipy take as long as the residuals of a few hundred sets.
        system = _WithDifferences(residuals)
        solution, *_ = leastsq(
            system,
            raw,
            Dfun=system.jacobian,
            full_output=True,
            ftol=settled,
            xtol=_ROUNDING,
            gtol=_ROUNDING,
            maxfev=evaluations,
        )
        found = self._from_raw(solution, limits)
        return found if found.loss(examples) <= self.loss(examples) else self

    def neighbors(self, examples: Multisets) -> list[Entry]:
        """Returns entries about a standard error away from this one, a least-squares fit: its :func:`sigma_points`."""
        limits = self.family.lower_limits(examples.values)

        def predict(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            entry = self._from_raw(raw, limits)
            if not entry._has_operation(examples):
                return np.full(len(examples.targets), math.nan)
            result: np.ndarray[Any, Any] = entry.predict(examples).numpy()
            return result

        raw = self._to_raw(limits)
        points = sigma_points(predict, raw, examples.targets.numpy()) if len(raw) else [raw]
        found = [self._from_raw(point, limits) for point in points]
        return [entry for entry in found if entry._has_operation(examples)] or [self]

    def rounded(self, examples: Multisets) -> Entry:
        """Returns the entry with the fewest digits that the examples cannot distinguish from this one.

        Rounding may increase the sum of squares by no more than an error of the parameters as large as their
        uncertainty would.
        """
        numbers = (*self.theta, *self.coefficients)
        errors = float(self.squared_errors(examples).sum())
        rows = len(examples.targets)
        floor = 1e-24 * float(examples.targets.square().sum())
        allowed = errors * (1 + (2 + 2 * len(numbers)) / max(1, rows - len(numbers))) + floor
        if not math.isfinite(errors):
            return self
        for digits in range(12):
            values = [_round(v, unit, digits) for v, unit in zip(numbers, self._units(examples), strict=True)]
            k = len(self.theta)
            entry = replace(self, theta=tuple(values[:k]), coefficients=tuple(values[k:]))
            if (entry.form, entry.coefficients) in (("sum", (0.0,)), ("mean", (1.0,))):
                entry = replace(entry, coefficients=())
            if float(entry.squared_errors(examples).sum()) <= allowed:
                return entry
        return self

    def _units(self, examples: Multisets) -> list[float]:
        """Returns the scale of each parameter: the magnitude of the values that it is combined with."""
        u = self.family.forward(examples.values, *self.theta).abs().median().item()
        of_latent = 0.1 * u if 0 < u < math.inf else 1.0
        beside = {"sum": [of_latent], "mean": [1.0], "product": [of_latent, *map(abs, self.coefficients[1:])]}[
            self.form
        ]
        size = 0.1 * examples.values.abs().median().item()
        limits = self.family.lower_limits(examples.values)
        # Thresholds are compared with elements.
        theta = [abs(v) if limit is None else max(abs(v), size) for v, limit in zip(self.theta, limits, strict=True)]
        return theta + beside[: len(self.coefficients)]

    def _is_sound(self, examples: Multisets, ends: tuple[float, float] | None = None) -> bool:
        if self.form == "product" and not _SMALLEST_FACTOR <= abs(self.coefficients[1]) <= 1 / _SMALLEST_FACTOR:
            return False
        if not self.family.is_valid(*self.theta) or any(abs(value) > _LARGEST for value in self.theta):
            return False
        low, high = self.family.domain(*self.theta)
        least, most = _ends(examples) if ends is None else ends
        if not low < least <= most < high:
            return False
        if self.bound is None:
            return True
        # A capped sum is associative on one side of its identity only.
        end = self._latent_bound + self.shift
        if not math.isfinite(end) or end == 0:
            return False
        return bool(CappedSum(end, self.shift).contains(self.family.forward(examples.values, *self.theta)).all())

    def _has_operation(self, examples: Multisets) -> bool:
        """Returns whether the law is sound and still one as an operation, which has other coefficients."""
        if not self._is_sound(examples):
            return False
        try:
            self.operation().check_state()
        except AbelnetError:  # with extreme factors of a product, the absorbing element is lost by rounding
            return False
        return True

    def _to_raw(self, limits: Sequence[float | None]) -> np.ndarray[Any, Any]:
        """Returns unconstrained parameters: thresholds become the logarithm of their distance from the data."""
        raw = [
            value if limit is None else math.log(max(value - limit, 1e-300))
            for value, limit in zip(self.theta, limits, strict=True)
        ]
        if self.form != "product":
            return np.array([*raw, *self.coefficients])
        absorbing, gamma = self.coefficients
        return np.array([*raw, absorbing, math.log(abs(gamma))])

    def _from_raw(self, raw: np.ndarray[Any, Any], limits: Sequence[float | None]) -> Entry:
        numbers = [float(value) for value in raw]
        theta = [
            value if limit is None else limit + math.exp(min(value, 700.0))
            for value, limit in zip(numbers, limits, strict=False)
        ]
        coefficients = numbers[len(theta) :]
        if self.form == "product":
            absorbing, log = coefficients
            # Keep the sign, and keep the magnitude above 0 if the exponential underflows.
            coefficients = [absorbing, math.copysign(math.exp(min(700.0, log)) or 1e-300, self.coefficients[1])]
        return replace(self, theta=tuple(theta), coefficients=tuple(coefficients))


class _WithDifferences:
    """Function with its Jacobian by forward differences, which starts from the value that was computed last."""

    def __init__(self, function: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> None:
        self._function = function
        self._place: np.ndarray[Any, Any] = np.empty(0)
        self._value: np.ndarray[Any, Any] = np.empty(0)

    def __call__(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not np.array_equal(x, self._place):
            self._place, self._value = x.copy(), self._function(x)
        return self._value

    def jacobian(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        value = self(x)
        columns = np.empty((len(value), len(x)))
        for k, number in enumerate(x.tolist()):
            there = x.copy()
            there[k] = number + math.copysign(_STEP * max(1.0, abs(number)), number)
            columns[:, k] = (self._function(there) - value) / (there[k] - number)
        return columns


def _ends(examples: Multisets) -> tuple[float, float]:
    """Returns the smallest and the largest element."""
    return float(examples.values.min()), float(examples.values.max())


def _round(value: float, unit: float, digits: int) -> float:
    """Rounds to this many digits after the first significant one, or to a simple fraction if that is closer."""
    size = max(abs(value), unit)
    places = digits - math.floor(math.log10(size)) if size > 0 else digits
    fraction = Fraction(value).limit_denominator(3) if 0.1 < abs(value) < 10 else None
    rounded = round(value, places)
    if fraction is not None and fraction != 0 and abs(value - fraction) < abs(value - rounded):
        return float(fraction)
    return rounded
