r"""Min-max network of the paper: piecewise linear, monotonic, with a closed-form inverse."""

from __future__ import annotations

__all__ = ["Monotonic"]

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from abelnet.bijections.base import Elementwise, seeded
from abelnet.bijections.polyline import Polyline
from abelnet.checks import check_count, check_values
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from sympy import Expr

    from abelnet.bijections.pieces import Pieces

# Line values evaluated at a time when searching for the active lines: bounds memory for any batch size.
_CHUNK = 1 << 22
# Spread of lines initialized near one line. Lines that training never updates stay at most this far from it, and decide
# the results of larger multisets; benchmarks/looks/start.py compares spreads.
_SPREAD = 0.002


class Monotonic(Elementwise):
    r"""Monotonic min-max network: a minimum of maxima of lines with slopes of one sign, one curve per dimension.

    .. math:: f(x) = \min_k \max_j \left( s \exp(w_{kj}) x + b_{kj} \right)

    The inverse is :math:`\max_k \min_j` of the inverse lines for :math:`s > 0`, :math:`\min_k \max_j` for
    :math:`s < 0`. The sign term is :math:`s = r + \operatorname{copysign}(10^{-3}, r)` with :math:`r` learned, so
    training can change the sign but never reaches 0, where the map is not invertible.

    References:
        Sill, Monotonic networks, NIPS 1997.

    Arguments:
        dim: Number of dimensions :math:`d`.
        groups: Number of groups :math:`K`.
        units: Number of lines in each group :math:`J`.
        near: Slope and offset of a line to initialize close to, such as ``(1.0, 0.0)`` for the identity: all lines
            differ from it by at most 0.2%. If None, lines are initialized at random.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> bijection = Monotonic(2, groups=4, units=3, seed=0)
        >>> x = torch.tensor([[-3.0, 1e6]])
        >>> torch.allclose(bijection.inverse(bijection(x)), x)
        True
    """

    def __init__(
        self,
        dim: int,
        groups: int = 8,
        units: int = 8,
        *,
        near: Sequence[float] | None = None,
        seed: int | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim)
        groups, units = check_count("groups", groups), check_count("units", units)
        if near is not None and not (len(near) == 2 and 0 < near[0] < math.inf and math.isfinite(near[1])):
            raise AbelnetError(f"near: expected a slope above 0 and a finite offset, got {near}")
        self.near = None if near is None else (float(near[0]), float(near[1]))
        self.raw_sign = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self.log_weight = nn.Parameter(torch.empty(dim, groups, units, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(dim, groups, units, device=device, dtype=dtype))
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Initializes lines at random, close to the line ``near`` if given."""
        generator = seeded(seed, self.bias.device)
        slope, offset = self.near or (1.0, 0.0)
        spread = 1.0 if self.near is None else _SPREAD
        nn.init.constant_(self.raw_sign, 1 - 1e-3)
        nn.init.uniform_(self.log_weight, -spread, spread, generator=generator)
        nn.init.uniform_(self.bias, -spread, spread, generator=generator)
        with torch.no_grad():
            self.log_weight.add_(math.log(slope))
            self.bias.mul_(slope).add_(offset)

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        slope, bias = self._active(x)
        return slope * x + bias

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        slope, bias = self._active(y, inverse=True)
        return (y - bias) / slope

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return self._active(x)[0].abs().log()

    def sign(self) -> Tensor:
        """The sign term :math:`s`, with shape :math:`(d)`; never 0."""
        # By comparison, since ONNX has no copysign.
        return self.raw_sign + torch.where(self.raw_sign.detach() < 0, -1e-3, 1e-3).to(self.raw_sign)

    def lines(self, x: Tensor, *, inverse: bool = False) -> Tensor:
        """Which line decides each value of :math:`f(x)`, or of :math:`f^{-1}(x)`.

        Returns:
            Places among all lines :math:`(d, K, J)`, flattened, with the shape of ``x``.

        Example:
            >>> bijection = Monotonic(1, groups=2, units=3, seed=0)
            >>> bijection.lines(torch.randn(5, 1)).max() < 6
            tensor(True)
        """
        check_values("x", x, self.dim)
        return self._search(x.detach(), self._slope().detach(), self.bias.detach(), inverse)

    @classmethod
    @torch.no_grad()
    def stacked(cls, bijections: Sequence[Self]) -> Self:
        r"""One network with the dimensions of several, one after another.

        Smaller networks are padded with lines at :math:`-\infty`, which no maximum takes, and groups at
        :math:`+\infty`, which no minimum takes; neither ever has a gradient.

        Example:
            >>> small, large = Monotonic(1, 2, 3, seed=0), Monotonic(1, 5, 4, seed=1)
            >>> x = torch.randn(7, 2)
            >>> torch.equal(Monotonic.stacked([small, large])(x)[:, 1:], large(x[:, 1:]))
            True
        """
        groups, units = (max(one.bias.shape[i] for one in bijections) for i in (1, 2))
        like = bijections[0].bias
        dim = sum(one.dim for one in bijections)
        network = cls(dim, groups, units, seed=0, device=like.device, dtype=like.dtype)
        network.log_weight.zero_()
        network.bias.fill_(-math.inf)
        for rows, one in cls._rows(bijections):
            _, k, j = one.bias.shape
            network.raw_sign[rows] = one.raw_sign
            network.log_weight[rows, :k, :j] = one.log_weight
            network.bias[rows, :k, :j] = one.bias
            network.bias[rows, k:] = math.inf
        return network

    @torch.no_grad()
    def unstack(self, bijections: Sequence[Self]) -> None:
        for rows, one in self._rows(bijections):
            _, k, j = one.bias.shape
            one.raw_sign.copy_(self.raw_sign[rows])
            one.log_weight.copy_(self.log_weight[rows, :k, :j])
            one.bias.copy_(self.bias[rows, :k, :j])

    @property
    def has_straight_tails(self) -> bool:
        return True

    def turning_points(self, dimension: int = 0) -> Tensor:
        return self.snapshot().turning_points(dimension)

    def slopes_between(self, places: Tensor, dimension: int = 0) -> tuple[Tensor, Tensor]:
        return self.snapshot().slopes_between(places, dimension)

    def pieces(self, x: Expr, dimension: int = 0) -> Pieces:
        return self.snapshot().pieces(x, dimension)

    def inverse_pieces(self, y: Expr, dimension: int = 0) -> Pieces:
        return self.snapshot().inverse_pieces(y, dimension)

    def expression(self, x: Expr, dimension: int = 0) -> Expr:
        return self.snapshot().expression(x, dimension)

    def inverse_expression(self, y: Expr, dimension: int = 0) -> Expr:
        return self.snapshot().inverse_expression(y, dimension)

    @torch.no_grad()
    def snapshot(self) -> Polyline:
        return Polyline(self.sign().double()[:, None, None] * self.log_weight.double().exp(), self.bias.double())

    def config(self) -> dict[str, Any]:
        return {
            "dim": self.dim,
            "groups": self.bias.shape[1],
            "units": self.bias.shape[2],
            "near": None if self.near is None else list(self.near),
        }

    def extra_repr(self) -> str:
        return f"dim={self.dim}, groups={self.bias.shape[1]}, units={self.bias.shape[2]}"

    def _slope(self) -> Tensor:
        return self.sign()[:, None, None] * self.log_weight.exp()

    @staticmethod
    def _rows(bijections: Sequence[Monotonic]) -> Iterator[tuple[slice, Monotonic]]:
        """Each network with the dimensions that are its own in a stack."""
        start = 0
        for one in bijections:
            yield slice(start, start + one.dim), one
            start += one.dim

    def _active(self, x: Tensor, inverse: bool = False) -> tuple[Tensor, Tensor]:
        """Returns slope and bias of the active line of each value, with the shape of ``x``."""
        slope = self._slope()
        # The search needs no gradient: only the active line gets one.
        found = self._search(x.detach(), slope.detach(), self.bias.detach(), inverse).reshape(-1)
        return (
            slope.reshape(-1).index_select(0, found).reshape(x.shape),
            self.bias.reshape(-1).index_select(0, found).reshape(x.shape),
        )

    def _search(self, x: Tensor, slope: Tensor, bias: Tensor, inverse: bool) -> Tensor:
        """Returns the index of the active line among all lines of all dimensions."""
        rows = max(1, _CHUNK // bias.numel())
        if not torch.compiler.is_compiling() and x.ndim > 1 and x.numel() > rows * self.dim:
            chunks = torch.split(x.reshape(-1, self.dim), rows)
            return torch.cat([self._search(chunk, slope, bias, inverse) for chunk in chunks]).reshape(x.shape)
        if inverse:
            # The negative of a max-min of inverse lines is the min-max of their negatives: with flipped signs, the
            # search below covers both directions and both signs.
            scale = -slope[:, :1, :1].sign() / slope
            bias, slope = -bias * scale, scale
        # Selecting the group needs only the maxima; the argmax is taken within the selected group alone.
        group = torch.addcmul(bias, slope, x[..., None, None]).amax(-1).argmin(-1)
        group = group + torch.arange(self.dim, device=x.device) * bias.shape[1]
        lines = [part.reshape(-1, bias.shape[2]).index_select(0, group.reshape(-1)) for part in (bias, slope)]
        unit = torch.addcmul(lines[0], lines[1], x.reshape(-1, 1)).argmax(-1).reshape(x.shape)
        return group * bias.shape[2] + unit
