r"""Sums of positive numbers that are given by their logarithms: stable folds of exponentials and powers."""

from __future__ import annotations

__all__ = ["LogSum", "PeakSum", "log_sum"]

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from abelnet.multisets import Multisets
from abelnet.portable import exact, logaddexp
from abelnet.segments import Segments, composed_gradients

_LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class LogSum:
    r"""Log-sum-exp, :math:`u * v = \frac{1}{k} \log(e^{k u} + e^{k v})`, by which laws that add fold positive numbers.

    Each set is measured from its own largest element, so that nothing overflows, however large or small the numbers
    are. The logarithm of 0 is :math:`-\infty`.

    Arguments:
        exponent: Exponent :math:`a` of the count: the result of :math:`n` elements is less
            :math:`\frac{a}{k} \log n`. 0 is the sum, 1 the mean.
        rate: The rate :math:`k` of each dimension, with shape :math:`(d)`; 1 if None.

    Example:
        >>> LogSum().combine(torch.tensor([1000.0]), torch.tensor([1000.0]))
        tensor([1000.6932])
    """

    exponent: float = 0.0
    rate: Tensor | None = None
    aggregate: ClassVar[str] = "logaddexp"

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        """Returns :math:`u * v`, with broadcasting."""
        return self.unscaled(logaddexp(self._scaled(u), self._scaled(v)) - self.exponent * math.log(2))

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        """Returns :math:`u_1 * \\dots * u_n` of each set: rows :math:`(N, d)` to :math:`(*, d)`."""
        if (kernels := multisets.kernels(u)) is not None:
            return _fused(u, self.rate, None, self.exponent, multisets, kernels)
        rate = self.rate
        segments = multisets.segments(u) if rate is None else multisets.segments(u, rate)
        if multisets.element_weights is not None:
            segments = None  # the fused gradient is not that of weights
        if segments is not None and rate is not None and bool((rate > 0).any() & (rate < 0).any()):
            # Some channels would be measured from their largest elements, others from their smallest.
            u, rate = rate * u, None
        if segments is None:
            u = self._scaled(u)
            result = self.unscaled(_log_sum_exp(u, multisets))
        else:
            result = _LogSumExp.apply(u, rate, multisets)  # type: ignore[no-untyped-call]
            result = result.reshape(*multisets.shape, u.shape[-1])
            if rate is None:
                result = self.unscaled(result)
        return self._normalized(result, multisets)

    def reduce_logs(self, x: Tensor, offset: Tensor, least: Tensor, multisets: Multisets) -> Tensor:
        r"""Returns the fold of :math:`\log \max(x_i + c, l)`; see :meth:`abelnet.laws.base.Law.reduce_logs`."""
        x = x if not bool(offset.any()) else x + offset
        if (kernels := multisets.kernels(x)) is None:
            return self.reduce(torch.maximum(x, least).log(), multisets)
        return _fused(x, self.rate, least, self.exponent, multisets, kernels)

    def _normalized(self, result: Tensor, multisets: Multisets) -> Tensor:
        if self.exponent == 0:
            return result
        return result - self.unscaled(self.exponent * multisets.log_totals[..., None].to(result.dtype))

    def lift(self, u: Tensor) -> Tensor:
        """Returns the state of one element: its logarithm and, unless the exponent is 0, that of the count, which is 0.

        Both merge by :math:`\\log(e^s + e^t)`, which does not subtract: what is small beside another logarithm is lost.
        """
        u = self._scaled(u).clamp_min(_far(u.dtype))
        return u if self.exponent == 0 else torch.cat((u, torch.zeros_like(u)), -1)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        """Returns the logarithm that a state represents."""
        if self.exponent == 0:
            return self.unscaled(state).to(dtype)
        total, count = state.chunk(2, -1)
        return self.unscaled(total - self.exponent * count).to(dtype)

    def empty(self, dim: int) -> Tensor:
        """Returns the state of the empty multiset, as good as :math:`-\\infty` but finite for the sake of gradients."""
        return torch.full((dim if self.exponent == 0 else 2 * dim,), _far(torch.float64), dtype=torch.float64)

    def merge(self, state: Tensor, other: Tensor) -> Tensor:
        """Merges two states into that of the union of their multisets."""
        return logaddexp(state, other)

    def gather(self, states: Tensor) -> Tensor:
        """Merges the states of a set, :math:`(*, n, k)` to :math:`(*, k)`."""
        return states.logsumexp(-2)

    def scan(self, states: Tensor) -> Tensor:
        """Merges each state of a sequence with all before it, along the second last dimension of :math:`(*, n, k)`."""
        return states.logcumsumexp(-2)

    def cumulative(self, u: Tensor) -> Tensor:
        """Returns the prefix scan :math:`u_1, u_1 * u_2, \\dots` along the elements of :math:`(*, n, d)`."""
        return self.lower(self.scan(self.lift(u)), u.dtype)

    def power(self, u: Tensor, n: float) -> Tensor:
        """Returns :math:`u * \\dots * u`, ``n`` copies combined."""
        more = (1 - self.exponent) * (math.log(n) if n > 0 else -math.inf)
        return u + (more if self.rate is None else more / self.rate)

    def _scaled(self, u: Tensor) -> Tensor:
        return u if self.rate is None else self.rate * u

    def unscaled(self, u: Tensor) -> Tensor:
        """Returns logarithms in units of the rate, :math:`u / k`."""
        return u if self.rate is None else u / self.rate


@dataclass(frozen=True)
class PeakSum:
    r"""Running sums of positive numbers that are given by their logarithms :math:`u_i`, for streams.

    The state of a multiset is the largest logarithm :math:`m` and :math:`\sum_i e^{u_i - m}`, so that nothing
    overflows and an element can be removed; and, unless the exponent is 0, the count.

    Arguments:
        exponent: Exponent of the count, as of :class:`LogSum`.

    Example:
        >>> law = PeakSum()
        >>> state = law.merge(*(law.lift(torch.tensor([u])) for u in (1000.0, 1000.0)))
        >>> state, law.lower(state, torch.float32)
        (tensor([1000.,    2.], dtype=torch.float64), tensor([1000.6932]))
    """

    exponent: float = 0.0

    def lift(self, u: Tensor) -> Tensor:
        """Returns the state of one element."""
        u = u.double().clamp_min(_far(torch.float64))
        one = torch.ones_like(u)
        return torch.cat((u, one) if self.exponent == 0 else (u, one, one), -1)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        """Returns the logarithm that a state represents, :math:`-\\infty` of nothing."""
        top, total, *count = self._parts(state)
        log = top + total.clamp_min(0).log()
        return (log if not count else log - self.exponent * count[0].log()).to(dtype)

    def empty(self, dim: int) -> Tensor:
        """Returns the state of the empty multiset."""
        parts = torch.zeros(2 if self.exponent == 0 else 3, dim, dtype=torch.float64)
        parts[0] = _far(torch.float64)
        return parts.reshape(-1)

    def merge(self, state: Tensor, other: Tensor) -> Tensor:
        """Merges two states into that of the union of their multisets."""
        return self.gather(torch.stack((state, other), -2))

    def remove(self, state: Tensor, other: Tensor) -> Tensor:
        """Returns the state of a multiset without a part of it."""
        (top, *sums), (other_top, *others) = self._parts(state), self._parts(other)
        others[0] = others[0] * (other_top - top).exp()
        return torch.cat((top, *(one - two for one, two in zip(sums, others, strict=True))), -1)

    def gather(self, states: Tensor) -> Tensor:
        """Merges the states of a set, :math:`(*, n, k)` to :math:`(*, k)`."""
        tops, totals, *counts = self._parts(states)
        top = tops.amax(-2)
        total = (totals * (tops - top[..., None, :]).exp()).sum(-2)
        return torch.cat((top, total, *(one.sum(-2) for one in counts)), -1)

    def scatter(self, states: Tensor, index: Tensor, more: Tensor) -> Tensor:
        """Merges the states ``more``, :math:`(N, k)`, into the rows ``index`` of ``states``, :math:`(G, k)`."""
        (before, total, *counts), (tops, totals, *others) = self._parts(states), self._parts(more)
        top = before.scatter_reduce(0, index[:, None].expand_as(tops), tops, "amax")
        total = (total * (before - top).exp()).index_add(0, index, totals * (tops - top[index]).exp())
        return torch.cat((top, total, *(a.index_add(0, index, b) for a, b in zip(counts, others, strict=True))), -1)

    def _parts(self, state: Tensor) -> tuple[Tensor, ...]:
        return state.chunk(2 if self.exponent == 0 else 3, -1)


def _far(dtype: torch.dtype) -> float:
    """Returns a logarithm that is as good as that of 0."""
    return -math.sqrt(torch.finfo(dtype).max)


def _log_sum_exp(u: Tensor, multisets: Multisets) -> Tensor:
    limits = torch.finfo(u.dtype)
    # Measured from a constant, the sum has the right gradient by itself. A set of zeros, or of nothing, has no
    # largest element: it gets a logarithm that is as good as -inf, but finite, for the sake of gradients.
    top = multisets.amax(u.detach()).clamp_min(exact(_far(u.dtype), u))
    total = multisets.sum((u - multisets.spread(top)).exp())
    return top + total.clamp_min(exact(limits.tiny, u)).log()


class _LogSumExp(torch.autograd.Function):
    r""":math:`\frac{1}{k} \log \sum_i e^{k u_i}` of each set, whose gradient is a softmax: one tensor is kept.

    Rates have one sign, or are None, which is 1.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, rate: Tensor | None, multisets: Multisets) -> Tensor:
        segments, limits = multisets.segments(u), torch.finfo(u.dtype)
        assert segments is not None
        # A set of zeros, or of nothing, has no largest logarithm: it gets one that is as good as -inf, but finite.
        far = -_far(u.dtype)
        if rate is None or float(rate[0]) > 0:
            top = segments.amax(u).clamp_min_(-far)
        else:
            top = segments.amin(u).clamp_max_(far)
        weights = segments.spread(top)
        # The base 2 is three times as fast. Rounding counts for little: where an exponent is large, its power is small.
        torch.sub(u, weights, out=weights).mul_(_LOG2_E if rate is None else rate * _LOG2_E).exp2_()
        total = multisets.sum(weights).reshape(top.shape).clamp_min_(limits.tiny)
        log = total.log()
        result = top.add_(log if rate is None else log.div_(rate))
        ctx.multisets = multisets
        ctx.save_for_backward(u, rate, weights, total, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        u, rate, weights, total, result = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order

            def plain(u: Tensor, rate: Tensor | None) -> Tensor:
                sums = _log_sum_exp(u if rate is None else rate * u, ctx.multisets).reshape(gradient.shape)
                return sums if rate is None else sums / rate

            return *composed_gradients(plain, (u, rate), gradient), None
        of_u = ctx.multisets.segments(u).spread(gradient / total).mul_(weights)
        if rate is None or not ctx.needs_input_grad[1]:
            return of_u, None, None
        return of_u, ((of_u * u).sum(0) - (gradient * result).sum(0)) / rate, None


def _fused(
    u: Tensor,
    rate: Tensor | None,
    least: Tensor | None,
    exponent: float,
    multisets: Multisets,
    kernels: tuple[Segments, ModuleType],
) -> Tensor:
    """Returns the fold of rows, or of their logarithms if ``least`` is given, by compiled kernels."""
    rate = torch.ones(u.shape[-1]) if rate is None else rate.expand(u.shape[-1])
    result: Tensor = _Fused.apply(u, rate, least, exponent, multisets, *kernels)  # type: ignore[no-untyped-call]
    return result.reshape(*multisets.shape, u.shape[-1])


class _Fused(torch.autograd.Function):
    r""":math:`\frac{1}{k} (\log \sum_i e^{k u_i} - a \log n)` of each set; weights are found again for the gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        rate: Tensor,
        least: Tensor | None,
        exponent: float,
        multisets: Multisets,
        segments: Segments,
        kernels: ModuleType,
    ) -> Tensor:
        logs, tiny = least is not None, torch.finfo(u.dtype).tiny
        limit = torch.full_like(rate, tiny) if least is None else least.to(u.dtype).clamp_min(tiny).expand_as(rate)
        given = torch.stack((rate.sign(), rate * (1 if logs else _LOG2_E), limit)).detach().numpy()
        top, total, result = (u.new_empty(segments.count, u.shape[-1]) for _ in range(3))
        fixed = [given, logs, np.float32(exponent)]
        segments.fold(kernels.log_sum_exp, u, fixed, [top, total, result])
        ctx.others = multisets, segments, kernels, fixed
        ctx.save_for_backward(u, rate, least, top, total)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        u, rate, least, top, total = ctx.saved_tensors
        multisets, segments, kernels, given = ctx.others
        if torch.is_grad_enabled():  # of higher order

            def plain(u: Tensor, rate: Tensor) -> Tensor:
                logs = u if least is None else torch.maximum(u, least).log()
                counts: Tensor = float(given[2]) * segments.sizes.clamp_min(1).log()[:, None]
                folds: Tensor = (_log_sum_exp(rate * logs, multisets).reshape(gradient.shape) - counts) / rate
                return folds

            return *composed_gradients(plain, (u, rate), gradient), None, None, None, None, None
        of_u, of_rate = torch.empty(u.shape, dtype=u.dtype), torch.zeros(u.shape[-1], dtype=torch.float64)
        segments.run(kernels.log_sum_exp_gradient, u, given, [top, total, gradient.contiguous()], [of_u], [of_rate])
        # The kernel has exponents of 2.
        return of_u, (of_rate * math.log(2) / rate.square()).to(rate.dtype), None, None, None, None, None


def log_sum(x: Tensor, offset: Tensor, least: Tensor, multisets: Multisets) -> Tensor:
    r"""Returns :math:`\sum_i \log \max(x_i + c, l)` of each set: rows :math:`(N, d)` to :math:`(*, d)`."""
    if (kernels := multisets.kernels(x)) is None:
        return _sum_of_logs(x, offset, least, multisets)
    offset = offset.expand(x.shape[-1])
    total: Tensor = _SumOfLogs.apply(x, offset, least, multisets, *kernels)  # type: ignore[no-untyped-call]
    return total.reshape(*multisets.shape, x.shape[-1])


def _sum_of_logs(x: Tensor, offset: Tensor, least: Tensor, multisets: Multisets) -> Tensor:
    return multisets.sum((torch.maximum(x, least - offset.detach()) + offset).log())


class _SumOfLogs(torch.autograd.Function):
    """The sum of logarithms of each set, of which none is stored."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        offset: Tensor,
        least: Tensor,
        multisets: Multisets,
        segments: Segments,
        kernels: ModuleType,
    ) -> Tensor:
        limit = least.to(x.dtype).clamp_min(torch.finfo(x.dtype).tiny).expand_as(offset)
        given = [torch.stack((offset, limit)).numpy()]
        total = x.new_empty(segments.count, x.shape[-1])
        segments.fold(kernels.log_sum, x, given, [total])
        ctx.others = multisets, segments, kernels, given
        ctx.save_for_backward(x, offset, least)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, offset, least = ctx.saved_tensors
        multisets, segments, kernels, given = ctx.others
        if torch.is_grad_enabled():  # of higher order

            def plain(x: Tensor, offset: Tensor) -> Tensor:
                return _sum_of_logs(x, offset, least, multisets).reshape(gradient.shape)

            return *composed_gradients(plain, (x, offset), gradient), None, None, None, None
        of_x, of_offset = torch.empty(x.shape, dtype=x.dtype), torch.zeros(x.shape[-1], dtype=torch.float64)
        segments.run(kernels.log_sum_gradient, x, given, [gradient.contiguous()], [of_x], [of_offset])
        return of_x, of_offset.to(offset.dtype), None, None, None, None
