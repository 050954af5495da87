"""Base class of families of curves, and what several of them use."""

from __future__ import annotations

__all__ = [
    "TIED",
    "Family",
    "Form",
    "Number",
    "Parameter",
    "close",
    "limit",
    "log_size",
    "spread",
    "typical_size",
    "up_to",
]

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from abelnet.bijections.slopes import EVERYWHERE, Region
from abelnet.config import Configurable
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from sympy import Expr

Number = float | Tensor
Form = Literal["sum", "mean", "shifted sum", "product"]
"""How n latent numbers are combined: Σu, Σu / nᵃ, Σu + (n − 1) s, or u₀ + γⁿ⁻¹ Π(u − u₀)."""
Parameter = Literal["finite", "nonzero", "positive"]
"""Which numbers a parameter may be."""


class Family(Configurable, ABC):
    r"""Family of monotonic curves :math:`g_\theta`, as functions of values and parameters.

    Attributes:
        name: Name of the family.
        formula: Formula in terms of the parameters.
        parameters: Names of the parameters :math:`\theta`.
        parameters_are: For each parameter, whether it may be any finite number, or must be nonzero or positive.
        turns: Points between which the slope is monotonic for all parameters.
        forms: Forms of the laws that a search tries with this family.
        is_common: Whether a search tries this family before those of special laws.
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]] = ()
    parameters_are: ClassVar[tuple[Parameter, ...]] = ()
    turns: ClassVar[tuple[float, ...]] = ()
    forms: ClassVar[tuple[Form, ...]] = ("sum", "mean", "shifted sum", "product")
    is_common: ClassVar[bool] = True

    def config(self) -> dict[str, Any]:
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def is_valid(self, *theta: Number) -> bool | Tensor:
        """Returns whether the parameters give a bijection, per dimension if they are tensors."""
        valid: bool | Tensor = True
        for value, kind in zip(theta, self.parameters_are, strict=False):
            if kind != "finite":
                valid = (value != 0 if kind == "nonzero" else value > 0) & valid
        return valid

    @abstractmethod
    def forward(self, x: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`g_\theta(x)`."""

    @abstractmethod
    def inverse(self, u: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`g_\theta^{-1}(u)` for :math:`u` in the codomain."""

    is_identity: ClassVar[bool] = False
    r"""Whether :math:`g_\theta(x) = x`."""

    has_log_form: ClassVar[bool] = False
    r"""Whether :math:`g_\theta` is positive and :meth:`log` and :meth:`inverse_of_log` are defined."""

    def overflows(self, dtype: torch.dtype) -> bool:
        r"""Returns whether :math:`g_\theta` of ordinary numbers is beyond the range of a dtype."""
        return True

    def log(self, x: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`\log g_\theta(x)`, which does not overflow where :math:`g_\theta(x)` does."""
        raise AbelnetError(f"log: expected a family with a logarithmic form, got {self.name}")

    def inverse_of_log(self, u: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`g_\theta^{-1}(e^u)`."""
        raise AbelnetError(f"inverse_of_log: expected a family with a logarithmic form, got {self.name}")

    def log_rate(self, *theta: Number) -> Number | None:
        r"""Returns the factor :math:`k` if :math:`\log g_\theta(x) = k \, b(x)` with a simpler :math:`b`; else None."""
        return None

    def log_base(self, x: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`b(x)`, where there is a :meth:`log_rate`."""
        raise AbelnetError(f"log_base: expected a family whose logarithm has a rate, got {self.name}")

    def inverse_of_log_base(self, u: Tensor, *theta: Number) -> Tensor:
        r"""Returns :math:`b^{-1}(u)`, where there is a :meth:`log_rate`."""
        raise AbelnetError(f"inverse_of_log_base: expected a family whose logarithm has a rate, got {self.name}")

    def log_offset(self, *theta: Number) -> Number | None:
        r"""Returns :math:`c` if elements are folded by :math:`\log(x + c)`; else None."""
        return None

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

    def turning_points(self, *theta: float) -> tuple[float, ...]:
        """Returns the points between which the slope is monotonic."""
        return self.turns

    def lower_limits(self, values: Tensor) -> tuple[float | None, ...]:
        """Returns the lower limit of each parameter for all values to be in the domain; None if any sign is allowed."""
        return tuple(0.0 if kind == "positive" else None for kind in self.parameters_are)

    @abstractmethod
    def starts(self, values: Tensor, results: Tensor) -> list[tuple[float, ...]]:
        """Returns initial parameters for a fit to these elements and results; empty if the family cannot fit."""

    def name_of(self, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...]) -> str | None:
        r"""Returns the name that people use for a law with this generator, with its parameter; None if it has none.

        Arguments:
            form: ``"sum"`` or ``"product"``.
            theta: Parameters of the generator.
            coefficients: :math:`()` or :math:`(s)` of a sum, :math:`(u_0, \gamma)` of a product.

        Example:
            >>> from abelnet.bijections import FAMILIES
            >>> FAMILIES["positive power"].name_of("sum", (-3.0,), (-1.0,))
            'Clayton copula, θ=3'
        """
        return None

    def mean_name(self, *theta: float) -> str | None:
        """Returns the name of the quasi-arithmetic mean with this generator; None if it has none.

        Example:
            >>> from abelnet.bijections import FAMILIES
            >>> FAMILIES["positive power"].mean_name(-1.0)
            'harmonic mean'
        """
        return None


TIED = 1e-3
"""Two fitted numbers that a named law ties to each other agree to this: each is rounded on its own."""
# Parameters closer than this, relative to 1, are those of a named law: fits of exact examples agree in more digits.
_SAME = 1e-6


def close(value: float, other: float, tolerance: float = _SAME) -> bool:
    """Returns whether two parameters are the same up to rounding."""
    return abs(value - other) <= tolerance * max(1.0, abs(other))


def log_size(value: Number) -> Number:
    """Returns the logarithm of the magnitude."""
    return value.abs().log() if isinstance(value, Tensor) else math.log(abs(value))


def limit(condition: bool | Tensor, yes: Number, no: Number) -> Number:
    """Returns one of two limits of a region, per dimension if the condition is a tensor."""
    if not isinstance(condition, Tensor):
        return yes if condition else no
    # In float64: in float32 the limit that admits 0 would be 0.
    first, second = (torch.as_tensor(end, dtype=torch.float64, device=condition.device) for end in (yes, no))
    return torch.where(condition, first, second)


def up_to(end: Number) -> Number:
    """Returns the upper limit of a region that contains its end."""
    if not isinstance(end, Tensor):
        return math.nextafter(end, math.inf)
    return torch.nextafter(end.double(), end.new_full((), math.inf, dtype=torch.float64))


def spread(values: Tensor) -> float:
    """Returns the median distance from the median, above 0."""
    distances = (values - values.median()).abs()
    return float(distances.median()) or float(distances.max()) or 1.0


def typical_size(values: Tensor) -> float:
    """Returns the median magnitude, above 0."""
    return float(values.abs().median()) or float(values.abs().max()) or 1.0
