r"""Search among parametric laws: each family of generators in each form, fitted by least squares from a grid of starts.

For given parameters :math:`\theta` of the generator (and the absorbing element :math:`u_0` of a product) the latent
equation of an :class:`~abelnet.discovery.entry.Entry` is linear in :math:`s` or in :math:`\log |\gamma|`, which gives
an initial value for each point of a small grid; the best of them are refined by nonlinear least squares on the results.
"""

from __future__ import annotations

__all__ = ["COMMON", "SPECIAL", "fit_dictionary"]

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import FAMILIES
from abelnet.bijections.families.base import Form
from abelnet.discovery.entry import PLAINEST, Entry, losses, polish_all
from abelnet.multisets import Multisets

_STARTS = 3
# Evaluations that show which start is best; the best one takes rounds of more as long as each lowers its squared errors
# by this fraction.
_FEW, _MANY, _ROUNDS, _LOWERED = 40, 100, 4, 0.2
# Fits end once a step lowers the squared errors by less than this, in mean squared errors: then a hundred more would
# lower them by less than a parameter without meaning does. The chosen law is refitted until it settles.
_SETTLED = 0.004
# Starts that lead to an error below this, in standard deviations of the results, need no others beside them.
_EXACT = 1e-10
COMMON = tuple(kind for kind, family in FAMILIES.items() if family.is_common)
"""Families that most laws in practice have."""
SPECIAL = tuple(kind for kind in FAMILIES if kind not in COMMON)
"""Families of special laws. Near an end of their parameters some of them come close to others, and to capped sums."""


def fit_dictionary(
    examples: Multisets,
    kinds: Sequence[str] = tuple(FAMILIES),
    *,
    forms: Sequence[str] = ("sum", "product"),
    bound: float | None = None,
) -> Iterator[Entry]:
    """Fits families in each form and yields the best entry of each, simplest first.

    Arguments:
        examples: The examples.
        kinds: Families to fit; the affine one comes first, then common ones, then those of special laws.
        forms: Forms to fit: ``"sum"``, ``"product"``, ``"mean"``, and ``"scaled sum"``, a mean with an exponent of the
            count other than 1.
        bound: Result at which sums are capped.
    """
    exact = (_EXACT * float(examples.targets.std())) ** 2
    for kind, tier in _order(kinds, forms):
        starts = _best_starts(kind, tier, examples, bound)
        if starts:
            settled = _SETTLED / len(examples)
            fits, errors, done = polish_all(starts, examples, _FEW, settled, exact)
            best = min(range(len(fits)), key=errors.__getitem__)
            yield fits[best] if done[best] else _polished(fits[best], errors[best], examples, settled)


class _Tier(NamedTuple):
    """Form of a law, whether its coefficient is free or that of the plain form, and which families have it."""

    name: str
    form: str
    free: bool
    of_families: Form


_TIERS = (
    _Tier("sum", "sum", False, "sum"),
    _Tier("mean", "mean", False, "mean"),
    _Tier("sum", "sum", True, "shifted sum"),
    _Tier("product", "product", True, "product"),
    _Tier("scaled sum", "mean", True, "mean"),
)


def _order(kinds: Sequence[str], forms: Sequence[str]) -> Iterator[tuple[str, _Tier]]:
    """Yields what is tried: the affine family, then common families by their forms, then the others."""
    plainest = [kind for kind in kinds if kind == PLAINEST]
    common = [kind for kind in kinds if kind in COMMON and kind != PLAINEST]
    special = [kind for kind in kinds if kind in SPECIAL]
    for part in (plainest, common, special):
        for tier in _TIERS:
            if tier.name in forms:
                yield from ((kind, tier) for kind in part if tier.of_families in FAMILIES[kind].forms)


def _polished(entry: Entry, error: float, examples: Multisets, settled: float) -> Entry:
    """Polishes an entry as long as that lowers its error: some valleys are long."""
    for _ in range(_ROUNDS):
        before = error
        (entry,), (error,), (done,) = polish_all([entry], examples, _MANY, settled)
        if done or not error < (1 - _LOWERED) * before:
            break
    return entry


def _best_starts(kind: str, tier: _Tier, examples: Multisets, bound: float | None) -> list[Entry]:
    """Returns the best initial values, at most one for each θ, and at least one for each combination of signs.

    Those of one θ often lead to the same minimum. Least squares seldom crosses 0, where a power or a factor γ is no
    law, so the best of other signs lead to other minima.
    """
    best: dict[tuple[object, ...], tuple[float, Entry]] = {}
    starts = [replace(start, bound=bound) for start in _starts(kind, tier, examples, bound)]
    for entry, loss in zip(starts, losses(starts, examples) if starts else (), strict=True):
        key = (*entry.theta, _signs(entry))
        if math.isfinite(loss) and (key not in best or loss < best[key][0]):
            best[key] = loss, entry
    ranked = [entry for _, entry in sorted(best.values(), key=lambda item: item[0])]
    signs = [_signs(entry) for entry in ranked]
    first = [i for i in range(len(ranked)) if signs[i] not in signs[:i]]
    rest = [i for i in range(len(ranked)) if i not in first]
    return [ranked[i] for i in first + rest[: max(0, _STARTS - len(first))]]


def _signs(entry: Entry) -> tuple[bool, ...]:
    return *(value > 0 for value in entry.theta), entry.form == "product" and entry.coefficients[-1] > 0


def _starts(kind: str, tier: _Tier, examples: Multisets, bound: float | None) -> Iterator[Entry]:
    """Yields initial values on a grid; the coefficient in which the latent equation is linear is solved for."""
    more = (examples.sizes - 1).to(examples.targets.dtype)
    family, form = FAMILIES[kind], tier.form
    for theta in family.starts(examples.values, examples.targets):
        u, v = family.forward(examples.values, *theta), family.forward(examples.targets, *theta)
        several = (more > 0) & v.isfinite()
        if bound is not None:
            several &= examples.targets != bound
        if not u.isfinite().all() or not several.any():
            continue
        if not tier.free:
            yield Entry(kind, form, theta, ())
        elif form == "sum":
            shift = ((v - examples.sum(u)[:, 0]) / more)[several].median().item()
            yield Entry(kind, form, theta, (shift,))
        elif form == "mean":
            ratio = ((examples.sum(u)[:, 0] / v).log() / (more + 1).log())[several]
            if ratio.isfinite().any():
                yield Entry(kind, form, theta, (ratio[ratio.isfinite()].median().item(),))
        else:
            yield from (Entry(kind, form, theta, one) for one in _products(u, v, several, examples))


def _products(u: Tensor, v: Tensor, several: Tensor, examples: Multisets) -> list[tuple[float, float]]:
    """Returns absorbing elements of a product and its factor γ from latent elements and results.

    The factor has either sign if that is unknown.
    """
    grid = torch.tensor(_absorbing_grid(u[:, 0]), dtype=u.dtype)
    more, starts = (examples.sizes - 1).to(u.dtype)[:, None], examples.ptr.numpy()[:-1]
    # Sums of numpy: those of multisets, which have gradients, take ten times as long.
    logs, below = (
        torch.from_numpy(np.add.reduceat(one.numpy(), starts))
        for one in ((u - grid).abs().log(), (u < grid).to(u.dtype))
    )
    ratio = ((v[:, None] - grid).abs().log() - logs) / more
    sound = several[:, None] & ratio.isfinite()
    sizes = ratio.masked_fill(~sound, math.nan).nanmedian(0).values.clamp(-50, 50).exp()
    # The sign of γ shows in sets of an even number of elements, where its power is odd.
    seen = sound & (more % 2 == 1)
    odd = ((below + (v[:, None] < grid)) % 2).masked_fill(~seen, math.nan).nanmean(0)
    found: list[tuple[float, float]] = []
    for absorbing, size, part in zip(grid.tolist(), sizes.tolist(), odd.tolist(), strict=True):
        if math.isfinite(size):
            signs = (1, -1) if math.isnan(part) else (1,) if part <= 0.5 else (-1,)
            found += [(absorbing, sign * size) for sign in signs]
    return found


def _absorbing_grid(seen: Tensor) -> list[float]:
    """Returns absorbing elements to try for a product: among the latent values, near their limits, and beyond."""
    some = seen[:: max(1, len(seen) // 4096)]
    inside = torch.quantile(some, torch.linspace(0.05, 0.95, 10, dtype=seen.dtype)).tolist()
    low, high = seen.min().item(), seen.max().item()
    span = high - low or abs(high) or 1.0
    ends = [end + sign * part * span for end, sign in ((low, -1), (high, 1)) for part in (0.01, 0.1, 0.4, 1.0, 3.0)]
    return [0.0, 1.0, -1.0, *inside, *ends]
