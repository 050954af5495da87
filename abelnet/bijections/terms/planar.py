r"""Maps of two coordinates with a closed-form inverse, such as polar coordinates."""

from __future__ import annotations

__all__ = ["PLANES", "Planar", "Plane"]

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from abelnet.bijections.terms.base import Term
from abelnet.checks import check_count
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from sympy import Expr


class Plane(ABC):
    r"""Invertible map :math:`(a, b) \mapsto (u, v)` of a part of the plane.

    Attributes:
        name: Name of the map.
        formula: Formula of both parts.
        periods: Period of each part; 0 if it has none.
        is_symmetric: Whether exchanging a and b gives the same invariants.
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    periods: ClassVar[tuple[float, float]] = (0.0, 0.0)
    is_symmetric: ClassVar[bool] = False

    @abstractmethod
    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        """Returns whether the map is defined at each point."""

    @abstractmethod
    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both parts."""

    @abstractmethod
    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the point with these parts."""

    @abstractmethod
    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Returns the derivatives of each part by :math:`a` and :math:`b`."""

    @abstractmethod
    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """Returns both parts as sympy expressions."""

    @abstractmethod
    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        """Returns the point with these parts as sympy expressions."""

    def is_of_use(self, a: Tensor, b: Tensor) -> bool:
        """Returns whether a search should try the map on these points, which it is defined at."""
        return True


class Polar(Plane):
    r"""Logarithm of a complex number, :math:`\log |a + i b|` and :math:`\arg(a + i b)`: products of complex numbers."""

    name = "polar"
    is_symmetric = True
    formula = "log|a + i·b|, arg(a + i·b)"
    periods = (0.0, 2 * math.pi)

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return (a != 0) | (b != 0)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return torch.hypot(a, b).log(), torch.atan2(b, a)

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return u.exp() * v.cos(), u.exp() * v.sin()

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        r2 = a * a + b * b
        return (a / r2, b / r2), (-b / r2, a / r2)

    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        import sympy

        return sympy.log(a**2 + b**2) / 2, sympy.atan2(b, a)

    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        import sympy

        return sympy.exp(u) * sympy.cos(v), sympy.exp(u) * sympy.sin(v)

    def is_of_use(self, a: Tensor, b: Tensor) -> bool:
        return _has_both_signs(a) or _has_both_signs(b)


class Inversion(Plane):
    r"""Inversion in the unit circle, :math:`a / (a^2 + b^2)` and :math:`b / (a^2 + b^2)`: parallel impedances."""

    name = "inversion"
    is_symmetric = True
    formula = "a / (a^2 + b^2), b / (a^2 + b^2)"

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return (a != 0) | (b != 0)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        r2 = a * a + b * b
        return a / r2, b / r2

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward(u, v)

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        r4 = (a * a + b * b) ** 2
        return ((b * b - a * a) / r4, -2 * a * b / r4), (-2 * a * b / r4, (a * a - b * b) / r4)

    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        return a / (a**2 + b**2), b / (a**2 + b**2)

    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        return self.expressions(u, v)


class Split(Plane):
    r"""Logarithm of a split-complex number, :math:`\log(a + b)` and :math:`\log(a - b)`."""

    name = "split"
    formula = "log(a + b), log(a − b)"

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return a > b.abs()

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return (a + b).log(), (a - b).log()

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return (u.exp() + v.exp()) / 2, (u.exp() - v.exp()) / 2

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        return (1 / (a + b), 1 / (a + b)), (1 / (a - b), -1 / (a - b))

    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        import sympy

        return sympy.log(a + b), sympy.log(a - b)

    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        import sympy

        return (sympy.exp(u) + sympy.exp(v)) / 2, (sympy.exp(u) - sympy.exp(v)) / 2


class Lorentz(Plane):
    r"""Energy and momentum, :math:`a / \sqrt{1 - b^2}` and :math:`a b / \sqrt{1 - b^2}`, of mass and velocity."""

    name = "Lorentz"
    formula = "a / (1 − b^2)^(1/2), a·b / (1 − b^2)^(1/2)"

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return b.abs() < 1

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        energy = a / ((1 - b) * (1 + b)).sqrt()
        return energy, energy * b

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        b = v / u
        return u * ((1 - b) * (1 + b)).sqrt(), b

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        gamma = 1 / ((1 - b) * (1 + b)).sqrt()
        return (gamma, a * b * gamma**3), (b * gamma, a * gamma**3)

    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        import sympy

        gamma = 1 / sympy.sqrt(1 - b**2)
        return a * gamma, a * b * gamma

    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        import sympy

        return u * sympy.sqrt(1 - (v / u) ** 2), v / u

    def is_of_use(self, a: Tensor, b: Tensor) -> bool:
        return _has_both_signs(b) and float(b.abs().max()) > 0.3


class Cartesian(Plane):
    r"""Components :math:`a \cos b` and :math:`a \sin b` of length and angle: sums of forces, waves and phasors."""

    name = "Cartesian"
    formula = "a·cos(b), a·sin(b)"

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return (a > 0) & (b.abs() <= 2 * math.pi)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a * b.cos(), a * b.sin()

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return torch.hypot(u, v), torch.atan2(v, u)

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        return (b.cos(), -a * b.sin()), (b.sin(), a * b.cos())

    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        import sympy

        return a * sympy.cos(b), a * sympy.sin(b)

    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        import sympy

        return sympy.sqrt(u**2 + v**2), sympy.atan2(v, u)

    def is_of_use(self, a: Tensor, b: Tensor) -> bool:
        # Angles of results are in (−π, π].
        return float(b.max()) <= math.pi and float(b.min()) >= -math.pi and float(b.max() - b.min()) > 1


PLANES: dict[str, Plane] = {plane.name: plane for plane in (Polar(), Inversion(), Split(), Lorentz(), Cartesian())}
"""Maps of the plane by name."""


def _has_both_signs(x: Tensor) -> bool:
    return bool((x > 0).any()) and bool((x < 0).any())


@dataclass(frozen=True)
class Planar(Term):
    r"""One part of a map of two coordinates.

    Arguments:
        plane: Name of the map: polar, inversion, split, Lorentz or Cartesian.
        part: 0 or 1.
        first: Coordinate :math:`a`.
        second: Coordinate :math:`b`.

    Example:
        >>> Planar("polar", 1, 0, 1).values(torch.tensor([[0.0, 2.0]]))
        tensor([1.5708])
    """

    plane: str
    part: int
    first: int
    second: int

    def __post_init__(self) -> None:
        if self.plane not in PLANES:
            raise AbelnetError(f"plane: expected one of {', '.join(PLANES)}, got {self.plane!r}")
        if self.part not in (0, 1):
            raise AbelnetError(f"part: expected 0 or 1, got {self.part}")
        if check_count("first", self.first, 0) == check_count("second", self.second, 0):
            raise AbelnetError(f"first, second: expected different coordinates, got {self.first} twice")

    @property
    def map(self) -> Plane:
        """The map."""
        return PLANES[self.plane]

    @property
    def coordinates(self) -> frozenset[int]:
        return frozenset((self.first, self.second))

    @property
    def complexity(self) -> float:
        return 3.0

    @property
    def period(self) -> float:
        return self.map.periods[self.part]

    def renamed(self, places: Mapping[int, int]) -> Planar:
        return replace(self, first=places[self.first], second=places[self.second])

    def is_defined(self, x: Tensor) -> Tensor:
        return self.map.is_defined(x[..., self.first], x[..., self.second])

    def values(self, x: Tensor) -> Tensor:
        return self.map.forward(x[..., self.first], x[..., self.second])[self.part]

    def gradient(self, x: Tensor) -> Tensor:
        slopes = self.map.jacobian(x[..., self.first], x[..., self.second])[self.part]
        columns = [x.new_zeros(x.shape[:-1]) for _ in range(x.shape[-1])]
        columns[self.first], columns[self.second] = slopes
        return torch.stack(columns, -1)

    def expression(self, x: Sequence[Expr]) -> Expr:
        return self.map.expressions(x[self.first], x[self.second])[self.part]

    def config(self) -> dict[str, Any]:
        return {"plane": self.plane, "part": self.part, "first": self.first, "second": self.second}
