r"""Glow normalizing flow: affine couplings alternating with fixed permutations, in two or more dimensions.

Activations are stored feature-major, with shape :math:`(d, N)`: the halves of a vector are contiguous, a permutation
copies whole rows, and every matrix product is weight times activation, without a transpose in either direction.
"""

from __future__ import annotations

__all__ = ["Glow", "GlowCoupling", "Permutation", "glow"]

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from abelnet.bijections.base import Bijection, draw_seeds, seeded
from abelnet.bijections.chain import Chain
from abelnet.bijections.slopes import Enclosure
from abelnet.checks import check_count, check_values
from abelnet.errors import AbelnetError
from abelnet.portable import arctan, exact

# Rows that pass through all layers together: more would not stay in the CPU cache between layers.
_CHUNK = 768


class _ColumnBijection(Bijection):
    """Bijection that works on columns :math:`(d, N)`; converts inputs of any shape :math:`(*, d)`."""

    def forward(self, x: Tensor) -> Tensor:
        return self._by_columns("x", x, self.forward_columns)

    def inverse(self, y: Tensor) -> Tensor:
        return self._by_columns("y", y, self.inverse_columns)

    def log_abs_det(self, x: Tensor) -> Tensor:
        return self._by_columns("x", x, lambda x: self.log_abs_det_columns(x)[None])[..., 0]

    @abstractmethod
    def forward_columns(self, x: Tensor) -> Tensor:
        """Applies :meth:`forward` to columns, with shape :math:`(d, N)`."""

    @abstractmethod
    def inverse_columns(self, y: Tensor) -> Tensor:
        """Applies :meth:`inverse` to columns, with shape :math:`(d, N)`."""

    @abstractmethod
    def log_abs_det_columns(self, x: Tensor) -> Tensor:
        """Applies :meth:`log_abs_det` to columns; the result has shape :math:`(N)`."""

    def _by_columns(self, name: str, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        check_values(name, x, self.dim)
        rows = x.reshape(-1, self.dim)
        # Traced graphs see the whole batch and need no chunks, which would fix the batch size.
        chunks = [rows] if torch.compiler.is_compiling() or len(rows) <= _CHUNK else torch.split(rows, _CHUNK)
        mapped = [function(chunk.t().contiguous()).t() for chunk in chunks]
        result = mapped[0] if len(mapped) == 1 else torch.cat(mapped)
        return result.reshape(*x.shape[:-1], result.shape[-1])


class GlowCoupling(_ColumnBijection):
    r"""Affine coupling: each half of a vector is scaled and shifted by functions of the other half.

    .. math::
        y_1 &= \exp(\sigma(\alpha_2(x_2))) \, x_1 + \beta_2(x_2) \\
        y_2 &= \exp(\sigma(\alpha_1(y_1))) \, x_2 + \beta_1(y_1)

    Each pair :math:`(\alpha, \beta)` is the output of a three-layer ReLU network, and
    :math:`\sigma(a) = 0.636 \, c \arctan a` keeps the log-scales within :math:`\pm c`. The arithmetic and the names of
    the networks are those of FrEIA's ``GLOWCouplingBlock``.

    References:
        Kingma & Dhariwal, Glow: generative flow with invertible 1x1 convolutions, NeurIPS 2018.

    Arguments:
        dim: Number of dimensions :math:`d`, at least 2.
        hidden: Width of the hidden layers.
        clamp: Bound :math:`c` on the log-scales.
        gain: Initial scale of the last layers. With 0 the coupling is initialized to exactly the identity; with 1 all
            layers are initialized as in ``nn.Linear``, and far from zero the map is too steep to invert in float32:
            five couplings in 300 dimensions have a condition number of about :math:`10^9` at vectors of length 1000.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> bijection = GlowCoupling(4, hidden=8, seed=0)
        >>> x = torch.randn(3, 4)
        >>> torch.allclose(bijection.inverse(bijection(x)), x, atol=1e-5)
        True
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        clamp: float = 2.0,
        *,
        gain: float = 0.1,
        seed: int | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim)
        if dim < 2:
            raise AbelnetError(f"dim: expected at least 2 dimensions, got {dim}; use an elementwise bijection")
        hidden = check_count("hidden", hidden)
        if not 0 < clamp < math.inf:
            raise AbelnetError(f"clamp: expected a finite number above 0, got {clamp}")
        self.hidden, self.clamp, self.gain = hidden, clamp, gain
        self.cuts = [round(dim / 2), dim - round(dim / 2)]

        self.subnet1 = _Subnet(self.cuts[0], hidden, 2 * self.cuts[1], gain, device, dtype)
        self.subnet2 = _Subnet(self.cuts[1], hidden, 2 * self.cuts[0], gain, device, dtype)
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Initializes all layers as in ``nn.Linear``, with the last layers scaled by the gain."""
        generator = seeded(seed, next(self.parameters()).device)
        for subnet in (self.subnet1, self.subnet2):
            subnet.reset_parameters(generator)

    def forward_columns(self, x: Tensor) -> Tensor:
        x1, x2 = torch.split(x, self.cuts)
        log_scale, shift = self._coefficients(self.subnet2, x2)
        y1 = torch.addcmul(shift, log_scale.exp(), x1)
        log_scale, shift = self._coefficients(self.subnet1, y1)
        return torch.cat((y1, torch.addcmul(shift, log_scale.exp(), x2)))

    def inverse_columns(self, y: Tensor) -> Tensor:
        y1, y2 = torch.split(y, self.cuts)
        log_scale, shift = self._coefficients(self.subnet1, y1, -1)
        x2 = (y2 - shift) * log_scale.exp()
        log_scale, shift = self._coefficients(self.subnet2, x2, -1)
        return torch.cat(((y1 - shift) * log_scale.exp(), x2))

    def log_abs_det_columns(self, x: Tensor) -> Tensor:
        x1, x2 = torch.split(x, self.cuts)
        log_scale2, shift = self._coefficients(self.subnet2, x2)
        log_scale1, _ = self._coefficients(self.subnet1, torch.addcmul(shift, log_scale2.exp(), x1))
        return log_scale1.sum(0) + log_scale2.sum(0)

    def slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        (low1, low2), (high1, high2) = (torch.split(corner, self.cuts) for corner in region)
        first, low1, high1 = self._enclose_half(self.subnet2, (low1, high1), (low2, high2))
        second, low2, high2 = self._enclose_half(self.subnet1, (low2, high2), (low1, high1))
        return Enclosure(first * second, torch.cat((low1, low2)), torch.cat((high1, high2)))

    def inverse_slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        (low1, low2), (high1, high2) = (torch.split(corner, self.cuts) for corner in region)
        second, low2, high2 = self._enclose_half(self.subnet1, (low2, high2), (low1, high1), inverse=True)
        first, low1, high1 = self._enclose_half(self.subnet2, (low1, high1), (low2, high2), inverse=True)
        return Enclosure(first * second, torch.cat((low1, low2)), torch.cat((high1, high2)))

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim, "hidden": self.hidden, "clamp": self.clamp, "gain": self.gain}

    def extra_repr(self) -> str:
        return f"dim={self.dim}, hidden={self.hidden}, clamp={self.clamp}"

    def _coefficients(self, subnet: _Subnet, x: Tensor, sign: int = 1) -> tuple[Tensor, Tensor]:
        """Returns the log-scale, multiplied by the sign, and the shift."""
        raw, shift = subnet(x).chunk(2)
        return arctan(raw) * exact(sign * 0.636 * self.clamp, raw), shift

    @torch.no_grad()
    def _enclose_half(
        self, subnet: _Subnet, changed: tuple[Tensor, Tensor], given: tuple[Tensor, Tensor], *, inverse: bool = False
    ) -> Enclosure:
        """Bounds one half-step: the norm of its Jacobian, and the box of the half that it changes."""
        (raw_low, shift_low), (raw_high, shift_high) = (corner.chunk(2) for corner in subnet.enclose(*given))
        limit = 0.636 * self.clamp
        scale_low, scale_high = (limit * torch.atan(raw) for raw in (raw_low, raw_high))
        # The log-scale is steepest where its raw value is closest to 0.
        nearest = torch.maximum(torch.maximum(raw_low, -raw_high), torch.zeros_like(raw_low))
        steepness = limit / (1 + nearest**2)
        to_raw, to_shift = subnet.norms()
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
        norm = float(torch.linalg.matrix_norm(blocks, 2)) if bool(blocks.isfinite().all()) else math.inf
        return Enclosure(norm, low, high)


class _Subnet(nn.Module):
    """Three-layer ReLU network on columns, :math:`(d, N)` to :math:`(d', N)`, with biases stored as columns.

    Hidden layers are padded to a multiple of 8 units, for faster matrix products. All weights of a padded unit are
    zero, so it has no effect, gets no gradient, and stays zero.
    """

    def __init__(
        self,
        width_in: int,
        hidden: int,
        width_out: int,
        gain: float,
        device: torch.device | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.hidden, self._gain = hidden, gain
        width = -(-hidden // 8) * 8

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(shape, device=device, dtype=dtype))

        self.weight1, self.bias1 = parameter(width, width_in), parameter(width, 1)
        self.weight2, self.bias2 = parameter(width, width), parameter(width, 1)
        self.weight3, self.bias3 = parameter(width_out, width), parameter(width_out, 1)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initializes all layers as in ``nn.Linear``, with the last layer scaled by the gain."""
        for (weight, bias), scale in zip(self.layers(), (1.0, 1.0, self._gain), strict=True):
            bound = scale / math.sqrt(weight.shape[1])
            nn.init.uniform_(weight, -bound, bound, generator=generator)
            nn.init.uniform_(bias, -bound, bound, generator=generator)

    def layers(self) -> list[tuple[Tensor, Tensor]]:
        """Returns views of the weight and bias of each layer, without padding."""
        h = self.hidden
        return [
            (self.weight1.detach()[:h], self.bias1.detach()[:h]),
            (self.weight2.detach()[:h, :h], self.bias2.detach()[:h]),
            (self.weight3.detach()[:, :h], self.bias3.detach()),
        ]

    def enclose(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds the values over a box by interval arithmetic."""
        for i, (weight, bias) in enumerate(self.layers()):
            center, radius = (low + high) / 2, (high - low) / 2
            middle, spread = weight @ center + bias[:, 0], weight.abs() @ radius
            low, high = middle - spread, middle + spread
            if i < 2:
                low, high = low.relu(), high.relu()
        return low, high

    def norms(self) -> tuple[float, float]:
        """Returns upper bounds on the Jacobian norms of the two halves of the output."""
        first, second, (weight, _) = self.layers()
        before = torch.linalg.matrix_norm(first[0], 2) * torch.linalg.matrix_norm(second[0], 2)
        to_raw, to_shift = (float(before * torch.linalg.matrix_norm(half, 2)) for half in weight.chunk(2))
        return to_raw, to_shift

    def forward(self, x: Tensor) -> Tensor:
        x = torch.addmm(self.bias1, self.weight1, x).relu_()
        x = torch.addmm(self.bias2, self.weight2, x).relu_()
        return torch.addmm(self.bias3, self.weight3, x)


class Permutation(_ColumnBijection):
    r"""Fixed permutation of the dimensions.

    .. math:: f(x)_i = x_{\pi(i)}

    Arguments:
        dim: Number of dimensions :math:`d`.
        order: The permutation :math:`\pi`; drawn at random if not given.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> bijection = Permutation(3, order=[2, 0, 1])
        >>> bijection(torch.tensor([10.0, 20.0, 30.0]))
        tensor([30., 10., 20.])
    """

    def __init__(
        self,
        dim: int,
        order: Sequence[int] | None = None,
        *,
        seed: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(dim)
        if order is not None and sorted(order) != list(range(dim)):
            raise AbelnetError(f"order: expected each of 0 to {dim - 1} once, got {list(order)}")
        self.order: Tensor
        self.inverse_order: Tensor
        self.register_buffer("order", torch.empty(dim, dtype=torch.long, device=device))
        self.register_buffer("inverse_order", torch.empty(dim, dtype=torch.long, device=device))
        self._start = None if order is None else list(order)
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Sets the given order, or draws one."""
        if self.order.is_meta:
            return
        generator, start = seeded(seed, torch.device("cpu")), self._start
        drawn = torch.randperm(self.dim, generator=generator) if start is None else torch.tensor(start)
        self.order.copy_(drawn)
        self.inverse_order.copy_(drawn.argsort())

    def check_state(self) -> None:
        if not torch.equal(self.order.sort().values, torch.arange(self.dim, device=self.order.device)):
            raise AbelnetError(f"order: expected each of 0 to {self.dim - 1} once, got {self.order.tolist()!s:.80}")
        if not torch.equal(self.order.argsort(), self.inverse_order):
            raise AbelnetError("inverse_order: expected the inverse of order, got another")

    def forward_columns(self, x: Tensor) -> Tensor:
        return x.index_select(0, self.order)

    def inverse_columns(self, y: Tensor) -> Tensor:
        return y.index_select(0, self.inverse_order)

    def log_abs_det_columns(self, x: Tensor) -> Tensor:
        return x.new_zeros(x.shape[1])

    def slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        return Enclosure(1.0, *(corner[self.order] for corner in region))

    def inverse_slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        return Enclosure(1.0, *(corner[self.inverse_order] for corner in region))

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim}


class Glow(_ColumnBijection, Chain):
    r"""Normalizing flow of couplings and permutations, feature-major from end to end.

    Arguments:
        bijections: :class:`GlowCoupling` and :class:`Permutation`, in order.

    Example:
        >>> bijection = Glow(GlowCoupling(4, hidden=8), Permutation(4), GlowCoupling(4, hidden=8))
        >>> bijection(torch.randn(3, 4)).shape
        torch.Size([3, 4])
    """

    def __init__(self, *bijections: _ColumnBijection) -> None:
        for bijection in bijections:
            if not isinstance(bijection, _ColumnBijection):
                raise AbelnetError(f"bijections: expected couplings and permutations, got {type(bijection).__name__}")
        super().__init__(*bijections)

    def __iter__(self) -> Iterator[_ColumnBijection]:
        return iter(cast("list[_ColumnBijection]", list(self.bijections)))

    def forward_columns(self, x: Tensor) -> Tensor:
        for bijection in self:
            x = bijection.forward_columns(x)
        return x

    def inverse_columns(self, y: Tensor) -> Tensor:
        for bijection in reversed(list(self)):
            y = bijection.inverse_columns(y)
        return y

    def log_abs_det_columns(self, x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[1])
        for bijection in self:
            total = total + bijection.log_abs_det_columns(x)
            x = bijection.forward_columns(x)
        return total


def glow(
    dim: int,
    layers: int = 5,
    hidden: int = 151,
    *,
    clamp: float = 2.0,
    gain: float = 0.1,
    seed: int | None = None,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> Glow:
    r"""Builds the invertible network of the paper: ``layers`` couplings, each followed by a random permutation.

    With a gain of 0 the couplings are initialized to the identity, and an operation built on the network to its law,
    which permutations do not change.

    Arguments:
        dim: Number of dimensions :math:`d`, at least 2.
        layers: Number of couplings.
        hidden: Width of the hidden layers of their networks.
        clamp: Bound on the log-scales.
        gain: Initial scale of the last layers of the networks; with 0 every coupling is initialized to the identity.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> bijection = glow(300, layers=5, hidden=151, seed=0)
        >>> bijection(torch.randn(7, 300)).shape
        torch.Size([7, 300])
    """
    layers = check_count("layers", layers)
    seeds: list[int | None] = [None] * (2 * layers)
    if seed is not None:
        seeds = draw_seeds(seed, len(seeds))
    bijections: list[_ColumnBijection] = []
    for seed1, seed2 in zip(seeds[::2], seeds[1::2], strict=True):
        bijections.append(GlowCoupling(dim, hidden, clamp, gain=gain, seed=seed1, device=device, dtype=dtype))
        bijections.append(Permutation(dim, seed=seed2, device=device))
    return Glow(*bijections)
