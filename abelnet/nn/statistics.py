r"""Statistics of a set that are no law: a robust location, and a small network of it and of means and extremes."""

from __future__ import annotations

__all__ = ["Location", "Network"]

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.bijections.base import seeded
from abelnet.laws.logs import LogSum
from abelnet.nn.members import Exponentials, Extremes, Scene, Totals
from abelnet.segments import Segments, composed_gradients, has_kernels, set_kernels_enabled

_ROUNDS = 8  # of reweighting: each brings a location closer by a factor of about 2
_SMALLEST = 1e-6
_LOG2_E = math.log2(math.e)


class Location(nn.Module):
    r"""M-estimator of location by iteratively reweighted means: between the mean and the median, or another quantile.

    .. math:: m \leftarrow \frac{\sum_i w_i z_i}{\sum_i w_i}, \quad
        w_i = \frac{e^{q \tanh(4 r_i)}}{\sqrt{r_i^2 + \varepsilon^2}}, \quad r_i = \frac{z_i - m}{s}

    with the mean deviation :math:`s`. With :math:`q = 0` and a small :math:`\varepsilon` it is the median.

    Arguments:
        channels: Number of channels :math:`c`.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.tilt = nn.Parameter(torch.empty(channels))
        self.log_width = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Resets to a location close to the median."""
        self.tilt.zero_()
        self.log_width.fill_(math.log(0.1))

    def coefficients(self) -> Tensor:
        """Returns the tilt and the squared width of each channel, with shape :math:`(2, c)`."""
        return torch.stack((self.tilt.clamp(-6, 6), self.log_width.clamp(-6, 3).exp().square()))


def _located(z: Tensor, mean: Tensor, given: Tensor, scene: Scene) -> Tensor:
    """Returns the location of each set from its mean; tilts and squared widths are given."""
    sets, location, (tilt, width) = scene.multisets, mean, given
    deviation = sets.sum((z - sets.spread(mean)).abs()).reshape(mean.shape) / scene.count
    scale = sets.spread(deviation.detach() + _SMALLEST)
    for _ in range(_ROUNDS):
        rest = (z - sets.spread(location)) / scale
        weight = (rest.square() + width).rsqrt() * (tilt * (4 * rest).tanh()).exp()
        total, weights = (sets.sum(one).reshape(location.shape) for one in (weight * z, weight))
        location = total / weights.clamp_min(torch.finfo(weights.dtype).tiny)
    return location


def _summarized(x: Tensor, given: Tensor, scene: Scene) -> Tensor:
    """Returns the features of each set, :math:`(B, f, c)`; see :mod:`abelnet.nn.summarizing` for what is given."""
    scene = Scene(scene.multisets, x * given[0], scene.units)
    mean = scene.multisets.sum(scene.z).reshape(-1, x.shape[-1]) / scene.count
    location, log_count = _located(scene.z, mean, given[1:3], scene), scene.count.log()
    folds = [
        LogSum(rate=rate).reduce(scene.z, scene.multisets).reshape(mean.shape) - log_count / rate
        for rate in given[3:] / _LOG2_E
    ]
    return torch.stack((location, mean, scene.largest, scene.smallest, *folds, log_count.expand_as(mean)), 1)


class _Summarize(torch.autograd.Function):
    """Features by compiled kernels: a set stays in the cache until all is known of it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, given: Tensor, scene: Scene, segments: Segments) -> Tensor:
        from abelnet.nn import summarizing  # numba takes a second to import

        features, kept = (
            torch.empty(segments.count, rows, x.shape[-1]) for rows in (summarizing.FEATURES, summarizing.KEPT)
        )
        slopes = torch.empty(x.shape)
        segments.run(summarizing.summarize, x, [given.detach().numpy(), _ROUNDS], [features, kept], [slopes])
        ctx.scene, ctx.segments = scene, segments
        ctx.save_for_backward(x, given, features, kept, slopes)
        return features

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from abelnet.nn import summarizing

        x, given, features, kept, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order
            with set_kernels_enabled(False):
                return *composed_gradients(partial(_summarized, scene=ctx.scene), (x, given), gradient), None, None
        of_x, of_given = torch.empty(x.shape), torch.zeros(given.shape, dtype=torch.float64)
        by_set, by_row = [features, kept, gradient.contiguous()], [slopes, of_x]
        ctx.segments.run(summarizing.summarize_gradient, x, [given.detach().numpy()], by_set, by_row, [of_given])
        return of_x, of_given.to(given.dtype), None, None


class Network(nn.Module):
    r"""Small network per channel of a robust location, the extremes and means of a set, for what is no law.

    Arguments:
        channels: Number of channels :math:`c`.
        hidden: Number of hidden units.
        seed: Random seed of the initial weights; torch's global generator is used if not given.
    """

    def __init__(self, channels: int, hidden: int = 32, *, seed: int | None = None) -> None:
        super().__init__()
        self.parts = nn.ModuleList([Totals(channels), Extremes(channels)])
        self.parts.extend(Exponentials(channels, rate) for rate in (1.0, -1.0, 6.0, -6.0))
        self.location = Location(channels)
        features = 9  # a location, the mean, two extremes, four log-mean-exp, and the logarithm of the count
        self.weight1 = nn.Parameter(torch.empty(channels, features, hidden))
        self.bias1 = nn.Parameter(torch.empty(channels, 1, hidden))
        self.weight2 = nn.Parameter(torch.empty(channels, hidden, 1))
        self.bias2 = nn.Parameter(torch.empty(channels, 1, 1))
        self.reset_parameters(seed)

    @torch.no_grad()
    def reset_parameters(self, seed: int | None = None) -> None:
        """Draws the initial values anew."""
        generator = seeded(seed, self.weight1.device)
        for member in self.parts:
            member.reset_parameters()  # type: ignore[operator]
        self.location.reset_parameters()
        for weight, bias in ((self.weight1, self.bias1), (self.weight2, self.bias2)):
            bound = 1 / math.sqrt(weight.shape[1])
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)

    def forward(self, scene: Scene) -> Tensor:
        """Returns the result of each set, :math:`(B, c)`."""
        rates = [member.rate * _LOG2_E for member in self.parts if isinstance(member, Exponentials)]
        given = torch.cat((1 / scene.divisor[None], self.location.coefficients(), torch.stack(rates)))
        if (found := scene.multisets.kernels(scene.values, given)) is not None:
            features: Tensor = _Summarize.apply(scene.values, given, scene, found[0])  # type: ignore[no-untyped-call]
        else:
            features = _summarized(scene.values, given, scene)
        weights = torch.cat((self.weight1, self.bias1, self.weight2.transpose(1, 2)), 1).permute(2, 1, 0)
        if has_kernels(features[:, 0], weights):
            bent: Tensor = _Bend.apply(features, weights.contiguous())  # type: ignore[no-untyped-call]
        else:
            bent = _bent(features, weights)
        result: Tensor = bent + self.bias2[:, 0, 0]
        return result


def _bent(features: Tensor, weights: Tensor) -> Tensor:
    """Returns the first of the features :math:`(B, f, c)` plus what networks add to it.

    See :mod:`abelnet.nn.bending` for weights.
    """
    count = features.shape[1]
    first, bias, last = torch.split(weights.permute(2, 1, 0), [count, 1, 1], 1)
    hidden = nn.functional.silu(torch.baddbmm(bias, features.permute(2, 0, 1), first))
    return features[:, 0] + torch.bmm(hidden, last.transpose(1, 2))[..., 0].T


class _Bend(torch.autograd.Function):
    """Networks by compiled kernels, which keep no hidden units."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weights: Tensor) -> Tensor:
        from abelnet.nn import bending  # numba takes a second to import

        result = torch.empty(len(features), features.shape[-1])
        bending.bend(features.detach().numpy(), weights.detach().numpy(), result.numpy())
        ctx.save_for_backward(features, weights)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from abelnet.nn import bending

        features, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order
            return composed_gradients(_bent, (features, weights), gradient)
        of_features, of_weights = torch.empty(features.shape), torch.zeros(weights.shape, dtype=torch.float64)
        arrays = [one.detach().numpy() for one in (features, weights, gradient.contiguous(), of_features, of_weights)]
        bending.bend_gradient(*arrays)
        return of_features, of_weights.to(weights.dtype)
