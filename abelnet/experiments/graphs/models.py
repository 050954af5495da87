"""Message-passing networks in two forms: aligned, where only the aggregation is learned, and generic."""

from __future__ import annotations

__all__ = ["FORMS", "Aligned", "Generic", "make_model"]

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from abelnet.experiments.graphs.data import Graphs, Task

Form = Literal["aligned", "generic"]
FORMS: tuple[Form, ...] = ("aligned", "generic")
CHANNELS: dict[Form, int] = {"aligned": 1, "generic": 16}
"""Number of channels that are aggregated."""

_HIDDEN = 32


class Aligned(nn.Module):
    """Network that is given the true messages, and learns the aggregation alone.

    Arguments:
        aggregation: Module called with messages :math:`(m, 1)`, ``index`` and ``dim_size``.
        task: The task, whose messages and rounds are used.
    """

    def __init__(self, aggregation: nn.Module, task: Task) -> None:
        super().__init__()
        self.aggregation = aggregation
        self.task = task

    def forward(self, graphs: Graphs) -> Tensor:
        """Returns the results of all nodes, with shape :math:`(n, 1)`."""
        h = graphs.nodes
        for _ in range(self.task.rounds):
            messages = self.task.message(h[graphs.source], graphs.edges)
            h = self.aggregation(messages, index=graphs.target, dim_size=len(graphs))
        return h


class Generic(nn.Module):
    """Network that learns messages, updates and the aggregation, shared by all rounds.

    A message is an MLP of the state of its source and the value of its edge, an update one of a node's state and its
    aggregated messages. Inputs and results are standardized by the training graphs.

    Arguments:
        aggregation: Module called with messages :math:`(m, c)`, ``index`` and ``dim_size``.
        rounds: Number of rounds.
        channels: Number of channels :math:`c` of states and messages.
        batches: Training graphs.
    """

    nodes: Tensor
    edges: Tensor
    results: Tensor

    def __init__(self, aggregation: nn.Module, rounds: int, channels: int, batches: Sequence[Graphs]) -> None:
        super().__init__()
        self.aggregation = aggregation
        self.rounds = rounds
        self.encoder = _mlp(1, channels)
        self.message = _mlp(channels + 1, channels)
        self.update = _mlp(2 * channels, channels)
        self.decoder = _mlp(channels, 1)
        for name in ("nodes", "edges", "results"):
            values = torch.cat([getattr(graphs, name) for graphs in batches])
            self.register_buffer(name, torch.stack((values.mean(), values.std())))

    def forward(self, graphs: Graphs) -> Tensor:
        """Returns the results of all nodes, with shape :math:`(n, 1)`."""
        h = self.encoder(_standardized(graphs.nodes, self.nodes))
        edges = _standardized(graphs.edges, self.edges)
        for _ in range(self.rounds):
            messages = self.message(torch.cat((h[graphs.source], edges), -1))
            heard = self.aggregation(messages, index=graphs.target, dim_size=len(graphs))
            h = self.update(torch.cat((h, heard), -1))
        mean, spread = self.results.unbind()
        result: Tensor = mean + spread * self.decoder(h)
        return result


def make_model(form: Form, aggregation: nn.Module, task: Task, batches: Sequence[Graphs]) -> nn.Module:
    """Returns the network of a form around an aggregation of ``CHANNELS[form]`` channels."""
    if form == "aligned":
        return Aligned(aggregation, task)
    return Generic(aggregation, task.rounds, CHANNELS[form], batches)


def _mlp(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, outputs))


def _standardized(values: Tensor, statistics: Tensor) -> Tensor:
    mean, spread = statistics.unbind()
    return (values - mean) / spread
