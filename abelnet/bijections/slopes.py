r"""Proved bounds on the slopes :math:`|f'|` of curves between points.

A curve is cut at its *turning points*, between which its slope is monotonic, so the slopes at both ends of a piece
bound all slopes in between. A chain of curves is cut at the turning points of all its parts, and the bounds multiply.
The bounds are proved in exact arithmetic; rounding is not accounted for.
"""

from __future__ import annotations

__all__ = [
    "EVERYWHERE",
    "FAR",
    "FROM_ZERO",
    "Enclosure",
    "Region",
    "ascending",
    "describe_region",
    "enclose_curves",
    "enclose_inverse_curves",
    "slopes_between",
    "turning_points",
]

import math
import sys
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from abelnet.bijections.base import Bijection, Elementwise

Region = tuple[float | Tensor, float | Tensor]
"""Lower and upper limit, exclusive."""
EVERYWHERE: Region = (-math.inf, math.inf)
FROM_ZERO = -sys.float_info.min
"""Lower limit of a region that contains 0."""
FAR = 1e30
"""Stands in for infinity on curves with linear tails."""

# Cells that a chain of curves is cut into besides its turning points: its slope is bounded by a product of bounds,
# each tighter on shorter cells.
_CELLS = 256


def describe_region(region: Region, dimension: int = 0) -> str:
    """Describes a region as a condition on ``x``.

    Example:
        >>> describe_region((0.0, 1.0)), describe_region((FROM_ZERO, math.inf)), describe_region(EVERYWHERE)
        ('0 < x < 1', 'x ≥ 0', 'all real numbers')
    """
    ends = [torch.as_tensor(end, dtype=torch.float64).reshape(-1) for end in region]
    low, high = (float(end[min(dimension, len(end) - 1)]) for end in ends)
    if math.isfinite(low) and math.isfinite(high):
        return f"{low:g} < x < {high:g}"
    if math.isfinite(low):
        return "x ≥ 0" if low == FROM_ZERO else f"x > {low:g}"
    return f"x < {high:g}" if math.isfinite(high) else "all real numbers"


class Enclosure(NamedTuple):
    """Upper bound on the norm of a Jacobian over a box, and a box, :math:`(d)` each, that contains all values."""

    norm: float
    low: Tensor
    high: Tensor

    @classmethod
    def unknown(cls, dim: int) -> Enclosure:
        """Returns the enclosure of whatever has no bound."""
        ends = torch.full((dim,), math.inf, dtype=torch.float64)
        return cls(math.inf, -ends, ends)


def slopes_between(bijection: Bijection, places: Tensor, dimension: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the values of a curve at points, and the smallest and largest slope between adjacent points.

    Arguments:
        bijection: A curve or a chain of curves, from :meth:`~abelnet.Bijection.snapshot`.
        places: Ascending points :math:`(n)`, including all turning points.
        dimension: Index of the dimension.
    """
    least = most = torch.ones(len(places) - 1, dtype=places.dtype)
    for part in bijection.curves():
        smallest, largest = part.slopes_between(places, dimension)
        least, most = least * smallest, most * largest
        places = _apply(part, places, dimension)
    return places, least, most


def turning_points(bijection: Bijection, low: float, high: float, dimension: int = 0) -> Tensor:
    """Returns points in a region between which the slope of each part of a curve is monotonic."""
    found = []
    before: list[Elementwise] = []
    for part in bijection.curves():
        ends = torch.tensor([low, high], dtype=torch.float64)
        for earlier in before:
            ends = _apply(earlier, ends, dimension)
        points = part.turning_points(dimension)
        points = points[(points > ends.min()) & (points < ends.max())]
        for earlier in reversed(before):
            points = _apply(earlier, points, dimension, inverse=True)
        found.append(points)
        before.append(part)
    points = torch.cat(found)
    return points[(points > low) & (points < high)]


def enclose_curves(bijection: Bijection, low: Tensor, high: Tensor) -> Enclosure:
    """Bounds the slopes and values of curves, one per dimension, over a box."""
    _, most = _slope_range(bijection, low, high)
    ends = torch.stack([_corner(bijection, x) for x in (low, high)])
    return Enclosure(float(most.max()), ends.amin(0), ends.amax(0))


def enclose_inverse_curves(bijection: Bijection, low: Tensor, high: Tensor) -> Enclosure:
    """Applies :func:`enclose_curves` to the inverse, over a box of values."""
    ends = torch.stack([_corner(bijection, y, inverse=True) for y in (low, high)])
    low, high = ends.amin(0), ends.amax(0)
    least, _ = _slope_range(bijection, low, high)
    return Enclosure(1 / float(least.min()) if least.min() > 0 else math.inf, low, high)


def ascending(*places: Tensor) -> Tensor:
    """Returns the sorted distinct points."""
    joined: Tensor = torch.cat(places).unique()  # type: ignore[no-untyped-call]
    return joined


def _slope_range(bijection: Bijection, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the smallest and largest slope of each dimension over its interval."""
    curves = bijection.curves()
    if not bool((low.isfinite() & high.isfinite()).all()):
        if not all(curve.has_straight_tails for curve in curves):  # only trivial bounds hold on curved tails
            return torch.zeros_like(low), torch.full_like(high, math.inf)
        low, high = low.clamp(-FAR, FAR), high.clamp(-FAR, FAR)
    cells = 1 if len(curves) == 1 else _CELLS
    found = []
    for i in range(bijection.dim):
        ends = float(low[i]), float(high[i])
        grid = torch.linspace(*ends, cells + 1, dtype=torch.float64)
        places = ascending(grid, turning_points(bijection, *ends, i))
        _, least, most = slopes_between(bijection, places, i)
        found.append((least.min(), most.max()) if len(least) > 0 else (places.new_ones(()),) * 2)
    return torch.stack([least for least, _ in found]), torch.stack([most for _, most in found])


def _corner(bijection: Bijection, x: Tensor, *, inverse: bool = False) -> Tensor:
    """Returns the values at a corner of a box, which may be infinite."""
    y: Tensor = (bijection.inverse if inverse else bijection)(x.clamp(-FAR, FAR))
    return torch.where(x.isinf(), torch.copysign(x, y), y)


def _apply(bijection: Bijection, x: Tensor, dimension: int, *, inverse: bool = False) -> Tensor:
    rows = x[:, None].expand(-1, bijection.dim)
    y: Tensor = (bijection.inverse if inverse else bijection)(rows)
    return y[:, dimension]
