r"""Laws of a few numbers, found by least squares: a generator of a known family under a sum or a product.

With :math:`u = g_\theta(x)`, a law is one of

.. math::
    z = g_\theta^{-1}\Big(\sum_i u_i + (n - 1) s\Big), \qquad
    z = g_\theta^{-1}\Big(u_0 + \gamma^{n - 1} \prod_i (u_i - u_0)\Big) ,

the first a group, the second a semigroup in which :math:`g_\theta^{-1}(u_0)` absorbs; with the affine generator they
are the two non-constant forms of Theorem 2. For given :math:`\theta` (and :math:`u_0`) the latent equation is linear in
:math:`s` or in :math:`\log |\gamma|`, which gives a start for each point of a small grid; the best of them are polished
on the residuals of the results themselves.
"""

from __future__ import annotations

__all__ = ["Entry", "fit_dictionary"]

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from scipy.optimize import least_squares
from torch import Tensor

from abelnet.bijections import FAMILIES as GENERATORS
from abelnet.bijections import Generator
from abelnet.discovery.examples import Examples
from abelnet.laws import Polynomial, Sum
from abelnet.operation import Operation

# Residuals of results that a law cannot give, in units of the spread of the results.
_IMPOSSIBLE = 1e3
_STARTS = 3


@dataclass(frozen=True)
class Entry:
    """A law of the dictionary with its numbers.

    Attributes:
        kind: The generator, a key of :data:`~abelnet.bijections.GENERATORS`.
        form: ``"sum"`` or ``"product"``.
        theta: Parameters of the generator.
        coefficients: ``()`` for a sum with :math:`s = 0`, else :math:`(s)`; for a product :math:`(u_0, \\gamma)`.
    """

    kind: str
    form: str
    theta: tuple[float, ...]
    coefficients: tuple[float, ...]

    @property
    def complexity(self) -> int:
        """Number of parameters, plus one for leaving the plain coordinates."""
        return len(self.theta) + len(self.coefficients) + (self.kind != "affine")

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return f"{self.form} of {self.kind}"

    def predict(self, examples: Examples) -> Tensor:
        """The result of each multiset; NaN where the law cannot give one."""
        kind = GENERATORS[self.kind]
        u, mask = kind.forward(examples.values, *self.theta), examples.mask
        more = (examples.sizes - 1).to(u.dtype)
        if self.form == "sum":
            w = torch.where(mask, u, 0).sum(1) + more * (self.coefficients[0] if self.coefficients else 0.0)
        else:
            absorbing, gamma = self.coefficients
            factor = torch.where(mask, u - absorbing, 1)
            log = factor.abs().log().sum(1) + more * math.log(abs(gamma))
            w = absorbing + factor.sign().prod(1) * math.copysign(1, gamma) ** more * log.exp()
        return kind.inverse(w, *self.theta)

    def squared_errors(self, examples: Examples) -> Tensor:
        """One for each example; infinite where the law cannot give a result."""
        if not self._is_sound(examples):
            return torch.full_like(examples.target, math.inf)
        return (self.predict(examples) - examples.target).square().nan_to_num(math.inf)

    def operation(self) -> Operation:
        """The law as an operation on numbers."""
        bijection = Generator(1, self.kind, self.theta, dtype=torch.float64)
        if self.form == "sum":
            shift = self.coefficients[0] if self.coefficients else 0.0
            return Operation(bijection, Polynomial(0.0, shift) if shift else Sum())
        absorbing, gamma = self.coefficients
        return Operation(bijection, Polynomial(gamma, -1 / gamma - absorbing))

    def polish(self, examples: Examples, evaluations: int = 400) -> Entry:
        """The entry of this form nearby that fits the examples best in the least-squares sense."""
        raw = _to_raw(self, examples)
        if len(raw) == 0:
            return self
        scale = float(examples.target.std()) or 1.0

        def residuals(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            entry = _from_raw(self, raw, examples)
            if not entry._is_sound(examples):
                return np.full(len(examples.target), _IMPOSSIBLE)
            errors = (entry.predict(examples) - examples.target) / scale
            result: np.ndarray[Any, Any] = errors.nan_to_num(_IMPOSSIBLE).clamp(-_IMPOSSIBLE, _IMPOSSIBLE).numpy()
            return result

        tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
        solution = least_squares(residuals, raw, method="lm", x_scale="jac", max_nfev=evaluations, **tight)
        found = _from_raw(self, solution.x, examples)
        return found if found._loss(examples) <= self._loss(examples) else self

    def rounded(self, examples: Examples) -> Entry:
        """The entry with the fewest digits that the examples do not tell from this one.

        Rounding may add to the sum of squares no more than an error of the parameters would that is as large as their
        uncertainty.
        """
        numbers = (*self.theta, *self.coefficients)
        errors = float(self.squared_errors(examples).sum())
        rows = len(examples.target)
        floor = 1e-24 * float(examples.target.square().sum())
        allowed = errors * (1 + (2 + 2 * len(numbers)) / max(1, rows - len(numbers))) + floor
        if not math.isfinite(errors):
            return self
        for digits in range(12):
            values = [_round(v, unit, digits) for v, unit in zip(numbers, self._units(examples), strict=True)]
            k = len(self.theta)
            entry = replace(self, theta=tuple(values[:k]), coefficients=tuple(values[k:]))
            if entry.form == "sum" and entry.coefficients == (0.0,):
                entry = replace(entry, coefficients=())
            if float(entry.squared_errors(examples).sum()) <= allowed:
                return entry
        return self

    def formula(self) -> str:
        """The law for two elements, as a formula."""
        return "x∘y = " + _FORMULAS.get((self.kind, self.form), _generic)(self)

    def _units(self, examples: Examples) -> list[float]:
        """What each number is small or large against: the size of the values that it stands beside."""
        u = GENERATORS[self.kind].forward(examples.values, *self.theta).abs().median().item()
        of_latent = 0.1 * u if 0 < u < math.inf else 1.0
        beside = [of_latent] if self.form == "sum" else [of_latent, abs(self.coefficients[-1])]
        return [abs(v) for v in self.theta] + beside[: len(self.coefficients)]

    def _is_sound(self, examples: Examples) -> bool:
        if self.form == "product" and self.coefficients[1] == 0:
            return False
        if self.kind in ("power", "exponential", "arctanh", "arcsinh") and self.theta[0] == 0:
            return False
        low, high = GENERATORS[self.kind].domain(*self.theta)
        return bool((examples.values > low).all() and (examples.values < high).all())

    def _loss(self, examples: Examples) -> float:
        return float(self.squared_errors(examples).mean())


def fit_dictionary(examples: Examples) -> Iterator[Entry]:
    """The best entry of each generator and form on these examples, the plainest first."""
    others = [kind for kind in GENERATORS if kind != "affine"]
    order = [("affine", "sum", False), ("affine", "sum", True), ("affine", "product", True)]
    order += [(kind, "sum", False) for kind in others]
    order += [(kind, form, True) for form in ("sum", "product") for kind in others]
    for kind, form, shifted in order:
        scored = [(entry._loss(examples), i, entry) for i, entry in enumerate(_starts(kind, form, shifted, examples))]
        scored = sorted(item for item in scored if math.isfinite(item[0]))[:_STARTS]
        if scored:
            polished = [entry.polish(examples, 100) for _, _, entry in scored]
            yield min(polished, key=lambda entry: entry._loss(examples))


def _starts(kind: str, form: str, shifted: bool, examples: Examples) -> Iterator[Entry]:
    """A grid of starts; for each point the latent equation gives the coefficient in which it is linear."""
    mask, more = examples.mask, (examples.sizes - 1).to(examples.target.dtype)
    for theta in _grid(kind, examples):
        u = GENERATORS[kind].forward(examples.values, *theta)
        v = GENERATORS[kind].forward(examples.target, *theta)
        several = (more > 0) & v.isfinite()
        if not u.isfinite().all() or not several.any():
            continue
        if form == "sum":
            shift = ((v - torch.where(mask, u, 0).sum(1)) / more)[several].median().item()
            yield Entry(kind, form, theta, (shift,) if shifted else ())
            continue
        for absorbing in _absorbing_grid(u[mask]):
            factors = torch.where(mask, u - absorbing, 1)
            ratio = ((v - absorbing).abs().log() - factors.abs().log().sum(1)) / more
            sound = several & ratio.isfinite()
            if sound.any():
                size = math.exp(min(50.0, max(-50.0, ratio[sound].median().item())))
                yield from (Entry(kind, form, theta, (absorbing, sign * size)) for sign in (1.0, -1.0))


def _grid(kind: str, examples: Examples) -> Sequence[tuple[float, ...]]:
    values = examples.values
    low, high = values.min().item(), values.max().item()
    size = values.abs().median().item() or max(abs(low), abs(high)) or 1.0
    if kind == "power":
        exponents = [1 / 3, 0.5, 0.75, 1.5, 2.0, 3.0, 5.0] + ([-3.0, -2.0, -1.0, -0.5] if low > 0 else [])
        return [(p,) for p in exponents]
    if kind == "exponential":
        return [(sign * k / size,) for k in (0.1, 0.5, 2.0) for sign in (1, -1)]
    if kind == "logarithm":
        return [(c - low,) for c in (0.0 + 0.01 * size, 0.1 * size, size, 10 * size)] + ([(0.0,)] if low > 0 else [])
    if kind == "arctanh":
        largest = max(abs(low), abs(high), examples.target.abs().max().item())
        return [(largest * c,) for c in (1.001, 1.1, 2.0, 5.0)]
    if kind == "arcsinh":
        return [(size * c,) for c in (0.1, 0.5, 2.0)]
    if kind == "logit":
        return [()] if low > 0 and high < 1 else []
    return [()]


def _absorbing_grid(seen: Tensor) -> list[float]:
    """Places where a law of products may have its zero: among the values, near their ends, and beyond."""
    some = seen[:: max(1, len(seen) // 4096)]
    inside = torch.quantile(some, torch.linspace(0.05, 0.95, 10, dtype=seen.dtype)).tolist()
    low, high = seen.min().item(), seen.max().item()
    span = high - low or abs(high) or 1.0
    ends = [end + sign * part * span for end, sign in ((low, -1), (high, 1)) for part in (0.01, 0.1, 0.4, 1.0, 3.0)]
    return [0.0, 1.0, -1.0, *inside, *ends]


def _to_raw(entry: Entry, examples: Examples) -> np.ndarray[Any, Any]:
    """Numbers without bounds: thresholds by the logarithm of what lies between them and the data."""
    raw = list(entry.theta)
    if entry.kind in ("logarithm", "arctanh", "arcsinh"):
        raw = [math.log(max(entry.theta[0] - _least(entry.kind, examples), 1e-300))]
    if entry.form == "sum":
        return np.array([*raw, *entry.coefficients])
    absorbing, gamma = entry.coefficients
    return np.array([*raw, absorbing, math.log(abs(gamma))])


def _from_raw(entry: Entry, raw: np.ndarray[Any, Any], examples: Examples) -> Entry:
    numbers = [float(value) for value in raw]
    k = len(entry.theta)
    theta = numbers[:k]
    if entry.kind in ("logarithm", "arctanh", "arcsinh"):
        theta = [_least(entry.kind, examples) + math.exp(min(theta[0], 700.0))]
    coefficients = numbers[k:]
    if entry.form == "product":
        coefficients = [coefficients[0], math.copysign(math.exp(min(700.0, coefficients[1])), entry.coefficients[1])]
        coefficients[1] = coefficients[1] or math.copysign(1e-300, entry.coefficients[1])
    return replace(entry, theta=tuple(theta), coefficients=tuple(coefficients))


def _least(kind: str, examples: Examples) -> float:
    """What the threshold of a generator must lie above for all values to be in its domain."""
    if kind == "logarithm":
        return -examples.values.min().item()
    return examples.values.abs().max().item() if kind == "arctanh" else 0.0


def _round(value: float, unit: float, digits: int) -> float:
    """To this many digits after the first that matters; to a simple fraction where that is the same number."""
    size = max(abs(value), unit)
    places = digits - math.floor(math.log10(size)) if size > 0 else digits
    fraction = Fraction(value).limit_denominator(3) if 0.1 < abs(value) < 10 else None
    rounded = round(value, places)
    if fraction is not None and fraction != 0 and abs(value - fraction) < abs(value - rounded):
        return float(fraction)
    return rounded


def number(value: float) -> str:
    """A number as short as it can be written, thirds as such."""
    fraction = Fraction(value).limit_denominator(3)
    if fraction.denominator == 3 and abs(value - fraction) < 1e-12:
        return str(fraction)
    return f"{value:.6g}".replace("e+0", "e").replace("e-0", "e-").replace("-", "−")


def _terms(*terms: tuple[float, str]) -> str:
    """A sum of terms with coefficients, without those that are zero."""
    text = ""
    for value, symbol in terms:
        if value == 0:
            continue
        size = "" if abs(value) == 1 and symbol else number(abs(value))
        piece = "·".join(part for part in (size, symbol) if part)
        text += f" {'−' if value < 0 else '+'} {piece}" if text else f"{'−' if value < 0 else ''}{piece}"
    return text or "0"


def _affine_sum(entry: Entry) -> str:
    return _terms((1, "x"), (1, "y"), (entry.coefficients[0] if entry.coefficients else 0.0, ""))


def _affine_product(entry: Entry) -> str:
    absorbing, gamma = entry.coefficients
    beta = -gamma * absorbing
    alpha = absorbing * (1 - beta)
    alpha, beta = (0.0 if abs(value) < 1e-15 else value for value in (alpha, beta))
    return _terms((beta, "x"), (beta, "y"), (gamma, "x·y"), (alpha, ""))


def _power_sum(entry: Entry) -> str:
    p = entry.theta[0]
    shift = entry.coefficients[0] if entry.coefficients else 0.0
    exponent = f"({number(p)})" if "/" in number(p) or p < 0 else number(p)
    inside = _terms((1, f"x^{exponent}"), (1, f"y^{exponent}"), (shift, ""))
    root = Fraction(1 / p).limit_denominator(12)
    return f"({inside})^({root if abs(root - 1 / p) < 1e-12 else number(1 / p)})".replace("^(-", "^(−")


def _exponential_sum(entry: Entry) -> str:
    k = entry.theta[0]
    inside = _terms((1, f"exp({_terms((k, 'x'))})"), (1, f"exp({_terms((k, 'y'))})"), (_shift(entry), ""))
    return f"log({inside})" + ("" if k == 1 else f" / {number(k)}" if k > 0 else f" / ({number(k)})")


def _logarithm_sum(entry: Entry) -> str:
    c, factor = entry.theta[0], math.exp(_shift(entry))
    pair = "x·y" if c == 0 else f"({_terms((1, 'x'), (c, ''))})·({_terms((1, 'y'), (c, ''))})"
    return _terms((factor, pair), (-c, ""))


def _arctanh_sum(entry: Entry) -> str:
    if entry.coefficients:
        return _generic(entry)
    return f"(x + y) / (1 + {_terms((1 / entry.theta[0] ** 2, 'x·y'))})"


def _shift(entry: Entry) -> float:
    return entry.coefficients[0] if entry.coefficients else 0.0


def _generic(entry: Entry) -> str:
    formula = GENERATORS[entry.kind].formula
    for name, value in zip(GENERATORS[entry.kind].parameters, entry.theta, strict=True):
        formula = formula.replace(f"{name} x", f"{number(value)}·x").replace(f"/ {name}", f"/ {number(value)}")
        formula = formula.replace(f"+ {name}", f"+ {number(value)}").replace(f"^{name}", f"^{number(value)}")
    if entry.form == "sum":
        inside = _terms((1, "g(x)"), (1, "g(y)"), (_shift(entry), ""))
    else:
        inside = _affine_product(entry).replace("x", "g(x)").replace("y", "g(y)")
    return f"g⁻¹({inside}), g(x) = {formula}"


_FORMULAS = {
    ("affine", "sum"): _affine_sum,
    ("affine", "product"): _affine_product,
    ("power", "sum"): _power_sum,
    ("exponential", "sum"): _exponential_sum,
    ("logarithm", "sum"): _logarithm_sum,
    ("arctanh", "sum"): _arctanh_sum,
}
