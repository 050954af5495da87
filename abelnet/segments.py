r"""Rows of a matrix grouped by set: sums and extremes of each set by the fastest kernels of a CPU."""

from __future__ import annotations

__all__ = ["Segments", "is_plain"]

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_READABLE = {"cpu"}  # devices that need not be waited for


class Segments:
    r"""Sets of rows, prepared for several sums and extremes over them.

    Within a set, rows are added in the given order, as ``index_add`` does, and with the same result to the last bit.

    Arguments:
        index: Set of each row, with shape :math:`(N)`, in any order.
        count: Number of sets :math:`B`.

    Example:
        >>> segments = Segments(torch.tensor([1, 0, 1]), 3)
        >>> segments.sum(torch.tensor([[1.0], [2.0], [3.0]])).tolist()
        [[2.0], [4.0], [0.0]]
    """

    def __init__(self, index: Tensor, count: int) -> None:
        self.index, self.count = index, count
        self.sizes = torch.bincount(index, minlength=count)
        is_ascending = bool((index[1:] >= index[:-1]).all())
        self.order = None if is_ascending else index.argsort(stable=True)
        self._ends = F.pad(self.sizes.cumsum(0), (1, 0))
        self._rows = torch.arange(len(index), device=index.device) if self.order is None else self.order
        self._ascending = index if self.order is None else index.index_select(0, self.order)

    def sum(self, u: Tensor) -> Tensor:
        """Returns the sum over each set of rows :math:`(N, k)`, with shape :math:`(B, k)`."""
        total: Tensor = _Sum.apply(u, self)  # type: ignore[no-untyped-call]
        return total

    def amax(self, u: Tensor) -> Tensor:
        """Returns the maximum over each set, of which ties share the gradient; -inf for an empty set."""
        largest: Tensor = _Extreme.apply(u, self, "amax")  # type: ignore[no-untyped-call]
        return largest

    def amin(self, u: Tensor) -> Tensor:
        """Returns the minimum over each set, of which ties share the gradient; inf for an empty set."""
        smallest: Tensor = _Extreme.apply(u, self, "amin")  # type: ignore[no-untyped-call]
        return smallest

    def prod(self, u: Tensor) -> Tensor:
        """Returns the product over each set; it has no gradient."""
        return self._reduced(u.detach(), "prod", 1.0)

    def ordered(self, u: Tensor) -> Tensor:
        """Returns rows in the order of sets; the rows themselves if they are."""
        return u if self.order is None else _Ordered.apply(u, self.order)  # type: ignore[no-untyped-call]

    def spread(self, results: Tensor) -> Tensor:
        """Returns the row of the set of each element, :math:`(B, k)` to :math:`(N, k)`."""
        return results.index_select(0, self.index)

    def _reduced(self, u: Tensor, kind: str, start: float) -> Tensor:
        # Scattered rows are read much faster than they are written.
        rows = u if self.order is None else u.index_select(0, self.order)
        begin = u.new_full((self.count, u.shape[1]), start)
        return begin.scatter_reduce_(0, self._ascending[:, None].expand_as(rows), rows, kind)


def _added(u: Tensor, index: Tensor, rows: Tensor, ends: Tensor) -> Tensor:
    if u.dtype == torch.float32 and u.shape[0] > 0 and u.shape[1] > 0:  # much slower in float64
        bags: Tensor = torch.embedding_bag(u.contiguous(), rows, ends, False, 0, False, None, True)[0]
        return bags
    return u.new_zeros(len(ends) - 1, u.shape[1]).index_add_(0, index, u)


def is_plain(*tensors: Tensor) -> bool:
    """Whether tensors are on a CPU, and neither compiled nor transformed by ``torch.func``: values can be read."""
    if torch.compiler.is_compiling():
        return False
    try:
        return all(x.device.type in _READABLE and x.data_ptr() >= 0 for x in tensors)
    except RuntimeError:  # a tensor without memory of its own, as under vmap
        return False


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, segments: Segments) -> Tensor:
        ctx.segments = segments
        return _added(u, segments.index, segments._rows, segments._ends)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.segments.spread(gradient), None


class _Ordered(torch.autograd.Function):
    """Rows in another order, whose gradient is read and not scattered."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, order: Tensor) -> Tensor:
        ctx.order = order
        return u.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        order = ctx.order
        places = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return gradient.index_select(0, places), None


class _Extreme(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, segments: Segments, kind: str) -> Tensor:
        extreme = segments._reduced(u, kind, -math.inf if kind == "amax" else math.inf)
        ctx.segments = segments
        ctx.save_for_backward(u, extreme)
        return extreme

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        u, extreme = ctx.saved_tensors
        segments: Segments = ctx.segments
        if torch.is_grad_enabled():  # of higher order
            there = (u == segments.spread(extreme)).to(u.dtype)
            shares = segments.sum(there).clamp_min(1)
            return there * segments.spread(gradient / shares), None, None
        # 1 where an element is the extreme, else 0; much faster than by comparison.
        there = segments.spread(extreme)
        torch.sub(u, there, out=there).abs_().sign_().neg_().add_(1)
        filled = u.shape[1] * int((segments.sizes > 0).sum())
        if int(there.sum(dtype=torch.float64)) > filled:  # ties
            gradient = gradient / segments.sum(there).clamp_min_(1)
        return there.mul_(segments.spread(gradient)), None, None
