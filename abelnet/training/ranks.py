"""Data-parallel training: several processes, as those of torchrun, share every batch and train one model."""

from __future__ import annotations

__all__ = ["Ranks"]

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Ranks:
    """Processes that train together; this one alone if there is no group.

    What ``DistributedDataParallel`` does, one sum of all gradients per step, for losses that call any method of a
    model, and not its ``forward`` alone.

    Arguments:
        group: Process group of ``torch.distributed``, or None.

    Attributes:
        rank: Number of this process in the group.
        size: Number of processes.

    Example:
        >>> ranks = Ranks(None)
        >>> ranks.share(0, 32), ranks.is_first
        ((0, 32), True)
    """

    def __init__(self, group: ProcessGroup | None) -> None:
        self._group = group
        self.rank, self.size = (0, 1) if group is None else (group.rank(), group.size())
        self._source = 0 if group is None else torch.distributed.get_global_rank(group, 0)

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def share(self, low: int, high: int) -> tuple[int, int]:
        """Returns the part of the examples ``low`` to ``high`` that this process takes; it may be empty."""
        count = high - low
        return low + count * self.rank // self.size, low + count * (self.rank + 1) // self.size

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replaces tensors, of equal shapes in all processes, by their sums over the processes."""
        if self.size == 1:
            return
        kinds: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
        for x in tensors:
            kinds.setdefault((x.device, x.dtype), []).append(x)
        for members in kinds.values():
            flat = torch.cat([x.reshape(-1) for x in members])
            self._call(partial(torch.distributed.all_reduce, flat, group=self._group))
            for x, part in zip(members, torch.split(flat, [x.numel() for x in members]), strict=True):
                x.copy_(part.view_as(x))

    def follow(self, tensors: Sequence[Tensor]) -> None:
        """Replaces tensors by those of the first process."""
        for x in tensors if self.size > 1 else ():
            self._call(partial(torch.distributed.broadcast, x, self._source, self._group))

    def check_same(self, **values: Any) -> None:
        """Raises unless all processes have the same values."""
        if self.size == 1:
            return
        all_values: list[dict[str, Any]] = [{} for _ in range(self.size)]
        self._call(partial(torch.distributed.all_gather_object, all_values, values, self._group))
        for rank, others in enumerate(all_values):
            for name, value in values.items():
                if others[name] != value:
                    raise AbelnetError(
                        f"{name}: expected the same in all processes, got {value!s:.60} in {self.rank} and "
                        f"{others[name]!s:.60} in {rank}"
                    )

    @contextmanager
    def copy_of(self, path: Path) -> Iterator[Path | None]:
        """Yields a copy of a file of the first process, which may be another machine; None if there is none."""
        if self.size == 1:
            yield path if path.exists() else None
            return
        content = [path.read_bytes() if self.is_first and path.exists() else None]
        self._call(partial(torch.distributed.broadcast_object_list, content, self._source, self._group))
        if content[0] is None or self.is_first:
            yield None if content[0] is None else path
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, path.name)
            copy.write_bytes(content[0])
            yield copy

    def _call(self, collective: Callable[[], object]) -> None:
        try:
            collective()
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0][:120]
            raise AbelnetError(
                f"group: expected {self.size} processes to train together, got a lost connection to one ({reason}); "
                "start all of them again: training resumes from its checkpoint"
            ) from None
