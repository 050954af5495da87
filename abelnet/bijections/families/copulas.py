"""Families of single copulas of Nelsen's list, beside those that are powers on the unit interval."""

from __future__ import annotations

__all__ = ["COPULAS"]

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from abelnet.bijections.families.base import Family, Number, close, limit, log_size, up_to
from abelnet.bijections.families.unit import UnitFamily, from_zero
from abelnet.bijections.slopes import FROM_ZERO, Region
from abelnet.portable import arcsin, expm1, log1p

if TYPE_CHECKING:
    from sympy import Expr


class _OffsetLogPower(UnitFamily):
    name = "power of offset logarithm"
    formula = "(1 - k log x)^p - 1"
    parameters = ("k", "p")
    parameters_are = ("positive", "nonzero")

    def curve(self, t: Tensor, *theta: Number) -> Tensor:
        k, p = theta
        return expm1(p * log1p(k * t))

    def inverse_curve(self, u: Tensor, *theta: Number) -> Tensor:
        k, p = theta
        return expm1(log1p(u) / p) / k

    def log_slope_of_curve(self, t: Tensor, *theta: Number) -> Tensor:
        k, p = theta
        return log_size(k) + log_size(p) + (p - 1) * log1p(k * t)

    def expression_of(self, y: Expr, *theta: Expr) -> Expr:
        import sympy

        k, p = theta
        return (1 + k * sympy.Abs(sympy.log(y))) ** p - 1

    def inverse_expression_of(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        k, p = theta
        return sympy.exp((1 - (1 + u) ** (1 / p)) / k)

    def turns_of(self, *theta: float) -> float:
        k, p = theta
        return math.exp(1 / k - (1 - p))

    def codomain(self, *theta: Number) -> Region:
        falling = theta[1] > 0
        return limit(falling, FROM_ZERO, -1.0), limit(falling, math.inf, up_to(0.0))

    def grid(self, above: bool) -> list[tuple[float, ...]]:
        return [] if above else [(k, p) for k in (0.3, 1.0, 3.0) for p in (0.5, 1.5, 3.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        k, p = theta
        is_known = form == "sum" and not coefficients and p > 0 and close(k, 1.0)
        return f"Nelsen's copula 4.2.13, θ={p:g}" if is_known else None


class _ExponentialOfPower(UnitFamily):
    name = "exponential of power"
    formula = "exp(k (x^-p - 1)) - 1"
    parameters = ("k", "p")
    parameters_are = ("positive", "positive")

    def curve(self, t: Tensor, *theta: Number) -> Tensor:
        k, p = theta
        return expm1(k * expm1(p * t))

    def inverse_curve(self, u: Tensor, *theta: Number) -> Tensor:
        k, p = theta
        return log1p(log1p(u) / k) / p

    def log_slope_of_curve(self, t: Tensor, *theta: Number) -> Tensor:
        k, p = theta
        return log_size(k) + log_size(p) + k * expm1(p * t) + p * t

    def expression_of(self, y: Expr, *theta: Expr) -> Expr:
        import sympy

        k, p = theta
        return sympy.exp(k * (y**-p - 1)) - 1

    def inverse_expression_of(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        k, p = theta
        return (1 + sympy.log(1 + u) / k) ** (-1 / p)

    def grid(self, above: bool) -> list[tuple[float, ...]]:
        return [] if above else [(k, p) for k in (0.3, 1.0, 3.0) for p in (0.4, 1.0, 2.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        k, p = theta
        if form != "sum" or coefficients:
            return None
        if close(p, 1.0):
            return f"Nelsen's copula 4.2.19, θ={k:g}"
        return f"Nelsen's copula 4.2.20, θ={p:g}" if close(k, 1.0) else None


class _ReciprocalExponential(UnitFamily):
    name = "exponential of reciprocal"
    formula = "exp(-k / (1 - x))"
    parameters = ("k",)
    parameters_are = ("positive",)

    def curve(self, t: Tensor, *theta: Number) -> Tensor:
        return torch.exp(-theta[0] / expm1(-t).abs())

    def inverse_curve(self, u: Tensor, *theta: Number) -> Tensor:
        minus_complement = theta[0] / from_zero(u).log()
        # At the end of the codomain, which is 0 up to rounding.
        at_zero = (minus_complement + 1).abs() <= 4 * torch.finfo(u.dtype).eps
        return -log1p(torch.where(at_zero, -1.0, minus_complement))

    def log_slope_of_curve(self, t: Tensor, *theta: Number) -> Tensor:
        (k,) = theta
        complement = expm1(-t).abs()
        return log_size(k) - k / complement - 2 * complement.log() - t

    def expression_of(self, y: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.exp(-theta[0] / (1 - y))

    def inverse_expression_of(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return 1 + theta[0] / sympy.log(u)

    def turns_of(self, *theta: float) -> float:
        return 1 - theta[0] / 2

    def has_zero(self, *theta: Number) -> bool | Tensor:
        return theta[0] > 0

    def codomain(self, *theta: Number) -> Region:
        (k,) = theta
        # In the precision of the parameter, as the value at 0 is.
        most = torch.exp(-k) if isinstance(k, Tensor) else math.exp(-k)
        return limit(k > 0, FROM_ZERO, 0.0), up_to(most)

    def grid(self, above: bool) -> list[tuple[float, ...]]:
        return [] if above else [(k,) for k in (0.3, 1.0, 3.0, 10.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        return f"Nelsen's copula 4.2.18, θ={theta[0]:g}, where positive" if form == "sum" and not coefficients else None


class _ArcsineOfPower(UnitFamily):
    name = "arcsine of power"
    formula = "arcsin(1 - x^p)"
    parameters = ("p",)
    parameters_are = ("positive",)

    def curve(self, t: Tensor, *theta: Number) -> Tensor:
        return arcsin(-expm1(-theta[0] * t))

    def inverse_curve(self, u: Tensor, *theta: Number) -> Tensor:
        inside = torch.where((u >= 0) & (u <= math.pi / 2), u, math.nan)
        return -log1p(-torch.sin(inside)) / theta[0]

    def log_slope_of_curve(self, t: Tensor, *theta: Number) -> Tensor:
        (p,) = theta
        return log_size(p) - 0.5 * (p * t + torch.log(2 - torch.exp(-p * t)))

    def expression_of(self, y: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.asin(1 - y ** theta[0])

    def inverse_expression_of(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return (1 - sympy.sin(u)) ** (1 / theta[0])

    def turns_of(self, *theta: float) -> float:
        (p,) = theta
        return (2 - p) ** (1 / p) if p < 2 else math.nan

    def has_zero(self, *theta: Number) -> bool | Tensor:
        return theta[0] > 0

    def codomain(self, *theta: Number) -> Region:
        (p,) = theta
        # In the precision of the parameter, as the value at 0 is.
        most = torch.full_like(p, math.pi / 2) if isinstance(p, Tensor) else math.pi / 2
        return limit(p > 0, FROM_ZERO, 0.0), up_to(most)

    def grid(self, above: bool) -> list[tuple[float, ...]]:
        return [] if above else [(p,) for p in (0.3, 1.0, 3.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        return f"Nelsen's copula 4.2.22, θ={theta[0]:g}, where positive" if form == "sum" and not coefficients else None


COPULAS: tuple[Family, ...] = (
    _ReciprocalExponential(),
    _ArcsineOfPower(),
    _OffsetLogPower(),
    _ExponentialOfPower(),
)
"""The families, simplest first."""
