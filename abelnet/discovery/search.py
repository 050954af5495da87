r"""Symbolic regression of laws: closed form, parametric laws and curves, with model selection on held-out examples.

One call learns from multisets and their results, without hyperparameters:

1. three quarters of the examples are fitted, one quarter is held out;
2. :mod:`~abelnet.discovery.spectral` measures their distance from any group, any semigroup and any mean;
3. :mod:`~abelnet.discovery.families` fits common generators in sum and in product form, and as a mean if results lie
   between their elements; maximum and minimum are tried too; if no result is negative though elements have both signs,
   so are laws of magnitudes; if several results equal the largest or the smallest one, so are capped sums; then the
   generators of special laws; and if nothing fits yet, sums divided by other powers of the count;
4. if none of these is exact, :mod:`~abelnet.discovery.monotone` refines the curves of the closed form; if none explains
   the held-out examples, the curve of the closed form and :class:`~abelnet.AbelianNet` are trained by gradient descent;
5. of all candidates that explain the held-out examples as well as the best one, the simplest is chosen, and refitted to
   all examples.

If the chosen law explains little, if :mod:`~abelnet.discovery.evidence` contradicts it, or if results look capped and
it does not give these, the examples follow no such law, and :class:`NoLawError` is raised, unless ``refuse`` is False.
"""

from __future__ import annotations

__all__ = ["Search", "distinct", "learn_law"]

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from abelnet.bijections import Even, Generator
from abelnet.discovery.candidates import (
    Candidate,
    Formula,
    SmoothCurve,
    Trained,
    magnitudes,
)
from abelnet.discovery.curves import (
    capped_curves,
    closed_form_curves,
    curves_of_magnitudes,
    semigroups_in_noise,
    smooth_curves,
)
from abelnet.discovery.entry import MAGNITUDES, PLAINEST
from abelnet.discovery.evidence import (
    Misfit,
    NoLawError,
    capped_at,
    check_cap,
    check_law,
    check_singles,
    find_misfit,
    is_bent,
    repeated_ends,
)
from abelnet.discovery.families import COMMON, SPECIAL, fit_dictionary
from abelnet.discovery.networks import train_abelian_net
from abelnet.discovery.report import LearnedLaw, Tried
from abelnet.discovery.stream import Stream
from abelnet.errors import AbelnetError
from abelnet.laws import Constant, Law, Maximum, Minimum, Sum
from abelnet.multisets import Multisets
from abelnet.operation import Operation

# Candidates are fitted to at most this many examples; the chosen one is refitted to all.
_FITTED = 2_000
_HELD_OUT = 0.25
_EXACT = 1e-9
# Means are tried if at least this fraction of results lie between the elements; noise moves some of them out.
_BETWEEN = 0.7
# Other powers of the count are tried if nothing else comes as close as this, in variances of the results.
_EXPLAINED_BY_COUNTS = 0.02
# Fewer examples do not tell a curve, whose many parameters only smoothness ties.
_FEWEST_FOR_CURVES = 16
# Curves and networks are trained if nothing else comes as close as this, in variances of the results; and not at all if
# the misfit of the best law has this fraction of the spread, and a regression this fraction of its error.
_POOR = 0.05
_LARGE_MISFIT, _FAR_BETTER = 0.1, 0.01
# A single held-out result with more than this part of the variance says nothing about the others.
_NEARLY_ALL = 0.99


def learn_law(
    stream: Stream,
    *,
    seed: int = 0,
    refuse: bool = True,
    polish: bool = True,
    only: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    search: Search | None = None,
    intervals: bool = True,
) -> LearnedLaw:
    """Learns the law of one dimension from examples.

    Arguments:
        stream: The examples.
        seed: Random seed of the held-out examples.
        refuse: Whether to raise :class:`NoLawError` if the examples follow no law.
        polish: Whether to smooth and train curves if no parametric law fits.
        only: ``"folds"`` or ``"means"`` to search these alone; None for both.
        say: Called with the name of each step.
        search: An earlier search of the same stream to go on with; None for a new one.
        intervals: Whether to learn the ensemble for intervals of results.
    """
    search = Search(stream, only, seed) if search is None else search
    search.run(polish=polish, say=say)
    examples, winner = search.examples, search.choose()
    misfit = find_misfit(winner, search.fitted, search.held_out)
    explained = search.explained(winner)
    if refuse:
        check_singles(winner, examples)
        check_law(winner, explained, misfit, search.eigenvalues)
        if winner.mse > search.exact and not winner.is_capped and capped_at(examples):
            check_cap(examples)
    say("fitting to all")
    law = winner.fit_to_all(examples, stream.fits)
    ranking = [Tried(one.title, one.parameters, one.rmse) for one in sorted(search.tried, key=lambda one: one.mse)]
    ensemble = law.ensemble(examples, seed) if intervals else None
    best = min(search.tried, key=lambda one: one.mse)
    if ensemble is not None and best is not winner and winner.mse > search.exact and best.is_sound:
        # The simplest law was chosen, though another had a smaller error: likelihood of the held-out examples decides
        # how far the other is believed.
        likelihood_ratio = (best.mse / winner.mse) ** (len(search.held_out) / 2)
        rival = best.fit_to_all(examples, stream.fits).ensemble(examples, seed)
        ensemble = ensemble.mix(rival, 1 / (1 + likelihood_ratio))
    # Of few held-out examples the error may be small by chance: that of the law as refitted is stated if it is larger.
    # Weighted errors decide which law is best; what is stated is in units of the results.
    stated, refitted = (
        math.sqrt(float((one / search.held_out.weights).mean()))
        for one in (winner.errors, law.squared_errors(search.held_out))
    )
    return LearnedLaw(
        law.operation,
        law.title,
        max(stated, refitted) if math.isfinite(refitted) else stated,
        explained,
        ranking,
        search.eigenvalues,
        stream.seen,
        misfit=misfit,
        name=law.name,
        ensemble=ensemble,
    )


class Search:
    """Search for the law of one dimension: what was tried so far, judged on held-out examples.

    Arguments:
        stream: The examples.
        only: ``"folds"`` or ``"means"`` to search these alone; None for both.
        seed: Random seed of the held-out examples.

    Attributes:
        examples: The different examples of the sample.
        fitted: Examples that candidates are fitted to.
        rest: All examples that are not held out.
        held_out: The others.
        spread: Variance of the held-out results.
        exact: Mean squared error of a law that is exact up to rounding.
        formulas: Candidates with few parameters.
        curves: Candidates with a curve.
        trained: Candidates trained by gradient descent.
        eigenvalues: Distance of the examples from any law of each kind.
    """

    def __init__(self, stream: Stream, only: str | None, seed: int) -> None:
        examples = distinct(stream.sample)
        _check_enough(examples)
        self.stream, self.examples, self.only, self.seed = stream, examples, only, seed
        self.scope = _Scope.of(examples, only)
        self.rest, self.held_out = examples.split(_HELD_OUT, seed)
        self.fitted = self.rest.take(torch.arange(min(len(self.rest), _FITTED)))
        self.spread = _variance(self.held_out) or _variance(examples) or 1.0
        self.exact = _EXACT**2 * self.spread
        self.formulas: list[Candidate] = []
        self.curves: list[Candidate] = []
        self.trained: list[Candidate] = []
        self.eigenvalues: dict[str, float] = {}
        self._done: set[str] = set()

    def run(self, *, polish: bool, say: Callable[[str], None]) -> None:
        """Takes all steps that were not taken before, until a law is exact.

        Arguments:
            polish: Whether to smooth and train curves if no parametric law fits.
            say: Called with the name of each step.
        """
        several = self.examples.targets[self.examples.sizes > 1]
        if float(several.max()) == float(several.min()):
            self.formulas = [self.judged(_plain(Constant(float(several[0])), 1))]
            return
        steps: list[tuple[str, Callable[[], None]]] = [
            ("closed form", self.try_closed_form),
            ("formulas", self.try_common_formulas),
            ("laws of magnitudes", self.try_magnitudes),
            ("capped sums", self.try_caps),
            ("special laws", self.try_special_formulas),
            ("powers of the count", self.try_counts),
        ]
        if polish:
            steps += [("smooth curves", self.try_smooth_curves), ("training", self.try_training)]
        for name, step in steps:
            if name not in self._done:
                say(name)
                step()
                self._done.add(name)
            if self.is_exact:
                break

    @property
    def tried(self) -> list[Candidate]:
        """All candidates."""
        return self.formulas + self.curves + self.trained

    @property
    def is_exact(self) -> bool:
        """Whether a formula is exact, so that nothing else has to be tried."""
        return min((one.mse for one in self.formulas), default=math.inf) <= self.exact

    def judged(self, candidate: Candidate) -> Candidate:
        """Returns a candidate with its errors on the held-out examples."""
        return candidate.judge(self.held_out)

    def explained(self, candidate: Candidate) -> float:
        """Returns the fraction of the variance of the held-out results that a candidate explains.

        If a single result has nearly all of it, such as the sum of one huge set, it is left out: any law that is right
        there explains nearly all, whatever it does elsewhere.
        """
        size = self.held_out.weights * (self.held_out.targets - self.held_out.targets.median()).square()
        others = (torch.arange(len(size)) != size.argmax()).nonzero()[:, 0]
        if len(others) > 1 and float(size[others].sum()) < (1 - _NEARLY_ALL) * float(size.sum()):
            spread = _variance(self.held_out.take(others))
            if spread > 0:
                return 1 - float(candidate.errors[others].mean()) / spread
        return 1 - candidate.mse / self.spread

    def choose(self) -> Candidate:
        """Returns the simplest of the best candidates that have a result for every example.

        A formula whose errors a bend of its curve repairs is not the true one, and a curve that is closer is preferred.
        """
        left = self.tried
        while left:
            winner = _simplest(left, self.spread)
            if winner.is_sound and bool(winner.squared_errors(self.examples).isfinite().all()):
                closer = [one for one in left if one not in self.formulas and one.mse < winner.mse]
                if winner.mse <= self.exact or not closer or winner not in self.formulas:
                    return winner
                return _simplest(closer, self.spread) if is_bent(winner, self.fitted, self.held_out) else winner
            left = [one for one in left if one is not winner]
        raise NoLawError(
            "no law: every law tried lacks a result for some example; check the signs of the elements, and zeros"
        )

    def try_closed_form(self) -> None:
        more = len(self.rest) > len(self.fitted)
        hypotheses = self.scope.hypotheses if len(self.fitted) >= _FEWEST_FOR_CURVES else ()
        self.curves, self.eigenvalues = closed_form_curves(
            self.stream, self.fitted, self.held_out, hypotheses, stream_has_more=more
        )

    def try_common_formulas(self) -> None:
        if self.scope.folds:
            self.formulas = [self.judged(_plain(law)) for law in (Maximum(), Minimum())]
        if not self.is_exact:
            self._fit(COMMON, self.scope.forms)

    def try_magnitudes(self) -> None:
        """Tries laws of magnitudes if no result is negative though elements have both signs."""
        low, high = float(self.examples.values.min()), float(self.examples.values.max())
        if not low < 0 < high or float(self.examples.targets.min()) < 0:
            return
        scope = _Scope.of(magnitudes(self.examples), self.only)
        if scope.folds:
            first_power = Even(Generator(1, MAGNITUDES, [1.0], dtype=torch.float64))
            ends = (Candidate(f"{law.name.lower()} of |x|", Operation(first_power, law), 1) for law in _ENDS)
            self.formulas += [self.judged(one) for one in ends]
        entries = fit_dictionary(magnitudes(self.fitted), [PLAINEST, MAGNITUDES], forms=scope.forms)
        self.formulas += [self.judged(Formula(entry, even=True)) for entry in entries]
        curves, eigenvalues = curves_of_magnitudes(self.fitted, self.held_out, scope.hypotheses)
        self.curves, self.eigenvalues = self.curves + curves, self.eigenvalues | eigenvalues

    def try_caps(self) -> None:
        """Tries capped sums if several results are equal to the largest or the smallest one."""
        for bound in repeated_ends(self.examples) if self.scope.folds else ():
            self._fit((*COMMON, *SPECIAL), ("sum",), bound)
            if not self.is_exact and len(self.fitted) >= _FEWEST_FOR_CURVES:
                self.curves += capped_curves(self.fitted, self.held_out, bound)

    def try_special_formulas(self) -> None:
        self._fit(SPECIAL, self.scope.forms)

    def try_counts(self) -> None:
        """Tries sums divided by other powers of the count if nothing else fits."""
        if self.scope.has_counts and self._least > _EXPLAINED_BY_COUNTS * self.spread:
            self._fit((*COMMON, *SPECIAL), ("scaled sum",))

    def try_smooth_curves(self) -> None:
        if not self.curves or self._is_hopeless():
            return
        if self.scope.folds:
            self.curves += semigroups_in_noise(self.stream, self.fitted, self.held_out)
        self.curves += smooth_curves(self.curves, self.rest, self.held_out)

    def try_training(self) -> None:
        """Trains the best curve and networks if formulas explain less than curves do, or little."""
        if len(self.fitted) < _FEWEST_FOR_CURVES or not self.tried:
            return
        poor = _simplest(self.tried, self.spread) in self.curves or self._least > _POOR * self.spread
        if not poor or self._is_hopeless():
            return
        # The bound of a capped curve is one of its results, which training would move. Smooth curves are trained.
        free = [one for one in self.curves if not one.is_capped and not isinstance(one, SmoothCurve)]
        if free:
            self.trained.append(self.judged(Trained.of(_simplest(free, self.spread), self.fitted)))
        if self.scope.folds:
            net = self.judged(train_abelian_net(self.fitted, self.held_out, seed=self.seed))
            line = Operation(net.operation.bijection, Sum())
            straight = Candidate("group over a bent line", line, net.complexity - 1)
            self.trained += [net, self.judged(Trained.of(straight, self.fitted))]

    @property
    def _least(self) -> float:
        return min((one.mse for one in self.tried), default=math.inf)

    def _fit(self, kinds: Sequence[str], forms: Sequence[str], bound: float | None = None) -> None:
        for entry in fit_dictionary(self.fitted, kinds, forms=forms, bound=bound):
            self.formulas.append(self.judged(Formula(entry)))
            if self.is_exact:
                break

    def _is_hopeless(self) -> bool:
        """Returns whether no curve will repair the best law: no bend does, and a regression without a law is better."""
        best = min(self.tried, key=lambda one: one.mse)
        if best.mse <= _LARGE_MISFIT**2 * self.spread:
            return False
        misfit: Misfit | None = find_misfit(best, self.fitted, self.held_out)
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


_ENDS: tuple[Law, ...] = (Maximum(), Minimum())


def _plain(law: Law, complexity: int = 0) -> Candidate:
    """Returns the candidate that applies a law to untransformed values."""
    return Candidate(law.name.lower(), Operation(Generator(1, "affine", dtype=torch.float64), law), complexity)


def distinct(examples: Multisets) -> Multisets:
    """Removes duplicate examples, which would leak from the fitted into the held-out ones."""
    kept = []
    for size in sorted(set(examples.sizes.tolist())):
        sets = (examples.sizes == size).nonzero()[:, 0]
        of_size = examples.take(sets)
        rows = torch.cat((of_size.values.reshape(len(of_size), -1), of_size.targets.reshape(len(of_size), -1)), 1)
        # As bytes, where 0 and -0 differ until 0 is added: NumPy makes an object of each column of a matrix.
        keys = (rows + 0.0).numpy().view(np.dtype((np.void, rows.shape[1] * rows.element_size())))[:, 0]
        kept.append(sets[np.unique(keys, return_index=True)[1]])
    return examples.take(torch.cat(kept).sort().values)


def _check_enough(examples: Multisets) -> None:
    several = int((examples.sizes > 1).sum())
    if several < 4:
        raise AbelnetError(
            f"X: expected at least 4 different sets of two or more elements, got {several} (n_samples={len(examples)}, "
            f"n_features={examples.dim}); a set of one element says nothing about how elements combine"
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
