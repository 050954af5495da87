r"""Which law made these examples: the closed form, laws of few numbers, then curves, chosen on held-out examples.

One call learns from multisets and their results, with no settings:

1. the examples are divided, three quarters to fit, one quarter to judge;
2. :mod:`~abelnet.discovery.spectral` says how far they are from any group and from any semigroup;
3. :mod:`~abelnet.discovery.families` fits every generator in sum and in product form; maximum and minimum are
   tried too;
4. where none of these explains the held-out examples, the curve of the closed form and :class:`~abelnet.AbelianNet` are
   trained by gradient descent;
5. of all that explain the held-out examples as well as the best does, the simplest wins, and is fitted to all examples.

If what wins explains little, or if a plain regression that knows no law explains the held-out examples much better, the
examples follow no such law, and this is said instead.
"""

from __future__ import annotations

__all__ = ["LearnedLaw", "NoLawError", "Stream", "learn_law"]

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import Generator
from abelnet.config import Configurable
from abelnet.discovery.candidates import Candidate, fixed, polished, train_abelian_net
from abelnet.discovery.examples import Examples
from abelnet.discovery.families import Entry, fit_dictionary, number
from abelnet.discovery.spectral import COORDINATES, SpectralFit, fits_coordinate
from abelnet.errors import AbelnetError
from abelnet.laws import Constant, Maximum, Minimum, Polynomial, Product, Sum
from abelnet.operation import Operation

# Of more examples than these a random sample is fitted and judged; the closed form takes in all.
_SAMPLE = 20_000
_FITTED = 2_000
_HELD_OUT = 0.25
_EXACT = 1e-9
_LARGEST = 1e100  # whose squares, and their sums, are still finite
_LEAST_EXPLAINED = 0.8
_PENALTIES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)


class NoLawError(AbelnetError):
    """Raised where examples follow no commutative, associative law; the message has the evidence."""


@dataclass
class LearnedLaw(Configurable):
    """The law of one dimension, and why it was chosen.

    Attributes:
        operation: The law, ready to use, in float64.
        title: What kind it is.
        formula: The law of two elements, as text.
        is_group: Whether every element has an inverse.
        identity: The element that changes nothing, if there is one.
        absorbing: The element that absorbs all others, if there is one.
        rmse: Error on held-out examples, before the law was fitted to all.
        explained: Part of the variance of the held-out results that it explains.
        tried: Title, number of parameters and held-out error of every law that was tried, best first.
        eigenvalues: How far the examples are from any group and from any semigroup.
        entry: The law as an entry of the dictionary, if it is one.
    """

    operation: Operation
    title: str
    formula: str
    is_group: bool
    identity: float | None
    absorbing: float | None
    rmse: float
    explained: float
    tried: list[tuple[str, int, float]]
    eigenvalues: dict[str, float]
    entry: Entry | None = None

    def config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "entry"}

    def summary(self) -> str:
        """The law in a few lines."""
        lines = [self.formula, f"kind: {'group' if self.is_group else 'semigroup'} ({self.title})"]
        lines.append(f"identity: {'none' if self.identity is None else number(self.identity)}")
        lines.append(f"absorbing element: {'none' if self.absorbing is None else number(self.absorbing)}")
        inverses = "of every element" if self.is_group else "of every element but the absorbing one"
        if isinstance(self.operation.law, Maximum | Constant):
            inverses = "none"
        lines.append(f"inverses: {inverses}")
        lines.append(f"held-out error: {self.rmse:.3g} (explains {100 * self.explained:.6g} % of the variance)")
        return "\n".join(lines)


class Stream:
    """Examples of one dimension that come in parts: sums for the closed form, and a sample of all."""

    def __init__(self, seed: int) -> None:
        self.fits: list[SpectralFit] = []
        self.sample: Examples | None = None
        self.keys = torch.empty(0, dtype=torch.float64)
        self.generator = torch.Generator().manual_seed(seed)
        self.seen = 0

    def take(self, examples: Examples) -> None:
        """Adds examples."""
        size = float(torch.cat((examples.values.reshape(-1), examples.target)).abs().max())
        if size > _LARGEST or 0 < size < 1 / _LARGEST:
            raise AbelnetError(f"X, y: expected numbers of sizes from 1e-100 to 1e100, got {size:.3g}; rescale them")
        if self.seen == 0:
            self.fits = [SpectralFit(coordinate=coordinate) for coordinate in COORDINATES]
        for fit in list(self.fits):
            # A part with a number that has no logarithm, say, ends these coordinates.
            if not fits_coordinate(examples, fit.coordinate):
                self.fits.remove(fit)
            elif len(torch.unique(torch.cat((examples.values[examples.mask], examples.target)))) > 1 or fit.count > 0:
                fit.partial_fit(examples)
        # Every example gets a random key, and those with the smallest are the sample: each has the same chance.
        keys = torch.rand(len(examples.target), generator=self.generator, dtype=torch.float64)
        joined = examples if self.sample is None else Examples.join([self.sample, examples])
        keys = torch.cat((self.keys, keys))
        kept = keys.argsort(stable=True)[:_SAMPLE].sort().values
        self.sample, self.keys = joined.take(kept), keys[kept]
        self.seen += len(examples.target)


def learn_law(
    stream: Stream,
    *,
    seed: int = 0,
    refuse: bool = True,
    polish: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> LearnedLaw:
    """The law behind the examples of one dimension.

    Arguments:
        stream: The examples.
        seed: Fixes which are held out.
        refuse: Whether to raise :class:`NoLawError` where they follow no law.
        polish: Whether to train curves where no law of few numbers fits.
        say: Called with a word about each step.
    """
    assert stream.sample is not None
    examples = _distinct(stream.sample)
    _check_enough(examples)
    if float(examples.target.max()) == float(examples.target.min()) and bool((examples.sizes > 1).all()):
        return _constant(float(examples.target[0]))
    fitted, held_out = examples.split(_HELD_OUT, seed)
    fitted = fitted.take(torch.arange(min(len(fitted.target), _FITTED)))
    spread = float(held_out.target.var(unbiased=False)) or float(examples.target.var()) or 1.0
    exact = _EXACT**2 * spread

    say("closed form")
    curves, eigenvalues = _curves(stream, fitted, held_out)
    say("dictionary")
    plain = [fixed(law).judge(held_out) for law in (Maximum(), Minimum())]
    if min(one.mse for one in plain) > exact:
        for one in fit_dictionary(fitted):
            plain.append(Candidate(one.title, one.complexity, one.operation(), one).judge(held_out))
            if plain[-1].mse <= exact:
                break
    tried = plain + curves
    best = min(tried, key=lambda one: one.mse)
    # A regression that knows no law and is exact where laws are not: training would not find one either.
    hopeless = best.mse > 0.01 * spread and _plain_regression(fitted, held_out, best.errors)[0] < 1e-6 * spread
    if polish and not hopeless and (_simplest(tried, spread) in curves or best.mse > 0.05 * spread):
        say("training")
        tried += [polished(one, fitted).judge(held_out) for one in curves[:1]]
        net = train_abelian_net(fitted, held_out, seed=seed).judge(held_out)
        straight = Candidate("group over a bent line", net.complexity - 1, Operation(net.operation.bijection, Sum()))
        tried += [net, polished(straight, fitted).judge(held_out)]
    winner = _simplest(tried, spread)
    explained = 1 - winner.mse / spread
    _check_law(winner, explained, fitted, held_out, eigenvalues, refuse=refuse)
    entry = winner.entry
    if entry is not None:
        entry = entry.polish(examples.take(torch.arange(min(len(examples.target), 2 * _FITTED)))).rounded(examples)
        winner = Candidate(entry.title, entry.complexity, entry.operation(), entry, winner.errors)
    ranking = sorted(tried, key=lambda one: one.mse)
    identity, absorbing = _landmarks(winner.operation)
    return LearnedLaw(
        winner.operation,
        winner.title,
        _formula(winner),
        winner.operation.is_group,
        identity,
        absorbing,
        winner.rmse,
        explained,
        [(one.title, one.complexity, one.rmse) for one in ranking],
        eigenvalues,
        entry,
    )


def _distinct(examples: Examples) -> Examples:
    """Each example once: a copy on both sides of the division would judge a law by what it was fitted to."""
    rows = torch.cat((examples.values, examples.mask.double(), examples.target[:, None]), 1)
    _, where = np.unique(rows.numpy(), axis=0, return_index=True)
    return examples.take(torch.from_numpy(np.sort(where)))


def _check_enough(examples: Examples) -> None:
    several = int((examples.sizes > 1).sum())
    if several < 4:
        raise AbelnetError(
            f"X: expected at least 4 different sets of two or more elements, got {several}; a set of one element "
            "says nothing about how elements combine"
        )


def _simplest(tried: Sequence[Candidate], spread: float) -> Candidate:
    """The simplest whose squared errors do not exceed those of the best by more than their chance difference."""
    best = min(tried, key=lambda one: one.mse)
    exact = 1e-24 * spread

    def as_good(one: Candidate) -> bool:
        difference = one.errors - best.errors
        if not bool(difference.isfinite().all()):
            return False
        chance = 2 * float(difference.std()) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
        # A law that errs several times more than the best is not saved by chance.
        allowed = chance if one.mse <= 4 * best.mse + exact else 0.0
        return float(difference.mean()) <= allowed + 1e-3 * best.mse + exact

    return min((one for one in tried if one is best or as_good(one)), key=lambda one: (one.complexity, one.mse))


def _curves(stream: Stream, fitted: Examples, held_out: Examples) -> tuple[list[Candidate], dict[str, float]]:
    """The curves of the closed form, best first, smoothed as the held-out examples like it; and the eigenvalues."""
    eigenvalues: dict[str, float] = {}
    found: dict[str, Candidate] = {}
    for fit in stream.fits:
        if fit.count == 0:
            continue
        refined = SpectralFit(coordinate=fit.coordinate).partial_fit(fitted).refine(fitted)
        for one in (fit.solve()[0], refined.solve()[1]):
            eigenvalues[f"{one.hypothesis}, {fit.coordinate}"] = float(one.eigenvalue)
        for penalty in _PENALTIES:
            for one in refined.solve(penalty):
                try:
                    operation = one.operation()
                except AbelnetError:  # a curve with no rise left
                    continue
                complexity = 20 + (fit.coordinate != "x") + 2 * (one.hypothesis == "semigroup")
                title = f"{one.hypothesis} over a curve in {fit.coordinate}"
                curve = Candidate(title, complexity, operation).judge(held_out)
                if title not in found or curve.mse < found[title].mse:
                    found[title] = curve
    finite = [one for one in found.values() if one.mse < math.inf]
    return sorted(finite, key=lambda one: one.mse), eigenvalues


def _constant(value: float) -> LearnedLaw:
    operation = Operation(Generator(1, "affine", dtype=torch.float64), Constant(value))
    formula = f"x∘y = {number(value)}"
    return LearnedLaw(operation, "constant", formula, False, None, value, 0.0, 1.0, [("constant", 1, 0.0)], {})


def _check_law(
    winner: Candidate,
    explained: float,
    fitted: Examples,
    held_out: Examples,
    eigenvalues: dict[str, float],
    *,
    refuse: bool,
) -> None:
    """Raises where the winner explains little, or much less than a regression that knows no law."""
    if not refuse:
        return
    evidence = f"the best law, {winner.title}, explains {100 * explained:.3g} % of the variance of held-out results"
    values = ", ".join(f"{name}: {value:.2g}" for name, value in eigenvalues.items())
    plain, ours = _plain_regression(fitted, held_out, winner.errors)
    # Better by more than a chance difference, and by enough to matter.
    much_better = plain < 0.25 * ours and ours > 1e-6 * float(held_out.target.var())
    if much_better:
        evidence += f"; where a plain regression that knows no law errs by {plain**0.5:.3g}, it errs by {ours**0.5:.3g}"
    if much_better or not explained >= _LEAST_EXPLAINED:
        raise NoLawError(
            f"y: expected the results of a commutative, associative law; {evidence}; eigenvalues (0 for a law, about 1 "
            f"for none): {values}"
        )


def _plain_regression(fitted: Examples, held_out: Examples, errors: Tensor) -> tuple[float, float]:
    """Mean squared errors, on sizes with enough examples, of a regression for each size, and of the law."""
    plain, ours = [], []
    for size in sorted(set(fitted.sizes.tolist())):
        train_rows, test_rows = fitted.sizes == size, held_out.sizes == size
        if size < 2 or not test_rows.any():
            continue
        inputs, outputs = _features(fitted.take(train_rows), size), _features(held_out.take(test_rows), size)
        if len(inputs) < 3 * inputs.shape[1]:
            continue
        target = fitted.target[train_rows].numpy()
        weights = np.linalg.lstsq(inputs, target, rcond=1e-10)[0]
        plain.append((outputs @ weights - held_out.target[test_rows].numpy()) ** 2)
        ours.append(errors[test_rows].numpy())
    if not plain:
        return math.inf, 0.0
    return float(np.concatenate(plain).mean()), float(np.concatenate(ours).mean())


def _features(examples: Examples, size: int) -> np.ndarray[Any, Any]:
    """One, the elements in order, and the elements sorted."""
    values = examples.values[:, :size].numpy()
    return np.concatenate((np.ones((len(values), 1)), values, np.sort(values, 1)), 1)


@torch.no_grad()
def _landmarks(operation: Operation) -> tuple[float | None, float | None]:
    """The identity and the absorbing element, where the law has them among real numbers."""
    identity = absorbing = None
    if operation.law.identity(1) is not None:
        identity = _real(operation.identity())
    law = operation.law
    zero = None
    if isinstance(law, Polynomial) and not law.is_group:
        zero = -1 / law.gamma - law.shift
    elif isinstance(law, Product):
        zero = torch.zeros(1, dtype=torch.float64)
    if zero is not None:
        absorbing = _real(operation.bijection.inverse(zero.double()))
    return identity, absorbing


def _real(value: Tensor) -> float | None:
    result = float(value)
    return (0.0 if abs(result) < 1e-12 else result) if math.isfinite(result) else None


def _formula(candidate: Candidate) -> str:
    if candidate.entry is not None:
        return candidate.entry.formula()
    if isinstance(candidate.operation.law, Minimum):
        return "x∘y = min(x, y)"
    if isinstance(candidate.operation.law, Maximum):
        return "x∘y = max(x, y)"
    sign = "+" if candidate.operation.is_group else "·"
    if isinstance(candidate.operation.law, Polynomial) and not candidate.operation.is_group:
        return "x∘y = φ⁻¹(φ(x) + φ(y) + γ·φ(x)·φ(y)), φ a curve"
    return f"x∘y = φ⁻¹(φ(x) {sign} φ(y)), φ a curve"
