r"""Rows of a matrix grouped by set: sums and extremes of each set by the fastest kernels of a CPU."""

from __future__ import annotations

__all__ = ["Segments", "composed_gradients", "has_kernels", "is_plain", "kernels_for", "set_kernels_enabled"]

import importlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

_READABLE = {"cpu"}  # devices that need not be waited for
# Numbers from which compiled kernels are used: with fewer, what they save is not worth compiling them.
_MANY = 2**16
# Numbers per thread.
_SHARE = 2**18
_ENABLED: ContextVar[bool] = ContextVar("abelnet_kernels", default=True)


class set_kernels_enabled:
    """Turns compiled kernels on or off: from here on as a function, within a block as a context manager.

    With ``pip install "abelnet[fast]"``, sets of 8 or more dimensions in single precision on a CPU are folded by
    kernels that numba compiles on first use, if there are many numbers; results differ by rounding. Like
    ``torch.set_grad_enabled``, this applies to the current thread (or asynchronous task) only.

    Arguments:
        enabled: Whether kernels may be used; they may by default.

    Example:
        >>> with set_kernels_enabled(False):
        ...     kernels_for(torch.rand(10_000, 32)) is None
        True
    """

    def __init__(self, enabled: bool) -> None:
        self._before = _ENABLED.get()
        _ENABLED.set(bool(enabled))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _ENABLED.set(self._before)


def kernels_for(x: Tensor) -> ModuleType | None:
    """Returns the compiled kernels if they fold rows such as these, which are plain; else None."""
    if x.dtype != torch.float32 or x.numel() < _MANY or not _ENABLED.get():
        return None
    kernels = _kernels()
    return kernels if kernels is not None and x.shape[-1] <= kernels.LARGEST_DIM else None


def has_kernels(x: Tensor, *parameters: Tensor) -> bool:
    """Whether compiled kernels are used for numbers such as these, with these parameters."""
    return is_plain(x, *parameters) and all(p.dtype == x.dtype for p in parameters) and kernels_for(x) is not None


@cache
def _kernels() -> ModuleType | None:
    if importlib.util.find_spec("numba") is None:
        return None
    return importlib.import_module("abelnet.kernels")  # numba takes a second to import


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
        self._finite: tuple[Any, ...] | None = None  # where rows are that were found to be finite
        kernels = _kernels() if len(index) * 8 >= _MANY and _ENABLED.get() else None
        if kernels is not None:
            rows, ends, is_ascending = kernels.order_by_set(index.detach().contiguous().numpy(), count)
            self._rows, self._ends = torch.from_numpy(rows), torch.from_numpy(ends)
            self.sizes = self._ends[1:] - self._ends[:-1]
            self.order = None if is_ascending else self._rows
        else:
            self.sizes = torch.bincount(index, minlength=count)
            self.order = None if bool((index[1:] >= index[:-1]).all()) else index.argsort(stable=True)
            self._ends = F.pad(self.sizes.cumsum(0), (1, 0))
            self._rows = torch.arange(len(index), device=index.device) if self.order is None else self.order

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
        ascending = self.index if self.order is None else self.index.index_select(0, self.order)
        return begin.scatter_reduce_(0, ascending[:, None].expand_as(rows), rows, kind)

    def fold(
        self, kernel: Callable[..., bool], x: Tensor, given: Sequence[Any] = (), by_set: Sequence[Tensor] = ()
    ) -> bool:
        """Runs a kernel that returns whether all rows are finite, which it does; see :meth:`run`.

        If so, that is noted.
        """
        is_fine = all(self.run(kernel, x, given, by_set))
        if is_fine:
            self.note(x)
        return is_fine

    def note(self, x: Tensor) -> None:
        """Keeps a note that rows are finite."""
        self._finite = _place(x)

    def saw(self, x: Tensor) -> bool:
        """Whether these very rows, which have existed since before the sets, are those last noted to be finite."""
        return self._finite is not None and self._finite == _place(x)

    def run(
        self,
        kernel: Callable[..., Any],
        x: Tensor,
        given: Sequence[Any] = (),
        by_set: Sequence[Tensor] = (),
        by_row: Sequence[Tensor] = (),
        added: Sequence[Tensor] = (),
    ) -> list[Any]:
        """Runs a kernel on parts of the sets in as many threads as torch has; returns what it returns for each part.

        Arguments:
            kernel: Called with rows, their order, the ends of the sets, and all below.
            x: Rows, with shape :math:`(N, k)`.
            given: What is the same for all sets.
            by_set: What is read or written for each set, :math:`(B, *)`, contiguous.
            by_row: What is written for each row, :math:`(N, *)`, contiguous.
            added: What results of all sets are added to.
        """
        arrays = x.detach().contiguous().numpy(), self._rows.numpy(), self._ends.numpy()
        sets, rows, sums = ([one.detach().numpy() for one in some] for some in (by_set, by_row, added))
        parts = max(1, min(torch.get_num_threads(), x.numel() // _SHARE))
        if parts == 1:
            return [kernel(*arrays, *given, *sets, *rows, *sums)]
        cuts = np.searchsorted(arrays[2], np.linspace(0, len(x), parts + 1))
        cuts[0], cuts[-1] = 0, self.count

        def one(low: int, high: int) -> tuple[Any, list[Any]]:
            own = [np.zeros_like(total) for total in sums]
            some = (one[low:high] for one in sets)
            return kernel(*arrays[:2], arrays[2][low : high + 1], *given, *some, *rows, *own), own

        with ThreadPoolExecutor(parts) as threads:
            found = list(threads.map(one, cuts[:-1], cuts[1:]))
        for _, own in found:
            for total, part in zip(sums, own, strict=True):
                total += part
        return [result for result, _ in found]


def _place(x: Tensor) -> tuple[Any, ...]:
    return x.data_ptr(), x.shape, x.stride()


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


def composed_gradients(
    function: Callable[..., Tensor], inputs: Sequence[Tensor | None], gradient: Tensor
) -> tuple[Tensor | None, ...]:
    """Returns gradients by a composition of differentiable functions, for those of higher order; None where not needed.

    Arguments:
        function: The composition, called with all inputs.
        inputs: Inputs of a function whose own backward pass has no derivatives.
        gradient: Gradient by its result.
    """
    needed = [x for x in inputs if x is not None and x.requires_grad]
    found = iter(torch.autograd.grad(function(*inputs), needed, gradient, create_graph=True, allow_unused=True))
    return tuple(next(found) if x is not None and x.requires_grad else None for x in inputs)


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
        if (kernels := kernels_for(u)) is not None:
            extreme = u.new_empty(segments.count, u.shape[1])
            segments.fold(kernels.extreme, u, [np.float32(1 if kind == "amax" else -1)], [extreme])
        else:
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
        if (kernels := kernels_for(u)) is not None:
            of_u = torch.empty(u.shape, dtype=u.dtype)
            segments.run(kernels.extreme_gradient, u, [], [extreme, gradient.contiguous()], [of_u])
            return of_u, None, None
        # 1 where an element is the extreme, else 0; much faster than by comparison.
        there = segments.spread(extreme)
        torch.sub(u, there, out=there).abs_().sign_().neg_().add_(1)
        filled = u.shape[1] * int((segments.sizes > 0).sum())
        if int(there.sum(dtype=torch.float64)) > filled:  # ties
            gradient = gradient / segments.sum(there).clamp_min_(1)
        return there.mul_(segments.spread(gradient)), None, None
