r"""Proved comparison of two monotonic curves: the latent deviation of elements, and the distance of results.

On a grid cell, a function :math:`d` with known values at the ends and slopes in :math:`[p, q]` stays below two lines,
one from each end; their intersection is an upper bound on :math:`d` there, and its excess over the ends is at most a
quarter of the cell times :math:`q - p`. Grids include the turning points of both curves, so the slopes at the ends of a
cell bound all slopes in it.
"""

from __future__ import annotations

__all__ = [
    "Curve",
    "Line",
    "Power",
    "deviation",
    "largest_excess",
    "log_deviation",
    "log_grid",
    "log_line",
    "split_at_zero",
]

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from abelnet.bijections import Bijection
from abelnet.bijections.slopes import ascending, slopes_between, turning_points
from abelnet.errors import AbelnetError
from abelnet.operation import Operation


@dataclass(frozen=True)
class Curve:
    r"""Generator in one dimension, :math:`a f(x) + o`, whose law is the plain sum or the plain product.

    Attributes:
        form: ``"sum"`` or ``"product"``.
        bijection: The map :math:`f`, in float64.
        factor: The factor :math:`a`.
        offset: The offset :math:`o`.
    """

    form: str
    bijection: Bijection
    factor: float = 1.0
    offset: float = 0.0

    @staticmethod
    def of(operation: Operation) -> Curve:
        """Returns the generator of an operation, with the coefficients of its law absorbed.

        Example:
            >>> from abelnet import AbelianNet, Affine
            >>> Curve.of(AbelianNet(Affine(1), gamma=0.5)).form  # (1 + x/2)(1 + y/2)
            'product'
        """
        form = operation.law.plain_form()
        if form is None:
            raise AbelnetError(f"operation: expected a law equivalent to a sum or product, got {operation.law.name}")
        return Curve(form.kind, operation.bijection.snapshot(), form.factor.item(), form.offset.item())

    def forward(self, x: Tensor) -> Tensor:
        """Maps points :math:`(n)` to latent values."""
        y: Tensor = self.bijection(x[:, None])
        return self.factor * y[:, 0] + self.offset

    def inverse(self, u: Tensor) -> Tensor:
        """Maps latent values :math:`(n)` to points."""
        return self.bijection.inverse(((u - self.offset) / self.factor)[:, None])[:, 0]

    def slopes(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the smallest and largest absolute slope between adjacent points, which include all turning points."""
        _, least, most = slopes_between(self.bijection, places)
        return abs(self.factor) * least, abs(self.factor) * most

    def turning_points(self, low: float, high: float) -> Tensor:
        """Returns points between which the slope is monotonic."""
        return turning_points(self.bijection, low, high)

    def rising(self, low: float, high: float) -> Curve:
        """Returns the curve or its negative, whichever increases: either generates the same sum."""
        ends = self.forward(torch.tensor([low, high], dtype=torch.float64))
        return self if ends[1] > ends[0] else replace(self, factor=-self.factor, offset=-self.offset)


class Line(NamedTuple):
    """Link :math:`c t + s` between two latent spaces."""

    c: float
    shift: float

    def forward(self, t: Tensor) -> Tensor:
        return self.c * t + self.shift

    def inverse(self, u: Tensor) -> Tensor:
        return (u - self.shift) / self.c

    def slope(self, t: Tensor) -> Tensor:
        return torch.full_like(t, self.c)


class Power(NamedTuple):
    """Link :math:`k |t|^c`, with the sign of :math:`t`, between two latent spaces."""

    c: float
    factor: float

    def forward(self, t: Tensor) -> Tensor:
        return self.factor * t.sign() * t.abs() ** self.c

    def inverse(self, u: Tensor) -> Tensor:
        return u.sign() * (u.abs() / self.factor) ** (1 / self.c)

    def slope(self, t: Tensor) -> Tensor:
        return self.factor * self.c * t.abs() ** (self.c - 1)


def deviation(learned: Curve, true: Curve, c: float, places: Tensor) -> tuple[float, float]:
    r"""Bounds :math:`\varphi - c \psi` between the first and the last point, for two increasing curves."""
    x = _with_turns(places, learned, true)
    d = learned.forward(x) - c * true.forward(x)
    (least, most), (true_least, true_most) = learned.slopes(x), true.slopes(x)
    return _range(d, least - c * true_most, most - c * true_least, x.diff())


def log_deviation(learned: Curve, true: Curve, c: float, places: Tensor) -> tuple[float, float]:
    r"""Bounds :math:`\log |\varphi| - c \log |\psi|` between two points without a zero of either curve in between."""
    x = _with_turns(places, learned, true)
    logs, rates = [], []
    for curve in (learned, true):
        u = curve.forward(x)
        least, most = curve.slopes(x)
        size = u.abs()
        logs.append(size.log())
        near, far = torch.minimum(size[1:], size[:-1]), torch.maximum(size[1:], size[:-1])
        rates.append((least / far, most / near, bool(size[-1] > size[0])))
    (low, high, rises), (true_low, true_high, true_rises) = rates
    if rises != true_rises:
        raise AbelnetError("operation: expected a generator that increases where the true one does")
    p, q = low - c * true_high, high - c * true_low
    if not rises:
        p, q = -q, -p
    return _range(logs[0] - c * logs[1], p, q, x.diff())


def largest_excess(learned: Curve, true: Curve, link: Line | Power, places: Tensor, sign: int) -> float:
    r"""Bounds :math:`\pm (F(z) - z)` from above over the points, for :math:`F = \varphi^{-1} \circ link \circ \psi`.

    Arguments:
        learned: The curve :math:`\varphi`.
        true: The curve :math:`\psi`.
        link: The map between their latent spaces.
        places: Ascending points :math:`(n)`.
        sign: 1 or -1.
    """
    low, high = float(places[0]), float(places[-1])
    ends = learned.inverse(link.forward(true.forward(torch.stack((places[0], places[-1])))))
    turns = learned.turning_points(float(ends.min()), float(ends.max()))
    pulled = true.inverse(link.inverse(learned.forward(turns)))
    z = ascending(places, true.turning_points(low, high), pulled[(pulled > low) & (pulled < high)])
    t = true.forward(z)
    y = learned.inverse(link.forward(t))
    linked = link.slope(t)
    (least, most), (true_least, true_most) = learned.slopes(y), true.slopes(z)
    lowest = torch.minimum(linked[1:], linked[:-1]) * true_least / most
    highest = torch.maximum(linked[1:], linked[:-1]) * true_most / least
    # 0 times or over infinity is undefined; monotonicity still gives a bound.
    lowest, highest = lowest.nan_to_num(0.0), highest.nan_to_num(math.inf, math.inf)
    if sign > 0:
        return _most(y - z, lowest - 1, highest - 1, z.diff(), y[1:] - z[:-1])
    return _most(z - y, 1 - highest, 1 - lowest, z.diff(), z[1:] - y[:-1])


def log_grid(true: Curve, largest: float, cells: int) -> Tensor:
    r"""Returns points whose latent values range from minus to plus ``largest``, logarithmically denser near 0."""
    steps = torch.logspace(-9, 0, cells // 2, dtype=torch.float64)
    t = largest * torch.cat((-steps.flip(0), torch.zeros(1, dtype=torch.float64), steps))
    return ascending(true.inverse(t))


def log_line(true: Curve, side: Tensor, cells: int) -> Tensor:
    r"""Returns points from one end of a side to the other, evenly spaced in :math:`\log |\psi|`."""
    ends = true.forward(side)
    logs = torch.linspace(float(ends[0].abs().log()), float(ends[1].abs().log()), cells + 1, dtype=torch.float64)
    return ascending(side, true.inverse(ends[0].sign() * logs.exp()).clamp(float(side[0]), float(side[1])))


def split_at_zero(true: Curve, elements: tuple[float, float], least: float) -> list[Tensor]:
    r"""Returns the elements with :math:`|\psi| \ge least`: an interval on each side of the absorbing element."""
    latent = true.forward(torch.tensor(elements, dtype=torch.float64))
    sides = []
    for sign in (-1.0, 1.0):
        far = float((sign * latent).max())
        near = max(least, float((sign * latent).min()))
        if far > near:
            sides.append(true.inverse(torch.tensor([sign * near, sign * far], dtype=torch.float64)).sort().values)
    if not sides:
        raise AbelnetError(f"least: expected below {float(latent.abs().max()):g}, or no element is left, got {least}")
    return sides


def _with_turns(places: Tensor, *curves: Curve) -> Tensor:
    low, high = float(places[0]), float(places[-1])
    return ascending(places, *(curve.turning_points(low, high) for curve in curves))


def _range(d: Tensor, p: Tensor, q: Tensor, width: Tensor) -> tuple[float, float]:
    nothing = torch.full_like(p, math.inf)
    return -_most(-d, -q, -p, width, nothing), _most(d, p, q, width, nothing)


def _most(d: Tensor, p: Tensor, q: Tensor, width: Tensor, other: Tensor) -> float:
    """Bounds a function whose slope lies in [p, q] on each cell from above, using ``other`` where it is smaller."""
    start, end = d[:-1], d[1:]
    # The lines from both ends intersect; on cells where one of them decreases, the larger end is the bound.
    p, q = torch.where(p.isnan(), -math.inf, p), torch.where(q.isnan(), math.inf, q)
    climb = ((end - start - p * width) / (q - p)).clamp(min=0)
    climb = torch.where(p.isinf() | (climb > width), width, climb)  # a vertical line intersects at the end
    peak = torch.where(q.isinf(), end - p * width, start + q * climb)
    bound = torch.where(q <= 0, start, torch.where(p >= 0, end, torch.fmin(peak, other)))
    return float(torch.maximum(torch.maximum(start, end), torch.where(width == 0, start, bound)).max())
