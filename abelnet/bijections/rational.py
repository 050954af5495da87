r"""Rational-quadratic curves through knots, and knots from parameters, by tensor operations."""

from __future__ import annotations

__all__ = ["find", "inverses", "knots", "values", "with_tails"]

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.portable import exact

# Comparisons of values and edges from which edges are compared one at a time, and edges from which they are bisected.
_LARGE, _MANY = 1 << 19, 30


class _Bin(NamedTuple):
    """Bin of a value: its corners, the slopes there, and its mean slope."""

    x0: Tensor
    width: Tensor
    y0: Tensor
    height: Tensor
    slope0: Tensor
    slope1: Tensor

    @property
    def mean(self) -> Tensor:
        return self.height / self.width

    @property
    def bend(self) -> Tensor:
        return self.slope0 + self.slope1 - 2 * self.mean


def knots(
    widths: Tensor, heights: Tensor, slopes: Tensor, line: Tensor | None, bound: float, min_slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the knots on both axes and the slopes there, each with shape :math:`(d, K + 1)`.

    Arguments:
        widths: Parameters of the widths of bins, with shape :math:`(d, K)`.
        heights: Parameters of the heights of bins, likewise.
        slopes: Parameters of the slopes, with shape :math:`(d, K + 1)`.
        line: Scale and shift that come before the curve, with shape :math:`(2, d)`, which only move the knots.
        bound: Half-width of the interval on both axes.
        min_slope: Minimum slope at a knot, and minimum ratio of two widths or two heights.
    """
    limit = -math.log(min_slope)
    xs, ys = (_divide(_soften(raw, limit / 2), bound) for raw in (widths, heights))
    found = _soften(slopes, limit).exp()
    if line is None:
        return xs, ys, found
    scale, shift = line[..., None]
    return (xs - shift) / scale, ys, found * scale


def _divide(logits: Tensor, bound: float) -> Tensor:
    return bound * (2 * F.pad(F.softmax(logits, -1), (1, 0)).cumsum(-1) - 1)


def _soften(x: Tensor, limit: float) -> Tensor:
    """Bounds parameters smoothly by the limit; the identity near 0."""
    return x / (1 + x.abs() / limit)


def values(x: Tensor, xs: Tensor, ys: Tensor, slopes: Tensor) -> Tensor:
    """Returns the values of splines through knots."""
    inside, piece = find(x, xs, xs, ys, slopes)
    z = (inside - piece.x0) / piece.width
    curve = piece.mean * z**2 + piece.slope0 * z * (1 - z)
    y = piece.y0 + piece.height * curve / (piece.mean + piece.bend * z * (1 - z))
    return with_tails(x, xs, y, ys[:, 0] + slopes[:, 0] * (x - xs[:, 0]), ys[:, -1] + slopes[:, -1] * (x - xs[:, -1]))


def inverses(y: Tensor, xs: Tensor, ys: Tensor, slopes: Tensor) -> Tensor:
    """Returns where splines through knots have these values."""
    inside, piece = find(y, ys, xs, ys, slopes)
    rise = inside - piece.y0
    a = piece.height * (piece.mean - piece.slope0) + rise * piece.bend
    b = piece.height * piece.slope0 - rise * piece.bend
    c = -piece.mean * rise
    # Rounding can make the discriminant negative. Each of the two forms of the root is used where it does not
    # subtract nearly equal numbers.
    root = (b**2 - 4 * a * c).clamp_min(exact(torch.finfo(y.dtype).tiny, y)).sqrt()
    direct = b >= 0
    numerator = torch.where(direct, 2 * c, root - b)
    x = piece.x0 + piece.width * numerator / torch.where(direct, -b - root, 2 * a)
    return with_tails(y, ys, x, xs[:, 0] + (y - ys[:, 0]) / slopes[:, 0], xs[:, -1] + (y - ys[:, -1]) / slopes[:, -1])


def find(x: Tensor, edges: Tensor, xs: Tensor, ys: Tensor, slopes: Tensor) -> tuple[Tensor, _Bin]:
    """Returns the values, with those outside the edges moved to the first edge, and the bin of each."""
    low, high = edges[:, 0], edges[:, -1]
    x = torch.where((x < low) | (x > high), low, x)
    k = _count_below(x.detach(), edges.detach()[:, 1:-1])
    k = (k + torch.arange(len(edges), device=x.device) * edges.shape[1]).reshape(-1)

    def pick(knots: Tensor) -> tuple[Tensor, Tensor]:
        flat = knots.reshape(-1)
        return flat.index_select(0, k).reshape(x.shape), flat.index_select(0, k + 1).reshape(x.shape)

    (x0, x1), (y0, y1), (slope0, slope1) = pick(xs), pick(ys), pick(slopes)
    return x, _Bin(x0, x1 - x0, y0, y1 - y0, slope0, slope1)


def _count_below(x: Tensor, edges: Tensor) -> Tensor:
    """Returns how many of the edges :math:`(d, k)` are at most each value :math:`(*, d)`."""
    if torch.compiler.is_compiling() or x.numel() * edges.shape[-1] < _LARGE:
        return (x[..., None] >= edges).sum(-1)
    if edges.shape[-1] > _MANY:
        columns = x.reshape(-1, x.shape[-1]).T.contiguous()
        return torch.searchsorted(edges.contiguous(), columns, right=True).T.reshape(x.shape)
    # One edge at a time needs little memory, and is up to several times faster than all at once.
    count = torch.zeros_like(x, dtype=torch.int16)
    for edge in edges.unbind(-1):
        count = count + (x >= edge)
    return count.long()


def with_tails(x: Tensor, edges: Tensor, inside: Tensor, below: Tensor, above: Tensor) -> Tensor:
    return torch.where(x < edges[:, 0], below, torch.where(x > edges[:, -1], above, inside))
