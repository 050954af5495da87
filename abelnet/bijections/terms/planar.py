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

from abelnet.bijections.intervals import Interval
from abelnet.bijections.terms.base import Term
from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.portable import arctan2, expm1, hypot
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


Ranges = tuple[Interval, Interval]
"""Ranges of both parts, or of the derivatives of one part."""


class Plane(ABC):
    r"""Invertible map :math:`(a, b) \mapsto (u, v)` of a part of the plane.

    Attributes:
        name: Name of the map.
        formula: Formula of both parts.
        condition: Where the map is defined, with the names ``{a}`` and ``{b}``.
        periods: Period of each part; 0 if it has none.
        is_symmetric: Whether exchanging a and b gives the same invariants.
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    condition: ClassVar[str]
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
    def enclose(self, a: Interval, b: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        """Returns the ranges of both parts and of the derivatives of each, over cells."""

    @abstractmethod
    def enclose_inverse(self, u: Interval, v: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        """Returns the ranges of :math:`a` and :math:`b` and of the derivatives of each, over cells of both parts."""

    @abstractmethod
    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """Returns both parts as sympy expressions."""

    @abstractmethod
    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        """Returns the point with these parts as sympy expressions."""

    @abstractmethod
    def is_defined_expression(self, a: Expr, b: Expr) -> Any:
        """Returns :meth:`is_defined` as a sympy condition."""

    def is_of_use(self, a: Tensor, b: Tensor) -> bool:
        """Returns whether a search should try the map on these points, which it is defined at."""
        return True


class Polar(Plane):
    r"""Logarithm of a complex number, :math:`\log |a + i b|` and :math:`\arg(a + i b)`: products of complex numbers."""

    name = "polar"
    is_symmetric = True
    formula = "log|a + i·b|, arg(a + i·b)"
    condition = "{a} ≠ 0 or {b} ≠ 0"
    periods = (0.0, 2 * math.pi)

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return (a != 0) | (b != 0)

    def is_defined_expression(self, a: Expr, b: Expr) -> Any:
        import sympy

        return sympy.Ne(a, 0) | sympy.Ne(b, 0)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return hypot(a, b).log(), _angle(a, b)

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return u.exp() * v.cos(), u.exp() * v.sin()

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        # Divided twice by the length, whose square may overflow.
        r = hypot(a, b)
        return (a / r / r, b / r / r), (-b / r / r, a / r / r)

    def enclose(self, a: Interval, b: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        r2 = a.square() + b.square()
        return (r2.log().scaled(0.5), _enclose_angle(a, b)), _enclose_polar_slopes(a, b)

    def enclose_inverse(self, u: Interval, v: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        a, b = u.exp() * v.cos(), u.exp() * v.sin()
        return (a, b), ((a, -b), (b, a))

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
    condition = "{a} ≠ 0 or {b} ≠ 0"

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return (a != 0) | (b != 0)

    def is_defined_expression(self, a: Expr, b: Expr) -> Any:
        import sympy

        return sympy.Ne(a, 0) | sympy.Ne(b, 0)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        # Divided twice by the length, whose square may overflow.
        r = hypot(a, b)
        return a / r / r, b / r / r

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward(u, v)

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        r = hypot(a, b)
        cosine, sine = a / r, b / r
        straight, across = (sine - cosine) * (sine + cosine) / r / r, -2 * cosine * sine / r / r
        return (straight, across), (across, -straight)

    def enclose(self, a: Interval, b: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        r2 = a.square() + b.square()
        straight, across = (b.square() - a.square()) / r2.square(), (a * b).scaled(-2.0) / r2.square()
        # Cosine and sine of twice the angle, over the square of the length.
        straight, across = (one.at_most(1 / r2.low) for one in (straight, across))
        return (a / r2, b / r2), ((straight, across), (across, -straight))

    def enclose_inverse(self, u: Interval, v: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        return self.enclose(u, v)

    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        return a / (a**2 + b**2), b / (a**2 + b**2)

    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        return self.expressions(u, v)


class Split(Plane):
    r"""Logarithm of a split-complex number, :math:`\log(a + b)` and :math:`\log(a - b)`."""

    name = "split"
    formula = "log(a + b), log(a − b)"
    condition = "{a} > |{b}|"

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return a > b.abs()

    def is_defined_expression(self, a: Expr, b: Expr) -> Any:
        import sympy

        return a > sympy.Abs(b)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return (a + b).log(), (a - b).log()

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        # The difference of the exponentials of close numbers would cancel.
        rises = u <= v
        below = expm1(torch.where(rises, u - v, v - u)) * torch.where(rises, v, u).exp() / 2
        return u.exp() / 2 + v.exp() / 2, torch.where(rises, below, -below)

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        return (1 / (a + b), 1 / (a + b)), (1 / (a - b), -1 / (a - b))

    def enclose(self, a: Interval, b: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        more, less = a + b, a - b
        bad = (more.low <= 0) | (less.low <= 0)
        over, under = (one.reciprocal().or_whole_line(bad) for one in (more, less))
        return (more.log(), less.log()), ((over, over), (under, -under))

    def enclose_inverse(self, u: Interval, v: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        more, less = u.exp().scaled(0.5), v.exp().scaled(0.5)
        return (more + less, more - less), ((more, less), (more, -less))

    def expressions(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        import sympy

        return sympy.log(a + b), sympy.log(a - b)

    def inverse_expressions(self, u: Expr, v: Expr) -> tuple[Expr, Expr]:
        import sympy

        return (sympy.exp(u) + sympy.exp(v)) / 2, (sympy.exp(u) - sympy.exp(v)) / 2


class Lorentz(Plane):
    r"""Energy and momentum, :math:`a / \sqrt{1 - b^2}` and :math:`a b / \sqrt{1 - b^2}`, of mass and velocity.

    A momentum that is not below the energy is that of no mass: the inverse is NaN.
    """

    name = "Lorentz"
    formula = "a / (1 − b^2)^(1/2), a·b / (1 − b^2)^(1/2)"
    condition = "{a} ≠ 0, |{b}| < 1"

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return (b.abs() < 1) & (a != 0)

    def is_defined_expression(self, a: Expr, b: Expr) -> Any:
        import sympy

        return (sympy.Abs(b) < 1) & sympy.Ne(a, 0)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        energy = a / ((1 - b) * (1 + b)).sqrt()
        return energy, energy * b

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        # Of the difference of squares, no factor cancels more than the sums that are given.
        inside = v.abs() < u.abs()
        v = torch.where(inside, v, 0)
        u = torch.where(inside, u, 1)
        sign = u.sign()
        mass = sign * (sign * u - v).sqrt() * (sign * u + v).sqrt()
        return torch.where(inside, mass, math.nan), torch.where(inside, v / u, math.nan)

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        gamma = 1 / ((1 - b) * (1 + b)).sqrt()
        return (gamma, a * b * gamma**3), (b * gamma, a * gamma**3)

    def enclose(self, a: Interval, b: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        gamma = (-b.square()).plus(1.0).sqrt().reciprocal()
        # The momentum b·γ rises with b.
        push = b.rising(lambda b: b / ((1 - b) * (1 + b)).sqrt())
        cube = gamma * gamma * gamma
        return (a * gamma, a * push), ((gamma, a * push * gamma.square()), (push, a * cube))

    def enclose_inverse(self, u: Interval, v: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        b, over = v / u, u.reciprocal()
        root = (-b.square()).plus(1.0).sqrt()
        gamma, push = root.reciprocal(), b.rising(lambda b: b / ((1 - b) * (1 + b)).sqrt())
        return (u * root, b), ((gamma, -push), (-(b * over), over))

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
    r"""Components :math:`a \cos b` and :math:`a \sin b` of length and angle: sums of forces, waves and phasors.

    The angle of the inverse is from :math:`-\pi` to :math:`\pi`: angles are found up to whole turns.
    """

    name = "Cartesian"
    formula = "a·cos(b), a·sin(b)"
    condition = "{a} ≥ 0, |{b}| ≤ 2π"

    def is_defined(self, a: Tensor, b: Tensor) -> Tensor:
        return (a >= 0) & (b.abs() <= 2 * math.pi)

    def is_defined_expression(self, a: Expr, b: Expr) -> Any:
        import sympy

        return (a >= 0) & (sympy.Abs(b) <= symbolic_number(2 * math.pi))

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a * b.cos(), a * b.sin()

    def inverse(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return hypot(u, v), _angle(u, v)

    def jacobian(self, a: Tensor, b: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        return (b.cos(), -a * b.sin()), (b.sin(), a * b.cos())

    def enclose(self, a: Interval, b: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        cosine, sine = b.cos(), b.sin()
        return (a * cosine, a * sine), ((cosine, -(a * sine)), (sine, a * cosine))

    def enclose_inverse(self, u: Interval, v: Interval) -> tuple[Ranges, tuple[Ranges, Ranges]]:
        r = (u.square() + v.square()).sqrt()
        (over, across), (down, along) = _enclose_polar_slopes(u, v)
        return (r, _enclose_angle(u, v)), ((over * r, across * r), (down, along))

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


def _angle(a: Tensor, b: Tensor) -> Tensor:
    """Returns the angle of :math:`a + i b`, in (−π, π] and 0 for 0, where atan2 goes by the signs of zeros.

    Its derivative neither overflows nor underflows as that of atan2 does.
    """
    scale = torch.maximum(a.detach().abs(), b.detach().abs())
    scale = torch.where(scale > 0, scale, 1)
    return arctan2(b / scale + 0.0, a / scale + 0.0)


def _enclose_angle(a: Interval, b: Interval) -> Interval:
    """Returns the range of the angle; the whole line where it jumps, at negative numbers, or is not defined."""
    corners = (torch.atan2(y, x) for x in (a.low, a.high) for y in (b.low, b.high))
    return Interval.hull(*corners).or_whole_line(_jumps(a, b))


def _enclose_polar_slopes(a: Interval, b: Interval) -> tuple[Ranges, Ranges]:
    """Returns the ranges of the derivatives of logarithm of length and of angle."""
    r2 = a.square() + b.square()
    # Cosine and sine of the angle, over the length.
    along, across = (one.at_most(r2.low.rsqrt()).or_whole_line(_jumps(a, b)) for one in (a / r2, b / r2))
    return (along, across), (-across, along)


def _jumps(a: Interval, b: Interval) -> Tensor:
    return (a.low <= 0) & (b.low < 0) & (b.high >= 0) | a.contains_zero() & b.contains_zero()


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

    def enclose(self, x: Sequence[Interval]) -> tuple[Interval, list[Interval]]:
        values, slopes = self.map.enclose(x[self.first], x[self.second])
        gradient = [Interval.constant(0.0, x[0])] * len(x)
        gradient[self.first], gradient[self.second] = slopes[self.part]
        return values[self.part], gradient

    def is_defined_expression(self, x: Sequence[Expr]) -> Any:
        return self.map.is_defined_expression(x[self.first], x[self.second])

    def expression(self, x: Sequence[Expr]) -> Expr:
        return self.map.expressions(x[self.first], x[self.second])[self.part]

    def config(self) -> dict[str, Any]:
        return {"plane": self.plane, "part": self.part, "first": self.first, "second": self.second}
