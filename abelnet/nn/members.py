r"""Members of a gated bank: exact laws in a form that trains well and is finite for all finite elements."""

from __future__ import annotations

__all__ = [
    "Exponentials",
    "Extremes",
    "Logarithms",
    "Member",
    "Polynomials",
    "Powers",
    "Scene",
    "Totals",
    "fold_or_mean",
    "nonzero",
]

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.bijections import Generator
from abelnet.laws import Law, Maximum, Mean, Minimum, Polynomial, Sum
from abelnet.laws.logs import LogSum
from abelnet.multisets import Multisets
from abelnet.operation import Operation
from abelnet.segments import is_plain

# Elements are measured in units of their typical size. Powers and logarithms treat smaller ones as this.
_SMALLEST = 1e-6
# Powers and products stay within exp(-30) and exp(30) units: farther out, they only spoil the gradients of others.
_LOG_LIMIT = 30.0
# Rates and exponents stay within these: beyond, the law is as good as a maximum or minimum, or has no limit.
_RATES = (1e-2, 20.0)


class Scene:
    """Elements of a batch in units of their typical size, and what several members need of them.

    Arguments:
        multisets: The sets.
        z: Elements in these units, with shape :math:`(N, c)`; those of the sets, divided by units, if None.
        units: The typical sizes, with shape :math:`(c)`.
    """

    def __init__(self, multisets: Multisets, z: Tensor | None, units: Tensor) -> None:
        self.multisets, self.units = multisets, units
        self.values = multisets.values if z is None else z
        self.divisor = units if z is None else torch.ones_like(units)
        self._known: dict[str, Tensor] = {} if z is None else {"z": z}  # cached_property cannot be compiled
        self._logs: Scene | None = None

    def _once(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        if name not in self._known:
            self._known[name] = compute()
        return self._known[name]

    @property
    def z(self) -> Tensor:
        """Elements in units, with shape :math:`(N, c)`."""
        return self._once("z", lambda: self.values / self.divisor)

    @property
    def empty(self) -> Tensor:
        """Whether each set is empty, with shape :math:`(B, 1)`."""
        return self._once("empty", lambda: self.multisets.sizes.reshape(-1, 1) == 0)

    @property
    def count(self) -> Tensor:
        """Number of elements of each set, at least 1, with shape :math:`(B, 1)`."""
        # Not by the dtype of the elements in units, which need not be computed for it.
        dtype = torch.promote_types(self.values.dtype, self.divisor.dtype)
        return self._once("count", lambda: self.multisets.sizes.reshape(-1, 1).clamp_min(1).to(dtype))

    @property
    def largest(self) -> Tensor:
        """Largest element of each set, :math:`(B, c)`; 0 if it is empty."""
        return self._once("largest", lambda: self._filled(self.multisets.amax(self.z)))

    @property
    def smallest(self) -> Tensor:
        """Smallest element of each set, :math:`(B, c)`; 0 if it is empty."""
        return self._once("smallest", lambda: self._filled(self.multisets.amin(self.z)))

    def _filled(self, results: Tensor) -> Tensor:
        return torch.where(self.empty, 0, results.reshape(-1, results.shape[-1]))

    @property
    def logs(self) -> Scene:
        """The logarithms of the elements, which are taken as positive."""
        if self._logs is None:
            self._logs = Scene(self.multisets, _log(self.z), self.units)
        return self._logs


class Member(nn.Module, ABC):
    """Laws with one fold of the elements: the fold itself, and its mean if it has one.

    Arguments:
        channels: Number of channels :math:`c`.
    """

    names: tuple[str, ...]
    """Name of each law."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def reset_parameters(self) -> None:
        """Resets to the initial values; a member without parameters has nothing to reset."""

    def look(self) -> None:
        """Reads what the forward pass branches on, after buffers were loaded."""

    def refine(self, scene: Scene) -> None:
        """Prepares to train alone, on sets such as those of a batch."""

    def lift(self, scene: Scene) -> Tensor | None:
        """Returns what is summed over each set, :math:`(N, k)`; None if nothing is."""
        return None

    @abstractmethod
    def lower(self, total: Tensor | None, scene: Scene) -> list[Tensor]:
        """Returns the result of each law, :math:`(B, c)`, from the sums :math:`(B, k)`; any number for empty sets."""

    @abstractmethod
    def operation(self, law: int, channels: Sequence[int], units: Tensor) -> Operation:
        """Returns a law as an operation on some channels, of elements as they were before they were scaled.

        Arguments:
            law: Index of the law.
            channels: Indices of the channels, :math:`(k)`.
            units: Typical size of the elements in these channels, :math:`(k)`.
        """


class Totals(Member):
    r"""The arithmetic mean."""

    names = ("arithmetic mean",)

    def lift(self, scene: Scene) -> Tensor:
        return scene.z

    def lower(self, total: Tensor | None, scene: Scene) -> list[Tensor]:
        assert total is not None
        return [total / scene.count]

    def operation(self, law: int, channels: Sequence[int], units: Tensor) -> Operation:
        return Operation(Generator(len(channels), "affine"), Mean())


class Extremes(Member):
    """Maximum and minimum."""

    names = ("maximum", "minimum")

    def lower(self, total: Tensor | None, scene: Scene) -> list[Tensor]:
        return [scene.largest, scene.smallest]

    def operation(self, law: int, channels: Sequence[int], units: Tensor) -> Operation:
        return Operation(Generator(len(channels), "affine"), (Maximum, Minimum)[law]())


class Polynomials(Member):
    r"""Sums and products: :math:`u + v + \gamma u v` with :math:`u = z + s`, from the plain sum on.

    Factors :math:`1 + \gamma u` below 0 count by their sign; one at 0 counts as :math:`10^{-6}`, so that its gradient
    stays finite.
    """

    names = ("polynomial",)

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.gamma = nn.Parameter(torch.zeros(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.gamma.zero_()
        self.shift.zero_()

    def lift(self, scene: Scene) -> Tensor:
        gamma = nonzero(self.gamma)
        u = scene.z + self.shift
        if is_plain(u, gamma) and u.numel() > 0:
            log: Tensor = _LogFactors.apply(u, gamma)  # type: ignore[no-untyped-call]
            with torch.no_grad():
                ends = 1 + gamma * torch.stack((u.amin(0), u.amax(0)))
            # Most often all factors are positive, and there is nothing to count.
            return torch.cat((log, 1 + gamma * u < 0), -1) if bool((ends < 0).any()) else log
        return torch.cat((_log_factors(u, gamma), 1 + gamma * u < 0), -1)

    def lower(self, total: Tensor | None, scene: Scene) -> list[Tensor]:
        assert total is not None
        gamma = nonzero(self.gamma)
        negatives = total[:, self.channels :] if total.shape[-1] > self.channels else torch.zeros_like(total)
        total = total[:, : self.channels]
        q = gamma * total
        odd = negatives.detach().remainder(2) > 0.5
        small = (q.abs() < 1e-3) & ~odd
        safe = torch.where(small, 0, q).clamp(-_LOG_LIMIT, _LOG_LIMIT)
        large = torch.where(odd, -safe.exp() - 1, safe.expm1()) / gamma
        return [torch.where(small, total * (1 + q / 2 + q * q / 6), large) - self.shift]

    def operation(self, law: int, channels: Sequence[int], units: Tensor) -> Operation:
        gamma, shift = self.gamma.detach()[channels] / units, self.shift.detach()[channels] * units
        return Operation(Generator(len(channels), "affine"), Polynomial(gamma, shift, trainable="both"))


class Exponentials(Member):
    r"""Log-sum-exp and log-mean-exp, :math:`\frac{1}{k} \log \sum_i e^{k z_i}`, measured from the extreme of each set.

    Arguments:
        channels: Number of channels :math:`c`.
        rate: Initial rate :math:`k`, which keeps its sign.
    """

    kind = "exponential"

    def __init__(self, channels: int, rate: float) -> None:
        super().__init__(channels)
        self.start = rate
        self.log_rate = nn.Parameter(torch.full((channels,), math.log(abs(rate))))
        self.names = self._names(rate)

    def _names(self, rate: float) -> tuple[str, ...]:
        return f"log-sum-exp {rate:+g}", f"log-mean-exp {rate:+g}"

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.log_rate.fill_(math.log(abs(self.start)))

    @property
    def rate(self) -> Tensor:
        """The rate :math:`k` of each channel."""
        low, high = map(math.log, _RATES)
        return math.copysign(1.0, self.start) * self.log_rate.clamp(low, high).exp()

    def lower(self, total: Tensor | None, scene: Scene) -> list[Tensor]:
        rate = self.rate
        fold = LogSum(rate=rate).reduce(scene.z, scene.multisets).reshape(-1, self.channels)
        return [fold, fold - scene.count.log() / rate]

    def operation(self, law: int, channels: Sequence[int], units: Tensor) -> Operation:
        rates = self.rate.detach()[channels] / units
        return Operation(Generator(len(channels), self.kind, [rates]), fold_or_mean(law))


class Powers(Exponentials):
    r"""Power sums and power means, :math:`(\sum_i z_i^p)^{1/p}` of positive numbers: log-sum-exp of logarithms.

    Arguments:
        channels: Number of channels :math:`c`.
        rate: Initial exponent :math:`p`, which keeps its sign.
    """

    kind = "positive power"

    def _names(self, rate: float) -> tuple[str, ...]:
        return f"power sum {rate:+g}", f"power mean {rate:+g}"

    def lower(self, total: Tensor | None, scene: Scene) -> list[Tensor]:
        return [_exp(result) for result in super().lower(total, scene.logs)]

    def operation(self, law: int, channels: Sequence[int], units: Tensor) -> Operation:
        return super().operation(law, channels, torch.ones_like(units))  # a power sum has no units


class Logarithms(Member):
    r"""The geometric mean of positive numbers, and their product times a factor, :math:`\gamma^{n - 1} \prod_i x_i`."""

    names = ("geometric mean", "product")

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.log_factor = nn.Parameter(torch.zeros(channels))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.log_factor.zero_()

    def lift(self, scene: Scene) -> Tensor:
        return scene.logs.z

    def lower(self, total: Tensor | None, scene: Scene) -> list[Tensor]:
        assert total is not None
        # The product of n numbers in other units has a factor for each but one of them.
        factor = self.log_factor + scene.units.log()
        return [_exp(total / scene.count), _exp(total + (scene.count - 1) * factor)]

    def operation(self, law: int, channels: Sequence[int], units: Tensor) -> Operation:
        if law == 0:
            return Operation(Generator(len(channels), "logarithm", [0.0]), Mean())
        factor = self.log_factor.detach()[channels].exp()
        return Operation(Generator(len(channels), "affine"), Polynomial(factor, -1 / factor, trainable="both"))


def _log_factors(u: Tensor, gamma: Tensor) -> Tensor:
    r"""Returns :math:`\log |1 + \gamma u| / \gamma`, with factors near 0 as if they were :math:`10^{-6}`."""
    q = gamma * u
    small = q.abs() < 1e-3
    size = torch.where(small, 1, 1 + q).abs().clamp_min(_SMALLEST)
    return torch.where(small, u * (1 - q / 2 + q * q / 3), size.log() / gamma)


class _LogFactors(torch.autograd.Function):
    r"""The same as :func:`_log_factors`, with derivatives by hand.

    Much cheaper than a composition, which keeps a dozen tensors of all elements.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, gamma: Tensor) -> Tensor:
        q = gamma * u
        if float(q.amin()) > -0.5:
            log = q.log1p()
        else:
            log = torch.where(q > -0.5, q.clamp_min(-0.5).log1p(), (1 + q).abs().clamp_min(_SMALLEST).log())
        log.div_(gamma)
        ctx.save_for_backward(u, gamma, log)
        return log

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        u, gamma, log = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order
            inputs = [x for x in (u, gamma) if x.requires_grad]
            found = iter(torch.autograd.grad(_log_factors(u, gamma), inputs, gradient, create_graph=True))
            of_first, of_second = (next(found) if x.requires_grad else None for x in (u, gamma))
            return of_first, of_second
        factor = (gamma * u).add_(1)
        if float(factor.amin()) < _SMALLEST:  # those near 0 are constant
            far = factor.abs() >= _SMALLEST
            of_u = torch.where(far, gradient / torch.where(far, factor, 1), 0)
        else:
            of_u = gradient / factor
        if not ctx.needs_input_grad[1]:
            return of_u, None
        # A difference of nearly equal numbers where all products of a channel are small: there a series.
        small = gamma.abs() * torch.maximum(u.amax(0), -u.amin(0)) < 1e-2
        of_gamma = torch.zeros_like(gamma)
        if not bool(small.all()):
            of_gamma = ((of_u * u).sum(0) - (gradient * log).sum(0)) / gamma
        if bool(small.any()):
            power = (gradient * u).mul_(u)
            series = -power.sum(0) / 2 + 2 / 3 * gamma * power.mul_(u).sum(0)
            of_gamma = torch.where(small, series, of_gamma)
        return of_u, of_gamma


def fold_or_mean(law: int) -> Law:
    """Returns the law by which a member adds: the sum, or the mean."""
    return (Sum, Mean)[law]()


def nonzero(gamma: Tensor) -> Tensor:
    """Moves a coefficient that is divided by away from 0; its gradient passes."""
    return gamma + 1e-8 * (gamma.abs() < 1e-8)


def _log(z: Tensor) -> Tensor:
    if is_plain(z) and z.numel() > 0 and float(z.detach().amin()) >= _SMALLEST:
        return z.log()
    return z.clamp_min(_SMALLEST).log()


def _exp(log: Tensor) -> Tensor:
    return log.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()
