r"""Operations side by side, each on channels of its own."""

from __future__ import annotations

__all__ = ["Channelwise"]

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.aggregation import Aggregation
from abelnet.bijections.base import draw_seeds
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.operation import Operation
from abelnet.pooling import Pooling


class Channelwise(Pooling):
    """Operations side by side, each on channels of its own, as one set-pooling layer.

    Arguments:
        operations: The operations, which are exact, mergeable and can be saved.
        channels: Channels of each operation, as many as it has dimensions; together all from 0 on, each once.
        fill: Result of an empty set in channels whose operation has no identity.

    Example:
        >>> from abelnet import Generator, Maximum, Operation, Sum
        >>> total, largest = (Operation(Generator(1, "affine"), law) for law in (Sum(), Maximum()))
        >>> layer = Channelwise([total, largest], [[1], [0]])
        >>> layer(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [3.0, 6.0]
    """

    def __init__(
        self, operations: Sequence[Operation], channels: Sequence[Sequence[int]], *, fill: float = 0.0
    ) -> None:
        super().__init__()
        if sorted(channel for some in channels for channel in some) != list(range(sum(map(len, channels)))) or [
            len(some) for some in channels
        ] != [operation.dim for operation in operations]:
            dims = [operation.dim for operation in operations]
            raise AbelnetError(f"channels: expected {dims} channels, each from 0 on once, got {list(channels)}")
        self.aggregations = nn.ModuleList(Aggregation(operation, fill=fill) for operation in operations)
        self.parts = [list(some) for some in channels]
        self.fill = float(fill)
        order = [channel for some in self.parts for channel in some]
        self._places = [order.index(channel) for channel in range(len(order))]

    is_pure = True

    @property
    def operations(self) -> list[Operation]:
        """The operations."""
        return [aggregation.operation for aggregation in self.aggregations]  # type: ignore[misc]

    @property
    def channels(self) -> int:  # type: ignore[override]
        return len(self._places)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets all operations to their initial values."""
        seeds = [None] * len(self.operations) if seed is None else draw_seeds(seed, len(self.operations))
        for operation, own in zip(self.operations, seeds, strict=True):
            operation.reset_parameters(own)

    def pool(self, multisets: Multisets) -> Tensor:
        if len(self.parts) == 1:
            result: Tensor = self.aggregations[0](multisets)
            return result
        multisets.check_values()  # as a whole, which no operation sees
        results = [one(multisets.columns(some)) for one, some in zip(self.aggregations, self.parts, strict=True)]
        return torch.cat(results, -1)[..., self._places]

    def config(self) -> dict[str, Any]:
        return {"operations": self.operations, "channels": self.parts, "fill": self.fill}

    def extra_repr(self) -> str:
        return f"channels={self.channels}, fill={self.fill:g}"
