r"""Symbolic regression of laws: closed form, parametric laws and curves, with model selection on held-out examples.

One call learns from multisets and their results, without hyperparameters:

1. three quarters of the examples are fitted, one quarter is held out;
2. :mod:`~abelnet.discovery.spectral` measures their distance from any group and from any semigroup;
3. :mod:`~abelnet.discovery.families` fits every generator in sum and in product form, and as a mean if results lie
   between their elements; maximum and minimum are tried too; if no result is negative though elements have both signs,
   so are laws of magnitudes; if many results equal the largest or the smallest one, so are capped sums; and if nothing
   fits yet, sums divided by other powers of the count;
4. if none of these is exact, :mod:`~abelnet.discovery.monotone` refines the curves of the closed form; if none explains
   the held-out examples, the curve of the closed form and :class:`~abelnet.AbelianNet` are trained by gradient descent;
5. of all candidates that explain the held-out examples as well as the best one, the simplest is chosen, and refitted to
   all examples.

If the chosen law explains little, if a plain regression that assumes no law explains the held-out examples of some size
much better, or if results look capped, the examples follow no such law, and :class:`NoLawError` is raised, unless
``refuse`` is False.
"""

from __future__ import annotations

__all__ = ["PENALTIES", "NoLawError", "capped_at", "distinct", "learn_law"]

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import Even, Generator
from abelnet.discovery.candidates import (
    Candidate,
    Curve,
    Formula,
    SmoothCurve,
    Trained,
    below,
    magnitudes,
    train_abelian_net,
)
from abelnet.discovery.families import MAGNITUDES, fit_dictionary
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
_LEAST_EXPLAINED = 0.8
# A regression is compared with a law at sizes with this many held-out examples.
_FEWEST_COMPARED = 5
# Means are tried if at least this fraction of results lie between the elements; noise moves some of them out.
_BETWEEN = 0.7
# Other powers of the count are tried if nothing else comes as close as this, in variances of the results.
_EXPLAINED_BY_COUNTS = 0.02
# Results equal to the extreme one, at least this many and this fraction, are capped.
_FEWEST_CAPPED, _CAPPED = 3, 0.02
# Elements and results on either side of the absorbing element of a curve, at least.
_FEWEST_BESIDE = 5
# The absorbing element is located with this penalty where the examples may have noise.
_PENALTY_IN_NOISE = 1e-4
# Of each kind of law, this many curves, the best ones, are smoothed.
_SMOOTHED = 2
Array = np.ndarray[Any, np.dtype[np.float64]]
PENALTIES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)
"""Curvature penalties tried for the closed form."""


class NoLawError(AbelnetError):
    """Raised if examples follow no commutative, associative law; the message has the evidence."""


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
            constant.operation, constant.title, 0.0, 1.0, [Tried(constant.title, 1, 0.0)], seen=stream.seen
        )
    rest, held_out = examples.split(_HELD_OUT, seed)
    fitted = rest.take(torch.arange(min(len(rest), _FITTED)))
    spread = float(held_out.targets.var(unbiased=False)) or float(examples.targets.var()) or 1.0
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

    add_formulas(forms=scope.forms)
    if min((one.mse for one in plain), default=math.inf) > exact and _may_lose_signs(examples):
        say("laws of magnitudes")
        formulas, more_curves, values = _laws_of_magnitudes(fitted, held_out, _Scope.of(magnitudes(examples), only))
        plain, curves, eigenvalues = plain + formulas, curves + more_curves, eigenvalues | values
    for bound in capped_at(examples) if scope.folds else ():
        say("capped sums")
        add_formulas(forms=("sum",), bound=bound)
        curves += _capped_curves(fitted, held_out, bound)
    if scope.has_counts and min((one.mse for one in plain + curves), default=math.inf) > _EXPLAINED_BY_COUNTS * spread:
        say("powers of the count")
        add_formulas(forms=("scaled sum",))
    tried = plain + curves
    best = min(tried, key=lambda one: one.mse)
    # If a regression that assumes no law is exact and laws are not, training will not find a law either.
    regression = _plain_regression(fitted, held_out, best.errors)
    hopeless = best.mse > 0.01 * spread and bool(regression) and all(row.plain < 1e-6 * spread for row in regression)
    if polish and not hopeless and min((one.mse for one in plain), default=math.inf) > exact:
        say("smooth curves")
        more_curves = _semigroups_in_noise(stream, fitted, held_out) if scope.folds else []
        more_curves += _smooth_curves(curves + more_curves, rest, held_out)
        curves, tried = curves + more_curves, tried + more_curves
        best = min(tried, key=lambda one: one.mse)
    if polish and not hopeless and (_simplest(tried, spread) in curves or best.mse > 0.05 * spread):
        say("training")
        # The bound of a capped curve is one of its results, which training would move. Smooth curves are trained.
        free = [one for one in curves if not one.is_capped and not isinstance(one, SmoothCurve)]
        tried += [Trained.of(_simplest(free, spread), fitted).judge(held_out)] if free else []
        net = train_abelian_net(fitted, held_out, seed=seed).judge(held_out)
        straight = Candidate("group over a bent line", Operation(net.operation.bijection, Sum()), net.complexity - 1)
        tried += [net, Trained.of(straight, fitted).judge(held_out)]
    winner = _simplest(tried, spread)
    explained = 1 - winner.mse / spread
    if refuse:
        _check_law(winner, explained, fitted, held_out, eigenvalues)
        if winner.mse > exact and not winner.is_capped:
            _check_cap(examples)
    say("fitting to all")
    law = winner.fit_to_all(examples, stream.fits)
    ranking = [Tried(one.title, one.parameters, one.rmse) for one in sorted(tried, key=lambda one: one.mse)]
    return LearnedLaw(law.operation, law.title, winner.rmse, explained, ranking, eigenvalues, stream.seen)


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
        return _Scope(only != "means", only != "folds" and between >= _BETWEEN, only != "folds" and len(sizes) > 1)

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
        found_at = fit.solve_sums() + refined.solve()[-1:]
        eigenvalues |= {f"{one.hypothesis}, {coordinate}": float(one.eigenvalue) for one in found_at}
        solutions = _supported(refined, fitted)
        if stream_has_more:
            streamed = fit.without(held_out)
            solutions += [(one, penalty) for penalty in PENALTIES for one in streamed.solve_sums(penalty)]
        solutions = [one for one in solutions if one[0].hypothesis in hypotheses]
        found += _best_curves(solutions, held_out)
    return sorted(found, key=lambda one: one.mse), eigenvalues


def _supported(fit: SpectralFit, examples: Multisets) -> list[tuple[Spectral, float]]:
    """Returns solutions with their penalties, without semigroups whose absorbing element the examples do not support.

    With all numbers on one side of it, a semigroup is a group of their logarithms, and the element is an invention.
    """
    numbers = torch.cat((examples.values[:, 0], examples.targets))

    def is_supported(absorbing: float | None) -> bool:
        above = 0 if absorbing is None else int((numbers > absorbing).sum())
        return absorbing is None or min(above, len(numbers) - above) >= _FEWEST_BESIDE

    solutions = ((one, penalty) for penalty in PENALTIES for one in fit.solve(penalty))
    return [one for one in solutions if is_supported(one[0].absorbing)]


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


def _semigroups_in_noise(stream: Stream, fitted: Multisets, held_out: Multisets) -> list[Candidate]:
    """Returns curves of semigroups whose absorbing element was located with a penalty: noise would displace it."""
    found: list[Candidate] = []
    for coordinate, streamed in stream.fits.items():
        if streamed.count > 0:
            fit = SpectralFit(coordinate=coordinate).partial_fit(fitted).refine(fitted, _PENALTY_IN_NOISE)
            solutions = [one for one in _supported(fit, fitted) if one[0].absorbing is not None]
            found += _best_curves(solutions, held_out)
    return found


def _smooth_curves(curves: Sequence[Candidate], fitted: Multisets, held_out: Multisets) -> list[Candidate]:
    """Returns smooth curves in place of the best curves of each kind of law."""
    found: list[Candidate] = []
    kinds: Counter[type[Law]] = Counter()
    for curve in sorted(curves, key=lambda one: one.mse):
        kinds[type(curve.operation.law)] += 1
        if isinstance(curve, Curve) and kinds[type(curve.operation.law)] <= _SMOOTHED:
            smooth = curve.smoothed(fitted, held_out)
            found += [smooth] if smooth else []
    return found


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
    entries = fit_dictionary(fitted, [MAGNITUDES], forms=scope.forms)
    formulas += [Formula(entry, even=True).judge(held_out) for entry in entries]
    if not fits_coordinate(fitted, coordinate) or not fits_coordinate(magnitudes(held_out), coordinate):
        return formulas, [], {}
    refined = SpectralFit(coordinate=coordinate).partial_fit(fitted).refine(fitted)
    eigenvalues = {f"{one.hypothesis}, log |x|": float(one.eigenvalue) for one in refined.solve()}
    solutions = [one for one in _supported(refined, fitted) if one[0].hypothesis in scope.hypotheses]
    return formulas, _best_curves(solutions, held_out, even=True), eigenvalues


def _capped_curves(fitted: Multisets, held_out: Multisets, bound: float) -> list[Candidate]:
    """Returns the curves of capped sums: the closed form of the examples that did not reach the bound."""
    free = below(fitted, bound)
    found: list[Candidate] = []
    for coordinate in COORDINATES:
        if len(free) >= _FEWEST_COMPARED and fits_coordinate(fitted, coordinate):
            fit = SpectralFit(coordinate=coordinate).partial_fit(free)
            solutions = [(fit.solve_sums(penalty)[0], penalty) for penalty in PENALTIES]
            found += _best_curves(solutions, held_out, bound=bound)
    return found


def _first_power() -> Generator:
    return Generator(1, MAGNITUDES, [1.0], dtype=torch.float64)


def _check_law(
    winner: Candidate, explained: float, fitted: Multisets, held_out: Multisets, eigenvalues: dict[str, float]
) -> None:
    """Raises if the chosen law explains little, or much less than a regression that assumes no law."""
    evidence = f"the best law, {winner.title}, explains {100 * explained:.3g} % of the variance of held-out results"
    values = ", ".join(f"{name}: {value:.2g}" for name, value in eigenvalues.items())
    spread = float(held_out.targets.var(unbiased=False))
    # A law holds at every size; by more than chance, and by enough to matter.
    worse = [
        row
        for row in _plain_regression(fitted, held_out, winner.errors)
        if row.plain < 0.25 * row.ours and row.ours > 1e-6 * spread
    ]
    if worse:
        row = max(worse, key=lambda row: row.ours / max(row.plain, 1e-300))
        evidence += (
            f"; on sets of {row.size} its error is {row.ours**0.5:.3g}, that of a plain regression without a law is "
            f"{row.plain**0.5:.3g}"
        )
    if worse or not explained >= _LEAST_EXPLAINED:
        raise NoLawError(
            f"y: expected the results of a commutative, associative law; {evidence}; eigenvalues (0 for a law, about 1 "
            f"for none): {values}"
        )


def capped_at(examples: Multisets) -> list[float]:
    """Returns the largest and the smallest result, if many results are equal to it, as if they were capped."""
    results = examples.targets[examples.sizes > 1]
    counts = {float(end): int((results == end).sum()) for end in (results.max(), results.min())}
    return [end for end, count in counts.items() if count >= _FEWEST_CAPPED and count > _CAPPED * len(results)]


def _check_cap(examples: Multisets) -> None:
    """Raises if many results are equal to the largest or the smallest one, as if they were capped."""
    results = examples.targets[examples.sizes > 1]
    for end in capped_at(examples):
        count, name = int((results == end).sum()), "largest" if end == results.max() else "smallest"
        raise NoLawError(
            f"y: expected the results of a commutative, associative law; {count} of {len(results)} results are "
            f"equal to the {name}, {end:g}, as if they were capped, and no law found gives exactly these; "
            "leave them out to learn the law of the others"
        )


class _Compared(NamedTuple):
    """Mean squared errors on held-out sets of one size: of a plain regression, and of a law."""

    size: int
    plain: float
    ours: float


def _plain_regression(fitted: Multisets, held_out: Multisets, errors: Tensor) -> list[_Compared]:
    """Compares a law with a regression that assumes none, at each size with enough examples."""
    rows = []
    for size in sorted(set(fitted.sizes.tolist())):
        train_rows, test_rows = fitted.sizes == size, held_out.sizes == size
        if size < 2 or int(test_rows.sum()) < _FEWEST_COMPARED:
            continue
        inputs = fitted.take(train_rows).values.reshape(-1, size).numpy()
        outputs = held_out.take(test_rows).values.reshape(-1, size).numpy()
        degree = max((d for d in (1, 2, 3) if 3 * (2 * size + math.comb(size + d, d)) <= len(inputs)), default=0)
        if degree == 0:
            continue
        scale = float(np.abs(inputs).max()) or 1.0
        target = fitted.targets[train_rows].numpy()
        weights = np.linalg.lstsq(_features(inputs / scale, degree), target, rcond=1e-10)[0]
        found = _features(outputs / scale, degree) @ weights
        plain = (found - held_out.targets[test_rows].numpy()) ** 2
        rows.append(_Compared(size, float(plain.mean()), float(errors[test_rows].mean())))
    return rows


def _features(values: Array, degree: int) -> Array:
    """Returns the features of the regression: polynomials of the elements in order, and the elements sorted."""
    chosen = (one for d in range(1, degree + 1) for one in combinations_with_replacement(range(values.shape[1]), d))
    columns = [np.ones(len(values)), *(values[:, one].prod(1) for one in chosen)]
    return np.concatenate((np.stack(columns, 1), np.sort(values, 1)), 1)
