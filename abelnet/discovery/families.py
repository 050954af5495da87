r"""Parametric laws, fitted by least squares: a sum, a product or a mean over a generator of a known family.

With :math:`u = g_\theta(x)`, a law is one of

.. math::
    z = g_\theta^{-1}\Big(\sum_i u_i + (n - 1) s\Big), \qquad
    z = g_\theta^{-1}\Big(u_0 + \gamma^{n - 1} \prod_i (u_i - u_0)\Big), \qquad
    z = g_\theta^{-1}\Big(n^{-a} \sum_i u_i\Big) ,

a group; a semigroup with the absorbing element :math:`g_\theta^{-1}(u_0)`; or a quasi-arithmetic mean at
:math:`a = 1`, in general a sum divided by a power of the count. With the affine generator, the first two are the
non-constant forms of Theorem 2. A sum may be capped: its results stop at a bound, beyond which they are censored
observations. For given :math:`\theta` (and :math:`u_0`) the latent equation is linear in
:math:`s` or in :math:`\log |\gamma|`, which gives an initial value for each point of a small grid; the best of them are
refined by nonlinear least squares on the results.
"""

from __future__ import annotations

__all__ = ["COMMON", "MAGNITUDES", "PLAINEST", "SPECIAL", "Entry", "fit_dictionary"]

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import FAMILIES, Bijection, Even, Generator
from abelnet.bijections.families import Family
from abelnet.bijections.families.base import Form
from abelnet.discovery.intervals import sigma_points
from abelnet.laws import CappedSum, Law, Mean, Polynomial, Sum
from abelnet.multisets import Multisets
from abelnet.operation import Operation

# Residual where a law has no result, in standard deviations of the results.
_IMPOSSIBLE = 1e3
_STARTS = 3
# Evaluations that show which start is best; the best one takes rounds of more as long as each lowers its squared errors
# by this fraction.
_FEW, _MANY, _ROUNDS, _LOWERED = 40, 100, 4, 0.2
# Starts that lead to an error below this, in standard deviations of the results, need no others beside them.
_EXACT = 1e-10
PLAINEST = next(iter(FAMILIES))
"""The simplest family."""
# Factors of a product beyond this, or its inverse, are those of no law but of a fit that diverges.
_SMALLEST_FACTOR = 1e-100
MAGNITUDES = "positive power"
"""Family of laws of magnitudes, besides the affine one."""
COMMON = tuple(kind for kind, family in FAMILIES.items() if family.is_common)
"""Families that most laws in practice have."""
SPECIAL = tuple(kind for kind in FAMILIES if kind not in COMMON)
"""Families of special laws. Near an end of their parameters some of them come close to others, and to capped sums."""


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
        """Number of parameters, plus one unless the family is affine."""
        return self.parameters + (self.kind != PLAINEST)

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

    def polish(self, examples: Multisets, evaluations: int = 400) -> Entry:
        """Returns the least-squares fit of the same family and form, started from this entry."""
        from scipy.optimize import least_squares

        limits = self.family.lower_limits(examples.values)
        raw = self._to_raw(limits)
        if len(raw) == 0:
            return self
        scale = (float(examples.targets.std()) or 1.0) / examples.weights.sqrt()

        def residuals(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            entry = self._from_raw(raw, limits)
            if not entry._is_sound(examples):
                return np.full(len(examples.targets), _IMPOSSIBLE)
            errors = (entry.predict(examples) - examples.targets) / scale
            result: np.ndarray[Any, Any] = errors.nan_to_num(_IMPOSSIBLE).clamp(-_IMPOSSIBLE, _IMPOSSIBLE).numpy()
            return result

        tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
        solution = least_squares(residuals, raw, method="lm", x_scale="jac", max_nfev=evaluations, **tight)
        found = self._from_raw(solution.x, limits)
        return found if found.loss(examples) <= self.loss(examples) else self

    def neighbors(self, examples: Multisets) -> list[Entry]:
        """Returns entries about a standard error away from this one, a least-squares fit: its :func:`sigma_points`."""
        limits = self.family.lower_limits(examples.values)

        def predict(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            entry = self._from_raw(raw, limits)
            if not entry._is_sound(examples):
                return np.full(len(examples.targets), math.nan)
            result: np.ndarray[Any, Any] = entry.predict(examples).numpy()
            return result

        raw = self._to_raw(limits)
        points = sigma_points(predict, raw, examples.targets.numpy()) if len(raw) else [raw]
        found = [self._from_raw(point, limits) for point in points]
        return [entry for entry in found if entry._is_sound(examples)] or [self]

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

    def _is_sound(self, examples: Multisets) -> bool:
        if self.form == "product" and not _SMALLEST_FACTOR <= abs(self.coefficients[1]) <= 1 / _SMALLEST_FACTOR:
            return False
        if not self.family.is_valid(*self.theta):
            return False
        low, high = self.family.domain(*self.theta)
        if not bool((examples.values > low).all() and (examples.values < high).all()):
            return False
        if self.bound is None:
            return True
        # A capped sum is associative on one side of its identity only.
        end = self._latent_bound + self.shift
        if not math.isfinite(end) or end == 0:
            return False
        return bool(CappedSum(end, self.shift).contains(self.family.forward(examples.values, *self.theta)).all())

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


def fit_dictionary(
    examples: Multisets,
    kinds: Sequence[str] = tuple(FAMILIES),
    *,
    forms: Sequence[str] = ("sum", "product"),
    bound: float | None = None,
) -> Iterator[Entry]:
    """Fits families in each form and yields the best entry of each, simplest first.

    Arguments:
        examples: The examples.
        kinds: Families to fit; the affine one comes first, then common ones, then those of special laws.
        forms: Forms to fit: ``"sum"``, ``"product"``, ``"mean"``, and ``"scaled sum"``, a mean with an exponent of the
            count other than 1.
        bound: Result at which sums are capped.
    """
    exact = (_EXACT * float(examples.targets.std())) ** 2
    for kind, tier in _order(kinds, forms):
        polished: list[Entry] = []
        for start in _best_starts(kind, tier, examples, bound):
            polished.append(start.polish(examples, _FEW))
            if polished[-1].loss(examples) <= exact:
                break
        if polished:
            yield _polished(min(polished, key=lambda entry: entry.loss(examples)), examples)


class _Tier(NamedTuple):
    """Form of a law, whether its coefficient is free or that of the plain form, and which families have it."""

    name: str
    form: str
    free: bool
    of_families: Form


_TIERS = (
    _Tier("sum", "sum", False, "sum"),
    _Tier("mean", "mean", False, "mean"),
    _Tier("sum", "sum", True, "shifted sum"),
    _Tier("product", "product", True, "product"),
    _Tier("scaled sum", "mean", True, "mean"),
)


def _order(kinds: Sequence[str], forms: Sequence[str]) -> Iterator[tuple[str, _Tier]]:
    """Yields what is tried: the affine family, then common families by their forms, then the others."""
    plainest = [kind for kind in kinds if kind == PLAINEST]
    common = [kind for kind in kinds if kind in COMMON and kind != PLAINEST]
    special = [kind for kind in kinds if kind in SPECIAL]
    for part in (plainest, common, special):
        for tier in _TIERS:
            if tier.name in forms:
                yield from ((kind, tier) for kind in part if tier.of_families in FAMILIES[kind].forms)


def _polished(entry: Entry, examples: Multisets) -> Entry:
    """Polishes an entry as long as that lowers its error: some valleys are long."""
    for _ in range(_ROUNDS):
        before, entry = entry.loss(examples), entry.polish(examples, _MANY)
        if not entry.loss(examples) < (1 - _LOWERED) * before:
            break
    return entry


def _best_starts(kind: str, tier: _Tier, examples: Multisets, bound: float | None) -> list[Entry]:
    """Returns the best initial values, at most one for each θ, and at least one for each combination of signs.

    Those of one θ often lead to the same minimum. Least squares seldom crosses 0, where a power or a factor γ is no
    law, so the best of other signs lead to other minima.
    """
    best: dict[tuple[object, ...], tuple[float, Entry]] = {}
    for start in _starts(kind, tier, examples, bound):
        entry = replace(start, bound=bound)
        loss, key = entry.loss(examples), (*entry.theta, _signs(entry))
        if math.isfinite(loss) and (key not in best or loss < best[key][0]):
            best[key] = loss, entry
    ranked = [entry for _, entry in sorted(best.values(), key=lambda item: item[0])]
    signs = [_signs(entry) for entry in ranked]
    first = [i for i in range(len(ranked)) if signs[i] not in signs[:i]]
    rest = [i for i in range(len(ranked)) if i not in first]
    return [ranked[i] for i in first + rest[: max(0, _STARTS - len(first))]]


def _signs(entry: Entry) -> tuple[bool, ...]:
    return *(value > 0 for value in entry.theta), entry.form == "product" and entry.coefficients[-1] > 0


def _starts(kind: str, tier: _Tier, examples: Multisets, bound: float | None) -> Iterator[Entry]:
    """Yields initial values on a grid; the coefficient in which the latent equation is linear is solved for."""
    more = (examples.sizes - 1).to(examples.targets.dtype)
    family, form = FAMILIES[kind], tier.form
    for theta in family.starts(examples.values, examples.targets):
        u, v = family.forward(examples.values, *theta), family.forward(examples.targets, *theta)
        several = (more > 0) & v.isfinite()
        if bound is not None:
            several &= examples.targets != bound
        if not u.isfinite().all() or not several.any():
            continue
        if not tier.free:
            yield Entry(kind, form, theta, ())
        elif form == "sum":
            shift = ((v - examples.sum(u)[:, 0]) / more)[several].median().item()
            yield Entry(kind, form, theta, (shift,))
        elif form == "mean":
            ratio = ((examples.sum(u)[:, 0] / v).log() / (more + 1).log())[several]
            if ratio.isfinite().any():
                yield Entry(kind, form, theta, (ratio[ratio.isfinite()].median().item(),))
        else:
            for absorbing in _absorbing_grid(u[:, 0]):
                yield from (
                    Entry(kind, form, theta, (absorbing, g)) for g in _factors(u, v, absorbing, several, examples)
                )


def _factors(u: Tensor, v: Tensor, absorbing: float, several: Tensor, examples: Multisets) -> list[float]:
    """Returns the factor γ of a product from latent elements and results; with either sign if that is unknown."""
    more = (examples.sizes - 1).to(u.dtype)
    ratio = ((v - absorbing).abs().log() - examples.sum((u - absorbing).abs().log())[:, 0]) / more
    sound = several & ratio.isfinite()
    if not sound.any():
        return []
    size = math.exp(min(50.0, max(-50.0, ratio[sound].median().item())))
    # The sign of γ shows in sets of an even number of elements, where its power is odd.
    seen = sound & (more % 2 == 1)
    if not seen.any():
        return [size, -size]
    below = (examples.sum((u < absorbing).to(u.dtype))[:, 0] + (v < absorbing).to(u.dtype)) % 2
    return [size if below[seen].mean().item() <= 0.5 else -size]


def _absorbing_grid(seen: Tensor) -> list[float]:
    """Returns absorbing elements to try for a product: among the latent values, near their limits, and beyond."""
    some = seen[:: max(1, len(seen) // 4096)]
    inside = torch.quantile(some, torch.linspace(0.05, 0.95, 10, dtype=seen.dtype)).tolist()
    low, high = seen.min().item(), seen.max().item()
    span = high - low or abs(high) or 1.0
    ends = [end + sign * part * span for end, sign in ((low, -1), (high, 1)) for part in (0.01, 0.1, 0.4, 1.0, 3.0)]
    return [0.0, 1.0, -1.0, *inside, *ends]


def _round(value: float, unit: float, digits: int) -> float:
    """Rounds to this many digits after the first significant one, or to a simple fraction if that is closer."""
    size = max(abs(value), unit)
    places = digits - math.floor(math.log10(size)) if size > 0 else digits
    fraction = Fraction(value).limit_denominator(3) if 0.1 < abs(value) < 10 else None
    rounded = round(value, places)
    if fraction is not None and fraction != 0 and abs(value - fraction) < abs(value - rounded):
        return float(fraction)
    return rounded
