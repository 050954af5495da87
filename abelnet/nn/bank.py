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
from abelnet.nn.annealing import SLOW, Annealed
from abelnet.nn.channelwise import Channelwise
from abelnet.nn.curve import Curve
from abelnet.nn.members import Exponentials, Extremes, Logarithms, Member, Polynomials, Powers, Scene, Totals
from abelnet.nn.mixture import in_turn, mixture
from abelnet.nn.statistics import Network
from abelnet.operation import Operation
from abelnet.segments import is_plain

# Results of a member beyond this many units are of no use to the mixture, and their gradients spoil those of others.
_LIMIT = 1e4
# Parts of a batch for each of which members are drawn, if not all of them aggregate all of it.
_PARTS = 5
# In large batches, if losses are reported, curves are mixed in one of so many steps. With fewer turns of curves alone,
# or with formulas that take turns in the mixture, wrong laws are kept.
_RARELY = 16
# Precision of trained parameters, relative to the size of elements.
_DIGITS = 1e-5


class GatedBank(Annealed):
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
        check_count("channels", channels)
        members: list[Member] = [Polynomials(channels), Totals(channels), Extremes(channels), Logarithms(channels)]
        members += [Exponentials(channels, rate) for rate in (1.0, -1.0, 6.0, -6.0)]
        members += [Powers(channels, power) for power in (-1.0, 0.5, 2.0)]
        super().__init__(sum(len(member.names) for member in members), bool(curves))
        self.channels = channels
        if gates not in ("channel", "shared"):
            raise AbelnetError(f'gates: expected "channel" or "shared", got {gates!r}')
        check_number("fill", fill)
        self.gates, self.fill = gates, float(fill)
        self.draws = None if draws is None else check_count("draws", draws, least=2)
        members += [Curve(channels)] if curves else []
        self.members = nn.ModuleList(members)
        count = sum(len(member.names) for member in members)
        self.logits = nn.Parameter(torch.zeros(channels if gates == "channel" else 1, count))
        self.unit: Tensor
        self.register_buffer("unit", torch.zeros(channels))  # 0 until the first batch
        self.network = Network(channels, seed=seed)
        self.seed = seed
        self.look()

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets members and gates to their initial values, and forgets the scale of the elements."""
        for member in self._members():
            member.reset_parameters()
        self.network.reset_parameters(seed)
        with torch.no_grad():
            self.logits.zero_()
            for buffer in self.buffers():
                buffer.zero_()
        self.forget()
        self.look()

    def look(self) -> None:
        super().look()
        self._used = frozenset(range(self.logits.shape[-1]))
        if not self.progress.is_meta and (self.is_hard or self.phase.way != "mixture"):
            self._used = frozenset(self._best())

    def check_state(self) -> None:
        super().check_state()
        for member in self._members():
            member.look()

    def pool(self, multisets: Multisets) -> Tensor:
        check_dtype("values", multisets.values, self)
        if multisets.element_weights is not None:
            raise AbelnetError("element_weights: expected None for a bank, got weights; aggregate with bank.harden()")
        if self.training:
            self._measure(multisets.values)
            self.observe(multisets.values, len(multisets))
        unit = torch.where(self.unit > 0, self.unit, 1)
        scene = Scene(multisets, None, unit)
        way = self.phase.way
        if way == "network":
            results: Tensor = unit * self.network(scene)
        elif way in SLOW:
            results = in_turn(self._growing(SLOW[way]), scene, math.inf if self.is_hard else _LIMIT)
        else:
            results = self._mixed(scene)
        if self.training and torch.is_grad_enabled() and not results.requires_grad:
            # A law without parameters is tried alone: a training step must not fail for want of a gradient.
            results = results + 0 * self.network.bias2.sum()
        if not is_plain(scene.empty) or bool(scene.empty.any()):
            results = torch.where(scene.empty, self.fill, results)
        return results.reshape(*multisets.shape, self.channels)

    def _growing(self, names: Sequence[str]) -> list[tuple[Exponentials, int]]:
        """Returns exponentials by name, as members and their places in these."""
        members = (member for member in self._members() if isinstance(member, Exponentials))
        owners = {name: (member, law) for member in members for law, name in enumerate(member.names)}
        return [owners[name] for name in names]

    def _draw(self, scene: Scene) -> list[list[int]]:
        """Returns the laws that aggregate each part of the sets in a training step; none if it is all that are used.

        Each member takes part as often as the others, in parts that change from step to step.
        """
        way = self.phase.way
        if not self.training or self.is_hard or way not in ("mixture", "curve"):
            return []
        if self.draws is None:
            goes_without = self.curves and self.phase.is_reported and way == "mixture" and self.is_large
            return [list(range(self.formulas))] if goes_without and self.phase.step % _RARELY != 0 else []
        if not scene.multisets.can_be_cut(scene.z):
            return []
        laws = self._laws()
        if way == "curve":
            return laws[-1:] if self.curves else []
        # Without losses, gates alone decide, also on curves; else these, which cost more than all others, have turns.
        if self.curves and self.phase.is_reported:
            laws = laws[:-1]
        # Generators use 32 bits of a seed: both numbers are spread over them.
        mixed = (2654435761 * (self.seed or 0) + 40503 * self.phase.step) % 2**32
        generator = torch.Generator().manual_seed(mixed)
        order = torch.randperm(len(laws), generator=generator).tolist()
        offsets = torch.randperm(len(laws), generator=generator)[: self.draws].tolist()
        return [[law for k in offsets for law in laws[order[part - k]]] for part in range(min(_PARTS, len(laws)))]

    def _mixed(self, scene: Scene) -> Tensor:
        """Returns the results of laws, weighted by the gates: of all, or of those drawn."""
        if not (drawn := self._draw(scene)):
            return self._mixture(scene, self._used, self.weights())
        scores = self.scores()
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
        return [int(place) for place in self.chosen()]

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
