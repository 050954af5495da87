"""Aggregations of the graph experiment, ours and its rivals, behind one interface.

An aggregation is a module called as ``aggregation(values, index=..., dim_size=...)``, with values of shape
:math:`(m, c)` sorted by index, that returns :math:`(n, c)`. In the aligned form it is all that is learned, so each
rival gets what lets it use its capacity on a single channel:

- sum, mean, max, min, softmax, powermean, GenAgg and QUANN are followed by a learned affine map that starts as the
  identity; the first four also run without it, and need no training then;
- PNA, LCM, SetTransformer and DeepSets work on hidden channels between learned maps, as their layers do in practice,
  with messages and results standardized by the training graphs.

Powers of messages that may be negative are taken after a softplus.
"""

from __future__ import annotations

__all__ = ["AGGREGATIONS", "Aggregation", "Context", "check_installed"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from abelnet.experiments.graphs.data import Graphs, Task
from abelnet.experiments.graphs.models import CHANNELS, FORMS, Form
from abelnet.experiments.rivals import (
    PYG,
    Between,
    Monoid,
    QuasiArithmeticMean,
    check_packages,
    make_genagg,
    make_pna,
    make_pyg,
)

_HIDDEN = 32
_WIDTH = 16  # of the hidden channels that the aligned form of LCM and SetTransformer aggregates

BARE = "bare"
"""Start without parameters, which needs no training."""


@dataclass(frozen=True)
class Context:
    """What an aggregation may know about its place.

    Attributes:
        form: Form of the network.
        degrees: Histogram of the sizes of neighborhoods in the training graphs.
        messages: Mean and standard deviation of the first messages in the aligned form, else 0 and 1.
        results: Likewise of the results.
    """

    form: Form
    degrees: Tensor
    messages: tuple[float, float] = (0.0, 1.0)
    results: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, form: Form, task: Task, batches: Sequence[Graphs]) -> Context:
        """Returns the context of a form of network, and of the graphs it is trained on."""
        degrees = torch.bincount(torch.cat([torch.bincount(graphs.target) for graphs in batches]))
        if form != "aligned":
            return cls(form, degrees)
        messages = torch.cat([task.message(graphs.nodes[graphs.source], graphs.edges) for graphs in batches])
        results = torch.cat([graphs.results for graphs in batches])
        return cls(form, degrees, *((values.mean().item(), values.std().item()) for values in (messages, results)))

    @property
    def channels(self) -> int:
        """Number of channels to aggregate."""
        return CHANNELS[self.form]

    @property
    def is_aligned(self) -> bool:
        """Whether the aggregation is all that is learned."""
        return self.form == "aligned"


@dataclass(frozen=True)
class Aggregation:
    """Aggregation of the comparison.

    Attributes:
        title: Name in tables.
        starts: Builders by name; the start is selected on validation graphs, as the learning rate is.
        packages: Packages that must be installed.
        forms: Forms of networks in which it takes part.
        is_ours: Whether it is a bank of laws, which is annealed in the first half of training.
    """

    title: str
    starts: dict[str, Callable[[Context], nn.Module]]
    packages: tuple[str, ...] = (PYG,)
    forms: tuple[Form, ...] = FORMS
    is_ours: bool = False

    def names(self, form: Form) -> list[str]:
        """Returns the names of the starts in a form: without parameters there is nothing to select in a network."""
        return [name for name in self.starts if form == "aligned" or name != BARE]


def check_installed(names: Sequence[str]) -> None:
    """Raises unless the packages of aggregations are installed."""
    check_packages({name: AGGREGATIONS[name].packages for name in names}, "graphs")


class _Line(nn.Module):
    """Fixed map of numbers of one mean and standard deviation to those of another."""

    def __init__(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        super().__init__()
        (low, narrow), (high, wide) = start, end
        self.slope, self.offset = wide / narrow, high - low * wide / narrow

    def forward(self, values: Tensor) -> Tensor:
        return self.slope * values + self.offset


def _affine() -> nn.Linear:
    line = nn.Linear(1, 1)
    nn.init.ones_(line.weight)
    nn.init.zeros_(line.bias)
    return line


def _followed(context: Context, inner: nn.Module) -> nn.Module:
    """Returns an aggregation, followed by a learned affine map where nothing else follows it."""
    return Between(inner, after=_affine()) if context.is_aligned else inner


def _standardized(context: Context, inner: nn.Module) -> nn.Module:
    """Returns an aggregation of standardized messages, whose units the result has again."""
    if not context.is_aligned:
        return inner
    unit = (0.0, 1.0)
    return Between(inner, _Line(context.messages, unit), _Line(unit, context.messages))


def _lifted(context: Context, inner: nn.Module, inputs: int, outputs: int) -> nn.Module:
    """Returns an aggregation of hidden channels: a linear map into them, and an MLP out of them."""
    if not context.is_aligned:
        return inner if outputs == context.channels else Between(inner, after=nn.Linear(outputs, context.channels))
    before = nn.Sequential(_Line(context.messages, (0.0, 1.0)), nn.Linear(1, inputs) if inputs > 1 else nn.Identity())
    return Between(inner, before, nn.Sequential(_mlp(outputs, 1), _Line((0.0, 1.0), context.results)))


def _mlp(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, outputs))


def _bare(name: str) -> dict[str, Callable[[Context], nn.Module]]:
    return {
        "affine": lambda context: _followed(context, make_pyg(name)),
        BARE: lambda context: make_pyg(name),
    }


def _softmax(context: Context) -> nn.Module:
    return _followed(context, make_pyg("SoftmaxAggregation", learn=True, channels=context.channels))


def _power_mean(context: Context) -> nn.Module:
    inner = make_pyg("PowerMeanAggregation", learn=True, channels=context.channels)
    # Powers are of positive numbers, which messages that are learned need not be.
    return _followed(context, inner) if context.is_aligned else Between(inner, nn.Softplus())


def _pna(context: Context) -> nn.Module:
    inner, outputs = make_pna(context.channels, context.degrees)
    return _lifted(context, inner, context.channels, outputs)


def _lcm(context: Context) -> nn.Module:
    width = _WIDTH if context.is_aligned else context.channels
    return _lifted(context, Monoid(width), width, width)


def _set_transformer(context: Context) -> nn.Module:
    width = _WIDTH if context.is_aligned else context.channels
    inner = make_pyg("SetTransformerAggregation", width)
    return _lifted(context, inner, width, width)


def _deep_sets(context: Context) -> nn.Module:
    channels = context.channels
    inner = make_pyg("DeepSetsAggregation", _mlp(channels, _HIDDEN), _mlp(_HIDDEN, channels))
    if not context.is_aligned:
        return inner
    return Between(inner, _Line(context.messages, (0.0, 1.0)), _Line((0.0, 1.0), context.results))


def _genagg(context: Context) -> nn.Module:
    return _followed(context, _standardized(context, make_genagg()))


def _quann(context: Context) -> nn.Module:
    return _followed(context, _standardized(context, QuasiArithmeticMean(context.channels)))


def _bank(context: Context) -> nn.Module:
    from abelnet.nn.bank import GatedBank

    return GatedBank(context.channels)


AGGREGATIONS = {
    "bank": Aggregation("bank (ours)", {"default": _bank}, packages=(), is_ours=True),
    "sum": Aggregation("sum", _bare("SumAggregation")),
    "mean": Aggregation("mean", _bare("MeanAggregation")),
    "max": Aggregation("max", _bare("MaxAggregation")),
    "min": Aggregation("min", _bare("MinAggregation"), forms=("aligned",)),
    "softmax": Aggregation("softmax", {"default": _softmax}),
    "powermean": Aggregation("powermean", {"default": _power_mean}),
    "pna": Aggregation("PNA", {"default": _pna}),
    "lcm": Aggregation("LCM", {"default": _lcm}),
    "set_transformer": Aggregation("SetTransformer", {"default": _set_transformer}),
    "deepsets": Aggregation("DeepSets", {"default": _deep_sets}),
    "genagg": Aggregation("GenAgg", {"default": _genagg}, packages=(PYG, "genagg")),
    "quann": Aggregation("QUANN", {"default": _quann}, packages=()),
}
