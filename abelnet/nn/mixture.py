r"""Results of several members of a bank, weighted: by compiled kernels in one pass, or one by one."""

from __future__ import annotations

__all__ = ["in_turn", "mixture"]

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from abelnet.laws.logs import LogSum
from abelnet.nn.members import Exponentials, Extremes, Logarithms, Member, Polynomials, Powers, Scene, Totals, nonzero
from abelnet.segments import Segments, composed_gradients, is_plain, set_kernels_enabled

_LOG2_E = math.log2(math.e)
# Members that kernels fold, in this order.
_FUSED = (Polynomials, Totals, Extremes, Logarithms, *4 * (Exponentials,), *3 * (Powers,))


def mixture(
    members: Sequence[Member], scene: Scene, used: frozenset[int], weights: Tensor, limit: float = math.inf
) -> Tensor:
    """Returns the weighted results of the laws that are used, with shape :math:`(B, c)`; any number for empty sets.

    Arguments:
        members: The members, whose laws are counted in this order.
        scene: The elements.
        used: Places of the laws that are used.
        weights: Weight of each law, times the units of results, with shape :math:`(c, m)`.
        limit: Size at which results are cut off.
    """
    parts, first = [], 0
    if tuple(type(member) for member in members[: len(_FUSED)]) == _FUSED:
        fused = list(members[: len(_FUSED)])
        laws = sum(len(member.names) for member in fused)
        found = scene.multisets.kernels(scene.values)
        if found is not None and any(place < laws for place in used):
            members, first = members[len(_FUSED) :], laws
            parts.append(_fused(fused, scene, used, weights[:, :laws], limit, found))
    chosen: list[tuple[Member, list[int]]] = []
    for member in members:
        places = [first + i for i in range(len(member.names))]
        first += len(places)
        if not used.isdisjoint(places):
            chosen.append((member, places))
    for (member, places), total in zip(chosen, _sums([member for member, _ in chosen], scene), strict=True):
        for place, result in zip(places, member.lower(total, scene), strict=True):
            if place in used:
                parts.append(weights[:, place] * _cut(result, limit))
    return torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]


def in_turn(laws: Sequence[tuple[Exponentials, int]], scene: Scene, limit: float) -> Tensor:
    """Returns the first law in the first channel, the second in the second, and so on in turn.

    It is one fold of elements as they are, not in units, at the cost of one member.

    Arguments:
        laws: A member and the place of one of its laws: 0 for log-sum-exp, 1 for log-mean-exp.
        scene: The elements.
        limit: Size at which results are cut off.
    """
    rates = torch.stack([member.rate for member, _ in laws], -1)
    turns = torch.arange(len(rates), device=rates.device) % len(laws)
    rate = rates.gather(-1, turns[:, None])[:, 0] / scene.divisor
    fold = LogSum(rate=rate).reduce(scene.values, scene.multisets).reshape(-1, len(rates))
    is_mean = torch.tensor([law for _, law in laws], device=rates.device)[turns]
    return _cut(fold - scene.count.log() * (is_mean / rate), limit * scene.divisor)


def _cut(results: Tensor, limit: Tensor | float) -> Tensor:
    """Cuts off results at a limit per channel, which most often none exceeds."""
    if is_plain(results) and len(results) > 0 and bool((results.detach().abs().amax(0) <= limit).all()):
        return results
    limit = torch.as_tensor(limit, dtype=results.dtype, device=results.device)
    return results.clamp(-limit, limit)


def _sums(members: Sequence[Member], scene: Scene) -> list[Tensor | None]:
    """Returns the sums over each set of what members lift, in one pass."""
    lifted = [member.lift(scene) for member in members]
    parts = [part for part in lifted if part is not None]
    if not parts:
        return [None] * len(members)
    total = scene.multisets.sum(torch.cat(parts, -1) if len(parts) > 1 else parts[0])
    split = iter(torch.split(total.reshape(-1, total.shape[-1]), [part.shape[-1] for part in parts], -1))
    return [None if part is None else next(split) for part in lifted]


class _Alone(nn.Module):
    """Members whose parameters can be replaced by others in a call."""

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, scene: Scene, used: frozenset[int], weights: Tensor, limit: float) -> Tensor:
        return mixture(list(self.members), scene, used, weights, limit)  # type: ignore[arg-type]


def _coefficients(members: Sequence[Any], scene: Scene, weights: Tensor) -> Tensor:
    """Returns what the kernels are given: a row of coefficients each; see :mod:`abelnet.nn.mixing`."""
    polynomial, _, _, logarithms, *others = members
    factor = (logarithms.log_factor + scene.units.log()) * _LOG2_E
    rates = [member.rate * (1 if isinstance(member, Powers) else _LOG2_E) for member in others]
    rows = [1 / scene.divisor, nonzero(polynomial.gamma), polynomial.shift, factor, *rates]
    return torch.cat((torch.stack(rows), weights.T))


def _fused(
    members: Sequence[Member],
    scene: Scene,
    used: frozenset[int],
    weights: Tensor,
    limit: float,
    found: tuple[Segments, ModuleType],
) -> Tensor:
    used = frozenset(place for place in used if place < weights.shape[1])
    if len(used) < weights.shape[1]:  # others have no part, whatever their weights
        mask = torch.zeros(weights.shape[1], dtype=weights.dtype)
        mask[list(used)] = 1
        weights = weights * mask
    given = _coefficients(members, scene, weights)
    use, first = [], 0
    for member in members:
        use.append(not used.isdisjoint(range(first, first + len(member.names))))
        first += len(member.names)

    def plain(x: Tensor, given: Tensor) -> Tensor:
        return _composition(members, scene, used, limit, x, given)

    mixed: Tensor = _Mix.apply(scene.values, given, found[0], use, limit, plain)  # type: ignore[no-untyped-call]
    return mixed


def _composition(
    members: Sequence[Member], scene: Scene, used: frozenset[int], limit: float, x: Tensor, given: Tensor
) -> Tensor:
    """Returns what the kernels compute of elements and coefficients, by differentiable functions."""
    named = {"members.0.gamma": given[1], "members.0.shift": given[2]}
    named["members.3.log_factor"] = given[3] / _LOG2_E - scene.units.log()
    first = len(_FUSED)
    for i in range(4, first):
        rate = given[i] if isinstance(members[i], Powers) else given[i] / _LOG2_E
        named[f"members.{i}.log_rate"] = rate.abs().log()
    arguments = Scene(scene.multisets, x * given[0], scene.units), used, given[first:].T, limit
    with set_kernels_enabled(False):
        mixed: Tensor = torch.func.functional_call(_Alone(members), named, arguments)
    return mixed


class _Mix(torch.autograd.Function):
    """The weighted results of all formulas, of which nothing is stored."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        given: Tensor,
        segments: Segments,
        use: list[bool],
        limit: float,
        plain: Callable[..., Tensor],
    ) -> Tensor:
        from abelnet.nn import mixing  # numba takes a second to import

        arguments = [given.detach().numpy(), np.array(use), np.float32(limit)]
        result = x.new_empty(segments.count, x.shape[-1])
        segments.run(mixing.mix, x, arguments, [result])
        ctx.segments, ctx.arguments, ctx.plain = segments, arguments, plain
        ctx.save_for_backward(x, given)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from abelnet.nn import mixing

        x, given = ctx.saved_tensors
        if torch.is_grad_enabled():  # of higher order
            return *composed_gradients(ctx.plain, (x, given), gradient), None, None, None, None
        of_x, of_given = torch.empty(x.shape, dtype=x.dtype), torch.zeros(ctx.arguments[0].shape, dtype=torch.float64)
        ctx.segments.run(mixing.mix_gradient, x, ctx.arguments, [gradient.contiguous()], [of_x], [of_given])
        # The kernel differentiates powers of 2 as those of e.
        powers = [3, *range(4 + mixing.EXPONENTIALS, 4 + mixing.EXPONENTIALS + mixing.POWERS)]
        of_given[powers] *= math.log(2)
        return of_x, of_given.to(x.dtype), None, None, None, None
