"""Families of exponentials and logarithms."""

from __future__ import annotations

__all__ = ["EXPONENTIALS"]

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from abelnet.bijections.families.base import TIED, Family, Number, close, log_size, spread, typical_size
from abelnet.bijections.slopes import Region

if TYPE_CHECKING:
    from sympy import Expr

# The exponential of numbers farther from 0 than this many times their spread is taken of their distance from a center.
_FAR = 100.0


class _Exponential(Family):
    name = "exponential"
    formula = "exp(k x)"
    parameters = ("k",)
    parameters_are = ("nonzero",)
    has_log_form = True

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return self.log(x, *theta).exp()

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return self.inverse_of_log(torch.where(u > 0, u, math.nan).log(), *theta)

    def log(self, x: Tensor, *theta: Number) -> Tensor:
        return theta[0] * x

    def inverse_of_log(self, u: Tensor, *theta: Number) -> Tensor:
        return u / theta[0]

    def log_rate(self, *theta: Number) -> Number:
        return theta[0]

    def log_base(self, x: Tensor, *theta: Number) -> Tensor:
        return x

    def inverse_of_log_base(self, u: Tensor, *theta: Number) -> Tensor:
        return u

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        (k,) = theta
        return log_size(k) + k * x

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.exp(theta[0] * x)

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.log(u) / theta[0]

    def codomain(self, *theta: Number) -> Region:
        return 0.0, math.inf

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        return [] if _is_far(values) else [(k,) for k in _rates(values)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        k = theta[0]
        if form == "sum":
            return _of_rate("log-sum-exp", k) if not coefficients else None
        absorbing, gamma = coefficients
        # With the identity 1 and the absorbing element 0.
        is_frank = close(absorbing, 1.0) and k < 700 and close(gamma * math.expm1(k), 1.0, TIED)
        return f"Frank copula, θ={-k:g}" if is_frank else None

    def mean_name(self, *theta: float) -> str | None:
        return _of_rate("log-mean-exp", theta[0])


class _CenteredExponential(Family):
    name = "centered exponential"
    formula = "exp(k (x - c))"
    parameters = ("k", "c")
    parameters_are = ("nonzero", "finite")
    has_log_form = True

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return self.log(x, *theta).exp()

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return self.inverse_of_log(torch.where(u > 0, u, math.nan).log(), *theta)

    def log(self, x: Tensor, *theta: Number) -> Tensor:
        k, c = theta
        return k * (x - c)

    def inverse_of_log(self, u: Tensor, *theta: Number) -> Tensor:
        k, c = theta
        return u / k + c

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        k, c = theta
        return log_size(k) + k * (x - c)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.exp(theta[0] * (x - theta[1]))

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.log(u) / theta[0] + theta[1]

    def codomain(self, *theta: Number) -> Region:
        return 0.0, math.inf

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        if not _is_far(values):
            return []
        # In steps of a power of ten, so that formulas are short.
        step = 10.0 ** math.ceil(math.log10(spread(values)))
        center = round(float(values.median()) / step) * step
        return [(k, center) for k in _rates(values)]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        return _of_rate("log-sum-exp", theta[0]) if form == "sum" and not coefficients else None

    def mean_name(self, *theta: float) -> str | None:
        return _of_rate("log-mean-exp", theta[0])


class _Logarithm(Family):
    name = "logarithm"
    formula = "log(x + c)"
    parameters = ("c",)
    parameters_are = ("finite",)

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return torch.log(x + theta[0])

    def log_offset(self, *theta: Number) -> Number:
        return theta[0]

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return torch.exp(u) - theta[0]

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        return -torch.log(x + theta[0])

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.log(x + theta[0])

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.exp(u) - theta[0]

    def domain(self, *theta: Number) -> Region:
        return -theta[0], math.inf

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        return (-float(values.min()),)

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        low, size = float(values.min()), typical_size(values)
        offsets = [c * size - low for c in (0.01, 0.1, 1, 10)] + ([0.0] if low > 0 else [])
        return [(c,) for c in offsets]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        (c,) = theta
        if form == "sum":
            known = {0.0: "product", 1.0: "compound returns"}
            return None if coefficients else next((name for at, name in known.items() if close(c, at)), None)
        absorbing, gamma = coefficients
        # With the identity 1.
        is_barnett = close(c, 0.0) and gamma < 0 and close(absorbing * gamma, -1.0, TIED)
        return f"Gumbel–Barnett copula, θ={-gamma:g}" if is_barnett else None

    def mean_name(self, *theta: float) -> str | None:
        (c,) = theta
        return "geometric mean" if close(c, 0.0) else f"geometric mean of x + {c:g}" if c > 0 else None


EXPONENTIALS: tuple[Family, ...] = (_Exponential(), _CenteredExponential(), _Logarithm())
"""The families, simplest first."""


def _is_far(values: Tensor) -> bool:
    return float(values.abs().max()) > _FAR * spread(values)


def _rates(values: Tensor) -> list[float]:
    size = spread(values)
    return [sign * k / size for k in (0.05, 0.25, 1.0) for sign in (1, -1)]


def _of_rate(name: str, k: float) -> str:
    return name if close(k, 1.0) else f"{name}, k={k:g}"
