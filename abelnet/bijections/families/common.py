"""Families of the laws of everyday arithmetic: affine, powers, exponentials, logarithms, logit, arctanh and arcsinh."""

from __future__ import annotations

__all__ = ["COMMON"]

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from abelnet.bijections.families.base import TIED, Family, Number, close, limit, log_size, spread
from abelnet.bijections.slopes import FROM_ZERO, Region

if TYPE_CHECKING:
    from sympy import Expr

# Absorbing element and factor of products without parameters.
_PRODUCTS = {
    (0.0, 1.0): "product",
    (1.0, -1.0): "probabilistic sum (noisy or)",
    (-1.0, 1.0): "compound returns",
    (0.5, -2.0): "exclusive or of independent events",
}
# The exponential of numbers farther from 0 than this many times their spread is taken of their distance from a center.
_FAR = 100.0


class _Identity(Family):
    name = "affine"
    formula = "x"

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
            return "sum" if not coefficients else None
        absorbing, gamma = coefficients
        for (point, factor), name in _PRODUCTS.items():
            if close(absorbing, point) and close(gamma, factor):
                return name
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
        return x.sign() * x.abs() ** theta[0]

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return u.sign() * u.abs() ** (1 / theta[0])

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


class _Exponential(Family):
    name = "exponential"
    formula = "exp(k x)"
    parameters = ("k",)
    parameters_are = ("nonzero",)

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return torch.exp(theta[0] * x)

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return torch.where(u > 0, u, math.nan).log() / theta[0]

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

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        k, c = theta
        return torch.exp(k * (x - c))

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        k, c = theta
        return torch.where(u > 0, u, math.nan).log() / k + c

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
        low, size = float(values.min()), _size(values)
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


class _Logit(Family):
    name = "logit"
    formula = "log(x / (1 - x))"
    turns = (0.5,)

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return torch.log(x) - torch.log1p(-x)

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return torch.sigmoid(u)

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        return -torch.log(x) - torch.log1p(-x)

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
        return torch.arctanh(x / theta[0])

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
        return torch.arcsinh(x / theta[0])

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return torch.sinh(u) * theta[0]

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        (c,) = theta
        return -0.5 * torch.log1p((x / c) ** 2) - log_size(c)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.asinh(x / theta[0])

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return theta[0] * sympy.sinh(u)

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        size = _size(values)
        return [(size * c,) for c in (0.1, 0.5, 2.0)]


COMMON: tuple[Family, ...] = (
    _Identity(),
    _Power(),
    _PositivePower(),
    _Exponential(),
    _CenteredExponential(),
    _Logarithm(),
    _Logit(),
    _Arctanh(),
    _Arcsinh(),
)
"""The families, simplest first."""


def _size(values: Tensor) -> float:
    return float(values.abs().median()) or float(values.abs().max()) or 1.0


def _is_positive(values: Tensor, results: Tensor) -> bool:
    return float(values.min()) >= 0 and float(results.min()) >= 0


def _is_far(values: Tensor) -> bool:
    return float(values.abs().max()) > _FAR * spread(values)


def _rates(values: Tensor) -> list[float]:
    size = spread(values)
    return [sign * k / size for k in (0.05, 0.25, 1.0) for sign in (1, -1)]


def _of_rate(name: str, k: float) -> str:
    return name if close(k, 1.0) else f"{name}, k={k:g}"


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


def _powers(values: Tensor) -> list[tuple[float, ...]]:
    below = [-3.0, -2.0, -1.0, -0.5] if float(values.min()) > 0 else []
    return [(p,) for p in (1 / 3, 0.5, 0.75, 1.5, 2.0, 3.0, 5.0, *below)]


def _signed_power(x: Expr, p: Expr) -> Expr:
    import sympy

    return x**p if p.is_odd else sympy.sign(x) * sympy.Abs(x) ** p
