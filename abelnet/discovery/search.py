r"""Symbolic regression of laws: closed form, parametric laws and curves, with model selection on held-out examples.

One call learns from multisets and their results, without hyperparameters:

1. three quarters of the examples are fitted, one quarter is held out;
2. :mod:`~abelnet.discovery.spectral` measures their distance from any group and from any semigroup;
3. :mod:`~abelnet.discovery.families` fits every generator in sum and in product form, and as a mean if results lie
   between their elements; maximum and minimum are tried too; if no result is negative though elements have both signs,
   so are laws of magnitudes; if many results equal the largest or the smallest one, so are capped sums; and if nothing
   fits yet, sums divided by other powers of the count;
4. if none of these explains the held-out examples, the curve of the closed form and :class:`~abelnet.AbelianNet` are
   trained by gradient descent;
5. of all candidates that explain the held-out examples as well as the best one, the simplest is chosen, and refitted to
   all examples.

If the chosen law explains little, if regressions that assume no law predict its errors, or if results look capped, the
examples follow no such law, and :class:`NoLawError` is raised, unless ``refuse`` is False:
:mod:`~abelnet.discovery.evidence`.
"""

from __future__ import annotations

__all__ = ["PENALTIES", "NoLawError", "capped_at", "distinct", "learn_law"]

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from abelnet.bijections import Even, Generator
from abelnet.discovery.candidates import Candidate, Curve, Formula, Trained, below, magnitudes, train_abelian_net
from abelnet.discovery.evidence import Misfit, NoLawError, capped_at, check_cap, check_law, find_misfit
from abelnet.discovery.families import COMMON, MAGNITUDES, PLAINEST, SPECIAL, fit_dictionary
from abelnet.discovery.report import LearnedLaw, Tried
from abelnet.discovery.spectral import COORDINATES, Spectral, SpectralFit, fits_coordinate
from abelnet.discovery.stream import Stream
from abelnet.errors import AbelnetError
from abelnet.laws import Constant, Law, Maximum, Minimum, Sum
from abelnet.multisets import Multisets
from abelnet.operation import Operation

# Candidates are fitted to at most this many examples; the chosen one is refitted to all.
_FITTED = 2_000
_HELD_OUT = 0.25
_EXACT = 1e-9
# Capped curves are fitted to at least this many examples that are not at the bound.
_FEWEST_FREE = 5
# Means are tried if at least this fraction of results lie between the elements; noise moves some of them out.
_BETWEEN = 0.7
# Other powers of the count are tried if nothing else comes as close as this, in variances of the results.
_EXPLAINED_BY_COUNTS = 0.02
# Nothing is trained if the misfit has this fraction of the spread, and a regression this fraction of the error of laws.
_LARGE_MISFIT, _FAR_BETTER = 0.1, 0.01
PENALTIES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)
"""Curvature penalties tried for the closed form."""


def learn_law(
    stream: Stream,
    *,
    seed: int = 0,
    refuse: bool = True,
    polish: bool = True,
    only: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> LearnedLaw:
    """Learns the law of one dimension from examples.

    Arguments:
        stream: The examples.
        seed: Random seed of the held-out examples.
        refuse: Whether to raise :class:`NoLawError` if the examples follow no law.
        polish: Whether to train curves if no parametric law fits.
        only: ``"folds"`` or ``"means"`` to search these alone; None for both.
        say: Called with the name of each step.
    """
    examples = distinct(stream.sample)
    _check_enough(examples)
    if float(examples.targets.max()) == float(examples.targets.min()) and bool((examples.sizes > 1).all()):
        constant = _plain(Constant(float(examples.targets[0])))
        return LearnedLaw(
            constant.operation,
            constant.title,
            0.0,
            1.0,
            [Tried(constant.title, 1, 0.0)],
            seen=stream.seen,
            ensemble=constant.ensemble(examples, seed),
        )
    rest, held_out = examples.split(_HELD_OUT, seed)
    fitted = rest.take(torch.arange(min(len(rest), _FITTED)))
    spread = _variance(held_out) or _variance(examples) or 1.0
    exact = _EXACT**2 * spread

    say("closed form")
    scope = _Scope.of(examples, only)
    more = len(rest) > len(fitted)
    curves, eigenvalues = _curves(stream, fitted, held_out, scope.hypotheses, stream_has_more=more)
    say("formulas")
    plain = [_plain(law).judge(held_out) for law in (Maximum(), Minimum()) if scope.folds]

    def add_formulas(**how: Any) -> None:
        if min((one.mse for one in plain), default=math.inf) > exact:
            for entry in fit_dictionary(fitted, **how):
                plain.append(Formula(entry).judge(held_out))
                if plain[-1].mse <= exact:
                    break

    add_formulas(kinds=COMMON, forms=scope.forms)
    if min((one.mse for one in plain), default=math.inf) > exact and _may_lose_signs(examples):
        say("laws of magnitudes")
        formulas, more_curves, values = _laws_of_magnitudes(fitted, held_out, _Scope.of(magnitudes(examples), only))
        plain, curves, eigenvalues = plain + formulas, curves + more_curves, eigenvalues | values
    for bound in capped_at(examples) if scope.folds else ():
        say("capped sums")
        add_formulas(forms=("sum",), bound=bound)
        curves += _capped_curves(fitted, held_out, bound)
    add_formulas(kinds=SPECIAL, forms=scope.forms)
    if scope.has_counts and min((one.mse for one in plain + curves), default=math.inf) > _EXPLAINED_BY_COUNTS * spread:
        say("powers of the count")
        add_formulas(forms=("scaled sum",))
    tried = plain + curves
    best = min(tried, key=lambda one: one.mse)
    poor = _simplest(tried, spread) in curves or best.mse > 0.05 * spread
    if polish and poor and not _is_hopeless(find_misfit(best, fitted, held_out)):
        say("training")
        # The bound of a capped curve is one of its results, which training would move.
        free = [one for one in curves if not one.is_capped]
        tried += [Trained.of(_simplest(free, spread), fitted).judge(held_out)] if free else []
        net = train_abelian_net(fitted, held_out, seed=seed).judge(held_out)
        straight = Candidate("group over a bent line", Operation(net.operation.bijection, Sum()), net.complexity - 1)
        tried += [net, Trained.of(straight, fitted).judge(held_out)]
    winner = _simplest(tried, spread)
    explained = 1 - winner.mse / spread
    misfit = find_misfit(winner, fitted, held_out)
    if refuse:
        check_law(winner, explained, misfit, eigenvalues)
        if winner.mse > exact and not winner.is_capped:
            check_cap(examples)
    say("fitting to all")
    law = winner.fit_to_all(examples, stream.fits)
    ranking = [Tried(one.title, one.parameters, one.rmse) for one in sorted(tried, key=lambda one: one.mse)]
    best = min(tried, key=lambda one: one.mse)
    ensemble = law.ensemble(examples, seed)
    if best is not winner and winner.mse > exact:
        # The simplest law was chosen, though another had a smaller error: likelihood of the held-out examples decides
        # how far the other is believed.
        likelihood_ratio = (best.mse / winner.mse) ** (len(held_out) / 2)
        rival = best.fit_to_all(examples, stream.fits).ensemble(examples, seed)
        ensemble = ensemble.mix(rival, 1 / (1 + likelihood_ratio))
    return LearnedLaw(
        law.operation,
        law.title,
        winner.rmse,
        explained,
        ranking,
        eigenvalues,
        stream.seen,
        misfit=misfit,
        name=law.name,
        ensemble=ensemble,
    )


def _is_hopeless(misfit: Misfit | None) -> bool:
    """Returns whether training will not repair a law: no bend does, and a regression without a law is far better."""
    return misfit is not None and misfit.part > _LARGE_MISFIT and misfit.plain < _FAR_BETTER * misfit.law


class _Scope(NamedTuple):
    """What is searched: folds, means if results lie between their elements, and other powers of the count."""

    folds: bool
    means: bool
    has_counts: bool

    @staticmethod
    def of(examples: Multisets, only: str | None) -> _Scope:
        starts, values, results = examples.ptr[:-1].numpy(), examples.values[:, 0].numpy(), examples.targets.numpy()
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        between = float(np.mean((results >= low) & (results <= high)))
        # Sets of one size do not tell a power of the count from a factor.
        sizes = set(examples.sizes.tolist()) - {1}
        means = only == "means" or (only is None and between >= _BETWEEN)
        return _Scope(only != "means", means, only is None and len(sizes) > 1)

    @property
    def forms(self) -> tuple[str, ...]:
        return (("sum", "product") if self.folds else ()) + (("mean",) if self.means else ())

    @property
    def hypotheses(self) -> tuple[str, ...]:
        return (("group", "semigroup") if self.folds else ()) + (("mean",) if self.means else ())


def _plain(law: Law) -> Candidate:
    """Returns the candidate that applies a law to untransformed values."""
    return Candidate(law.name.lower(), Operation(Generator(1, "affine", dtype=torch.float64), law))


def distinct(examples: Multisets) -> Multisets:
    """Removes duplicate examples, which would leak from the fitted into the held-out ones."""
    kept = []
    for size in sorted(set(examples.sizes.tolist())):
        sets = (examples.sizes == size).nonzero()[:, 0]
        of_size = examples.take(sets)
        rows = torch.cat((of_size.values.reshape(-1, size), of_size.targets[:, None]), 1)
        kept.append(sets[np.unique(rows.numpy(), axis=0, return_index=True)[1]])
    return examples.take(torch.cat(kept).sort().values)


def _check_enough(examples: Multisets) -> None:
    several = int((examples.sizes > 1).sum())
    if several < 4:
        raise AbelnetError(
            f"X: expected at least 4 different sets of two or more elements, got {several}; a set of one element "
            "says nothing about how elements combine"
        )


def _variance(examples: Multisets) -> float:
    """Returns the variance of the results, in the units of weighted squared errors."""
    target, weights = examples.targets, examples.weights
    center = (weights * target).sum() / weights.sum()
    return float((weights * (target - center).square()).mean())


def _simplest(tried: Sequence[Candidate], spread: float) -> Candidate:
    """Returns the simplest candidate whose squared errors exceed those of the best by at most two standard errors."""
    best = min(tried, key=lambda one: one.mse)
    exact = 1e-24 * spread

    def as_good(one: Candidate) -> bool:
        difference = one.errors - best.errors
        if not bool(difference.isfinite().all()):
            return False
        chance = 2 * float(difference.std()) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
        # A law with several times the error of the best is not excused by chance.
        allowed = chance if one.mse <= 4 * best.mse + exact else 0.0
        return float(difference.mean()) <= allowed + 1e-3 * best.mse + exact

    return min((one for one in tried if one is best or as_good(one)), key=lambda one: (one.complexity, one.mse))


def _curves(
    stream: Stream, fitted: Multisets, held_out: Multisets, hypotheses: Sequence[str], *, stream_has_more: bool
) -> tuple[list[Candidate], dict[str, float]]:
    """Returns the curves of the closed form, best first, with penalties chosen on held-out error; and eigenvalues."""
    eigenvalues: dict[str, float] = {}
    found: list[Candidate] = []
    for coordinate, fit in stream.fits.items():
        if fit.count == 0:
            continue
        refined = SpectralFit(coordinate=coordinate).partial_fit(fitted).refine(fitted)
        # Semigroups from the refined fit: the poles of the stream are on a grid.
        found_at = [one for one in fit.solve() if one.absorbing is None] + refined.solve()[-1:]
        eigenvalues |= {f"{one.hypothesis}, {coordinate}": float(one.eigenvalue) for one in found_at}
        solutions = [(one, penalty) for penalty in PENALTIES for one in refined.solve(penalty)]
        if stream_has_more:
            streamed = fit.without(held_out)
            solutions += [
                (one, penalty) for penalty in PENALTIES for one in streamed.solve(penalty) if one.absorbing is None
            ]
        solutions = [one for one in solutions if one[0].hypothesis in hypotheses]
        found += _best_curves(solutions, held_out)
    return sorted(found, key=lambda one: one.mse), eigenvalues


def _best_curves(solutions: Sequence[tuple[Spectral, float]], held_out: Multisets, **how: Any) -> list[Candidate]:
    """Returns the curve of each title with the smallest held-out error, if that is finite."""
    found: dict[str, Candidate] = {}
    for one, penalty in solutions:
        try:
            curve = Curve(one, penalty, **how).judge(held_out)
        except AbelnetError:  # the curve is not strictly increasing
            continue
        best = found[curve.title].mse if curve.title in found else math.inf
        if curve.mse < best:
            found[curve.title] = curve
    return list(found.values())


def _may_lose_signs(examples: Multisets) -> bool:
    """Returns whether no result is negative though elements have both signs."""
    low, high = float(examples.values.min()), float(examples.values.max())
    return low < 0 < high and float(examples.targets.min()) >= 0


def _laws_of_magnitudes(
    fitted: Multisets, held_out: Multisets, scope: _Scope
) -> tuple[list[Candidate], list[Candidate], dict[str, float]]:
    """Returns formulas, curves and eigenvalues of laws of the magnitudes of elements."""
    fitted, coordinate = magnitudes(fitted), "log x"
    largest, smallest = (
        Candidate(f"{law.name.lower()} of |x|", Operation(Even(_first_power()), law), 1)
        for law in (Maximum(), Minimum())
    )
    formulas = [one.judge(held_out) for one in (largest, smallest) if scope.folds]
    entries = fit_dictionary(fitted, [PLAINEST, MAGNITUDES], forms=scope.forms)
    formulas += [Formula(entry, even=True).judge(held_out) for entry in entries]
    if not fits_coordinate(fitted, coordinate) or not fits_coordinate(magnitudes(held_out), coordinate):
        return formulas, [], {}
    refined = SpectralFit(coordinate=coordinate).partial_fit(fitted).refine(fitted)
    eigenvalues = {f"{one.hypothesis}, log |x|": float(one.eigenvalue) for one in refined.solve()}
    solutions = [(one, penalty) for penalty in PENALTIES for one in refined.solve(penalty)]
    solutions = [one for one in solutions if one[0].hypothesis in scope.hypotheses]
    return formulas, _best_curves(solutions, held_out, even=True), eigenvalues


def _capped_curves(fitted: Multisets, held_out: Multisets, bound: float) -> list[Candidate]:
    """Returns the curves of capped sums: the closed form of the examples that did not reach the bound."""
    free = below(fitted, bound)
    found: list[Candidate] = []
    for coordinate in COORDINATES:
        if len(free) >= _FEWEST_FREE and fits_coordinate(fitted, coordinate):
            fit = SpectralFit(coordinate=coordinate).partial_fit(free)
            solutions = [(fit.solve(penalty)[0], penalty) for penalty in PENALTIES]
            found += _best_curves(solutions, held_out, bound=bound)
    return found


def _first_power() -> Generator:
    return Generator(1, MAGNITUDES, [1.0], dtype=torch.float64)
