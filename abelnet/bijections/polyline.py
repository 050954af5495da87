r"""Piecewise linear curves with known breakpoints: a trained min-max network in a form that is fast to evaluate."""

from __future__ import annotations

__all__ = ["Polyline"]

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from abelnet.bijections.base import Elementwise
from abelnet.bijections.pieces import Pieces
from abelnet.bijections.slopes import FAR, ascending
from abelnet.checks import check_values
from abelnet.portable import searchsorted
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


class Polyline(Elementwise):
    r"""Minimum of maxima of lines as a piecewise linear curve with known breakpoints, one per dimension.

    .. math:: f(x) = \min_k \max_j (s_{kj} x + b_{kj}) = s_i x + b_i, \quad x_i < x \le x_{i+1}

    Evaluation bisects the breakpoints instead of searching all lines. Returned by
    :meth:`Monotonic.snapshot <abelnet.Monotonic.snapshot>`; not trainable.

    Arguments:
        slopes: Slopes :math:`s`, all of one sign in each dimension, with shape :math:`(d, K, J)`.
        biases: Biases :math:`b`, with the same shape.

    Example:
        >>> from abelnet import Monotonic
        >>> network = Monotonic(1, seed=0, dtype=torch.float64)
        >>> x = torch.linspace(-9, 9, 1000, dtype=torch.float64)[:, None]
        >>> torch.allclose(network.snapshot()(x), network(x))
        True
    """

    @torch.no_grad()
    def __init__(self, slopes: Tensor, biases: Tensor) -> None:
        super().__init__(len(slopes))
        self.kinks: list[Tensor] = []
        self.lines: list[tuple[Tensor, Tensor]] = []
        for slope, bias in zip(slopes, biases, strict=True):
            kinks = _kinks(slope, bias)
            ends = torch.cat((kinks[:1] - 1, kinks, kinks[-1:] + 1)) if len(kinks) > 0 else kinks.new_zeros(2)
            middle = (ends[1:] + ends[:-1]) / 2
            heights = slope * middle[:, None, None] + bias
            group = heights.amax(-1).argmin(-1)
            unit = heights.argmax(-1)[torch.arange(len(middle)), group]
            self.kinks.append(kinks)
            self.lines.append((slope[group, unit], bias[group, unit]))

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        slope, bias = self._line(x)
        return slope * x + bias

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        columns = []
        for i, (kinks, (slope, bias)) in enumerate(zip(self.kinks, self.lines, strict=True)):
            heights = slope[1:] * kinks + bias[1:]
            # A decreasing curve is looked up with flipped signs.
            sign = slope[0].sign()
            piece = searchsorted(sign * heights, sign * y[..., i])
            columns.append((y[..., i] - bias[piece]) / slope[piece])
        return torch.stack(columns, -1)

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return self._line(x)[0].abs().log()

    @property
    def has_straight_tails(self) -> bool:
        return True

    def turning_points(self, dimension: int = 0) -> Tensor:
        return self.kinks[dimension]

    def slopes_between(self, places: Tensor, dimension: int = 0) -> tuple[Tensor, Tensor]:
        # At a breakpoint the slope is that of either side; in the middle of a piece it is unique.
        middle = (places[1:] + places[:-1]) / 2
        slopes = self.log_slope(middle[:, None].expand(-1, self.dim))[:, dimension].exp()
        return slopes, slopes

    def pieces(self, x: Expr, dimension: int = 0) -> Pieces:
        lines = [(_line, line) for line in self._symbolic_lines(dimension)]
        return Pieces(x, lines, [x <= symbolic_number(kink) for kink in self.kinks[dimension]])

    def inverse_pieces(self, y: Expr, dimension: int = 0) -> Pieces:
        slope, bias = self.lines[dimension]
        heights = [symbolic_number(height) for height in slope[1:] * self.kinks[dimension] + bias[1:]]
        lines = [(_inverse_line, line) for line in self._symbolic_lines(dimension)]
        return Pieces(y, lines, [y <= height if slope[0] > 0 else y >= height for height in heights])

    def expression(self, x: Expr, dimension: int = 0) -> Expr:
        return self.pieces(x, dimension).expression()

    def inverse_expression(self, y: Expr, dimension: int = 0) -> Expr:
        return self.inverse_pieces(y, dimension).expression()

    def _symbolic_lines(self, dimension: int) -> list[tuple[Expr, Expr]]:
        slopes, biases = ([symbolic_number(value) for value in part] for part in self.lines[dimension])
        return list(zip(slopes, biases, strict=True))

    def _line(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = []
        for i, (kinks, (slope, bias)) in enumerate(zip(self.kinks, self.lines, strict=True)):
            piece = searchsorted(kinks, x[..., i])
            found.append((slope[piece], bias[piece]))
        return torch.stack([slope for slope, _ in found], -1), torch.stack([bias for _, bias in found], -1)


def _line(x: Expr, slope: Expr, bias: Expr) -> Expr:
    return slope * x + bias


def _inverse_line(y: Expr, slope: Expr, bias: Expr) -> Expr:
    return (y - bias) / slope


def _kinks(slope: Tensor, bias: Tensor) -> Tensor:
    """Returns the breakpoints of the minimum of maxima of lines :math:`(K, J)`.

    Rounding may add a superfluous point, which is harmless.
    """
    crossing = _crossings(slope, bias)
    highest = (slope[:, None] * crossing[..., None] + bias[:, None]).amax(-1)
    on_top = _pair_heights(slope, bias, crossing) >= highest - 1e-9 * (1 + highest.abs())
    ends = ascending(crossing[on_top], slope.new_tensor([-FAR, FAR]))
    # Between these points each group is a single line.
    middle = (ends[1:] + ends[:-1]) / 2
    if len(middle) > 1:
        middle[0], middle[-1] = ends[1] - 1, ends[-2] + 1
    active = (slope * middle[:, None, None] + bias).argmax(-1)
    groups = torch.arange(len(slope))
    lines, heights = slope[groups, active], bias[groups, active]
    crossing = _crossings(lines, heights)
    inside = (crossing > ends[:-1, None]) & (crossing < ends[1:, None])
    row, _ = inside.nonzero(as_tuple=True)
    places = crossing[inside]
    lowest = (lines[row] * places[:, None] + heights[row]).amin(-1)
    at_bottom = _pair_heights(lines, heights, crossing)[inside] <= lowest + 1e-9 * (1 + lowest.abs())
    return ascending(ends[1:-1], places[at_bottom])


def _crossings(slope: Tensor, bias: Tensor) -> Tensor:
    """Returns where each pair of lines of a row intersects, :math:`(R, L)` to :math:`(R, P)`; NaN if parallel."""
    i, j = torch.triu_indices(slope.shape[1], slope.shape[1], 1)
    x = (bias[:, j] - bias[:, i]) / (slope[:, i] - slope[:, j])
    return torch.where(x.abs() < FAR, x, math.nan)


def _pair_heights(slope: Tensor, bias: Tensor, crossing: Tensor) -> Tensor:
    i, _ = torch.triu_indices(slope.shape[1], slope.shape[1], 1)
    return slope[:, i] * crossing + bias[:, i]
