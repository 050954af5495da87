r"""Curves of one coordinate, alone or times another, for invariants that no formula describes.

A curve is a sum of ramps, :math:`\varphi(x) = \sum_k c_k \min(\max(x - t_k, 0), t_{k+1} - t_k)`, so that its invariant
is linear in the :math:`c_k`, as with any other terms. It is of use if all have one sign: then it is monotonic.
"""

from __future__ import annotations

__all__ = ["curve_term", "ramps"]

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections.terms import Curve, Factor, Monomial
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from sympy import Expr

Array = np.ndarray[Any, np.dtype[np.float64]]

# Examples for each piece of a curve, and the most pieces.
_PER_PIECE, _MOST_PIECES = 15, 24
# Pieces with less than this part of the mean slope are flat but for noise; more of the other sign are no curve.
_FLAT, _FALLING = 1e-3, 0.05


def ramps(coordinate: int, others: tuple[Factor, ...], points: Tensor, examples: int) -> list[Monomial]:
    """Returns the terms of a curve: ramps of a coordinate times other factors, and the other factors alone.

    Arguments:
        coordinate: Index of the coordinate.
        others: Other factors.
        points: Elements and results :math:`(N, d)`, whose quantiles are the knots.
        examples: Number of examples.
    """
    count = min(_MOST_PIECES, examples // _PER_PIECE)
    levels = torch.linspace(0, 1, count + 1, dtype=torch.float64)
    knots = sorted(set(torch.quantile(points[:, coordinate].contiguous()[:1_000_000], levels).tolist()))
    return [*(Monomial((*others, _Ramp(coordinate, a, b))) for a, b in pairwise(knots)), Monomial(others)]


def curve_term(terms: list[Monomial], coefficients: Array) -> Monomial | None:
    """Returns the curve with these coefficients of its ramps; None if it is not monotonic.

    Arguments:
        terms: Terms from :func:`ramps`.
        coefficients: Their coefficients.

    Example:
        >>> terms = ramps(0, (), torch.arange(31.0)[:, None].double(), 45)
        >>> curve = curve_term(terms, np.array([1.0, 2.0, 3.0, 0.5]))
        >>> [round(one, 6) for one in curve.factors[0].heights], curve_term(terms, np.array([1.0, -1.0, 1.0, 0.0]))
        ([0.5, 10.5, 30.5, 60.5], None)
    """
    parts = [term.factors[-1] for term in terms[:-1]]
    slopes, offset = coefficients[:-1], float(coefficients[-1])
    widths = np.array([part.end - part.start for part in parts if isinstance(part, _Ramp)])
    if len(widths) < 2:
        return None
    sign = np.sign((slopes * widths).sum()) or 1.0
    mean = float(np.abs(slopes * widths).sum() / widths.sum())
    if mean == 0 or (np.maximum(-sign * slopes, 0) * widths).sum() > _FALLING * mean * widths.sum():
        return None
    slopes = sign * np.maximum(sign * slopes, _FLAT * mean)
    first = parts[0]
    assert isinstance(first, _Ramp)  # by ramps
    knots = first.start + np.concatenate(([0.0], np.cumsum(widths)))
    heights = offset + np.concatenate(([0.0], np.cumsum(slopes * widths)))
    try:
        curve = Curve(first.coordinate, knots.tolist(), heights.tolist())
    except AbelnetError:  # heights that are equal up to rounding
        return None
    return Monomial((*terms[-1].factors, curve))


@dataclass(frozen=True)
class _Ramp(Factor):
    """Piece of a curve: 0 up to its start, rising with slope 1 to its end, and constant beyond."""

    start: float = 0.0
    end: float = 1.0

    @property
    def complexity(self) -> float:
        return 6.0

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.start).clamp(0, self.end - self.start)

    def inverse(self, u: Tensor) -> Tensor:
        raise AbelnetError("inverse: expected a curve, got a piece of one")

    def slope(self, x: Tensor) -> Tensor:
        return ((x >= self.start) & (x < self.end)).to(x)

    def expression(self, x: Expr) -> Expr:
        raise AbelnetError("expression: expected a curve, got a piece of one")

    def inverse_expression(self, u: Expr, sign: int = 0) -> Expr:
        raise AbelnetError("inverse_expression: expected a curve, got a piece of one")
