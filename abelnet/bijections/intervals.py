r"""Interval arithmetic: ranges of values and of derivatives over the cells of a box.

Every range contains all values that are taken, proved in exact arithmetic; rounding is not accounted for. Where a
function is not defined or not continuous on all of a cell, the range is the whole line.
"""

from __future__ import annotations

__all__ = ["Enclosed", "Interval", "cells", "hull", "largest_norm"]

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# Cells that a box is cut into at most.
_MOST_CELLS = 4096


@dataclass(frozen=True)
class Interval:
    r"""Ranges :math:`[l, h]`, one for each cell.

    Arguments:
        low: Lower ends, with shape :math:`(n)`, in float64.
        high: Upper ends.

    Example:
        >>> x = Interval(torch.tensor([-1.0]), torch.tensor([2.0]))
        >>> x.square(), x * x
        (Interval(low=tensor([0.]), high=tensor([4.])), Interval(low=tensor([-2.]), high=tensor([4.])))
    """

    low: Tensor
    high: Tensor

    @classmethod
    def hull(cls, *values: Tensor) -> Interval:
        """Returns the range from the least to the greatest value; the whole line where one is NaN."""
        together = torch.stack(values)
        bad, most = together.isnan().any(0), torch.finfo(together.dtype).max
        # Where all values overflow, they are at least the largest number.
        low, high = together.amin(0).clamp(max=most), together.amax(0).clamp(min=-most)
        return cls(torch.where(bad, -math.inf, low), torch.where(bad, math.inf, high))

    @classmethod
    def constant(cls, value: float, like: Interval) -> Interval:
        """Returns the range of one number, for each cell of another range."""
        return cls(torch.full_like(like.low, value), torch.full_like(like.low, value))

    @property
    def magnitude(self) -> Tensor:
        """Largest absolute value."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def contains_zero(self) -> Tensor:
        """Returns whether 0 is in each range."""
        return (self.low <= 0) & (self.high >= 0)

    def or_whole_line(self, bad: Tensor) -> Interval:
        """Returns the range, and the whole line where a mask is true."""
        return Interval(torch.where(bad, -math.inf, self.low), torch.where(bad, math.inf, self.high))

    def at_most(self, magnitude: Tensor) -> Interval:
        """Returns the part of the range with at most this absolute value, of a function that has no other values."""
        return Interval(torch.maximum(self.low, -magnitude), torch.minimum(self.high, magnitude))

    def __add__(self, other: Interval) -> Interval:
        low, high = self.low + other.low, self.high + other.high
        return Interval(low.nan_to_num(-math.inf, math.inf, -math.inf), high.nan_to_num(math.inf, math.inf, -math.inf))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        return Interval.hull(*(x * y for x in (self.low, self.high) for y in (other.low, other.high)))

    def __truediv__(self, other: Interval) -> Interval:
        return self * other.reciprocal()

    def scaled(self, c: float) -> Interval:
        """Returns the range of :math:`c x`."""
        return Interval.hull(c * self.low, c * self.high)

    def plus(self, c: float) -> Interval:
        """Returns the range of :math:`x + c`."""
        return Interval(self.low + c, self.high + c)

    def reciprocal(self) -> Interval:
        """Returns the range of :math:`1 / x`."""
        return Interval.hull(1 / self.low, 1 / self.high).or_whole_line(self.contains_zero())

    def rising(self, function: Callable[[Tensor], Tensor]) -> Interval:
        """Returns the range of an increasing function, which is NaN where it is not defined."""
        return Interval.hull(function(self.low), function(self.high))

    def turning_at_zero(self, function: Callable[[Tensor], Tensor]) -> Interval:
        """Returns the range of a function that is monotonic on numbers of one sign; the whole line at a pole at 0."""
        ends, at_zero = function(self.low), function(torch.zeros_like(self.low))
        at_zero = torch.where(at_zero.isfinite(), at_zero, math.nan)
        return Interval.hull(ends, function(self.high), torch.where(self.contains_zero(), at_zero, ends))

    def square(self) -> Interval:
        """Returns the range of :math:`x^2`."""
        return self.turning_at_zero(torch.square)

    def exp(self) -> Interval:
        """Returns the range of :math:`e^x`."""
        return self.rising(torch.exp)

    def log(self) -> Interval:
        r"""Returns the range of :math:`\log x`."""
        return self.rising(torch.log)

    def sqrt(self) -> Interval:
        r"""Returns the range of :math:`\sqrt x`."""
        return self.rising(torch.sqrt)

    def cos(self) -> Interval:
        r"""Returns the range of :math:`\cos x`."""
        return self._wave(torch.cos, 0.0)

    def sin(self) -> Interval:
        r"""Returns the range of :math:`\sin x`."""
        return self._wave(torch.sin, math.pi / 2)

    def _wave(self, function: Callable[[Tensor], Tensor], top: float) -> Interval:
        """Returns the range of a cosine whose first maximum is given."""
        ends = [function(self.low), function(self.high)]
        for place, value in ((top, 1.0), (top + math.pi, -1.0)):
            turns = ((self.high - place) / (2 * math.pi)).floor() >= ((self.low - place) / (2 * math.pi)).ceil()
            ends.append(torch.where(turns, value, ends[0]))
        return Interval.hull(*ends)


@dataclass(frozen=True)
class Enclosed:
    r"""Ranges of a function :math:`h(y)` over cells of a box, and of its derivatives.

    Arguments:
        value: Ranges of :math:`h`.
        gradient: Ranges of :math:`\partial h / \partial y_k`, for each :math:`k`.
    """

    value: Interval
    gradient: tuple[Interval, ...]

    @classmethod
    def constant(cls, value: float, like: Enclosed) -> Enclosed:
        """Returns a constant, over the cells of another function."""
        zero = Interval.constant(0.0, like.value)
        return cls(Interval.constant(value, like.value), (zero,) * len(like.gradient))

    @classmethod
    def composed(cls, value: Interval, slopes: Sequence[Interval], inner: Sequence[Enclosed]) -> Enclosed:
        """Returns a function of other functions, given the ranges of its value and of its derivatives by them."""
        gradient = []
        for k in range(len(inner[0].gradient)):
            total = Interval.constant(0.0, value)
            for slope, one in zip(slopes, inner, strict=True):
                total = total + slope * one.gradient[k]
            gradient.append(total)
        return cls(value, tuple(gradient))

    def __add__(self, other: Enclosed) -> Enclosed:
        gradient = (one + two for one, two in zip(self.gradient, other.gradient, strict=True))
        return Enclosed(self.value + other.value, tuple(gradient))

    def scaled(self, c: float) -> Enclosed:
        r"""Returns :math:`c\, h`."""
        return Enclosed(self.value.scaled(c), tuple(one.scaled(c) for one in self.gradient))

    def __truediv__(self, other: Enclosed) -> Enclosed:
        quotient, over = self.value / other.value, other.value.reciprocal()
        return Enclosed.composed(quotient, (over, -(quotient * over)), (self, other))


def cells(low: Tensor, high: Tensor) -> list[Interval]:
    """Returns the cells that a box :math:`(d)` is cut into: ranges of each coordinate.

    Example:
        >>> len(cells(torch.zeros(2), torch.ones(2))[0].low)
        4096
    """
    count = max(1, int(_MOST_CELLS ** (1 / len(low)) + 1e-9))
    steps = torch.linspace(0, 1, count + 1, dtype=torch.float64)
    # Ends are those of the box to the last bit.
    edges = [torch.lerp(bottom, top, steps) for bottom, top in zip(low.double(), high.double(), strict=True)]
    places = torch.cartesian_prod(*[torch.arange(count)] * len(low)).reshape(-1, len(low))
    return [Interval(edge[place], edge[place + 1]) for edge, place in zip(edges, places.unbind(-1), strict=True)]


def largest_norm(jacobian: Sequence[Sequence[Interval]]) -> float:
    """Returns an upper bound on the Euclidean norm of a matrix of ranges, over all cells.

    The norm is at most that of Frobenius, and the geometric mean of the largest sums of rows and of columns.
    """
    entries = torch.stack([torch.stack([entry.magnitude for entry in row], -1) for row in jacobian], -2)
    mean = (entries.sum(-1).amax(-1) * entries.sum(-2).amax(-1)).sqrt()
    return float(torch.minimum(entries.square().sum((-2, -1)).sqrt(), mean).max())


def hull(values: Sequence[Interval]) -> tuple[Tensor, Tensor]:
    """Returns the corners of the box of ranges over all cells."""
    return torch.stack([one.low.min() for one in values]), torch.stack([one.high.max() for one in values])
