r"""Monotonic curves of one coordinate, where no formula is known."""

from __future__ import annotations

__all__ = ["Curve"]

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.bijections.intervals import Interval
from abelnet.bijections.terms.factors import Factor
from abelnet.errors import AbelnetError
from abelnet.portable import searchsorted
from abelnet.symbols import named_function, piecewise, symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


@dataclass(frozen=True)
class Curve(Factor):
    r"""Monotonic curve :math:`\varphi(x)` through given points, linear between them and beyond.

    In formulas it is the function ``φ``.

    Arguments:
        coordinate: Index of the coordinate.
        knots: Ascending numbers :math:`x_k`, at least two.
        heights: Their values :math:`\varphi(x_k)`, all rising or all falling.

    Example:
        >>> curve = Curve(0, [0.0, 1.0, 2.0], [0.0, 1.0, 4.0])
        >>> curve.forward(torch.tensor([0.5, 1.5, 3.0])), curve.inverse(torch.tensor([2.5]))
        (tensor([0.5000, 2.5000, 7.0000]), tensor([1.5000]))
    """

    knots: Sequence[float] = ()
    heights: Sequence[float] = ()
    # Both as a tensor: one made inside a loop, as that of an implicit map, cannot be exported.
    _table: Tensor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "knots", tuple(float(one) for one in self.knots))
        object.__setattr__(self, "heights", tuple(float(one) for one in self.heights))
        if len(self.knots) < 2 or len(self.knots) != len(self.heights):
            raise AbelnetError(
                f"knots, heights: expected two or more of each, got {len(self.knots)} and {len(self.heights)}"
            )
        if not all(map(math.isfinite, (*self.knots, *self.heights))):
            raise AbelnetError("knots, heights: expected finite numbers, got others")
        if not all(a < b for a, b in pairwise(self.knots)):
            raise AbelnetError("knots: expected ascending numbers, got others")
        if not (all(a < b for a, b in pairwise(self.heights)) or all(a > b for a, b in pairwise(self.heights))):
            raise AbelnetError("heights: expected all rising or all falling, got others")
        table = torch.tensor([self.knots, self.heights], dtype=torch.float64, device="cpu")
        object.__setattr__(self, "_table", table)

    @property
    def complexity(self) -> float:
        return 9.0

    def forward(self, x: Tensor) -> Tensor:
        knots, heights, slopes = self._lines(x)
        piece = self._piece(x, knots)
        return heights[piece] + slopes[piece] * (x - knots[piece])

    def inverse(self, u: Tensor) -> Tensor:
        knots, heights, slopes = self._lines(u)
        sign = 1 if self.heights[-1] > self.heights[0] else -1
        piece = self._piece(sign * u, sign * heights)
        return knots[piece] + (u - heights[piece]) / slopes[piece]

    def slope(self, x: Tensor) -> Tensor:
        knots, _, slopes = self._lines(x)
        return slopes[self._piece(x, knots)]

    def enclose(self, x: Interval) -> tuple[Interval, Interval]:
        return x.rising(self.forward), self._slopes(x)

    def enclose_inverse(self, u: Interval, sign: int) -> tuple[Interval, Interval]:
        return u.rising(self.inverse), self._slopes(u).reciprocal()

    def expression(self, x: Expr) -> Expr:
        return named_function("φ", self._pieces(self.knots, self.heights))(x)

    def inverse_expression(self, u: Expr, sign: int = 0) -> Expr:
        return named_function("φ⁻¹", self._pieces(self.heights, self.knots))(u)

    def config(self) -> dict[str, Any]:
        return {"coordinate": self.coordinate, "knots": self.knots, "heights": self.heights}

    @staticmethod
    def _pieces(starts: Sequence[float], values: Sequence[float]) -> Callable[[Expr], Expr]:
        """Returns the piecewise linear function through points, as a function of sympy expressions."""
        if starts[0] > starts[-1]:
            starts, values = starts[::-1], values[::-1]

        def lines(x: Expr) -> Expr:
            pieces = [
                symbolic_number(v)
                + symbolic_number((values[k + 1] - v) / (starts[k + 1] - starts[k])) * (x - symbolic_number(starts[k]))
                for k, v in enumerate(values[:-1])
            ]
            return piecewise(pieces, [x < symbolic_number(end) for end in starts[1:-1]])

        return lines

    def _lines(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        knots, heights = self._table.to(like.device, like.dtype)
        return knots, heights, heights.diff() / knots.diff()

    def _piece(self, x: Tensor, ends: Tensor) -> Tensor:
        return searchsorted(ends, x.detach(), right=True).clamp(1, len(ends) - 1) - 1

    def _slopes(self, like: Interval) -> Interval:
        slopes = self._lines(like.low)[2]
        return Interval(torch.full_like(like.low, float(slopes.min())), torch.full_like(like.low, float(slopes.max())))
