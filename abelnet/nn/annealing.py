r"""Annealing of a gated bank: which laws each step of training computes, and which one is kept."""

from __future__ import annotations

__all__ = ["SLOW", "Annealed", "Phase"]

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from abelnet.checks import check_number
from abelnet.errors import AbelnetError
from abelnet.pooling import Pooling

# Temperatures of the gates at the beginning and at the end of annealing.
_HOT, _COLD = 1.0, 0.15
# Completed fractions of training at which single formulas are scouted, at which the gates close and the best laws are
# tried alone, from which on their losses count, and at which one is kept.
_SCOUTING, _TRIAL, _VERDICT, _HALF = 0.2, 0.25, 0.375, 0.5
# What the bank computes: all laws, weighted by the gates; the first, second or third formula by the gates of each
# channel; its curve; log-sum-exp in all channels, by which files of former banks may have settled; the network; one of
# two more formulas in all channels, which the gates may have underrated; or laws that grow slowly.
_WAYS = ("mixture", "first", "second", "third", "curve", "exponential", "network", "fourth", "fifth", "slow")
_RANKS, _SCOUTED = ("first", "second", "third"), ("fourth", "fifth")
SLOW = {
    "exponential": ("log-sum-exp +1", "log-sum-exp -1"),
    "slow": ("log-sum-exp +1", "log-sum-exp -1", "log-mean-exp +1", "log-mean-exp -1"),
}
"""Ways in which laws that grow slowly with the size of sets, or not at all, take turns over the channels."""

# What steps train in turn, before the trial and in it, where a curve, which needs the most steps, has two turns.
_TURNS = (
    ("mixture", "slow", "mixture", "network"),
    ("first", "curve", "slow", "second", "third", "curve", "fourth", "fifth", "network"),
)
# In batches of more sets than this, a network has one of so many of its turns in the trial and none before, slow growth
# the others.
_LARGE, _SELDOM = 2000, 2
# Another formula than the first is kept if its loss is less than this part.
_OUT_RANKS = 0.9
# A curve, which fits what a formula fits as well, is kept if its loss is less than this part of that of formulas.
_NO_FORMULA = 0.25
# Laws of learned elements are kept if their loss is less than this part of that of slow growth: the right law has a
# hundredth, while with networks on either side all fit about as well, and slow growth is what carries over to larger
# sets. Where elements are given, a smaller loss is enough.
_CLEARLY = 0.2
# Where elements are learned, slow growth is kept without a trial if its loss is less than this multiple of that of the
# mixture: networks on either side make up for any law, and train the better the sooner they are trained with one.
_AS_GOOD = 3.0
# A network is kept in place of laws if its loss is less than this part of theirs.
_NO_LAW = 0.5
# A formula whose loss is less than this part of that of slow growth fits, and is only still being trained: then the
# loss of a curve or a network, which may be trained faster, must be smaller by this factor.
_FITS, _FASTER = 0.02, 0.02
# Weight of the latest loss in running averages.
_RECENT = 0.2
# A loss of 0, as the minimum may have, is stored as this, since 0 means that there is none.
_LEAST_LOSS = 1e-30
# Number of ways in files of banks that did not scout, where log-sum-exp was the way of slow growth.
_FORMER_WAYS = 7


class Phase(NamedTuple):
    """What the forward pass branches on, as Python numbers, so that it neither waits for a device nor fails to compile.

    Attributes:
        way: What is computed.
        is_hard: Whether it is kept.
        step: Number of steps.
        is_reported: Whether losses are reported.
    """

    way: str = "mixture"
    is_hard: bool = False
    step: int = 0
    is_reported: bool = False


class Annealed(Pooling):
    """Aggregation layer whose gates cool until one law per channel is left, after a trial of the best.

    Arguments:
        formulas: Number of laws with a formula, which are the first of all.
        curves: Whether there are others, curves.
    """

    channels: int
    logits: nn.Parameter
    progress: Tensor
    way: Tensor
    turn: Tensor
    losses: Tensor
    scouted: Tensor
    step: Tensor

    def __init__(self, formulas: int, curves: bool) -> None:
        super().__init__()
        self.formulas, self.curves = formulas, curves
        self.register_buffer("progress", torch.zeros(()))
        self.register_buffer("way", torch.zeros((), dtype=torch.long))
        self.register_buffer("turn", torch.zeros((), dtype=torch.long))
        # Of each way, and of each formula when it is scouted; 0 until there is one.
        self.register_buffer("losses", torch.zeros(len(_WAYS) + formulas))
        self.register_buffer("scouted", torch.zeros(len(_SCOUTED), dtype=torch.long))
        self.register_buffer("step", torch.zeros((), dtype=torch.long))
        self.forget()

    def forget(self) -> None:
        """Forgets what is known of the batches."""
        self.phase = Phase()
        self.is_large = False
        self._is_learned: bool | None = None  # whether elements of all batches have had gradients

    def anneal(self, progress: float, loss: float | None = None) -> None:
        """Sets how far training has come; call it before each step.

        The gates cool until each channel keeps its best law, at half of the training. If losses are reported, the best
        laws by the gates are first tried alone, since in a mixture laws make up for the errors of others. So are the
        best two of the other formulas, each of which is scouted before: it has a step alone, in all channels. Two more
        ways are trained in turn with them: log-sum-exp and log-mean-exp in turn over the channels, which grow slowly
        with the size of sets, are kept unless the laws do far better; and a network of a robust location, extremes and
        means is kept if it does better than both: then there is no law. In batches of more than 2,000 sets it has fewer
        turns. If elements are learned, and slow growth is about as good as the mixture of all laws and the network, as
        it is between free networks, it is kept from then on, without a trial.

        Arguments:
            progress: Completed fraction of training, from 0 to 1.
            loss: Loss of the last step.

        Example:
            >>> from abelnet.nn import GatedBank
            >>> bank = GatedBank(1)
            >>> bank.anneal(0.5)
            >>> sorted(set(bank.weights()[0].tolist()))
            [0.0, 1.0]
        """
        check_number("progress", progress, least=0, most=1)
        if loss is not None and not self.is_hard and not self._has_settled:
            self._record(loss)
        self.step += 1
        was, was_hard = float(self.progress), self.is_hard
        self.progress.fill_(progress)
        if progress >= _HALF:
            if not was_hard:
                self.way.fill_(_WAYS.index(self._decide()))
        elif loss is not None:
            if not self._has_settled:
                if was < _TRIAL <= progress:
                    self._close_gates()
                if was < _VERDICT <= progress:  # what had few turns, as networks in large batches, is still learning
                    self.losses.zero_()
            self.way.fill_(_WAYS.index(self._next_turn()))
        self.look()

    def look(self) -> None:
        """Reads the phase of training from the buffers."""
        if self.progress.is_meta:
            self.phase = Phase()
            return
        is_hard = float(self.progress) >= _HALF
        self.phase = Phase(_WAYS[int(self.way)], is_hard, int(self.step), int(self.turn) > 0)

    def observe(self, elements: Tensor, sets: int) -> None:
        """Notes what a training step shows of the elements: whether they are learned, and how many sets there are."""
        if torch.compiler.is_compiling():
            return
        self.is_large = sets > _LARGE
        if torch.is_grad_enabled():
            self._is_learned = self._is_learned is not False and elements.requires_grad

    @property
    def is_hard(self) -> bool:
        """Whether each channel has kept one law."""
        return self.phase.is_hard

    @property
    def has_laws(self) -> bool:
        """Whether the results are those of laws, and not of a network that was kept in their place."""
        return not self.is_hard or self.phase.way != "network"

    def weights(self) -> Tensor:
        """Returns the weight of each law in each channel, with shape :math:`(c, m)`."""
        if self.is_hard or self.phase.way != "mixture":
            return nn.functional.one_hot(self.chosen(), self.logits.shape[-1]).to(self.logits.dtype)
        return self.scores().softmax(-1).expand(self.channels, -1)

    def scores(self) -> Tensor:
        """Returns the logits of the gates, divided by their temperature."""
        return self.logits / (_HOT + (_COLD - _HOT) * self.progress / _HALF)

    def chosen(self) -> Tensor:
        """Returns the law of each channel, with shape :math:`(c)`: that which is kept, or has the largest gate."""
        logits, way = self.logits.detach(), self.phase.way
        if way in SLOW:
            places = [self.names.index(name) for name in SLOW[way]]
            return torch.tensor(places, device=logits.device).repeat(self.channels)[: self.channels]
        if way in _SCOUTED:
            return self.scouted[_SCOUTED.index(way)].repeat(self.channels)
        if way in _RANKS:
            best = logits[:, : self.formulas].topk(len(_RANKS)).indices[:, _RANKS.index(way)]
        elif way == "curve" and self.curves:
            best = self.formulas + logits[:, self.formulas :].argmax(-1)
        else:
            best = logits.argmax(-1)
        return best.expand(self.channels)

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Name of each law, in the order of the gates."""

    @property
    def _has_settled(self) -> bool:
        """Whether slow growth is as good as the mixture of all laws, on learned elements: no other way is tried."""
        losses = dict(zip(_WAYS, self.losses.tolist(), strict=False))
        is_as_good = 0 < losses["slow"] < _AS_GOOD * losses["mixture"]
        is_no_law = 0 < losses["network"] < _NO_LAW * losses["slow"]
        return is_as_good and not is_no_law and float(self.progress) >= _SCOUTING and self._is_learned is True

    def _next_turn(self) -> str:
        """Returns the way that the next step trains."""
        if self._has_settled:
            return "slow"
        progress = float(self.progress)
        turns = _TURNS[progress >= _TRIAL]
        self.turn += 1
        cycle, place = divmod(int(self.turn), len(turns))
        way = turns[place]
        if way == "network" and self.is_large and (progress < _TRIAL or cycle % _SELDOM != 0):
            way = "slow"
        if way != "mixture" and _SCOUTING <= progress < _TRIAL and (unknown := self._unknown()):
            way = _SCOUTED[0]  # in place of others than the mixture, so that the gates lose no step
            self.scouted[0] = unknown[0]
        return way

    def _record(self, loss: float) -> None:
        """Stores the loss of the last step: as that of a formula if it was scouted, else in the average of the way."""
        is_scouting = self.phase.way in _SCOUTED and float(self.progress) < _TRIAL
        place = len(_WAYS) + int(self.scouted[0]) if is_scouting else _WAYS.index(self.phase.way)
        before = float(self.losses[place])
        loss = max(loss, _LEAST_LOSS)
        self.losses[place] = loss if before == 0 else before + _RECENT * (loss - before)

    def _by_gates(self) -> list[int]:
        """Returns the formulas from the best to the worst by the gates, on average over the channels."""
        gates: list[int] = self.logits.detach()[:, : self.formulas].mean(0).argsort(descending=True).tolist()
        return gates

    def _unknown(self) -> list[int]:
        """Returns the formulas whose loss alone is not known, without those that will be tried anyway."""
        alone = self.losses[len(_WAYS) :].tolist()
        return [place for place in self._by_gates()[len(_RANKS) :] if alone[place] == 0]

    def _close_gates(self) -> None:
        """Begins the trial of the best laws, with the best of the other formulas alone among them."""
        alone = self.losses[len(_WAYS) :].tolist()
        others = sorted(self._by_gates()[len(_RANKS) :], key=lambda place: alone[place] or math.inf)
        for i in range(len(_SCOUTED)):  # the best by the gates if no loss is known
            self.scouted[i] = others[i]
        self.losses.zero_()

    def _decide(self) -> str:
        """Returns the way to keep, by the losses of the trial."""
        if self._has_settled:
            return "slow"
        losses = {way: loss or math.inf for way, loss in zip(_WAYS, self.losses.tolist(), strict=False)}
        if any(losses[way] == math.inf for way in (*_RANKS, "slow", "network")):  # not reported
            return "mixture"
        kept = min((*_RANKS, *_SCOUTED), key=losses.__getitem__)
        if losses[kept] > _OUT_RANKS * losses["first"]:
            kept = "first"
        doubt = _FASTER if losses[kept] < _FITS * losses["slow"] else 1.0
        if self.curves and losses["curve"] < doubt * _NO_FORMULA * losses[kept]:
            kept = "curve"
        if losses["network"] < doubt * _NO_LAW * min(losses[kept], losses["slow"]):
            return "network"
        clearly = 1.0 if self._is_learned is False else _CLEARLY
        return kept if losses[kept] < clearly * losses["slow"] else "slow"

    def check_state(self) -> None:
        places, way = self.scouted.tolist(), int(self.way)
        if not all(0 <= place < self.formulas for place in places):
            raise AbelnetError(f"scouted: expected formulas from 0 to {self.formulas - 1}, got {places}")
        if not 0 <= way < len(_WAYS):
            raise AbelnetError(f"way: expected a number from 0 to {len(_WAYS) - 1}, got {way}")
        self.look()

    def upgrade_state(self, state: dict[str, Tensor], prefix: str) -> None:
        losses = state.get(prefix + "losses")
        if losses is not None and losses.shape == (_FORMER_WAYS,):  # of a version that did not scout
            state[prefix + "losses"] = nn.functional.pad(losses, (0, len(self.losses) - _FORMER_WAYS))
            state.setdefault(prefix + "scouted", torch.zeros(len(_SCOUTED), dtype=torch.long))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any, **kwargs: Any) -> None:
        self.upgrade_state(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self.look()
