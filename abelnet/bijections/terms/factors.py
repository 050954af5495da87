r"""Functions of one coordinate, of which monomials are products."""

from __future__ import annotations

__all__ = ["FACTORS", "Exponential", "Factor", "Logarithm", "Power"]

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from abelnet.bijections.intervals import Interval
from abelnet.bijections.slopes import EVERYWHERE, FROM_ZERO, Region
from abelnet.checks import check_count, check_number
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


@dataclass(frozen=True)
class Factor(Configurable, ABC):
    """Function :math:`g` of one coordinate; on numbers of one sign it is monotonic, and so is its slope.

    Attributes:
        coordinate: Index of the coordinate.
    """

    coordinate: int

    def __post_init__(self) -> None:
        check_count("coordinate", self.coordinate, 0)

    @property
    @abstractmethod
    def complexity(self) -> float:
        """How hard the factor is to read."""

    @property
    def domain(self) -> Region:
        """Lower and upper limit of :math:`x`, exclusive."""
        return EVERYWHERE

    @property
    def is_injective(self) -> bool:
        """Whether different numbers of the domain have different values, not only those of one sign."""
        return True

    @property
    def is_defined_at_zero(self) -> bool:
        """Whether the factor is finite at 0."""
        return True

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Returns :math:`g(x)`."""

    @abstractmethod
    def inverse(self, u: Tensor) -> Tensor:
        """Returns :math:`g^{-1}(u)`, the positive one if there are two; NaN if there is none."""

    @abstractmethod
    def slope(self, x: Tensor) -> Tensor:
        """Returns :math:`g'(x)`."""

    @abstractmethod
    def expression(self, x: Expr) -> Expr:
        """Returns :math:`g(x)` as a sympy expression."""

    @abstractmethod
    def inverse_expression(self, u: Expr, sign: int = 0) -> Expr:
        """Returns :math:`g^{-1}(u)` as a sympy expression, the root of one sign if it is known, 1 or -1."""

    def enclose(self, x: Interval) -> tuple[Interval, Interval]:
        """Returns the ranges of values and of slopes, over cells."""
        return x.turning_at_zero(self.forward), x.turning_at_zero(self.slope)

    def enclose_inverse(self, u: Interval, sign: int) -> tuple[Interval, Interval]:
        """Returns the ranges of the root, of one sign if there are two, and of its slope, over cells of values."""
        root = u.rising(self.inverse)
        root = -root if sign < 0 and not self.is_injective else root
        return root, root.turning_at_zero(self.slope).reciprocal()

    def config(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Power(Factor):
    r"""Power :math:`x^p`, on positive numbers unless :math:`p` is an integer.

    Example:
        >>> Power(0, 2.0).forward(torch.tensor([3.0, -3.0]))
        tensor([9., 9.])
        >>> Power(0, -1.0).inverse(torch.tensor([4.0]))
        tensor([0.2500])
    """

    exponent: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("exponent", self.exponent)
        if self.exponent == 0:
            raise AbelnetError("exponent: expected a number other than 0, got 0")

    @property
    def complexity(self) -> float:
        size = max(1.0, abs(self.exponent))
        return (size if self.exponent > 0 else 1.2 * size) + (0.0 if self._is_whole else 1.0)

    @property
    def _is_whole(self) -> bool:
        return float(self.exponent).is_integer()

    @property
    def domain(self) -> Region:
        return EVERYWHERE if self._is_whole else (FROM_ZERO if self.exponent > 0 else 0.0, math.inf)

    @property
    def is_injective(self) -> bool:
        return not self._is_whole or self.exponent % 2 == 1

    @property
    def is_defined_at_zero(self) -> bool:
        return self.exponent > 0

    def forward(self, x: Tensor) -> Tensor:
        return x if self.exponent == 1 else x**self.exponent

    def inverse(self, u: Tensor) -> Tensor:
        if self.exponent == 1:
            return u
        if self.exponent == -1:
            return 1 / u
        if self._is_whole and self.exponent % 2 == 1:
            return u.sign() * u.abs() ** (1 / self.exponent)
        return torch.where(u >= 0, u, math.nan) ** (1 / self.exponent)

    def slope(self, x: Tensor) -> Tensor:
        return torch.ones_like(x) if self.exponent == 1 else self.exponent * x ** (self.exponent - 1)

    def enclose_inverse(self, u: Interval, sign: int) -> tuple[Interval, Interval]:
        root, slope = super().enclose_inverse(u, sign)
        # A power below 0 has a pole between the roots of both signs.
        pole = u.contains_zero() & (self.exponent < 0)
        return root.or_whole_line(pole), slope.or_whole_line(pole)

    def expression(self, x: Expr) -> Expr:
        return x ** symbolic_number(self.exponent)

    def inverse_expression(self, u: Expr, sign: int = 0) -> Expr:
        import sympy

        root = 1 / symbolic_number(self.exponent)
        is_odd = self._is_whole and self.exponent % 2 == 1
        if sign < 0:
            return -((-u) ** root) if is_odd else -(u**root)
        if is_odd and abs(self.exponent) > 1 and not (sign or u.is_positive):
            # Not evaluated: of exponentials, sympy would write the absolute value by real and imaginary parts.
            return sympy.sign(u, evaluate=False) * sympy.Abs(u, evaluate=False) ** root
        return u**root


@dataclass(frozen=True)
class Logarithm(Factor):
    r"""Logarithm :math:`\log x`, on positive numbers.

    Example:
        >>> Logarithm(0).inverse(torch.tensor([0.0]))
        tensor([1.])
    """

    @property
    def complexity(self) -> float:
        return 1.5

    @property
    def domain(self) -> Region:
        return 0.0, math.inf

    @property
    def is_defined_at_zero(self) -> bool:
        return False

    def forward(self, x: Tensor) -> Tensor:
        return x.log()

    def inverse(self, u: Tensor) -> Tensor:
        return u.exp()

    def slope(self, x: Tensor) -> Tensor:
        return 1 / x

    def expression(self, x: Expr) -> Expr:
        import sympy

        return sympy.log(x)

    def inverse_expression(self, u: Expr, sign: int = 0) -> Expr:
        import sympy

        return sympy.exp(u)


@dataclass(frozen=True)
class Exponential(Factor):
    r"""Exponential function :math:`b^{k x}`, of base :math:`b = e`, 10 or 2.

    Example:
        >>> Exponential(0, -1.0, 10.0).forward(torch.tensor([7.0]))
        tensor([1.0000e-07])
        >>> Exponential(0, -1.0, 10.0).inverse(torch.tensor([0.001]))
        tensor([3.])
    """

    rate: float = 1.0
    base: float = math.e
    BASES: ClassVar[tuple[float, ...]] = (math.e, 10.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("rate", self.rate)
        if self.rate == 0:
            raise AbelnetError("rate: expected a number other than 0, got 0")
        if self.base not in self.BASES:
            raise AbelnetError(
                f"base: expected one of {', '.join(f'{base:g}' for base in self.BASES)}, got {self.base}"
            )

    @property
    def complexity(self) -> float:
        return 3.0

    def forward(self, x: Tensor) -> Tensor:
        # Powers of 10 to the last bit, where the exponential of a product would lose some.
        return (self.rate * x).exp() if self.base == math.e else torch.pow(self.base, self.rate * x)

    def inverse(self, u: Tensor) -> Tensor:
        log = {10.0: torch.log10, 2.0: torch.log2}.get(self.base, torch.log)
        return log(u) / self.rate

    def slope(self, x: Tensor) -> Tensor:
        return self.rate * math.log(self.base) * self.forward(x)

    def expression(self, x: Expr) -> Expr:
        import sympy

        rate = symbolic_number(self.rate)
        return sympy.exp(rate * x) if self.base == math.e else symbolic_number(self.base) ** (rate * x)

    def inverse_expression(self, u: Expr, sign: int = 0) -> Expr:
        import sympy

        unit = 1 if self.base == math.e else sympy.log(symbolic_number(self.base))
        return sympy.log(u) / (symbolic_number(self.rate) * unit)


FACTORS: tuple[type[Factor], ...] = (Power, Logarithm, Exponential)
