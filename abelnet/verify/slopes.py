r"""How steep a bijection can be on a region: exactly for curves, from above for couplings.

A curve (every :class:`~abelnet.bijections.Elementwise`) is cut at its *turning points*, between which its slope only
rises or only falls; the slopes at the two ends of a piece then enclose all slopes between. Couplings are enclosed layer
by layer: boxes by interval arithmetic, Jacobians by norms of their blocks. All of this is proved in exact arithmetic;
rounding is not accounted for.
"""

from __future__ import annotations

__all__ = [
    "EVERYWHERE",
    "Lipschitz",
    "Pieces",
    "Region",
    "enclose",
    "enclose_inverse",
    "lipschitz",
    "pieces",
    "slopes_between",
    "snapshot",
    "turning_points",
]

import copy
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import (
    Affine,
    Bijection,
    Chain,
    Elementwise,
    Generator,
    Glow,
    GlowCoupling,
    Monotonic,
    Permutation,
    RationalQuadraticSpline,
    SinhArcsinh,
)
from abelnet.bijections.coupling import _Subnet
from abelnet.bijections.polyline import FAR, Polyline, ascending
from abelnet.errors import AbelnetError

# Cells that a chain of curves is cut into besides its turning points: its slope is a product of enclosures, each of
# which is the tighter the shorter the cell.
_CELLS = 256


Region = tuple[float | Tensor, float | Tensor]
EVERYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True)
class Lipschitz:
    """Lipschitz constants of a bijection on a region and of its inverse on the values there, in the Euclidean norm.

    Attributes:
        forward: No less than the constant :math:`K_1` of the bijection; proved.
        inverse: No less than the constant :math:`K_2` of its inverse; proved.
        forward_sampled: The largest norm of the Jacobian at sampled points, no more than :math:`K_1`.
        inverse_sampled: The same for the inverse.
        exact: Whether the proved bounds are the constants themselves.
    """

    forward: float
    inverse: float
    forward_sampled: float
    inverse_sampled: float
    exact: bool

    @property
    def statement(self) -> str:
        """What is proved and what is estimated by sampling."""
        sign = "=" if self.exact else "≤"
        return (
            f"proved: K1 {sign} {self.forward:.6g}, K2 {sign} {self.inverse:.6g}; "
            f"sampled: K1 ≥ {self.forward_sampled:.6g}, K2 ≥ {self.inverse_sampled:.6g}"
        )


class Pieces(NamedTuple):
    """A curve cut into pieces: places and values, :math:`(n + 1)`; the range of :math:`|f'|` between, :math:`(n)`."""

    places: Tensor
    values: Tensor
    least: Tensor
    most: Tensor


@torch.no_grad()
def lipschitz(bijection: Bijection, region: Region = EVERYWHERE, *, samples: int = 256, seed: int = 0) -> Lipschitz:
    r"""Bounds the Lipschitz constants of a bijection on a box, and of its inverse on the box around the values there.

    .. math:: |f(x) - f(y)| \le K_1 |x - y|, \qquad |f^{-1}(u) - f^{-1}(v)| \le K_2 |u - v|

    Exact for ``Affine``, ``SinhArcsinh``, ``Generator``, ``Monotonic``, ``RationalQuadraticSpline``. A chain of these
    is cut into short pieces, on each of which the slopes of its parts multiply. Couplings are bounded layer by layer,
    which may be far above; the sampled constants beside say how far at most.

    Arguments:
        bijection: The map :math:`f`.
        region: Lower and upper corner, numbers or tensors with shape :math:`(d)`; infinite ones are allowed.
        samples: Number of points for the constants from below.
        seed: Fixes them.

    Example:
        >>> from abelnet import SinhArcsinh
        >>> bijection = SinhArcsinh(1, dtype=torch.float64)
        >>> _ = torch.nn.init.constant_(bijection.log_tail, torch.log(torch.tensor(3.0)))
        >>> constants = lipschitz(bijection, (-1.0, 1.0))
        >>> round(constants.forward, 6), constants.inverse  # cosh(3 t) / cosh(t) = 4 cosh²(t) - 3, with sinh(t) = 1
        (5.0, 1.0)
    """
    bijection = snapshot(bijection)
    low, high = _box(region, bijection.dim)
    forward, image_low, image_high = enclose(bijection, low, high)
    inverse, _, _ = enclose_inverse(bijection, image_low, image_high)
    generator = torch.Generator().manual_seed(seed)
    draw = torch.rand(samples, bijection.dim, generator=generator, dtype=torch.float64)
    near, far = low.clamp(min=-1e3), high.clamp(max=1e3)
    values = torch.linalg.svdvals(_jacobians(bijection, near + draw * (far - near)))
    return Lipschitz(
        forward,
        inverse,
        float(values.max()),
        1 / float(values.min()),
        bijection.is_elementwise and not isinstance(bijection, Chain),
    )


def pieces(bijection: Bijection, places: Tensor, dimension: int = 0) -> Pieces:
    r"""Cuts one dimension of a curve at the given places and at its turning points, and encloses the slopes.

    Arguments:
        bijection: A curve, or a chain of curves, as :func:`snapshot` gives them.
        places: Where to cut, :math:`(n)`, at least the two ends of the region.
        dimension: Which dimension.

    Example:
        >>> from abelnet import SinhArcsinh
        >>> cut = pieces(SinhArcsinh(1, dtype=torch.float64), torch.tensor([-1.0, 2.0], dtype=torch.float64))
        >>> cut.places.tolist(), cut.most.tolist()  # cut at 0, where the slope turns; it starts as the identity
        ([-1.0, 0.0, 2.0], [1.0, 1.0])
    """
    low, high = float(places.min()), float(places.max())
    x = ascending(places, turning_points(bijection, low, high, dimension))
    values, least, most = slopes_between(bijection, x, dimension)
    return Pieces(x, values, least, most)


def slopes_between(bijection: Bijection, places: Tensor, dimension: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Values at places, and the least and the largest slope between neighbours; all turning points must be there."""
    least = most = torch.ones(len(places) - 1, dtype=places.dtype)
    ends = places
    for part in _parts(bijection):
        # Straight pieces meet in kinks, where the slope is that of either side: between them it is one number.
        at = (ends[1:] + ends[:-1]) / 2 if isinstance(part, Polyline) else ends
        slopes = _slope(part, at, dimension)
        left, right = (slopes, slopes) if isinstance(part, Polyline) else (slopes[1:], slopes[:-1])
        least, most = least * torch.minimum(left, right), most * torch.maximum(left, right)
        ends = _apply(part, ends, dimension)
    return ends, least, most


def turning_points(bijection: Bijection, low: float, high: float, dimension: int = 0) -> Tensor:
    """Places in a region between which the slope of each part of a curve only rises or only falls."""
    found = []
    back: list[Bijection] = []
    for part in _parts(bijection):
        ends = torch.tensor([low, high], dtype=torch.float64)
        for earlier in back:
            ends = _apply(earlier, ends, dimension)
        points = _turning_points(part, dimension)
        points = points[(points > ends.min()) & (points < ends.max())]
        for earlier in reversed(back):
            points = _apply(earlier, points, dimension, inverse=True)
        found.append(points)
        back.append(part)
    points = torch.cat(found)
    return points[(points > low) & (points < high)]


def enclose(bijection: Bijection, low: Tensor, high: Tensor) -> tuple[float, Tensor, Tensor]:
    """An upper bound of the norm of the Jacobian over a box, and a box that contains all values.

    Arguments:
        bijection: The map :math:`f`.
        low: Lower corner, :math:`(d)`.
        high: Upper corner, :math:`(d)`.
    """
    if bijection.is_elementwise:
        _, most = _slope_range(bijection, low, high)
        ends = torch.stack([_values(bijection, x) for x in (low, high)])
        return float(most.max()), ends.amin(0), ends.amax(0)
    if isinstance(bijection, Chain):
        norm = 1.0
        for part in bijection:
            factor, low, high = enclose(part, low, high)
            norm *= factor
        return norm, low, high
    if isinstance(bijection, Permutation):
        return 1.0, low[bijection.order], high[bijection.order]
    if isinstance(bijection, GlowCoupling):
        (low1, low2), (high1, high2) = torch.split(low, bijection.cuts), torch.split(high, bijection.cuts)
        first, low1, high1 = _half(bijection, bijection.subnet2, (low1, high1), (low2, high2))
        second, low2, high2 = _half(bijection, bijection.subnet1, (low2, high2), (low1, high1))
        return first * second, torch.cat((low1, low2)), torch.cat((high1, high2))
    raise AbelnetError(f"bijection: expected one with known slopes, got {type(bijection).__name__}")


def enclose_inverse(bijection: Bijection, low: Tensor, high: Tensor) -> tuple[float, Tensor, Tensor]:
    """:func:`enclose` of the inverse over a box of values."""
    if bijection.is_elementwise:
        ends = torch.stack([_values(bijection, y, inverse=True) for y in (low, high)])
        low, high = ends.amin(0), ends.amax(0)
        least, _ = _slope_range(bijection, low, high)
        return 1 / float(least.min()) if least.min() > 0 else math.inf, low, high
    if isinstance(bijection, Chain):
        norm = 1.0
        for part in reversed(list(bijection)):
            factor, low, high = enclose_inverse(part, low, high)
            norm *= factor
        return norm, low, high
    if isinstance(bijection, Permutation):
        return 1.0, low[bijection.inverse_order], high[bijection.inverse_order]
    if isinstance(bijection, GlowCoupling):
        (low1, low2), (high1, high2) = torch.split(low, bijection.cuts), torch.split(high, bijection.cuts)
        second, low2, high2 = _half(bijection, bijection.subnet1, (low2, high2), (low1, high1), inverse=True)
        first, low1, high1 = _half(bijection, bijection.subnet2, (low1, high1), (low2, high2), inverse=True)
        return first * second, torch.cat((low1, low2)), torch.cat((high1, high2))
    raise AbelnetError(f"bijection: expected one with known slopes, got {type(bijection).__name__}")


@torch.no_grad()
def snapshot(bijection: Bijection) -> Bijection:
    """A copy in float64 with min-max networks as the polylines that they are; everything here is computed on one."""
    if isinstance(bijection, Chain) and not isinstance(bijection, Glow):
        return Chain(*(snapshot(part) for part in bijection))
    if isinstance(bijection, Monotonic):
        return Polyline(bijection)
    return copy.deepcopy(bijection).double().requires_grad_(False)


def _box(region: Region, dim: int) -> tuple[Tensor, Tensor]:
    low, high = (torch.as_tensor(end, dtype=torch.float64).expand(dim).clone() for end in region)
    if not bool((low < high).all()):
        raise AbelnetError(f"region: expected a lower corner below the upper one, got {region}")
    return low, high


def _jacobians(bijection: Bijection, points: Tensor) -> Tensor:
    """Jacobians at points, :math:`(n, d)` to :math:`(n, d, d)`: no row depends on another, so one sum will do."""
    jacobian: Tensor = torch.autograd.functional.jacobian(lambda x: bijection(x).sum(0), points)  # type: ignore[no-untyped-call]
    return jacobian.transpose(0, 1)


def _slope_range(bijection: Bijection, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest slope of each dimension over an interval each."""
    straight = all(isinstance(part, Affine | Polyline | RationalQuadraticSpline) for part in _parts(bijection))
    if not bool((low.isfinite() & high.isfinite()).all()):
        if not straight:  # bent tails: no bound but these
            return torch.zeros_like(low), torch.full_like(high, math.inf)
        low, high = low.clamp(-FAR, FAR), high.clamp(-FAR, FAR)
    cells = _CELLS if isinstance(bijection, Chain) else 1
    found = []
    for i in range(bijection.dim):
        cut = pieces(bijection, torch.linspace(float(low[i]), float(high[i]), cells + 1, dtype=torch.float64), i)
        found.append((cut.least.min(), cut.most.max()) if len(cut.least) > 0 else (cut.values.new_ones(()),) * 2)
    return torch.stack([least for least, _ in found]), torch.stack([most for _, most in found])


def _parts(bijection: Bijection) -> list[Bijection]:
    if isinstance(bijection, Chain):
        return [one for part in bijection for one in _parts(part)]
    if not isinstance(bijection, Elementwise):
        raise AbelnetError(f"bijection: expected a curve for each dimension, got {type(bijection).__name__}")
    return [bijection]


def _values(bijection: Bijection, x: Tensor, *, inverse: bool = False) -> Tensor:
    """Values at a corner of a box, which may be infinite."""
    y: Tensor = (bijection.inverse if inverse else bijection)(x.clamp(-FAR, FAR))
    return torch.where(x.isinf(), torch.copysign(x, y), y)


def _apply(bijection: Bijection, x: Tensor, dimension: int, *, inverse: bool = False) -> Tensor:
    rows = x[:, None].expand(-1, bijection.dim)
    y: Tensor = (bijection.inverse if inverse else bijection)(rows)
    return y[:, dimension]


def _slope(bijection: Bijection, x: Tensor, dimension: int) -> Tensor:
    assert isinstance(bijection, Elementwise)
    slope = bijection.log_slope(x[:, None].expand(-1, bijection.dim))[:, dimension].exp()
    return slope.nan_to_num(1.0, math.inf)  # 0 times log 0: the power 1 at 0


def _turning_points(bijection: Bijection, dimension: int) -> Tensor:
    """All turning points of one part."""
    if isinstance(bijection, Affine):
        return torch.empty(0, dtype=torch.float64)
    if isinstance(bijection, SinhArcsinh):
        return torch.zeros(1, dtype=torch.float64)
    if isinstance(bijection, Generator):
        return torch.tensor([0.0, 0.5], dtype=torch.float64)  # the logit turns at 1/2, the others at 0 if anywhere
    if isinstance(bijection, Polyline):
        return bijection.kinks[dimension]
    if isinstance(bijection, RationalQuadraticSpline):
        return _spline_turns(*(knots[dimension].numpy() for knots in bijection._knots()))
    raise AbelnetError(f"bijection: expected one with known slopes, got {type(bijection).__name__}")


def _spline_turns(xs: np.ndarray, ys: np.ndarray, slopes: np.ndarray) -> Tensor:
    """Knots, and the zeros of the derivative of the slope in each piece: of a cubic."""
    turns = list(xs)
    for k in range(len(xs) - 1):
        width, mean = xs[k + 1] - xs[k], (ys[k + 1] - ys[k]) / (xs[k + 1] - xs[k])
        start, end = slopes[k], slopes[k + 1]
        bend = start + end - 2 * mean
        top, bottom = np.array([bend, 2 * (mean - start), start]), np.array([-bend, bend, mean])
        cubic = np.polysub(np.polymul(np.polyder(top), bottom), 2 * np.polymul(top, np.polyder(bottom)))
        # A double root may come out with a small imaginary part; a place too many does no harm.
        places = np.roots(cubic).real
        turns += [xs[k] + width * z for z in places if 0 < z < 1]
    return torch.tensor(turns, dtype=torch.float64)


def _half(
    coupling: GlowCoupling,
    subnet: _Subnet,
    changed: tuple[Tensor, Tensor],
    given: tuple[Tensor, Tensor],
    *,
    inverse: bool = False,
) -> tuple[float, Tensor, Tensor]:
    """Encloses one half-step of a coupling: norm of its Jacobian, and the box of the half that it changes."""
    layers = subnet.layers()
    low, high = given
    for i, (weight, bias) in enumerate(layers):
        centre, radius = (low + high) / 2, (high - low) / 2
        middle, spread = weight @ centre + bias[:, 0], weight.abs() @ radius
        low, high = middle - spread, middle + spread
        if i < 2:
            low, high = low.relu(), high.relu()
    (raw_low, shift_low), (raw_high, shift_high) = low.chunk(2), high.chunk(2)
    limit = 0.636 * coupling.clamp
    scale_low, scale_high = (limit * torch.atan(raw) for raw in (raw_low, raw_high))
    # The log-scale is steepest where its raw value is nearest to 0.
    nearest = torch.maximum(torch.maximum(raw_low, -raw_high), torch.zeros_like(raw_low))
    steepness = limit / (1 + nearest**2)
    before = [torch.linalg.matrix_norm(weight, 2) for weight, _ in layers[:2]]
    to_raw, to_shift = (
        float(before[0] * before[1] * torch.linalg.matrix_norm(weight, 2)) for weight in layers[2][0].chunk(2)
    )
    low, high = changed
    if inverse:
        low, high = low - shift_high, high - shift_low
        scale_low, scale_high = -scale_high, -scale_low
    scale = scale_high.exp()
    reach = torch.maximum(low.abs(), high.abs())
    own = float(scale.max())
    other = float((reach * scale * steepness).max()) * to_raw + (own if inverse else 1.0) * to_shift
    products = torch.stack([edge * one.exp() for edge in (low, high) for one in (scale_low, scale_high)])
    low, high = products.amin(0), products.amax(0)
    if not inverse:
        low, high = low + shift_low, high + shift_high
    blocks = torch.tensor([[own, other], [0.0, 1.0]], dtype=torch.float64)
    norm = math.inf if not bool(blocks.isfinite().all()) else float(torch.linalg.matrix_norm(blocks, 2))
    return norm, low, high
