r"""Sliding windows: aggregation of the last elements of a sequence, by number or by time, without subtraction.

Each element enters and leaves a window once, at a constant amortized cost, for every law: states are merged and never
subtracted, so that rounding errors do not add up over a stream, and a large element leaves no error behind.
"""

from __future__ import annotations

__all__ = ["RollingWindow", "StateQueue", "fold_ranges", "rolling", "slide"]

import math
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.checks import check_count, check_dtype, check_finite, check_number, check_values, peek
from abelnet.errors import AbelnetError
from abelnet.laws import Law
from abelnet.laws.logs import LogSum
from abelnet.snapshots import Snapshot

if TYPE_CHECKING:
    from abelnet.operation import Operation

# Numbers of states that are folded at once: they fit in the cache of a core.
_PART = 1 << 17
# A part overlaps the one before by a window, which is computed twice: at most a quarter of the work.
_OVERLAP = 4
# Up to this size, windows are doubled: fewer passes over the states than those of two scans.
_DOUBLED = 16
_CLOSED = ("right", "both", "left", "neither")


def slide(law: Law | LogSum, states: Tensor, size: int) -> Tensor:
    """Merges the states of the last ``size`` elements at each step; of fewer at the start.

    Scans of blocks as long as a window (van Herk, Gil and Werman): a window is the end of one block and the start of
    the next, whatever its size.

    Arguments:
        law: How states merge.
        states: States, with shape :math:`(*, n, k)`.
        size: Number of elements.

    Returns:
        States of the windows, with shape :math:`(*, n, k)`.

    Example:
        >>> from abelnet import Maximum
        >>> slide(Maximum(), torch.tensor([[3.0], [1.0], [2.0], [0.0]]), 2)[:, 0]
        tensor([3., 3., 2., 2.])
    """
    count = states.shape[-2]
    size = min(size, count)
    if size <= _DOUBLED:
        return _double(law, states, size)
    blocks = -(-count // size)
    # What pads the last block is not part of any window.
    padded = F.pad(states, (0, 0, 0, blocks * size - count))
    padded = padded.reshape(*states.shape[:-2], blocks, size, states.shape[-1])
    starts = law.scan(padded)
    ends = law.scan(padded[..., :-1, 1:, :].flip(-2)).flip(-2)
    both = law.merge(ends, starts[..., 1:, :-1, :])
    later = torch.cat((both, starts[..., 1:, -1:, :]), -2)  # the last window of a block is the block
    return torch.cat((starts[..., :1, :, :], later), -3).flatten(-3, -2)[..., :count, :]


def _double(law: Law | LogSum, states: Tensor, size: int) -> Tensor:
    """Merges windows of 1, 2, 4, … elements, of which every size is made up."""
    width, level, result, done = 1, states, states[..., :0, :], 0
    while True:
        if size & width:
            result = level if done == 0 else _after(law, result, level, done)
            done += width
        if done == size:
            return result
        level = _after(law, level, level, width)
        width *= 2


def _after(law: Law | LogSum, last: Tensor, before: Tensor, size: int) -> Tensor:
    """Merges windows of the last ``size`` elements with the windows before these, where there are any."""
    both = law.merge(last[..., size:, :], before[..., : before.shape[-2] - size, :])
    return torch.cat((last[..., :size, :], both), -2)


def fold_ranges(law: Law | LogSum, states: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    r"""Merges the states ``starts[i]`` to ``ends[i] - 1``, for ranges of any lengths, in :math:`\log_2 n` passes.

    Arguments:
        law: How states merge.
        states: States, with shape :math:`(*, n, k)`.
        starts: First state of each range, with shape :math:`(m)`.
        ends: End of each range, likewise; an empty range has the state of the empty multiset.

    Returns:
        States of the ranges, with shape :math:`(*, m, k)`.

    Example:
        >>> from abelnet import Sum
        >>> x = torch.tensor([[1.0], [2.0], [4.0], [8.0]])
        >>> fold_ranges(Sum(), x, torch.tensor([0, 1, 3]), torch.tensor([4, 3, 3]))[:, 0]
        tensor([15.,  6.,  0.])
    """
    lengths, position = ends - starts, starts
    longest = int(lengths.max()) if len(lengths) > 0 else 0
    result = _empty(law, states).expand(*states.shape[:-2], len(starts), -1)
    width, level = 1, states
    while width <= longest:
        rows = (lengths & width).nonzero()[:, 0]
        if len(rows) > 0:
            more = level.index_select(-2, position.index_select(0, rows))
            result = result.index_copy(-2, rows, law.merge(result.index_select(-2, rows), more))
            position = position.index_add(0, rows, torch.full_like(rows, width))
        if 2 * width <= longest:
            level = law.merge(level[..., :-width, :], level[..., width:, :])
        width *= 2
    return result


def _empty(law: Law | LogSum, states: Tensor) -> Tensor:
    # The state of the empty multiset of one dimension says how many numbers a dimension has.
    return law.empty(states.shape[-1] // len(law.empty(1))).to(states.device, states.dtype)


class _Bounds(Protocol):
    """Windows of a sequence of elements, ascending."""

    @property
    def longest(self) -> int:
        """Number of elements of the longest window."""

    def ranges(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Returns start and end of the windows of some steps."""

    def fold(self, law: Law | LogSum, states: Tensor, low: int, first: int, last: int) -> Tensor:
        """Merges the states of the windows of some steps, of states from ``low`` on."""


class _Counted(NamedTuple):
    """Windows of a fixed number of elements."""

    longest: int

    def ranges(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        ends = torch.arange(first + 1, last + 1)
        return (ends - self.longest).clamp_min(0), ends

    def fold(self, law: Law | LogSum, states: Tensor, low: int, first: int, last: int) -> Tensor:
        return slide(law, states, self.longest)[..., first - low : last - low, :]


class _Timed(NamedTuple):
    """Windows of a span of time."""

    starts: Tensor
    ends: Tensor
    longest: int

    def ranges(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        return self.starts[first:last], self.ends[first:last]

    def fold(self, law: Law | LogSum, states: Tensor, low: int, first: int, last: int) -> Tensor:
        return fold_ranges(law, states, self.starts[first:last] - low, self.ends[first:last] - low)


def rolling(
    operation: Operation,
    values: Tensor,
    window: float,
    *,
    times: Tensor | None = None,
    min_periods: int | None = None,
    closed: str = "right",
) -> Tensor:
    """Aggregates the window that ends at each step; see :meth:`abelnet.Operation.rolling`."""
    check_values("values", values, operation.dim)
    check_dtype("values", values, operation.bijection)
    if values.ndim < 2:
        raise AbelnetError(f"values: expected shape (*, T, {operation.dim}), got {tuple(values.shape)}")
    if closed not in _CLOSED:
        raise AbelnetError(f"closed: expected one of {', '.join(_CLOSED)}, got {closed!r}")
    steps = values.shape[-2]
    bounds = _by_number(window, closed) if times is None else _by_time(times, window, closed, steps)
    least = _least(min_periods, None if times is not None else int(window))
    missing = values.isnan().any(-1)
    if not peek(missing.any(), True):
        check_finite("values", values)
        return _folded(operation, values, bounds, least, None)
    there = values[~missing]
    check_finite("values", there)
    if len(there) == 0:
        empty = torch.full_like(values, math.nan)
        return empty if least > 0 else _identity(operation, values).expand_as(values).clone()
    # A missing element counts for nothing; in its place there has to be some element of the domain.
    return _folded(operation, torch.where(missing[..., None], there[0], values), bounds, least, missing)


def _by_number(window: float, closed: str) -> _Counted:
    if closed != "right":
        raise AbelnetError(f'closed: expected "right" for windows of a number of elements, got {closed!r}; shift them')
    return _Counted(check_count("window", window))


def _by_time(times: Tensor, span: float, closed: str, steps: int) -> _Timed:
    check_number("window", span, above=0)
    if not isinstance(times, Tensor) or times.is_complex() or times.shape != (steps,):
        got = tuple(times.shape) if isinstance(times, Tensor) else type(times).__name__
        raise AbelnetError(f"times: expected a tensor of real numbers with shape ({steps},), got {got}")
    # A difference that is NaN is not at least 0 either.
    if not bool((times.diff() >= 0).all()) or (times.is_floating_point() and not bool(times.isfinite().all())):
        raise AbelnetError("times: expected finite numbers in ascending order; sort the elements by time")
    starts = torch.searchsorted(times, times - span, right=closed in ("right", "neither"))
    is_open = closed in ("left", "neither")
    ends = torch.searchsorted(times, times) if is_open else torch.arange(1, steps + 1, device=times.device)
    starts = torch.minimum(starts, ends)
    return _Timed(starts, ends, max(int((ends - starts).max()), 1) if steps > 0 else 1)


def _least(min_periods: int | None, size: int | None) -> int:
    """Returns the number of elements that a window needs for a result, by default that of pandas."""
    least = (1 if size is None else size) if min_periods is None else check_count("min_periods", min_periods, 0)
    if size is not None and least > size:
        raise AbelnetError(f"min_periods: expected at most the window, {size}, got {least}")
    return least


def _folded(operation: Operation, values: Tensor, bounds: _Bounds, least: int, missing: Tensor | None) -> Tensor:
    encode, law, decode = operation.folding
    fill = _identity(operation, values) if least == 0 else values.new_full((operation.dim,), math.nan)
    seen = None if missing is None else F.pad((~missing).cumsum(-1), (1, 0))
    results = []
    for first, last in _parts(values, len(law.empty(operation.dim)), bounds.longest):
        starts, ends = bounds.ranges(first, last)
        low, high = int(starts[0]), max(int(ends[-1]), int(starts[0]) + 1)
        u = encode(values[..., low:high, :])
        states = law.lift(u).double()
        some = states[..., :1, :]
        if missing is not None:
            states = torch.where(missing[..., low:high, None], _empty(law, states), states)
        folded = bounds.fold(law, states, low, first, last)
        counts = ends - starts if seen is None else seen[..., ends] - seen[..., starts]
        few = (counts < max(least, 1)).to(values.device)[..., None]
        has_few = bool(few.any())
        # Not after the inverse alone: its gradient at the fold of nothing may be NaN, and 0 times NaN is NaN.
        result = decode(law.lower(torch.where(few, some, folded) if has_few else folded, u.dtype))
        results.append(torch.where(few, fill, result) if has_few else result)
    return torch.cat(results, -2) if results else values.clone()


def _parts(values: Tensor, width: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yields first and last step of parts of a sequence."""
    steps = values.shape[-2]
    rows = max(values[..., 0, 0].numel() if steps > 0 else 1, 1)
    part = max(_PART // (rows * width), _OVERLAP * min(longest, steps), 1)
    for first in range(0, steps, part):
        yield first, min(first + part, steps)


def _identity(operation: Operation, like: Tensor) -> Tensor:
    """Returns the identity, or NaN if there is none."""
    try:
        identity = operation.identity().to(like)
    except AbelnetError:
        return like.new_full((operation.dim,), math.nan)
    return torch.where(identity.isfinite(), identity, math.nan)


class StateQueue:
    """First-in, first-out queue of states, and the merged state of all that are in it (two stacks).

    Entering and leaving take one merge each, amortized, for every law: nothing is subtracted.

    Arguments:
        law: How states merge.
        dim: Number of dimensions of an element.
        device: Device of the states.

    Example:
        >>> from abelnet import Maximum
        >>> queue = StateQueue(Maximum(), 1)
        >>> queue.push(torch.tensor([[3.0], [1.0], [2.0]], dtype=torch.float64))
        >>> queue.pop()
        >>> queue.total(), len(queue)
        (tensor([2.], dtype=torch.float64), 2)
    """

    def __init__(self, law: Law | LogSum, dim: int, device: torch.device | None = None) -> None:
        self._law, self._empty = law, law.empty(dim).to(device)
        # States of the oldest elements, each merged with those after it; and states of the newest as they came.
        self._front, self._popped = self._empty[None][:0], 0
        self._back, self._pushed = self._empty.repeat(16, 1), 0
        self._back_total = self._empty

    def push(self, states: Tensor) -> None:
        """Adds states, with shape :math:`(n, k)`, the oldest first."""
        if len(states) == 0:
            return
        needed = self._pushed + len(states)
        if needed > len(self._back):
            self._back = torch.cat((self._back, self._empty.expand(max(needed, len(self._back)), -1)))
        self._back[self._pushed : needed] = states
        self._pushed = needed
        self._back_total = self._law.merge(self._back_total, self._law.gather(states))

    def pop(self, count: int = 1) -> None:
        """Removes the oldest states."""
        if count > len(self):
            raise AbelnetError(f"count: expected at most {len(self)}, the length of the queue, got {count}")
        while count > 0:
            if self._popped == len(self._front):
                newest = self._back[: self._pushed]
                self._front, self._popped = self._law.scan(newest.flip(0)).flip(0), 0
                self._pushed, self._back_total = 0, self._empty
            gone = min(count, len(self._front) - self._popped)
            self._popped += gone
            count -= gone

    def total(self) -> Tensor:
        """Returns the merged state, with shape :math:`(k)`; that of the empty multiset if the queue is empty."""
        if self._popped == len(self._front):
            return self._back_total
        return self._law.merge(self._front[self._popped], self._back_total)

    def to(self, device: torch.device) -> None:
        """Moves all states to a device."""
        self._empty, self._front, self._back, self._back_total = (
            x.to(device) for x in (self._empty, self._front, self._back, self._back_total)
        )

    def __len__(self) -> int:
        return len(self._front) - self._popped + self._pushed


class RollingWindow:
    r"""Aggregate of the last elements of a stream: the last ``size`` of them, or those of the last ``span`` of time.

    A step takes amortized constant time, whatever the window, and works for every law: maxima, capped sums and
    products with zeros too. The states of all elements in the window are kept, by which nothing is ever subtracted
    (:class:`StateQueue`). No gradients are tracked; :meth:`abelnet.Operation.rolling` has them. It is valid for the
    parameters it was created with, like an :class:`~abelnet.Accumulator`. One thread may use it at a time.

    Arguments:
        operation: The operation.
        size: Number of elements in the window.
        span: Instead, length :math:`s` of the window in time: it contains elements of :math:`(t - s, t]`. A number, or
            a ``datetime.timedelta`` if times are of type ``datetime``.
        min_periods: Number of elements below which there is no result, but NaN, as in pandas: ``size`` by default, 1
            with a span. At 0, an empty window has the identity, or NaN if there is none.

    Example:
        >>> from abelnet import AbelianGroup, Affine
        >>> window = AbelianGroup(Affine(1)).window(2)
        >>> [window.push(torch.tensor([x])).item() for x in (1.0, 2.0, 4.0)]
        [nan, 3.0, 6.0]

        By time:

        >>> window = AbelianGroup(Affine(1)).window(span=60.0)
        >>> [window.push(torch.tensor([x]), time).item() for x, time in ((1.0, 0), (2.0, 59), (4.0, 60))]
        [1.0, 3.0, 6.0]
        >>> window.value(time=119.5).item()
        4.0
    """

    def __init__(
        self, operation: Operation, size: int | None = None, *, span: Any = None, min_periods: int | None = None
    ) -> None:
        if (size is None) == (span is None):
            raise AbelnetError(f"size, span: expected one of them, got {size!r} and {span!r}")
        if size is not None:
            size = check_count("size", size)
        elif not span > 0 * span:
            raise AbelnetError(f"span: expected a positive length of time, got {span!r}")
        self._operation, self._size, self._span = operation, size, span
        self._least = _least(min_periods, size)
        self._like = next(operation.bijection.parameters(), torch.empty(0))
        self._started_with = Snapshot(operation.bijection, operation.law)
        self._queue = StateQueue(operation.folding.law, operation.dim, self._like.device)
        # Time of each element of the window, and whether it is there or missing.
        self._entries: deque[tuple[Any, bool]] = deque()
        self.count = 0

    def __len__(self) -> int:
        """Returns the number of elements in the window, missing ones included; :attr:`count` is without them."""
        return len(self._entries)

    @torch.no_grad()
    def push(self, x: Tensor, time: Any = None) -> Tensor:
        """Adds an element, removes those that leave the window, and returns the aggregate of the window.

        Arguments:
            x: The element, with shape :math:`(d)`. One with NaN is missing: it takes its place and counts for nothing.
            time: Its time, not before that of the element before, if the window has a span.

        Returns:
            The aggregate, with shape :math:`(d)`.
        """
        self._check_parameters()
        check_values("x", x, self._operation.dim)
        check_dtype("x", x, self._operation.bijection)
        if x.ndim != 1:
            raise AbelnetError(f"x: expected shape ({self._operation.dim},), got {tuple(x.shape)}")
        self._check_time(time)
        encode, law, _ = self._operation.folding
        is_there = not bool(x.isnan().any())
        if is_there:
            check_finite("x", x)
            state = law.lift(encode(x[None])).double()
        else:
            state = law.empty(self._operation.dim).to(x.device)[None]
        self._like = x
        self._queue.push(state)
        self._entries.append((time, is_there))
        self.count += is_there
        self._leave(time)
        return self._value()

    @torch.no_grad()
    def value(self, time: Any = None) -> Tensor:
        """Returns the aggregate of the window; at a later time, if given, elements that have left by then removed."""
        self._check_parameters()
        if time is not None:
            self._check_time(time)
            self._leave(time)
        return self._value()

    def _value(self) -> Tensor:
        _, law, decode = self._operation.folding
        if self.count < self._least:
            return self._like.new_full((self._operation.dim,), math.nan)
        if self.count == 0:
            return _identity(self._operation, self._like)
        return decode(law.lower(self._queue.total()[None], self._like.dtype))[0]

    def _leave(self, time: Any) -> None:
        gone = 0
        while self._entries and (
            len(self._entries) > self._size if self._size is not None else self._entries[0][0] <= time - self._span
        ):
            self.count -= self._entries.popleft()[1]
            gone += 1
        self._queue.pop(gone)

    def _check_time(self, time: Any) -> None:
        if (time is None) != (self._span is None):
            expected = "no time, since the window has a size" if self._span is None else "a time for the span"
            raise AbelnetError(f"time: expected {expected}, got {time!r}")
        if self._span is not None and self._entries and not time >= self._entries[-1][0]:
            raise AbelnetError(
                f"time: expected at least {self._entries[-1][0]}, that of the element before, got {time}"
            )

    def _check_parameters(self) -> None:
        device = self._started_with.check("window")
        if device is not None:
            self._queue.to(device)
            self._like = self._like.to(device)
