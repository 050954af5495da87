r"""Parametric families of curves, such as powers and logarithms: the generators of most laws used in practice.

A :class:`Family` is a formula :math:`g_\theta` with its known properties; a :class:`~abelnet.Generator` is a bijection
that applies it. To add a family, add a class here; learning, saving, certificates and formulas then support it.
"""

from __future__ import annotations

__all__ = ["FAMILIES", "Family"]

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from abelnet.bijections.slopes import EVERYWHERE, FROM_ZERO, Region
from abelnet.config import Configurable

if TYPE_CHECKING:
    from sympy import Expr

Number = float | Tensor


class Family(Configurable, ABC):
    r"""Family of monotonic curves :math:`g_\theta`, as functions of values and parameters.

    Attributes:
        name: Name of the family.
        parameters: Names of the parameters :math:`\theta`.
        formula: Formula in terms of the parameters.
        turns: Points between which the slope is monotonic for all parameters.
        parameters_are: Whether parameters may be any finite numbers, or must be nonzero or positive.
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]] = ()
    turns: ClassVar[tuple[float, ...]] = ()
    parameters_are: ClassVar[Literal["finite", "nonzero", "positive"]] = "finite"

    def config(self) -> dict[str, Any]:
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def is_valid(self, *theta: Number) -> bool | Tensor:
        """Returns whether the parameters give a bijection, per dimension if they are tensors."""
        if self.parameters_are == "finite" or not theta:
            return True
        return theta[0] != 0 if self.parameters_are == "nonzero" else theta[0] > 0

    @abstractmethod
    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`g_\theta(x)`."""

    @abstractmethod
    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`g_\theta^{-1}(u)` for :math:`u` in the codomain."""

    @abstractmethod
    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        r"""Returns the log-slope :math:`\log |g_\theta'(x)|`."""

    @abstractmethod
    def expression(self, x: Expr, *theta: Expr) -> Expr:
        r"""Returns :math:`g_\theta(x)` as a sympy expression."""

    @abstractmethod
    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        r"""Returns :math:`g_\theta^{-1}(u)` as a sympy expression."""

    def domain(self, *theta: Number) -> Region:
        """Returns the lower and upper limit of :math:`x`, exclusive."""
        return EVERYWHERE

    def codomain(self, *theta: Number) -> Region:
        """Returns the lower and upper limit of :math:`u`, exclusive."""
        return EVERYWHERE

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        """Returns the lower limit of each parameter for all values to be in the domain; None if any sign is allowed."""
        return ()

    @abstractmethod
    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        """Returns initial parameters for a fit to these elements and results; empty if the family cannot fit."""


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


class _Power(Family):
    name = "power"
    formula = "sign(x) |x|^p"
    parameters = ("p",)
    turns = (0.0,)
    parameters_are = "nonzero"

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return x.sign() * x.abs() ** theta[0]

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return u.sign() * u.abs() ** (1 / theta[0])

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        (p,) = theta
        return _log_size(p) + (p - 1) * x.abs().log()

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        return _signed_power(x, theta[0])

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        return _signed_power(u, 1 / theta[0])

    def domain(self, *theta: Number) -> Region:
        # A negative power has a pole at 0.
        return _limit(theta[0] > 0, -math.inf, 0.0), math.inf

    codomain = domain

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        return (None,)

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        # Numbers without a sign do not show how a law treats signs.
        return [] if _is_positive(values, results) else _powers(values)


class _PositivePower(_Power):
    name = "positive power"
    formula = "x^p"

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        return x ** theta[0]

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        return u ** (1 / theta[0])

    def domain(self, *theta: Number) -> Region:
        return _limit(theta[0] > 0, FROM_ZERO, 0.0), math.inf

    codomain = domain

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        return _powers(values) if _is_positive(values, results) else []


class _Exponential(Family):
    name = "exponential"
    formula = "exp(k x)"
    parameters = ("k",)
    parameters_are = "nonzero"

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return torch.exp(theta[0] * x)

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return torch.where(u > 0, u, math.nan).log() / theta[0]

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        (k,) = theta
        return _log_size(k) + k * x

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.exp(theta[0] * x)

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.log(u) / theta[0]

    def codomain(self, *theta: Number) -> Region:
        return 0.0, math.inf

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        return (None,)

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        size = _size(values)
        return [(sign * k / size,) for k in (0.1, 0.5, 2.0) for sign in (1, -1)]


class _Logarithm(Family):
    name = "logarithm"
    formula = "log(x + c)"
    parameters = ("c",)

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


class _Arctanh(Family):
    name = "arctanh"
    formula = "arctanh(x / c)"
    parameters = ("c",)
    turns = (0.0,)
    parameters_are = "positive"

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


class _Arcsinh(Family):
    name = "arcsinh"
    formula = "arcsinh(x / c)"
    parameters = ("c",)
    turns = (0.0,)
    parameters_are = "positive"

    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        return torch.arcsinh(x / theta[0])

    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        return torch.sinh(u) * theta[0]

    def log_slope(self, x: Tensor, *theta: Number) -> Tensor:
        (c,) = theta
        return -0.5 * torch.log1p((x / c) ** 2) - _log_size(c)

    def expression(self, x: Expr, *theta: Expr) -> Expr:
        import sympy

        return sympy.asinh(x / theta[0])

    def inverse_expression(self, u: Expr, *theta: Expr) -> Expr:
        import sympy

        return theta[0] * sympy.sinh(u)

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        return (0.0,)

    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        size = _size(values)
        return [(size * c,) for c in (0.1, 0.5, 2.0)]


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        _Identity(),
        _Power(),
        _PositivePower(),
        _Exponential(),
        _Logarithm(),
        _Logit(),
        _Arctanh(),
        _Arcsinh(),
    )
}
"""Families by name, simplest first."""


def _log_size(value: Number) -> Number:
    return value.abs().log() if isinstance(value, Tensor) else math.log(abs(value))


def _limit(condition: bool | Tensor, yes: float, no: float) -> Number:
    if not isinstance(condition, Tensor):
        return yes if condition else no
    # In float64: in float32 the limit that admits 0 would be 0.
    first, second = (torch.tensor(end, dtype=torch.float64, device=condition.device) for end in (yes, no))
    return torch.where(condition, first, second)


def _size(values: Tensor) -> float:
    return float(values.abs().median()) or float(values.abs().max()) or 1.0


def _is_positive(values: Tensor, results: Tensor) -> bool:
    return float(values.min()) >= 0 and float(results.min()) >= 0


def _powers(values: Tensor) -> list[tuple[float, ...]]:
    below = [-3.0, -2.0, -1.0, -0.5] if float(values.min()) > 0 else []
    return [(p,) for p in (1 / 3, 0.5, 0.75, 1.5, 2.0, 3.0, 5.0, *below)]


def _signed_power(x: Expr, p: Expr) -> Expr:
    import sympy

    return x**p if p.is_odd else sympy.sign(x) * sympy.Abs(x) ** p
