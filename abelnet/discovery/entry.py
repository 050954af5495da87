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

__all__ = ["MAGNITUDES", "PLAINEST", "Entry", "losses", "polish_all"]

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import FAMILIES, Bijection, Even, Generator
from abelnet.bijections.families import Family
from abelnet.discovery.intervals import sigma_points
from abelnet.discovery.least_squares import least_squares
from abelnet.discovery.stack import Stack
from abelnet.errors import AbelnetError
from abelnet.laws import CappedSum, Law, Mean, Polynomial, Sum
from abelnet.multisets import Multisets
from abelnet.operation import Operation

Array = np.ndarray[Any, np.dtype[np.float64]]
# Residual where a law has no result, in standard deviations of the results.
_IMPOSSIBLE = 1e3
# Least squares ends after this many evaluations, or once a step lowers the squared errors by less than this, in mean
# squared errors: parameters are then about a thousandth of their standard errors away.
_EVALUATIONS, _SETTLED = 100, 1e-6
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
        return torch.from_numpy(self._stack.predict(examples)[0])

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
        return float(self._stack.latent_bound[0, 0])

    def polish(self, examples: Multisets) -> Entry:
        """Returns the least-squares fit of the same family and form, started from this entry."""
        return polish_all([self], examples, _EVALUATIONS, _SETTLED / len(examples))[0][0]

    def neighbors(self, examples: Multisets) -> list[Entry]:
        """Returns entries about a standard error away from this one, a least-squares fit: its :func:`sigma_points`."""
        limits, ends = self.family.lower_limits(examples.values), _ends(examples)
        raw = self._to_raw(limits)

        def points(is_law: Callable[[Entry], bool]) -> list[Entry]:
            def predict(raw: Array) -> Array:
                entry = self._from_raw(raw, limits)
                return entry.predict(examples).numpy() if is_law(entry) else np.full(len(examples.targets), math.nan)

            found = sigma_points(predict, raw, examples.targets.numpy()) if len(raw) else [raw]
            return [self._from_raw(point, limits) for point in found]

        def has_operation(entry: Entry) -> bool:
            return entry._has_operation(examples)

        # To check the operation takes as long as ten predictions, and it seldom fails.
        found = points(lambda entry: entry._is_sound(examples, ends))
        if not all(map(has_operation, found)):
            found = [entry for entry in points(has_operation) if has_operation(entry)]
        return found or [self]

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

    @cached_property
    def _stack(self) -> Stack:
        """This law alone."""
        return Stack(self.kind, self.form, np.array([self.theta]), np.array([self.coefficients]), self.bound)

    def _is_sound(self, examples: Multisets, ends: tuple[float, float] | None = None) -> bool:
        return bool(self._stack.is_sound(examples, _ends(examples) if ends is None else ends)[0])

    def _has_operation(self, examples: Multisets) -> bool:
        """Returns whether the law is sound and still one as an operation, which has other coefficients."""
        if not self._is_sound(examples):
            return False
        try:
            self.operation().check_state()
        except AbelnetError:  # with extreme factors of a product, the absorbing element is lost by rounding
            return False
        return True

    def _to_raw(self, limits: Sequence[float | None]) -> Array:
        """Returns unconstrained parameters: thresholds become the logarithm of their distance from the data.

        Those of a product are its identity and its factor, in units of their own, rather than its absorbing element:
        as the factor approaches 0 the product approaches a sum with this identity, and errors are smooth in both.
        """
        raw = [
            value if limit is None else math.log(max(value - limit, 1e-300))
            for value, limit in zip(self.theta, limits, strict=True)
        ]
        if self.form != "product":
            return np.array([*raw, *self.coefficients])
        absorbing, gamma = self.coefficients
        return np.array([*raw, (absorbing + 1 / gamma) / self._size, math.copysign(1.0, gamma)])

    @cached_property
    def _size(self) -> float:
        """Unit of the identity of a product."""
        absorbing, gamma = self.coefficients
        return max(abs(absorbing), 1 / abs(gamma))

    def _from_raw(self, raw: Array, limits: Sequence[float | None]) -> Entry:
        stack = _from_raw([self], raw[None], limits)
        return replace(self, theta=tuple(stack.theta[0].tolist()), coefficients=tuple(stack.coefficients[0].tolist()))


def polish_all(
    entries: Sequence[Entry], examples: Multisets, evaluations: int, settled: float, exact: float = 0.0
) -> tuple[list[Entry], list[float], list[bool]]:
    """Returns least-squares fits from several entries of one family and form, their errors, and which are settled.

    Arguments:
        entries: Initial values.
        examples: Examples to fit.
        evaluations: Number of steps at most.
        settled: The last step lowers the squared errors by no more than this fraction. Those of an exact law fall until
            they are rounding errors.
        exact: Once the mean squared error of one entry is at most this, the others are given up.

    Example:
        >>> examples = Multisets.from_arrays([[3.0, 4.0], [5.0, 12.0], [8.0, 15.0]], [5.0, 13.0, 17.0])
        >>> starts = [Entry("positive power", "sum", (p,), ()) for p in (1.0, 3.0)]
        >>> found, errors, _ = polish_all(starts, examples, 40, 1e-9)
        >>> [round(entry.theta[0], 9) for entry in found], max(errors) < 1e-20
        ([2.0, 2.0], True)
    """
    limits, ends = entries[0].family.lower_limits(examples.values), _ends(examples)
    raw = np.array([entry._to_raw(limits) for entry in entries])
    if not 0 < raw.shape[1] <= len(examples.targets):  # nothing to fit, or more than the examples determine
        return list(entries), losses(entries, examples), [True] * len(entries)
    spread = float(examples.targets.std()) or 1.0
    units, impossible = examples.weights.sqrt().numpy() / spread, _IMPOSSIBLE * spread

    def residuals(raw: Array, of: np.ndarray[Any, np.dtype[np.int64]]) -> Array:
        stack = _from_raw([entries[i] for i in of.tolist()], raw, limits)
        return stack.errors(examples, ends, impossible) * units

    points, done = least_squares(
        residuals, raw, evaluations=evaluations, settled=settled, exact=exact * len(examples.targets) / spread**2
    )
    found = [entry._from_raw(point, limits) for entry, point in zip(entries, points, strict=True)]
    errors = zip(losses(found, examples), losses(entries, examples), strict=True)
    better = [
        (one, new) if new <= old else (entry, old)
        for one, entry, (new, old) in zip(found, entries, errors, strict=True)
    ]
    return [entry for entry, _ in better], [error for _, error in better], done.tolist()


def losses(entries: Sequence[Entry], examples: Multisets) -> list[float]:
    """Returns the mean squared error of each of several entries of one family and form."""
    theta, coefficients = (np.array([getattr(one, name) for one in entries]) for name in ("theta", "coefficients"))
    stack = Stack(entries[0].kind, entries[0].form, theta, coefficients, entries[0].bound)
    return [float(loss) for loss in stack.losses(examples, _ends(examples))]


def _from_raw(entries: Sequence[Entry], raw: Array, limits: Sequence[float | None]) -> Stack:
    """Returns laws like the entries, with unconstrained parameters :math:`(P, m)`."""
    one = entries[0]
    theta, coefficients = raw[:, : len(limits)].copy(), raw[:, len(limits) :].copy()
    for column, limit in zip(theta.T, limits, strict=True):
        if limit is not None:
            column[:] = limit + np.exp(np.minimum(column, 700.0))
    if one.form == "product":
        sizes, factors = np.array([(entry._size, abs(entry.coefficients[1])) for entry in entries]).T
        gamma = coefficients[:, 1] * factors
        gamma[gamma == 0] = 1e-300  # no law
        coefficients[:, 0], coefficients[:, 1] = coefficients[:, 0] * sizes - 1 / gamma, gamma
    return Stack(one.kind, one.form, theta, coefficients, one.bound)


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
