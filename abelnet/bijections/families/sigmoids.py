"""Families whose inverse, or which themselves, are sigmoid curves: logit, arctanh and arcsinh."""

from __future__ import annotations

__all__ = ["SIGMOIDS"]

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from abelnet.bijections.families.base import Family, Number, log_size, typical_size
from abelnet.bijections.slopes import Region
from abelnet.portable import arcsinh, arctanh, log1p, sigmoid, sinh

if TYPE_CHECKING:
    from sympy import Expr


class _Logit(Family):
    name = "logit"
    formula = "log(x / (1 - x))"
    turns = (0.5,)

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return torch.log(x) - log1p(-x)

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return sigmoid(u)

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        return -torch.log(x) - log1p(-x)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.log(x / (1 - x))

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return 1 / (1 + sympy.exp(-u))

    def domain(self, *theta: Number) -> Region:
        return 0.0, 1.0

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        return [()] if float(values.min()) > 0 and float(values.max()) < 1 else []

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        if form != "sum":
            return None
        if not coefficients:
            return "3Π uninorm (product of odds)"
        return f"3Π uninorm (product of odds) with identity {1 / (1 + math.exp(coefficients[0])):g}"

    def mean_name(self, *theta: float) -> str | None:
        return "geometric mean of odds"


class _Arctanh(Family):
    name = "arctanh"
    formula = "arctanh(x / c)"
    parameters = ("c",)
    turns = (0.0,)
    parameters_are = ("positive",)

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return arctanh(x / theta[0])

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return torch.tanh(u) * theta[0]

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        (c,) = theta
        return -torch.log(c * (1 - (x / c) ** 2))

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.atanh(x / theta[0])

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return theta[0] * sympy.tanh(u)

    def domain(self, *theta: Number) -> Region:
        return -theta[0], theta[0]

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        return (float(values.abs().max()),)

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        largest = max(float(values.abs().max()), float(results.abs().max()))
        return [(largest * c,) for c in (1.001, 1.1, 2.0, 5.0)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        return f"relativistic velocity addition, c={theta[0]:g}" if form == "sum" and not coefficients else None


class _Arcsinh(Family):
    name = "arcsinh"
    formula = "arcsinh(x / c)"
    parameters = ("c",)
    turns = (0.0,)
    parameters_are = ("positive",)

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return arcsinh(x / theta[0])

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return sinh(u) * theta[0]

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        (c,) = theta
        return -0.5 * log1p((x / c) ** 2) - log_size(c)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.asinh(x / theta[0])

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return theta[0] * sympy.sinh(u)

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        size = typical_size(values)
        return [(size * c,) for c in (0.1, 0.5, 2.0)]


SIGMOIDS: tuple[Family, ...] = (_Logit(), _Arctanh(), _Arcsinh())
"""The families, simplest first."""
