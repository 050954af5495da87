r"""Aggregations for set models, by name."""

from __future__ import annotations

__all__ = ["make_aggregation"]

from collections.abc import Callable

from abelnet.aggregation import Aggregation
from abelnet.bijections import Chain, Generator, glow
from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.laws import Law, Maximum, Mean, Sum, WeightedMean
from abelnet.nn.bank import GatedBank
from abelnet.nn.context import ContextAggregation
from abelnet.operation import Operation
from abelnet.pooling import Pooling

# Couplings of a glow, and the width of their hidden layer per channel: about 130 parameters per channel.
_LAYERS, _HIDDEN_PER_CHANNEL = 2, 0.5
# Rate of the exponentials at the start: elements of a new encoder are well below 1, where low rates are slow to learn.
_RATE = 4.0
# Seeds of a bank.
_SEEDS = 1024
# Rate of masses, likewise.
_MASS_RATE = 8.0
# Channels per channel of a summary.
_SUMMARIZED = 4


def make_aggregation(name: str, channels: int, *, seed: int | None = None) -> Pooling:
    r"""Returns an aggregation for a set model.

    ======================  =========================================================================================
    name                    result of a set
    ======================  =========================================================================================
    ``"sum"``               :math:`\sum_i x_i`: for outputs that grow with the set, as counts and totals do
    ``"mean"``              :math:`\frac{1}{n} \sum_i x_i`: for outputs that do not depend on its size
    ``"max"``               :math:`\max_i x_i`: a set is as its strongest element
    ``"log-mean-exp"``      :math:`\frac{1}{k} \log \frac{1}{n} \sum_i e^{k x_i}` with a learned :math:`k` per channel:
                            from the mean to the maximum, whatever the size of the set
    ``"weighted-mean"``     attention pooling as a law: half of the channels are the masses of the others
                            (:class:`~abelnet.WeightedMean`); no parameters of its own
    ``"glow"``              log-mean-exp over a learned bijection that mixes channels,
                            :math:`\varphi^{-1}(\frac{1}{n} \sum_i \varphi(x_i))`; slower
    ``"context"``           weighted mean of elements that know their set from a smaller weighted mean, for sets of
                            points drawn from a shape; reads elements twice (:class:`~abelnet.nn.ContextAggregation`)
    ``"bank"``              a :class:`~abelnet.nn.GatedBank` that finds its law: for outputs with a formula
    ======================  =========================================================================================

    All but the last two are exact operations: their states merge.

    Arguments:
        name: One of the names above.
        channels: Number of channels.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> import torch
        >>> make_aggregation("mean", 2)(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
        tensor([2., 4.])
    """
    if name not in _MAKERS:
        raise AbelnetError(f"aggregation: expected one of {', '.join(_MAKERS)}, or a layer, got {name!r}")
    return _MAKERS[name](check_count("channels", channels), seed)


def _plain(law: type[Law]) -> Callable[[int, int | None], Pooling]:
    return lambda channels, seed: Aggregation(Operation(Generator(channels, "affine"), law()))


def _log_mean_exp(channels: int, seed: int | None) -> Pooling:
    return Aggregation(Operation(Generator(channels, "exponential", [_RATE]), Mean()))


def _weighted_mean(channels: int, seed: int | None) -> Pooling:
    return Aggregation(Operation(Generator(channels, "affine"), WeightedMean(_MASS_RATE)))


def _glow(channels: int, seed: int | None) -> Pooling:
    mixing = glow(channels, layers=_LAYERS, hidden=max(2, round(_HIDDEN_PER_CHANNEL * channels)), seed=seed)
    return Aggregation(Operation(Chain(mixing, Generator(channels, "exponential", [_RATE])), Mean()))


def _context(channels: int, seed: int | None) -> Pooling:
    summary = 2 * max(1, channels // (2 * _SUMMARIZED))  # even, as masses and places are
    return ContextAggregation(_weighted_mean(channels, None), _weighted_mean(summary, None), seed=seed)


def _bank(channels: int, seed: int | None) -> Pooling:
    # A seed is part of the configuration, of which integers must be small to be loaded.
    return GatedBank(channels, seed=None if seed is None else seed % _SEEDS)


_MAKERS: dict[str, Callable[[int, int | None], Pooling]] = {
    "sum": _plain(Sum),
    "mean": _plain(Mean),
    "max": _plain(Maximum),
    "log-mean-exp": _log_mean_exp,
    "weighted-mean": _weighted_mean,
    "glow": _glow,
    "context": _context,
    "bank": _bank,
}
