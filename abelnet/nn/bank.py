r"""Gated bank: an aggregation layer that finds its own law."""

from __future__ import annotations

__all__ = ["GatedBank"]

import copy
import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from abelnet.checks import check_count, check_dtype, check_number
from abelnet.discovery import LawRegressor, NoLawError
from abelnet.discovery.formula import formula
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.nn.channelwise import Channelwise
from abelnet.nn.curve import Curve
from abelnet.nn.members import Exponentials, Extremes, Logarithms, Member, Polynomials, Powers, Scene, Totals
from abelnet.nn.mixture import in_turn, mixture
from abelnet.nn.statistics import Network
from abelnet.operation import Operation
from abelnet.pooling import Pooling
from abelnet.segments import is_plain

# Temperatures of the gates at the beginning and at the end of annealing.
_HOT, _COLD = 1.0, 0.15
# Results of a member beyond this many units are of no use to the mixture, and their gradients spoil those of others.
_LIMIT = 1e4
# Completed fractions of training at which single formulas are scouted, at which the gates close and the best laws are
# tried alone, from which on their losses count, and at which one is kept.
_SCOUTING, _TRIAL, _VERDICT, _HALF = 0.2, 0.25, 0.375, 0.5
# What the bank computes: all laws, weighted by the gates; the first, second or third formula by the gates of each
# channel; its curve; log-sum-exp and log-mean-exp in turn over the channels, which grow slowly with the size of sets;
# the network; or one of two more formulas in all channels, which the gates may have underrated.
_WAYS = ("mixture", "first", "second", "third", "curve", "slow", "network", "fourth", "fifth")
_RANKS, _SCOUTED = ("first", "second", "third"), ("fourth", "fifth")
# Laws that grow slowly or not at all, in turn over the channels.
_SLOW = ("log-sum-exp +1", "log-sum-exp -1", "log-mean-exp +1", "log-mean-exp -1")
# What steps train in turn, before the trial and in it.
_TURNS = (
    ("mixture", "slow", "mixture", "network"),
    ("first", "slow", "second", "curve", "third", "fourth", "fifth", "network"),
)
# Parts of a batch for each of which members are drawn, if not all of them aggregate all of it.
_PARTS = 5
# In batches of more sets than this, if losses are reported, what costs most is computed less often: curves are mixed in
# one of so many steps, and a network has one of so many of its turns in the trial and none before, slow growth the
# others. With fewer turns of curves alone, or with formulas that take turns in the mixture, wrong laws are kept.
_LARGE, _RARELY, _SELDOM = 2000, 16, 2
# Another formula than the first is kept if its loss is less than this part.
_OUTRANKS = 0.9
# A curve, which fits what a formula fits as well, is kept if its loss is less than this part of that of formulas.
_NO_FORMULA = 0.25
# Laws are kept if their loss is less than this part of that of slow growth: the right law has a hundredth, while with
# networks on either side all fit about as well, and slow growth is what carries over to larger sets.
_CLEARLY = 0.2
# Where elements are learned, slow growth is kept without a trial if its loss is less than this multiple of that of the
# mixture: networks on either side make up for any law, and train the better the sooner they are trained with one.
_AS_GOOD = 3.0
# A network is kept in place of laws if its loss is less than this part of theirs.
_NO_LAW = 0.5
# A formula whose loss is less than this part of that of slow growth fits, and is only still being trained: then the
# loss of a curve or a network, which may be trained faster, must be smaller by this factor.
_FITS, _FASTER = 0.02, 0.2
# Precision of trained parameters, relative to the size of elements.
_DIGITS = 1e-5
# Weight of the latest loss in running averages.
_RECENT = 0.2
# A loss of 0, as the minimum may have, is stored as this, since 0 means that there is none.
_LEAST_LOSS = 1e-30
# Number of ways in files of banks that did not scout.
_FORMER_WAYS = 7


class GatedBank(Pooling):
    r"""Aggregation layer that finds its own law: exact laws side by side, and a gate per channel that chooses one.

    .. math:: y = \sum_m g_m \, y_m, \quad g = \operatorname{softmax}(\ell / \tau), \quad
        y_m = \varphi_m^{-1}(\varphi_m(x_1) *_m \dots *_m \varphi_m(x_n))

    Members are sums and products, log-sum-exp, power sums, the means over these, maximum, minimum, and a monotonic
    spline for what has no formula. All are stable, and finite with finite gradients for all finite elements. During
    training, :meth:`anneal` lowers the temperature :math:`\tau` of the gates until one law per channel is left, which
    trains on alone. :meth:`harden` returns it as exact operations, :meth:`laws` as formulas.

    Elements are measured in units of their typical size in the first batch that is seen in training mode, so that one
    configuration serves elements of any scale.

    Arguments:
        channels: Number of channels :math:`c`.
        gates: ``"channel"`` for a law per channel, ``"shared"`` for one law with parameters per channel.
        curves: Whether the bank contains a spline.
        fill: Result of an empty set.
        draws: Number of members, 2 or more, that are drawn in training for each part of a batch, anew in each step, so
            that each takes part as often as the others; all if not given. Fewer cost less, but more often end in a
            wrong law. In evaluation all are mixed.
        seed: Random seed of the laws that are drawn, and of the network that is kept if there is no law; if not given,
            0 and torch's global generator.

    Example:
        >>> bank = GatedBank(2)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> bank(x, index=torch.tensor([0, 0, 2]), dim_size=3).shape
        torch.Size([3, 2])
        >>> for step in range(100):  # a training step comes here
        ...     bank.anneal(step / 100)
        >>> len(bank.laws())
        2
    """

    def __init__(
        self,
        channels: int,
        *,
        gates: Literal["channel", "shared"] = "channel",
        curves: bool = True,
        fill: float = 0.0,
        draws: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.channels = check_count("channels", channels)
        if gates not in ("channel", "shared"):
            raise AbelnetError(f'gates: expected "channel" or "shared", got {gates!r}')
        check_number("fill", fill)
        self.gates, self.curves, self.fill = gates, bool(curves), float(fill)
        self.draws = None if draws is None else check_count("draws", draws, least=2)
        members: list[Member] = [Polynomials(channels), Totals(channels), Extremes(channels), Logarithms(channels)]
        members += [Exponentials(channels, rate) for rate in (1.0, -1.0, 6.0, -6.0)]
        members += [Powers(channels, power) for power in (-1.0, 0.5, 2.0)]
        self._formulas = sum(len(member.names) for member in members)
        members += [Curve(channels)] if curves else []
        self.members = nn.ModuleList(members)
        count = sum(len(member.names) for member in members)
        self.logits = nn.Parameter(torch.zeros(channels if gates == "channel" else 1, count))
        self.unit: Tensor
        self.register_buffer("unit", torch.zeros(channels))  # 0 until the first batch
        self.network = Network(channels, seed=seed)
        self.progress: Tensor
        self.register_buffer("progress", torch.zeros(()))
        self.way: Tensor
        self.register_buffer("way", torch.zeros((), dtype=torch.long))
        self.turn: Tensor
        self.register_buffer("turn", torch.zeros((), dtype=torch.long))
        self.losses: Tensor
        # Of each way, and of each formula when it is scouted; 0 until there is one.
        self.register_buffer("losses", torch.zeros(len(_WAYS) + self._formulas))
        self.scouted: Tensor
        self.register_buffer("scouted", torch.zeros(len(_SCOUTED), dtype=torch.long))
        self.seed = seed
        self._is_large = False
        self._is_learned: bool | None = None  # whether elements of all batches have had gradients
        self.step: Tensor
        self.register_buffer("step", torch.zeros((), dtype=torch.long))
        self._look()

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets members and gates to their initial values, and forgets the scale of the elements."""
        for member in self._members():
            member.reset_parameters()
        self.network.reset_parameters(seed)
        with torch.no_grad():
            self.logits.zero_()
            for buffer in self.buffers():
                buffer.zero_()
        self._look()

    def anneal(self, progress: float, loss: float | None = None) -> None:
        """Sets how far training has come; call it before each step.

        The gates cool until each channel keeps its best law, at half of the training. If losses are reported, the best
        laws by the gates are first tried alone, since in a mixture laws make up for the errors of others. So are the
        best two of the other formulas, each of which is scouted before: it has a step alone, in all channels. Two more
        ways are trained in turn with them: log-sum-exp and log-mean-exp in turn over the channels, which grow slowly
        with the size of sets, are kept unless the laws do far better; and a network of a robust location, extremes and
        means is kept if it does better than both: then there is no law. In batches of more than 2,000 sets it has fewer
        turns. If elements are learned, and slow growth is about as good as the mixture of all laws, as it is between
        free networks, it is kept from then on, without a trial.

        Arguments:
            progress: Completed fraction of training, from 0 to 1.
            loss: Loss of the last step.

        Example:
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
        self._look()

    @property
    def _has_settled(self) -> bool:
        """Whether slow growth is as good as the mixture of all laws, on learned elements: then nothing else is tried."""
        losses = dict(zip(_WAYS, self.losses.tolist(), strict=False))
        is_as_good = 0 < losses["slow"] < _AS_GOOD * losses["mixture"]
        return is_as_good and float(self.progress) >= _SCOUTING and self._is_learned is True

    def _next_turn(self) -> str:
        """Returns the way that the next step trains."""
        if self._has_settled:
            return "slow"
        progress = float(self.progress)
        turns = _TURNS[progress >= _TRIAL]
        self.turn += 1
        cycle, place = divmod(int(self.turn), len(turns))
        way = turns[place]
        if way == "network" and self._is_large and (progress < _TRIAL or cycle % _SELDOM != 0):
            way = "slow"
        if way != "mixture" and _SCOUTING <= progress < _TRIAL and (unknown := self._unknown()):
            way = _SCOUTED[0]  # in place of others than the mixture, so that the gates lose no step
            self.scouted[0] = unknown[0]
        return way

    def _record(self, loss: float) -> None:
        """Stores the loss of the last step: as that of a formula if it was scouted, else in the average of the way."""
        is_scouting = _WAYS[self._way] in _SCOUTED and float(self.progress) < _TRIAL
        place = len(_WAYS) + int(self.scouted[0]) if is_scouting else self._way
        before = float(self.losses[place])
        loss = max(loss, _LEAST_LOSS)
        self.losses[place] = loss if before == 0 else before + _RECENT * (loss - before)

    def _by_gates(self) -> list[int]:
        """Returns the formulas from the best to the worst by the gates, on average over the channels."""
        gates: list[int] = self.logits.detach()[:, : self._formulas].mean(0).argsort(descending=True).tolist()
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

    def _look(self) -> None:
        """Reads what the forward pass branches on, so that it need not wait for the device, and can be compiled."""
        self._is_hard, self._way, self._used = False, 0, frozenset(range(self.logits.shape[-1]))
        self._step, self._reports = 0, False
        if self.progress.is_meta:
            return
        self._is_hard, self._way = float(self.progress) >= _HALF, int(self.way)
        self._step, self._reports = int(self.step), int(self.turn) > 0
        if self._is_hard or _WAYS[self._way] != "mixture":
            self._used = frozenset(self._best())

    def check_state(self) -> None:
        places = self.scouted.tolist()
        if not all(0 <= place < self._formulas for place in places):
            raise AbelnetError(f"scouted: expected formulas from 0 to {self._formulas - 1}, got {places}")
        self._look()
        for member in self._members():
            member.look()

    def upgrade_state(self, state: dict[str, Tensor], prefix: str) -> None:
        losses = state.get(prefix + "losses")
        if losses is not None and losses.shape == (_FORMER_WAYS,):  # of a version that did not scout
            state[prefix + "losses"] = nn.functional.pad(losses, (0, len(self.losses) - _FORMER_WAYS))
            state.setdefault(prefix + "scouted", torch.zeros(len(_SCOUTED), dtype=torch.long))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any, **kwargs: Any) -> None:
        self.upgrade_state(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self._look()

    def _decide(self) -> str:
        """Returns the way to keep, by the losses of the trial."""
        if self._has_settled:
            return "slow"
        losses = {way: loss or math.inf for way, loss in zip(_WAYS, self.losses.tolist(), strict=False)}
        if any(losses[way] == math.inf for way in (*_RANKS, "slow", "network")):  # not reported
            return "mixture"
        kept = min((*_RANKS, *_SCOUTED), key=losses.__getitem__)
        if losses[kept] > _OUTRANKS * losses["first"]:
            kept = "first"
        doubt = _FASTER if losses[kept] < _FITS * losses["slow"] else 1.0
        if self.curves and losses["curve"] < doubt * _NO_FORMULA * losses[kept]:
            kept = "curve"
        if losses["network"] < doubt * _NO_LAW * min(losses[kept], losses["slow"]):
            return "network"
        return "slow" if _CLEARLY * losses["slow"] <= losses[kept] else kept

    @property
    def is_hard(self) -> bool:
        """Whether each channel has kept one law."""
        return self._is_hard

    @property
    def has_laws(self) -> bool:
        """Whether the results are those of laws, and not of a network that was kept in their place."""
        return not self.is_hard or _WAYS[self._way] != "network"

    def weights(self) -> Tensor:
        """Returns the weight of each law in each channel, with shape :math:`(c, m)`."""
        if self.is_hard or _WAYS[self._way] != "mixture":
            return nn.functional.one_hot(self._chosen(), self.logits.shape[-1]).to(self.logits.dtype)
        return (self.logits / self._temperature).softmax(-1).expand(self.channels, -1)

    @property
    def _temperature(self) -> Tensor:
        return _HOT + (_COLD - _HOT) * self.progress / _HALF

    def _chosen(self) -> Tensor:
        """Returns the law of each channel, with shape :math:`(c)`."""
        logits, way = self.logits.detach(), _WAYS[self._way]
        if way == "slow":
            places = [self.names.index(name) for name in _SLOW]
            return torch.tensor(places, device=logits.device).repeat(self.channels)[: self.channels]
        if way in _SCOUTED:
            return self.scouted[_SCOUTED.index(way)].repeat(self.channels)
        if way in _RANKS:
            best = logits[:, : self._formulas].topk(len(_RANKS)).indices[:, _RANKS.index(way)]
        elif way == "curve" and self.curves:
            best = self._formulas + logits[:, self._formulas :].argmax(-1)
        else:
            best = logits.argmax(-1)
        return best.expand(self.channels)

    def pool(self, multisets: Multisets) -> Tensor:
        check_dtype("values", multisets.values, self)
        if multisets.element_weights is not None:
            raise AbelnetError("element_weights: expected None for a bank, got weights; aggregate with bank.harden()")
        if self.training:
            self._measure(multisets.values)
            if not torch.compiler.is_compiling():
                self._is_large = len(multisets) > _LARGE
                if torch.is_grad_enabled():
                    self._is_learned = self._is_learned is not False and multisets.values.requires_grad
        unit = torch.where(self.unit > 0, self.unit, 1)
        scene = Scene(multisets, None, unit)
        if _WAYS[self._way] == "network":
            results: Tensor = unit * self.network(scene)
        elif _WAYS[self._way] == "slow":
            results = in_turn(self._slow(), scene, math.inf if self.is_hard else _LIMIT)
        else:
            results = self._mixed(scene)
        if self.training and torch.is_grad_enabled() and not results.requires_grad:
            # A law without parameters is tried alone: a training step must not fail for want of a gradient.
            results = results + 0 * self.network.bias2.sum()
        if not is_plain(scene.empty) or bool(scene.empty.any()):
            results = torch.where(scene.empty, self.fill, results)
        return results.reshape(*multisets.shape, self.channels)

    def _slow(self) -> list[tuple[Exponentials, int]]:
        """Returns the laws that grow slowly, by their members and their places in these."""
        owners = {name: (member, law) for member in self._members() for law, name in enumerate(member.names)}
        return [owners[name] for name in _SLOW]  # type: ignore[misc]

    def _draw(self, scene: Scene) -> list[list[int]]:
        """Returns the laws that aggregate each part of the sets in a training step; none if it is all that are used.

        Each member takes part as often as the others, in parts that change from step to step.
        """
        way = _WAYS[self._way]
        if not self.training or self.is_hard or way not in ("mixture", "curve"):
            return []
        if self.draws is None:
            goes_without = self.curves and self._reports and way == "mixture" and self._is_large
            return [list(range(self._formulas))] if goes_without and self._step % _RARELY != 0 else []
        if not scene.multisets.can_be_cut(scene.z):
            return []
        laws = self._laws()
        if way == "curve":
            return laws[-1:] if self.curves else []
        # Without losses, gates alone decide, also on curves; else these, which cost more than all others, have turns.
        if self.curves and self._reports:
            laws = laws[:-1]
        # Generators use 32 bits of a seed: both numbers are spread over them.
        mixed = (2654435761 * (self.seed or 0) + 40503 * self._step) % 2**32
        generator = torch.Generator().manual_seed(mixed)
        order = torch.randperm(len(laws), generator=generator).tolist()
        offsets = torch.randperm(len(laws), generator=generator)[: self.draws].tolist()
        return [[law for k in offsets for law in laws[order[part - k]]] for part in range(min(_PARTS, len(laws)))]

    def _mixed(self, scene: Scene) -> Tensor:
        """Returns the results of laws, weighted by the gates: of all, or of those drawn."""
        if not (drawn := self._draw(scene)):
            return self._mixture(scene, self._used, self.weights())
        scores = self.logits / self._temperature
        results = []
        parts = scene.multisets.cut(scene.z, len(drawn)) if len(drawn) > 1 else [scene.multisets]
        for part, laws in zip(parts, drawn, strict=False):
            weights = torch.zeros_like(scores)
            weights[:, laws] = scores[:, laws].softmax(-1)
            one = Scene(part, part.values, scene.units) if len(drawn) > 1 else scene
            results.append(self._mixture(one, frozenset(laws), weights.expand(self.channels, -1)))
        return torch.cat(results)

    def _laws(self) -> list[list[int]]:
        """Returns the places of the laws of each member."""
        counts = [len(member.names) for member in self._members()]
        return [list(range(sum(counts[:i]), sum(counts[: i + 1]))) for i in range(len(counts))]

    def _mixture(self, scene: Scene, used: frozenset[int], weights: Tensor) -> Tensor:
        """Returns the results of the laws that are used, with weights :math:`(c, m)`."""
        if self.is_hard and self.training:
            for member, places in zip(self._members(), self._laws(), strict=True):
                if not used.isdisjoint(places):
                    member.refine(scene)
        return mixture(
            self._members(), scene, used, scene.units[:, None] * weights, math.inf if self.is_hard else _LIMIT
        )

    def fit_neighborhoods(self, x: Tensor, index: Tensor, y: Tensor) -> Channelwise:
        """Returns a layer that starts from the law of each channel, found by the closed form.

        It is symbolic regression on neighborhoods whose results are known, such as those of one round of message
        passing: no gradient is involved, and the parameters can be trained further. A channel in which no law is found
        has that with the largest gate.

        Arguments:
            x: Elements, with shape :math:`(N, c)`.
            index: Set of each element, with shape :math:`(N)`.
            y: Result of each set, with shape :math:`(B, c)`.

        Example:
            >>> x = 1 + torch.rand(300, 1, generator=torch.Generator().manual_seed(0))
            >>> index = torch.arange(300) // 3
            >>> y = 1 / (1 / x).reshape(-1, 3, 1).sum(1)
            >>> layer = GatedBank(1).fit_neighborhoods(x, index, y)
            >>> formula(layer.operations[0])
            'x∘y = (x^(−1) + y^(−1))^(−1)'
            >>> torch.allclose(layer(x, index=index), y)
            True
        """
        sets = Multisets(x.detach().double(), self.channels, index=index, dim_size=len(y)).ordered()
        operations = []
        for channel in range(self.channels):
            column = sets.column(channel)
            examples = Multisets(column.values, 1, ptr=column.ptr, targets=y[:, channel].detach().double())
            try:
                law = LawRegressor().fit(examples.take(examples.sizes > 0)).laws_[0]
                operation = copy.deepcopy(law.operation)
            except NoLawError:
                operation = self.operation(channel)
            operations.append(operation.to(self.logits.device, self.logits.dtype))
        return Channelwise(operations, [[channel] for channel in range(self.channels)], fill=self.fill)

    def laws(self) -> list[str]:
        """Returns the law of each channel as a formula: the one with the largest gate.

        Example:
            >>> GatedBank(1).laws()
            ['x∘y = x + y']
        """
        if not self.has_laws:
            return ["no law"] * self.channels
        operations = [self.operation(channel) for channel in range(self.channels)]
        return [formula(_rounded(operation, float(self.unit[c]) or 1.0)) for c, operation in enumerate(operations)]

    def operation(self, channel: int) -> Operation:
        """Returns the law of one channel, the one with the largest gate, as an exact operation in one dimension."""
        return self._operation(self._best()[channel], [channel])

    def harden(self) -> Channelwise:
        """Returns the law of each channel, the one with the largest gate, as a layer of exact operations.

        Example:
            >>> hard = GatedBank(3).harden()
            >>> hard(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).tolist()
            [5.0, 7.0, 9.0]
        """
        if not self.has_laws:
            raise AbelnetError("harden: expected a law in each channel, got none, since a network explains far more")
        best = self._best()
        channels = [[c for c, place in enumerate(best) if place == one] for one in sorted({*best})]
        operations = [self._operation(best[some[0]], some) for some in channels]
        return Channelwise(operations, channels, fill=self.fill)

    def _best(self) -> list[int]:
        return [int(place) for place in self._chosen()]

    def _operation(self, place: int, channels: Sequence[int]) -> Operation:
        owners = [(member, law) for member in self._members() for law in range(len(member.names))]
        member, law = owners[place]
        units = torch.where(self.unit > 0, self.unit, 1)[list(channels)]
        return member.operation(law, channels, units).to(self.logits.device, self.logits.dtype)

    @property
    def names(self) -> list[str]:
        """Name of each law, in the order of the gates."""
        return [name for member in self._members() for name in member.names]

    def _members(self) -> Sequence[Member]:
        return list(self.members)  # type: ignore[arg-type]

    @torch.no_grad()
    def _measure(self, values: Tensor) -> None:
        """Takes the typical size of the elements from the first batch."""
        if len(values) == 0 or (is_plain(self.unit) and bool((self.unit > 0).all())):
            return
        size = values.abs().mean(0)
        tiny = torch.finfo(values.dtype).tiny * 1e8
        size = torch.where((size > tiny) & size.isfinite(), size, 1)
        self.unit.copy_(torch.where(self.unit > 0, self.unit, size))

    def config(self) -> dict[str, Any]:
        return {
            "channels": self.channels,
            "gates": self.gates,
            "curves": self.curves,
            "fill": self.fill,
            "draws": self.draws,
            "seed": self.seed,
        }

    def extra_repr(self) -> str:
        return f"channels={self.channels}, gates={self.gates}, curves={self.curves}"


@torch.no_grad()
def _rounded(operation: Operation, unit: float) -> Operation:
    """Rounds parameters to the digits that training in single precision can tell, for printing."""
    operation = operation.double()  # in single precision a rounded number would have other digits again
    for name, parameter in operation.named_parameters():
        for i, value in enumerate(parameter.view(-1).tolist()):
            negligible = name.endswith("shift") and abs(value) < _DIGITS * unit
            parameter.view(-1)[i] = 0.0 if negligible else float(f"{value:.5g}")
    return operation
