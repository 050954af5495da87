r"""Min-max networks as what they are: straight pieces between kinks."""

from __future__ import annotations

__all__ = ["FAR", "Polyline", "ascending"]

import math

import torch
from torch import Tensor

from abelnet.bijections.base import Elementwise
from abelnet.bijections.monotonic import Monotonic
from abelnet.checks import check_values

# What stands for infinity on a curve with straight tails.
FAR = 1e30


def ascending(*places: Tensor) -> Tensor:
    """All places in order, each once."""
    joined: Tensor = torch.cat(places).unique()  # type: ignore[no-untyped-call]
    return joined


class Polyline(Elementwise):
    r"""A snapshot of a :class:`~abelnet.Monotonic`, in float64: the same curve, with its kinks known.

    .. math:: f(x) = s_k x + b_k, \quad x_k < x \le x_{k+1}

    A value is found by bisection among the kinks instead of a search through all lines.

    Arguments:
        network: The min-max network.

    Example:
        >>> network = Monotonic(1, seed=0, dtype=torch.float64)
        >>> x = torch.linspace(-9, 9, 1000, dtype=torch.float64)[:, None]
        >>> torch.allclose(Polyline(network)(x), network(x))
        True
    """

    @torch.no_grad()
    def __init__(self, network: Monotonic) -> None:
        super().__init__(network.dim)
        self.kinks: list[Tensor] = []
        self.lines: list[tuple[Tensor, Tensor]] = []
        slopes = network.sign().double()[:, None, None] * network.log_weight.double().exp()
        for slope, bias in zip(slopes, network.bias.double(), strict=True):
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
            # A falling curve is looked up upside down.
            sign = slope[0].sign()
            piece = torch.searchsorted((sign * heights).contiguous(), (sign * y[..., i]).contiguous())
            columns.append((y[..., i] - bias[piece]) / slope[piece])
        return torch.stack(columns, -1)

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return self._line(x)[0].abs().log()

    def _line(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = []
        for i, (kinks, (slope, bias)) in enumerate(zip(self.kinks, self.lines, strict=True)):
            piece = torch.searchsorted(kinks, x[..., i].contiguous())
            found.append((slope[piece], bias[piece]))
        return torch.stack([slope for slope, _ in found], -1), torch.stack([bias for _, bias in found], -1)


def _kinks(slope: Tensor, bias: Tensor) -> Tensor:
    """Where the smallest of the largest of lines :math:`(K, J)` passes from one line to another.

    Rounding decides in favour of a place too many, which does no harm.
    """
    crossing = _crossings(slope, bias)
    highest = (slope[:, None] * crossing[..., None] + bias[:, None]).amax(-1)
    on_top = _pair_heights(slope, bias, crossing) >= highest - 1e-9 * (1 + highest.abs())
    ends = ascending(crossing[on_top], slope.new_tensor([-FAR, FAR]))
    # Between these each group is one line.
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
    """Where each pair of lines of a row meet, :math:`(R, L)` to :math:`(R, P)`; NaN for parallels."""
    i, j = torch.triu_indices(slope.shape[1], slope.shape[1], 1)
    x = (bias[:, j] - bias[:, i]) / (slope[:, i] - slope[:, j])
    return torch.where(x.abs() < FAR, x, math.nan)


def _pair_heights(slope: Tensor, bias: Tensor, crossing: Tensor) -> Tensor:
    i, _ = torch.triu_indices(slope.shape[1], slope.shape[1], 1)
    return slope[:, i] * crossing + bias[:, i]
