"""Families of sums, products and powers."""

from __future__ import annotations

__all__ = ["POWERS"]

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from abelnet.bijections.families.base import TIED, Family, Number, close, limit, log_size
from abelnet.bijections.slopes import FROM_ZERO, Region
from abelnet.portable import exact
from abelnet.segments import is_plain

if TYPE_CHECKING:
    from sympy import Expr

# Absorbing element and factor of products without parameters.
_PRODUCTS = {
    (0.0, 1.0): "product",
    (1.0, -1.0): "probabilistic sum (noisy or)",
    (-1.0, 1.0): "compound returns",
    (0.5, -2.0): "exclusive or of independent events",
}


class _Identity(Family):
    name = "affine"
    formula = "x"
    is_identity = True

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return x * 1

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return u * 1

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        return torch.zeros_like(x)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        return x

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        return u

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        return [()]

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        if form == "sum":
            if coefficients:
                return "Łukasiewicz t-norm, where positive" if close(coefficients[0], -1.0) else None
            return "sum"
        absorbing, gamma = coefficients
        for (point, factor), name in _PRODUCTS.items():
            if close(absorbing, point) and close(gamma, factor):
                return name
        if 0 < gamma < 1 and close(gamma * (1 - absorbing), 1.0, TIED):  # with the identity 1
            return f"Sugeno–Weber t-norm (Nelsen's copula 4.2.7), θ={gamma:g}, where positive"
        # With the identity 0, the law is x + y + γ x y.
        return f"Sugeno λ-measure, λ={gamma:g}" if close(absorbing * gamma, -1.0, TIED) else None

    def mean_name(self, *theta: float) -> str | None:
        return "arithmetic mean"


class _Power(Family):
    name = "power"
    formula = "sign(x) |x|^p"
    parameters = ("p",)
    turns = (0.0,)
    parameters_are = ("nonzero",)

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return _raised(x, theta[0])

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return _raised(u, 1 / theta[0])

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        (p,) = theta
        return log_size(p) + (p - 1) * x.abs().log()

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        return _signed_power(x, theta[0])

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        return _signed_power(u, 1 / theta[0])

    def domain(self, *theta: Number) -> Region:
        # A negative power has a pole at 0.
        return limit(theta[0] > 0, -math.inf, 0.0), math.inf

    codomain = domain

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        # Numbers without a sign do not show how a law treats signs.
        return [] if _is_positive(values, results) else _powers(values)

    def mean_name(self, *theta: float) -> str | None:
        return "arithmetic mean" if close(theta[0], 1.0) else None


class _PositivePower(_Power):
    name = "positive power"
    formula = "x^p"
    has_log_form = True

    def overflows(self, dtype: torch.dtype) -> bool:
        # In double precision powers have room, and fewer rounding errors than logarithms: 3 and 4 are 5.
        return dtype != torch.float64

    def log(self, x: Tensor, *theta: Number) -> Tensor:
        # The gradient at 0 is that of a constant: the true one is infinite if p < 1.
        return torch.where(x > 0, theta[0] * torch.where(x > 0, x, 1).log(), -math.inf)

    def log_rate(self, *theta: Number) -> Number:
        return theta[0]

    def log_base(self, x: Tensor, *theta: Number) -> Tensor:
        if is_plain(x) and x.numel() > 0 and float(x.detach().amin()) > 0:
            return x.log()
        # As good as an infinite power's, but finite, for the sake of gradients.
        far = exact(math.sqrt(torch.finfo(x.dtype).max), x)
        at_zero = torch.where(torch.as_tensor(theta[0], device=x.device) > 0, -far, far).to(x.dtype)
        return torch.where(x > 0, torch.where(x > 0, x, 1).log(), at_zero)

    def inverse_of_log_base(self, u: Tensor, *theta: Number) -> Tensor:
        return u.exp()

    def log_offset(self, *theta: Number) -> Number:
        return 0.0

    def inverse_of_log(self, u: Tensor, *theta: Number) -> Tensor:
        return (u / theta[0]).exp()

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        return x ** theta[0]

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        return u ** (1 / theta[0])

    def domain(self, *theta: Number) -> Region:
        return limit(theta[0] > 0, FROM_ZERO, 0.0), math.inf

    codomain = domain

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        return _powers(values) if _is_positive(values, results) else []

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        (p,) = theta
        if form == "product":
            return _name_of_power_product(p, *coefficients)
        if not coefficients:
            return _name_of_power_sum(p)
        if not close(coefficients[0], -1.0):
            return None
        if p > 0:
            return f"Schweizer–Sklar t-norm, λ={p:g}, where positive"
        return "Hamacher product" if close(p, -1.0) else f"Clayton copula, θ={-p:g}"

    def mean_name(self, *theta: float) -> str | None:
        (p,) = theta
        known = {1.0: "arithmetic mean", -1.0: "harmonic mean", 2.0: "root mean square", 3.0: "cubic mean"}
        return next((name for power, name in known.items() if close(p, power)), f"power mean, p={p:g}")


POWERS: tuple[Family, ...] = (_Identity(), _Power(), _PositivePower())
"""The families, simplest first."""


def _is_positive(values: Tensor, results: Tensor) -> bool:
    return float(values.min()) >= 0 and float(results.min()) >= 0


def _powers(values: Tensor) -> list[tuple[float, ...]]:
    below = [-3.0, -2.0, -1.0, -0.5] if float(values.min()) > 0 else []
    return [(p,) for p in (1 / 3, 0.5, 0.75, 1.5, 2.0, 3.0, 5.0, *below)]


def _raised(x: Tensor, p: Number) -> Tensor:
    """Returns a power of the magnitude, with the sign of the number; NaN at a pole."""
    zero = x == 0
    # The gradient at 0 is 0: the true one is infinite if p < 1.
    at_zero = torch.where(torch.as_tensor(p, dtype=x.dtype, device=x.device) > 0, 0.0, math.nan)
    return torch.where(zero, at_zero.to(x.dtype), x.sign() * torch.where(zero, 1, x.abs()) ** p)


def _signed_power(x: Expr, p: Expr) -> Expr:
    import sympy

    return x**p if p.is_odd else sympy.sign(x) * sympy.Abs(x) ** p


def _name_of_power_sum(p: float) -> str:
    known = {1.0: "sum", 2.0: "Euclidean norm", -1.0: "parallel resistance (harmonic sum)"}
    other = f"p-norm, p={p:g}" if p > 1 else f"power sum, p={p:g}"
    return next((name for power, name in known.items() if close(p, power)), other)


def _name_of_power_product(p: float, absorbing: float, gamma: float) -> str | None:
    if close(p, -1.0) and gamma > 0 and close(gamma * (1 - absorbing), 1.0, TIED):  # with the identity 1
        if close(gamma, 2.0):
            return "Einstein product"
        theta = 1 - gamma
        return f"Ali–Mikhail–Haq copula, θ={theta:g}" if theta > -1 else f"Hamacher t-norm, γ={gamma:g}"
    if p < 0 and close(absorbing, 0.5) and close(gamma, 2.0):
        return f"Nelsen's copula 4.2.10, θ={-p:g}"
    if p > 0 and close(absorbing, 2.0) and close(gamma, -1.0):
        return f"Nelsen's copula 4.2.11, θ={p:g}, where positive"
    # The dual of the Joe copula: with the identity 0.
    return f"Joe t-conorm, θ={p:g}" if p > 0 and close(absorbing, 1.0) and close(gamma, -1.0) else None
