"""Set models of the comparison: one encoder and decoder around aggregations, ours and rivals, of equal size.

All models have an encoder with two hidden layers and a decoder with one, whose width makes up for the parameters of the
aggregation, so that the number of parameters is the same for all up to rounding.
"""

from __future__ import annotations

__all__ = ["AGGREGATIONS", "Aggregation", "Rival", "check_installed", "count_parameters", "make_model"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from abelnet.aggregation import Aggregation as Mergeable
from abelnet.bijections import Generator
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
from abelnet.experiments.sets.data import Task
from abelnet.laws import WeightedMean
from abelnet.multisets import Multisets
from abelnet.nn import ContextAggregation, SetModel, make_aggregation
from abelnet.operation import Operation
from abelnet.pooling import Pooling

CHANNELS = (32, 16)
"""Number of channels that are aggregated: the first, unless the aggregation has then more than half the parameters."""

_WIDEST = 512
# Rate of masses: lower than the default of set models, which fits training sets faster, and selected as told in the
# documentation of the experiment.
_MASS_RATE = 4.0


class Rival(Pooling):
    """Aggregation of another package as a layer of ours.

    Arguments:
        inner: Module called with values, ``index`` in ascending order, and ``dim_size``.
        channels: Number of channels.
    """

    def __init__(self, inner: nn.Module, channels: int) -> None:
        super().__init__()
        self.inner, self.channels = inner, channels

    def pool(self, multisets: Multisets) -> Tensor:
        ordered = multisets.ordered()
        result: Tensor = self.inner(ordered.values, index=ordered.index, dim_size=len(multisets))
        return result.reshape(*multisets.shape, -1)


@dataclass(frozen=True)
class Aggregation:
    """Aggregation of the comparison.

    Attributes:
        title: Name in tables.
        make: Builds it for a number of channels and a histogram of the sizes of the sets to train on.
        packages: Packages that must be installed.
        has_labels: Whether results are compared with label elements, in place of a decoder.
        has_layer: Whether it has a layer of elements of its own, so that the encoder has one less.
        initialization: That of encoder and decoder, see :meth:`abelnet.nn.SetModel.build`.
    """

    title: str
    make: Callable[[int, Tensor], Pooling]
    packages: tuple[str, ...] = (PYG,)
    has_labels: bool = False
    has_layer: bool = False
    initialization: Literal["linear", "he"] = "he"


def check_installed(names: Sequence[str]) -> None:
    """Raises unless the packages of aggregations are installed."""
    check_packages({name: AGGREGATIONS[name].packages for name in names}, "sets")


def count_parameters(model: nn.Module) -> int:
    """Returns the number of parameters of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def make_model(name: str, task: Task, inputs: int, sizes: Tensor) -> SetModel:
    """Returns a set model with about as many parameters as the task has for each, drawn from torch's generator.

    Arguments:
        name: Aggregation, a key of :data:`AGGREGATIONS`.
        task: The task.
        inputs: Number of dimensions of an element.
        sizes: Histogram of the sizes of the sets to train on.
    """
    aggregation = AGGREGATIONS[name]
    for channels in CHANNELS:
        layer = aggregation.make(channels, sizes)
        left = task.parameters - count_parameters(layer)
        if 2 * left >= task.parameters:
            break

    pooled = layer.channels

    def encoder_hidden(width: int) -> tuple[int, ...]:
        return (width,) if aggregation.has_layer else (width, width)

    def size(width: int) -> int:
        widths = (inputs, *encoder_hidden(width), pooled)
        encoder = sum((a + 1) * b for a, b in pairwise(widths))
        if aggregation.has_labels:
            return encoder + pooled * task.classes + 1
        return encoder + (pooled + 1) * width + (width + 1) * task.classes

    width = min(range(1, _WIDEST), key=lambda one: abs(size(one) - left))
    return SetModel.build(
        inputs,
        task.classes,
        aggregation=layer,
        encoder_hidden=encoder_hidden(width),
        decoder_hidden=None if aggregation.has_labels else (width,),
        initialization=aggregation.initialization,
        seed=int(torch.randint(2**62, ())),
    )


def _ours(name: str) -> Callable[[int, Tensor], Pooling]:
    return lambda channels, sizes: make_aggregation(name, channels, seed=int(torch.randint(2**62, ())))


def _wide(channels: int, sizes: Tensor) -> Pooling:
    # As many places as others have channels, each with a mass of its own.
    return Mergeable(Operation(Generator(2 * channels, "affine"), WeightedMean(_MASS_RATE)))


def _in_context(make: Callable[[int, Tensor], Pooling]) -> Callable[[int, Tensor], Pooling]:
    def made(channels: int, sizes: Tensor) -> Pooling:
        # Fewer channels than elsewhere, for the parameters of the layer.
        channels = 7 * channels // 8
        parts = (make(some, sizes) for some in (channels, channels // 4))
        return ContextAggregation(*parts, seed=int(torch.randint(2**62, ())))

    return made


def _pyg(name: str) -> Callable[[int, Tensor], Pooling]:
    return lambda channels, sizes: Rival(make_pyg(name), channels)


def _softmax(channels: int, sizes: Tensor) -> Pooling:
    return Rival(make_pyg("SoftmaxAggregation", learn=True, channels=channels), channels)


def _power_mean(channels: int, sizes: Tensor) -> Pooling:
    # Powers are of positive numbers, which encoded elements need not be.
    inner = make_pyg("PowerMeanAggregation", learn=True, channels=channels)
    return Rival(Between(inner, nn.Softplus()), channels)


def _pna(channels: int, sizes: Tensor) -> Pooling:
    inner, outputs = make_pna(channels, sizes)
    return Rival(Between(inner, after=nn.Linear(outputs, channels)), channels)


def _lcm(channels: int, sizes: Tensor) -> Pooling:
    return Rival(Monoid(channels), channels)


def _set_transformer(channels: int, sizes: Tensor) -> Pooling:
    return Rival(make_pyg("SetTransformerAggregation", channels), channels)


def _deep_sets(channels: int, sizes: Tensor) -> Pooling:
    local, whole = (
        nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, channels)) for _ in range(2)
    )
    # With PyTorch's own initialization four more layers let hardly any signal through at the start.
    for layer in (*local, *whole):
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return Rival(make_pyg("DeepSetsAggregation", local, whole), channels)


def _genagg(channels: int, sizes: Tensor) -> Pooling:
    return Rival(make_genagg(), channels)


def _quann(channels: int, sizes: Tensor) -> Pooling:
    return Rival(QuasiArithmeticMean(channels), channels)


AGGREGATIONS = {
    "context": Aggregation("weighted mean in context (ours)", _in_context(_wide), packages=(), has_layer=True),
    "wide": Aggregation("weighted mean, 32 masses (ours)", _wide, packages=()),
    "weighted": Aggregation("weighted mean, 16 masses (ours)", _ours("weighted-mean"), packages=()),
    "glow": Aggregation("log-mean-exp over glow (ours)", _ours("glow"), packages=()),
    "lme": Aggregation("log-mean-exp (ours)", _ours("log-mean-exp"), packages=()),
    "labels": Aggregation("weighted mean, label elements (ours)", _wide, packages=(), has_labels=True),
    "sum": Aggregation("sum", _pyg("SumAggregation")),
    "mean": Aggregation("mean", _pyg("MeanAggregation")),
    "max": Aggregation("max", _pyg("MaxAggregation")),
    "softmax": Aggregation("softmax", _softmax),
    "softmax_context": Aggregation("softmax in context", _in_context(_softmax), has_layer=True),
    "powermean": Aggregation("powermean", _power_mean),
    "pna": Aggregation("PNA", _pna),
    "lcm": Aggregation("LCM", _lcm),
    "set_transformer": Aggregation("SetTransformer", _set_transformer),
    # Sums of nine layers that all keep their size are so large at the start that training fails.
    "deepsets": Aggregation("DeepSets", _deep_sets, initialization="linear"),
    "genagg": Aggregation("GenAgg", _genagg, packages=(PYG, "genagg")),
    "quann": Aggregation("QUANN", _quann, packages=()),
}
