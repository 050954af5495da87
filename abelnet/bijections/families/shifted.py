"""Families of numbers measured from a point c, and the difference of a number and its reciprocal."""

from __future__ import annotations

__all__ = ["SHIFTED"]

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from abelnet.bijections.families.base import TIED, Family, Number, close, limit, log_size, spread, up_to
from abelnet.bijections.slopes import FROM_ZERO, Region
from abelnet.portable import hypot, log1p

if TYPE_CHECKING:
    from sympy import Expr


class _ReflectedLogarithm(Family):
    name = "reflected logarithm"
    formula = "log(c - x)"
    parameters = ("c",)
    parameters_are = ("finite",)
    forms = ("sum",)
    is_common = False

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return torch.log(theta[0] - x)

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return theta[0] - torch.exp(u)

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        return -torch.log(theta[0] - x)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.log(theta[0] - x)

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return theta[0] - sympy.exp(u)

    def domain(self, *theta: Number) -> Region:
        return -math.inf, theta[0]

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        return (float(values.max()),)

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        high, size = float(values.max()), spread(values)
        return [(high + part * size,) for part in (0.01, 0.1, 1, 10)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        is_known = form == "sum" and not coefficients and close(theta[0], 1.0)
        return "probabilistic sum (noisy or)" if is_known else None


class _ReflectedPower(Family):
    name = "reflected power"
    formula = "(c - x)^p"
    parameters = ("c", "p")
    parameters_are = ("finite", "nonzero")
    forms = ("sum", "shifted sum", "product")
    is_common = False

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        c, p = theta
        return (c - x) ** p

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        c, p = theta
        return c - torch.where(u >= 0, u, math.nan) ** (1 / p)

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        c, p = theta
        return log_size(p) + (p - 1) * torch.log(c - x)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        c, p = theta
        return (c - x) ** p

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        c, p = theta
        return c - u ** (1 / p)

    def domain(self, *theta: Number) -> Region:
        c, p = theta
        return -math.inf, limit(p > 0, up_to(c), c)

    def codomain(self, *theta: Number) -> Region:
        return limit(theta[1] > 0, FROM_ZERO, 0.0), math.inf

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        return float(values.max()), None

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        high, size = float(values.max()), spread(values)
        is_unit = float(values.min()) >= 0 and high <= 1
        ends = [1.0 if is_unit else high + 0.1 * size, high + size]
        return [(c, p) for c in ends for p in (0.5, 1.5, 3.0, -1.0) if p > 0 or c > high]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        c, p = theta
        if not close(c, 1.0):
            return None
        if form == "product":
            is_joe = p > 0 and close(coefficients[0], 1.0) and close(coefficients[1], -1.0)
            return f"Joe copula, θ={p:g}" if is_joe else None
        if not coefficients:
            return f"Yager t-norm, p={p:g}, where positive" if p > 0 else None
        return f"Clayton t-conorm, θ={-p:g}" if p < 0 and close(coefficients[0], -1.0) else None


class _ShiftedPower(Family):
    name = "shifted power"
    formula = "(x + c)^p"
    parameters = ("c", "p")
    parameters_are = ("finite", "nonzero")
    forms = ("shifted sum", "product")
    is_common = False

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        c, p = theta
        return (x + c) ** p

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        c, p = theta
        return torch.where(u >= 0, u, math.nan) ** (1 / p) - c

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        c, p = theta
        return log_size(p) + (p - 1) * torch.log(x + c)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        c, p = theta
        return (x + c) ** p

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        c, p = theta
        return u ** (1 / p) - c

    def domain(self, *theta: Number) -> Region:
        c, p = theta
        return limit(p > 0, -up_to(c), -c), math.inf

    def codomain(self, *theta: Number) -> Region:
        return limit(theta[1] > 0, FROM_ZERO, 0.0), math.inf

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        return -float(values.min()), None

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        low, size = float(values.min()), spread(values)
        return [(part * size - low, p) for part in (0.5, 4.0) for p in (-2.0, -1.0, 0.5, 3.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        c, p = theta
        if form == "product":
            absorbing, gamma = coefficients
            is_known = close(c, 1.0) and close(absorbing, 1.0) and close(gamma * (2**p - 1), 1.0, TIED)
            return f"Nelsen's copula 4.2.17, θ={-p:g}" if is_known else None
        # With the identity 1, which is where the latent sum is minus the shift.
        is_known = close(p, -1.0) and len(coefficients) == 1 and close(coefficients[0] * (1 + c), -1.0, TIED)
        return f"Nelsen's copula 4.2.8, θ={1 + 1 / c:g}, where positive" if is_known and c > 0 else None


class _ReciprocalDifference(Family):
    name = "reciprocal difference"
    formula = "c / x - x"
    parameters = ("c",)
    parameters_are = ("positive",)
    forms = ("shifted sum",)
    is_common = False

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return theta[0] / x - x

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        (c,) = theta
        # The root of x² + u x = c that does not cancel.
        size = (u.abs() + hypot(u, torch.as_tensor(2 * c**0.5, dtype=u.dtype, device=u.device))) / 2
        return torch.where(u > 0, c / size, size)

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        return log1p(theta[0] / x**2)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        return theta[0] / x - x

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return (sympy.sqrt(u**2 + 4 * theta[0]) - u) / 2

    def domain(self, *theta: Number) -> Region:
        return 0.0, math.inf

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        # Results are below their elements, with an identity that is their upper limit.
        if not float(values.min()) > 0 or float(results.mean()) > float(values.mean()):
            return []
        return [(float(values.median()) ** 2 * part,) for part in (0.5, 2.0, 10.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        (c,) = theta
        is_known = form == "sum" and close(coefficients[0] if coefficients else 0.0, 1 - c, TIED)
        return f"Nelsen's copula 4.2.16, θ={c:g}" if is_known else None


SHIFTED: tuple[Family, ...] = (_ReflectedLogarithm(), _ReciprocalDifference(), _ReflectedPower(), _ShiftedPower())
"""The families, simplest first."""
