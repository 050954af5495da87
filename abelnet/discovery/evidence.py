"""Evidence against a law: what regressions that assume no law explain and the law does not, and results at a cap."""

from __future__ import annotations

__all__ = [
    "EXACT",
    "LEAST_EXPLAINED",
    "SERIOUS",
    "TOLERATED",
    "Misfit",
    "NoLawError",
    "capped_at",
    "check_cap",
    "check_law",
    "check_singles",
    "find_misfit",
    "is_beyond_chance",
    "is_bent",
    "repeated_ends",
    "small_sets",
]

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from abelnet.config import Configurable
from abelnet.discovery.nearest import nearest
from abelnet.discovery.yardstick import Comparison, bend, compare
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from abelnet.discovery.candidates import Candidate

LEAST_EXPLAINED = 0.8
"""A law that explains less of the variance is none, whatever the noise."""
EXACT = 1e-9
"""Errors below this fraction of the spread are rounding: nothing is left to explain."""
# The regressions take time that grows with the examples, and this many show any misfit that matters.
_MOST_COMPARED = 1_000
# Memory grows with the elements, of which features of sets need few.
_MOST_ELEMENTS = 20_000
# Fewer say nothing beside a law and its bends.
_FEWEST_COMPARED = 16
# A misfit is beyond chance if it exceeds all gains under random signs, and their mean by this many standard deviations:
# the gains have heavier tails than a normal distribution, and every table is tested.
_DEVIATIONS = 6.0
SERIOUS = 0.02
"""A larger misfit, in standard deviations of the results, contradicts a law; a smaller one is reported.

The curve of a true law is, beyond its bends, a few tenths of a percent off where it is steep.
"""
TOLERATED = 1e-3
"""A misfit below this fraction of the spread matters to nobody, and curves have such."""
# The order matters if without it regressions explain less than this fraction of what they explain with it, or leave
# more than this many times the squared error.
_WITHOUT_ORDER, _LEFT_WITHOUT_ORDER = 0.7, 1.4
# What describes the results has to remove this fraction of the misfit.
_DESCRIBED = 0.9
# A law is contradicted if regressions without a law, or with a bend of its curve, remove this much of its error, in
# standard deviations of the results: the curve of a true law is a few percent off at most, with few examples.
_UNBENT = 0.15
# A bend repairs a law if it lowers squared errors by this many standard errors.
_BENT = 4.0
# Sets of one element contradict a law if their error has this many times that of the others.
_SINGLES = 4.0
# What results look like, and what to try, if neither a law nor a regression predicts them.
_UNEXPLAINED = (
    "the results are noisy, or depend on something besides the elements; check that the columns are the right ones, "
    "give more examples, or look for another column that matters"
)
# Results equal to the extreme one, at least this many and this fraction, are capped.
_FEWEST_CAPPED, _CAPPED = 3, 0.02


class NoLawError(AbelnetError):
    """Raised if examples follow no commutative, associative law.

    The message says in one sentence what the results look like and what to try.

    Arguments:
        message: The sentence.
        details: Lines of evidence: the nearest law, its error, and distances from any law.

    Attributes:
        details: The same.
    """

    def __init__(self, message: str, details: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.details = tuple(details)


@dataclass(frozen=True)
class Misfit(Configurable):
    """Part of the results, beyond chance, that a regression without a law predicts and a law does not.

    Attributes:
        size: Root mean square of the misfit.
        part: The same as a fraction of the standard deviation of the results.
        law: Root mean squared error of the law, with the best bend of its curve unless that is no law either.
        plain: Root mean squared error of the regression.
        contradicts: Whether the misfit is too large for a law.
        nearest: What the results are instead, and what to try; empty unless the misfit contradicts.

    Example:
        >>> Misfit(0.02, 0.01, 0.05, 0.046, False).describe()
        'misfit: 0.02 (1 % of the spread) of the error is systematic'
    """

    size: float
    part: float
    law: float
    plain: float
    contradicts: bool
    nearest: str = ""

    def describe(self) -> str:
        """Returns the misfit in words."""
        return f"misfit: {self.size:.2g} ({100 * self.part:.2g} % of the spread) of the error is systematic"

    def config(self) -> dict[str, Any]:
        return asdict(self)


def find_misfit(law: Candidate, fitted: Multisets, held_out: Multisets) -> Misfit | None:
    """Returns the systematic part of the errors of a law; None if they may be chance.

    Arguments:
        law: The law, with its errors on the held-out examples.
        fitted: Examples that it was fitted to.
        held_out: The others.
    """
    spread = float(held_out.targets.std(unbiased=False)) if len(held_out) > 1 else 0.0
    if law.mse <= (EXACT * spread) ** 2 or not math.isfinite(law.mse):
        return None
    examples = _comparable(law, fitted, held_out)
    if len(examples) < _FEWEST_COMPARED:
        return None
    spread = float(examples.targets.std(unbiased=False))
    if not 0 < spread < math.inf or math.sqrt(float(law.squared_errors(examples).mean())) <= EXACT * spread:
        return None
    found = compare(examples, law.results)
    own, bent, plain = (
        float(np.linalg.norm(errors / spread)) / math.sqrt(len(errors))
        for errors in (found.law, found.bent, found.plain)
    )
    part = math.sqrt(max(bent**2 - plain**2, 0.0)) if is_beyond_chance(found) else 0.0
    # A bend that the search did not find, though it tries all monotonic curves, is no law.
    unbent = math.sqrt(max(own**2 - plain**2, 0.0))
    if unbent > _UNBENT:
        bent, part = own, unbent
    if part < TOLERATED:
        return None
    near = ""
    if part > SERIOUS:
        allowed = plain**2 + (1 - _DESCRIBED) * part**2
        near = nearest(examples, allowed, by_order=_is_ordered(found))
    return Misfit(part * spread, part, bent * spread, plain * spread, part > SERIOUS, near)


def is_bent(law: Candidate, fitted: Multisets, held_out: Multisets) -> bool:
    """Returns whether a bend of its curve repairs errors of a law beyond chance: then its formula is not the true one.

    Arguments:
        law: The law, with its errors on the held-out examples.
        fitted: Examples that it was fitted to.
        held_out: The others.
    """
    examples = _comparable(law, fitted, held_out)
    if len(examples) < _FEWEST_COMPARED:
        return False
    errors, bent = bend(examples, law.results)
    gain = errors**2 - bent**2
    return bool(gain.mean() > _BENT * gain.std() / math.sqrt(len(gain)))


def check_law(law: Candidate, explained: float, misfit: Misfit | None, eigenvalues: Mapping[str, float]) -> None:
    """Raises :class:`NoLawError` if a law explains little, or if its misfit contradicts it.

    Arguments:
        law: The best law.
        explained: Fraction of the variance of held-out results that it explains.
        misfit: Its misfit.
        eigenvalues: Distances of the examples from any law.
    """
    contradicted = misfit is not None and misfit.contradicts
    if explained >= LEAST_EXPLAINED and not contradicted:
        return
    details = [f"nearest law: {law.title}, explains {100 * explained:.3g} % of the variance of held-out results"]
    looks = _UNEXPLAINED
    if misfit is not None and contradicted:
        details.append(f"error: {misfit.law:.3g}; that of a regression without a law: {misfit.plain:.3g}")
        looks = misfit.nearest
    values = ", ".join(f"{name}: {value:.2g}" for name, value in eigenvalues.items())
    details.append(f"eigenvalues (0 for a law, about 1 for none): {values}")
    what, _, advice = looks.partition("; ")
    raise NoLawError(f"no law: {what} (the nearest law explains {_percent(explained)}); {advice}", details)


def _percent(explained: float) -> str:
    """Returns a fraction of the variance in words; it is negative or NaN for laws that are worse than the mean.

    Example:
        >>> [_percent(fraction) for fraction in (0.624, 0.9997, -3.0)]
        ['62 % of their variance', 'over 99 % of their variance', 'none of their variance']
    """
    if not explained >= 0.01:
        return "none of their variance"
    return f"{f'{100 * explained:.0f}' if explained < 0.99 else 'over 99'} % of their variance"


def check_singles(law: Candidate, examples: Multisets) -> None:
    """Raises :class:`NoLawError` if sets of one element have results other than that element.

    Every law and every mean returns the element of a set of one, so their results tell of the noise alone.

    Arguments:
        law: The best law.
        examples: All examples.
    """
    single = examples.sizes == 1
    if not bool(single.any()) or bool(single.all()):
        return
    errors = law.squared_errors(examples)
    of_singles, of_others = (math.sqrt(float(errors[part].mean())) for part in (single, ~single))
    spread = float(examples.targets.std(unbiased=False))
    if of_singles > _SINGLES * of_others + TOLERATED * spread:
        raise NoLawError(
            f"no law: results of {int(single.sum())} sets of one differ from their element, which every law returns, "
            f"by {of_singles:.3g}, and those of larger sets from the nearest law by {of_others:.3g}; leave sets of one "
            "element out, if they are special"
        )


def repeated_ends(examples: Multisets) -> list[float]:
    """Returns the largest and the smallest result of several elements, if more than one set has it."""
    results = examples.targets[examples.sizes > 1]
    ends = dict.fromkeys((float(results.max()), float(results.min())))
    return [end for end in ends if int((results == end).sum()) > 1]


def capped_at(examples: Multisets) -> list[float]:
    """Returns the largest and the smallest result, if many results are equal to it, as if they were capped.

    Example:
        >>> capped_at(Multisets.from_arrays([[1, 2], [4, 5], [5, 3], [2, 4], [5, 5]], [3, 8, 8, 6, 8]))
        [8.0]
    """
    results = examples.targets[examples.sizes > 1]
    counts = {float(end): int((results == end).sum()) for end in (results.max(), results.min())}
    return [end for end, count in counts.items() if count >= _FEWEST_CAPPED and count > _CAPPED * len(results)]


def check_cap(examples: Multisets) -> None:
    """Raises :class:`NoLawError` if many results are equal to the largest or the smallest one, as if capped.

    Arguments:
        examples: Examples that no law explains exactly.
    """
    results = examples.targets[examples.sizes > 1]
    for end in capped_at(examples):
        count, name = int((results == end).sum()), "largest" if end == results.max() else "smallest"
        raise NoLawError(
            f"no law: {count} of {len(results)} results are equal to the {name}, {end:g}, as if they were capped, and "
            "no law found gives exactly these; "
            "leave them out to learn the law of the others"
        )


@torch.no_grad()
def _comparable(law: Candidate, fitted: Multisets, held_out: Multisets) -> Multisets:
    """Returns examples of several elements on which the law has a result, without sets far larger than the others."""
    some = Multisets.join([small_sets(part) for part in (held_out, fitted)])
    kept = ((some.sizes > 1) & law.results(some).isfinite()).nonzero()[:, 0]
    return some.take(kept[:_MOST_COMPARED])


def small_sets(examples: Multisets) -> Multisets:
    """Returns the first sets, and of these the smallest that have few enough elements together."""
    sizes = examples.sizes[:_MOST_COMPARED]
    order = sizes.argsort(stable=True)
    few = sizes[order].cumsum(0) <= max(_MOST_ELEMENTS, int(sizes.min()))
    return examples.take(order[few].sort().values)


def is_beyond_chance(found: Comparison) -> bool:
    """Returns whether a regression predicts errors of a law better than it predicts noise."""
    chance = found.by_chance
    return bool(found.gain > max(chance.max(), chance.mean() + _DEVIATIONS * chance.std()))


def _is_ordered(found: Comparison) -> bool:
    """Returns whether features that depend on the order predict much better than those that do not."""
    ordered, symmetric = (
        max(gain for name, gain in found.gains.items() if name.startswith(kind)) for kind in ("ordered", "symmetric")
    )
    return symmetric < _WITHOUT_ORDER * ordered or 1 - symmetric > _LEFT_WITHOUT_ORDER * (1 - ordered)
