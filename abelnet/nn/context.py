r"""Aggregation of elements that know their set: one fold tells them about it, another aggregates them."""

from __future__ import annotations

__all__ = ["ContextAggregation"]

from typing import Any

import torch
from torch import Tensor, nn

from abelnet.aggregation import Aggregation
from abelnet.bijections.base import draw_seeds
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.nn.baselines import MLP
from abelnet.operation import Operation
from abelnet.pooling import Pooling


class ContextAggregation(Pooling):
    r"""Set pooling in two rounds: a summary of the set shifts its elements, which are then aggregated.

    .. math:: s = \operatorname*{\bigcirc}_i P \sigma(x_i), \qquad y = \operatorname*{\bullet}_i W \sigma(x_i + U s)

    with :math:`\sigma` the ReLU. What an element adds to the result depends on the others, as in self-attention, at a
    cost that is linear in the size of a set. Both rounds are exact folds, so each streams and merges, but elements are
    read twice: the states of two sets do not tell the result of their union.

    :math:`U` is initialized to 0: at first elements do not depend on their set.

    Arguments:
        aggregation: The aggregation :math:`\bullet` of :math:`c` channels, a layer or an operation.
        context: The aggregation :math:`\circ` of the summary, usually of fewer channels.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> from abelnet.nn import make_aggregation
        >>> layer = ContextAggregation(make_aggregation("weighted-mean", 8), make_aggregation("mean", 2), seed=0)
        >>> layer(torch.randn(9, 8), ptr=torch.tensor([0, 4, 9])).shape
        torch.Size([2, 8])
    """

    def __init__(
        self, aggregation: Pooling | Operation, context: Pooling | Operation, *, seed: int | None = None
    ) -> None:
        super().__init__()
        self.aggregation, self.context = (
            _layer(name, one) for name, one in (("aggregation", aggregation), ("context", context))
        )
        first, second = [None] * 2 if seed is None else draw_seeds(seed, 2)
        self.summarized = MLP([self.channels, self.context.channels], seed=first)
        self.shift = nn.Parameter(torch.zeros(self.channels, self.context.channels))
        self.mixed = MLP([self.channels, self.channels], seed=second)

    @property
    def channels(self) -> int:  # type: ignore[override]
        return self.aggregation.channels

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets both aggregations, and the maps around them, to initial values.

        Arguments:
            seed: Random seed; torch's global generator is used if not given.
        """
        parts: list[Any] = [self.summarized, self.mixed, self.aggregation, self.context]
        for part, own in zip(parts, [None] * 4 if seed is None else draw_seeds(seed, 4), strict=True):
            part.reset_parameters(own)
        nn.init.zeros_(self.shift)

    def pool(self, multisets: Multisets) -> Tensor:
        x = multisets.values
        summary = self.context(multisets.with_values(self.summarized(x.relu())))
        shifted = x + multisets.spread(nn.functional.linear(summary, self.shift))
        result: Tensor = self.aggregation(multisets.with_values(self.mixed(shifted.relu())))
        return result

    def config(self) -> dict[str, Any]:
        return {"aggregation": self.aggregation, "context": self.context}

    def extra_repr(self) -> str:
        return f"channels={self.channels}"


def _layer(name: str, one: Pooling | Operation) -> Pooling:
    if isinstance(one, Operation):
        return Aggregation(one)
    if not isinstance(one, Pooling):
        raise AbelnetError(f"{name}: expected a Pooling or an Operation, got {type(one).__name__}")
    return one
