r"""Families on the unit interval: generators of t-norms, t-conorms and Archimedean copulas.

Each is a curve :math:`h_\theta(t)` of :math:`t = -\log x`, or of :math:`t = -\log(1 - x)`, which keeps all digits of
numbers near 1, or near 0.
"""

from __future__ import annotations

__all__ = ["UNIT", "UnitFamily", "from_zero"]

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from abelnet.bijections.families.base import TIED, Family, Form, Number, close, limit, log_size, up_to
from abelnet.bijections.slopes import FROM_ZERO, Region
from abelnet.portable import expm1, log1p

if TYPE_CHECKING:
    from sympy import Expr


class UnitFamily(Family):
    r"""Family of curves :math:`h_\theta(-\log y)` on the unit interval, with :math:`y = x` or :math:`y = 1 - x`.

    Attributes:
        of_complement: Whether :math:`y = 1 - x`.
    """

    forms: ClassVar[tuple[Form, ...]] = ("sum",)
    is_common = False
    of_complement: ClassVar[bool] = False

    @abstractmethod
    def curve(self, t: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`h_\theta(t)`."""

    @abstractmethod
    def inverse_curve(self, u: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`h_\theta^{-1}(u)`."""

    @abstractmethod
    def log_slope_of_curve(self, t: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`\log |h_\theta'(t)|`."""

    @abstractmethod
    def expression_of(self, y: Expr, *theta: Expr) -> Expr:
        """Returns the curve in terms of :math:`y`."""

    @abstractmethod
    def inverse_expression_of(self, u: Expr, *theta: Expr) -> Expr:
        """Returns :math:`y` in terms of the value of the curve."""

    def turns_of(self, *theta: float) -> float:
        """Returns the :math:`y` at which the slope turns; not a number of the unit interval if it does not."""
        return math.nan

    def has_zero(self, *theta: Number) -> bool | Tensor:
        """Returns whether the curve is defined at :math:`y = 0`."""
        return False

    def has_one(self, *theta: Number) -> bool | Tensor:
        """Returns whether the curve is defined at :math:`y = 1`."""
        return True

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return self.curve(self._t(x), *theta)

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        t = self.inverse_curve(u, *theta)
        return -expm1(-t) if self.of_complement else torch.exp(-t)

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        t = self._t(x)
        return self.log_slope_of_curve(t, *theta) + t

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        return self.expression_of(1 - x if self.of_complement else x, *theta)

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        y = self.inverse_expression_of(u, *theta)
        return 1 - y if self.of_complement else y

    def turning_points(self, *theta: float) -> tuple[float, ...]:
        y = self.turns_of(*theta)
        return (1 - y if self.of_complement else y,) if 0 < y < 1 else ()

    def domain(self, *theta: Number) -> Region:
        zero, one = self.has_zero(*theta), self.has_one(*theta)
        first, last = (one, zero) if self.of_complement else (zero, one)
        if theta and isinstance(theta[0], Tensor):
            # Limits in float64, with a place for each dimension.
            first, last = (torch.as_tensor(end, device=theta[0].device).expand_as(theta[0]) for end in (first, last))
        return limit(first, FROM_ZERO, 0.0), limit(last, up_to(1.0), 1.0)

    def codomain(self, *theta: Number) -> Region:
        return limit(theta[0] == theta[0], FROM_ZERO, 0.0), math.inf

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        low, high = float(values.min()), float(values.max())
        if not (low >= 0 and high <= 1 and 0 <= float(results.median()) <= 1):
            return []
        # With the identity 1 results are below their elements, with the identity 0 above.
        above = float(results.mean()) > float(values.mean())
        grid = self.grid(above != self.of_complement)
        return [theta for theta in grid if low > self.domain(*theta)[0] and high < self.domain(*theta)[1]]

    @abstractmethod
    def grid(self, above: bool) -> list[tuple[float, ...]]:
        """Returns initial parameters for laws whose results are above their elements, in terms of y, or below them."""

    def _t(self, x: Tensor) -> Tensor:
        # Subtracted from 0, which gives 0 at the end and not −0.
        return 0.0 - (log1p(-x) if self.of_complement else torch.log(x))


class _LogPower(UnitFamily):
    name = "power of logarithm"
    formula = "(-log x)^p"
    parameters = ("p",)
    parameters_are = ("nonzero",)

    def curve(self, t: Tensor, *theta: Number) -> Tensor:
        return t ** theta[0]

    def inverse_curve(self, u: Tensor, *theta: Number) -> Tensor:
        return from_zero(u) ** (1 / theta[0])

    def log_slope_of_curve(self, t: Tensor, *theta: Number) -> Tensor:
        (p,) = theta
        return log_size(p) + (p - 1) * t.log()

    def expression_of(self, y: Expr, *theta: Expr) -> Expr:
        import sympy

        # The magnitude: sympy takes powers of −1 out of those of −log y.
        return sympy.Abs(sympy.log(y)) ** theta[0]

    def inverse_expression_of(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.exp(-(u ** (1 / theta[0])))

    def turns_of(self, *theta: float) -> float:
        return math.exp(theta[0] - 1) if theta[0] < 1 else math.nan

    def has_zero(self, *theta: Number) -> bool | Tensor:
        return theta[0] < 0

    def has_one(self, *theta: Number) -> bool | Tensor:
        return theta[0] > 0

    def grid(self, above: bool) -> list[tuple[float, ...]]:
        return [] if above else [(p,) for p in (0.5, 1.5, 3.0, 6.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        (p,) = theta
        if form != "sum" or coefficients or p < 0:
            return None
        if self.of_complement:
            return f"Aczél–Alsina t-conorm, λ={p:g}"
        return f"Gumbel copula, θ={p:g}" if p > 1 else f"Aczél–Alsina t-norm, λ={p:g}"


class _LogPowerOfComplement(_LogPower):
    name = "power of logarithm of complement"
    formula = "(-log(1 - x))^p"
    of_complement = True


class _OddsPower(UnitFamily):
    name = "power of odds"
    formula = "((1 - x) / x)^p"
    parameters = ("p",)
    parameters_are = ("nonzero",)

    def curve(self, t: Tensor, *theta: Number) -> Tensor:
        return expm1(t) ** theta[0]

    def inverse_curve(self, u: Tensor, *theta: Number) -> Tensor:
        return log1p(from_zero(u) ** (1 / theta[0]))

    def log_slope_of_curve(self, t: Tensor, *theta: Number) -> Tensor:
        (p,) = theta
        return log_size(p) + (p - 1) * expm1(t).log() + t

    def expression_of(self, y: Expr, *theta: Expr) -> Expr:
        return (1 / y - 1) ** theta[0]

    def inverse_expression_of(self, u: Expr, *theta: Expr) -> Expr:
        return 1 / (1 + u ** (1 / theta[0]))

    def turns_of(self, *theta: float) -> float:
        return (1 + theta[0]) / 2

    def has_zero(self, *theta: Number) -> bool | Tensor:
        return theta[0] < 0

    def has_one(self, *theta: Number) -> bool | Tensor:
        return theta[0] > 0

    def grid(self, above: bool) -> list[tuple[float, ...]]:
        return [(-p if above else p,) for p in (0.5, 1.0, 1.5, 3.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        (p,) = theta
        if form != "sum" or coefficients:
            return None
        if close(abs(p), 1.0):
            return "Hamacher product" if p > 0 else "Hamacher sum"
        return f"Dombi t-norm, λ={p:g}" if p > 0 else f"Dombi t-conorm, λ={-p:g}"


class _ComplementPower(UnitFamily):
    name = "power of complement"
    formula = "|1 - x^a|^b"
    parameters = ("a", "b")
    parameters_are = ("nonzero", "nonzero")

    def curve(self, t: Tensor, *theta: Number) -> Tensor:
        a, b = theta
        return (-_sign(a) * expm1(-a * t)) ** b

    def inverse_curve(self, u: Tensor, *theta: Number) -> Tensor:
        a, b = theta
        size = from_zero(u) ** (1 / b)
        return -log1p(-_sign(a) * size) / a

    def log_slope_of_curve(self, t: Tensor, *theta: Number) -> Tensor:
        a, b = theta
        return log_size(a) + log_size(b) + (b - 1) * expm1(-a * t).abs().log() - a * t

    def expression_of(self, y: Expr, *theta: Expr) -> Expr:
        a, b = theta
        return (1 - y**a if a.is_positive else y**a - 1) ** b

    def inverse_expression_of(self, u: Expr, *theta: Expr) -> Expr:
        a, b = theta
        size = u ** (1 / b)
        return (1 - size if a.is_positive else 1 + size) ** (1 / a)

    def turns_of(self, *theta: float) -> float:
        a, b = theta
        power = (a - 1) / (a * b - 1) if a * b != 1 else math.nan
        return power ** (1 / a) if power > 0 else math.nan

    def has_zero(self, *theta: Number) -> bool | Tensor:
        a, b = theta
        return (a > 0) | (b < 0)

    def has_one(self, *theta: Number) -> bool | Tensor:
        return theta[1] > 0

    def codomain(self, *theta: Number) -> Region:
        a, b = theta
        least = limit((a > 0) & (b < 0), math.nextafter(1.0, 0.0), FROM_ZERO)
        return least, limit((a > 0) & (b > 0), up_to(1.0), math.inf)

    def grid(self, above: bool) -> list[tuple[float, ...]]:
        return [] if above else [(a, b) for a in (-1.5, -0.7, -0.3, 0.3, 0.7, 1.5) for b in (0.7, 1.5, 3.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        a, b = theta
        if form != "sum" or coefficients or b < 0:
            return None
        if a > 0:
            if close(a, 1.0):
                return f"Yager t-norm, p={b:g}, where positive"
            return f"Genest–Ghoudi copula, θ={b:g}, where positive" if close(a * b, 1.0, TIED) else None
        if close(a, -1.0):
            return f"Dombi t-norm, λ={b:g}"
        if close(a * b, -1.0, TIED):
            return f"Nelsen's copula 4.2.14, θ={b:g}"
        return f"BB1 copula, θ={-a:g}, δ={b:g}" if b >= 1 else None


class _ComplementPowerOfComplement(_ComplementPower):
    name = "power of complement of complement"
    formula = "|1 - (1 - x)^a|^b"
    forms = ("sum", "shifted sum")
    of_complement = True

    def grid(self, above: bool) -> list[tuple[float, ...]]:
        # In terms of x: with the identity 1, (1 - (1 - x)^a)^b.
        if above:
            return [(a, b) for a in (1.5, 3.0) for b in (-2.0, -0.5, 0.3, 0.7)]
        return super().grid(above)

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        a, b = theta
        if form != "sum" or not coefficients or not close(coefficients[0], -1.0, TIED) or a < 1:
            return None
        if b < 0:
            return f"BB7 copula, θ={a:g}, δ={-b:g}"
        return f"Nelsen's copula 4.2.21, θ={a:g}, where positive" if close(a * b, 1.0, TIED) else None


UNIT: tuple[Family, ...] = (
    _LogPower(),
    _LogPowerOfComplement(),
    _OddsPower(),
    _ComplementPower(),
    _ComplementPowerOfComplement(),
)
"""The families, simplest first."""


def from_zero(u: Tensor) -> Tensor:
    """Returns NaN in place of negative numbers, which some powers would accept."""
    return torch.where(u >= 0, u, math.nan)


def _sign(value: Number) -> Number:
    return value.sign() if isinstance(value, Tensor) else math.copysign(1.0, value)
