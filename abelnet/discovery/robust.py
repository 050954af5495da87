r"""Robust search: a law of most examples, and the examples that disagree with it.

Least squares follows a few gross outliers rather than the rest. A regression that assumes no law,

.. math:: y_r \approx w_n^\top f(x_{r1}, \dots, x_{rn}) ,

on features that common aggregations are made of, is fitted with bounded influence at each size :math:`n`, in
milliseconds. If no residual exceeds 6 standard deviations, estimated from the median, the search is the ordinary one. So
it is if a formula is exact on all examples. Otherwise a law is searched without these suspects; then all examples that
agree with it are taken back, the others left out, until the choice is stable. Its residuals decide, not those of the
regression, so that an example of a law is not left out because the regression fails there.

Noise may be proportional to the result rather than constant: its standard deviation is then
:math:`s \sqrt{\hat y^2 + \varepsilon^2}`, with :math:`\hat y` from the regression. The model of noise is chosen by
likelihood; squared errors are weighted by the inverse of its variance.

The law replaces that of the ordinary search only if its likelihood is higher, if it passes the same checks on the examples that are left, if at most
a fifth is left out, and if these are not systematic: what a regression explains, or what can be told from the elements
alone, is no outlier but evidence against the law.
"""

from __future__ import annotations

__all__ = ["Noise", "Screening", "learn_robust_law", "screen"]

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.search import NoLawError, learn_law
from abelnet.discovery.stream import Stream
from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
# A residual of Gaussian noise exceeds this many standard deviations once in 5e8 examples.
_CUT = 6.0
# The median of |residual| of Gaussian noise, in standard deviations.
_MEDIAN = 0.6745
# Influence of a residual in the regression ends at this many standard deviations (95% efficiency with Gaussian noise).
_BISQUARE = 4.685
_SWEEPS = 30
# Residuals below this part of a result are rounding, or digits that a table left out.
_ROUNDING = 1e-9
# More examples than this fraction that disagree are no outliers.
_MOST_LEFT_OUT = 0.2
# The search starts with at least this fraction of the examples, even if the regression suspects more.
_FEWEST_STARTED = 0.7
_ROUNDS = 4
# Sizes with fewer examples share one regression; features are at most this part of the examples.
_OWN_REGRESSION, _FEATURES = 30, 0.2
# Examples left out are systematic if a feature of the elements ranks them above (below) the others this often.
_RANKED = 0.85
_EXACT = 1e-9
# Elements in their order are features of the regression at sizes up to this one.
_IN_ORDER = 6
# Residual where a law has no result; its square is finite.
_NO_RESULT = 1e150
# Likelihoods are those of a t distribution with this many degrees of freedom, so that outliers do not decide.
_DEGREES = 3.0
# The less common model of noise, proportional to the result, needs this much more log-likelihood.
_EVIDENCE = 10.0
# Floors of proportional noise that are tried, in medians of |result|.
_FLOORS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def learn_robust_law(
    stream: Stream,
    *,
    seed: int = 0,
    refuse: bool = True,
    polish: bool = True,
    only: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> LearnedLaw:
    """Learns the law of one dimension from examples, some of which may be wrong or less accurate than others.

    Arguments are those of :func:`~abelnet.discovery.search.learn_law`. Examples that were left out are listed in
    :attr:`LearnedLaw.outliers`.

    Example:
        >>> rows = np.random.default_rng(0).uniform(-1, 1, (60, 2))
        >>> results = rows.sum(1)
        >>> results[:3] = 7.0, -9.0, 8.0
        >>> stream = Stream(seed=0)
        >>> stream.take(Multisets.from_arrays(rows, results))
        >>> law = learn_robust_law(stream)
        >>> law.formula, law.outliers
        ('x∘y = x + y', [0, 1, 2])
    """
    how = {"seed": seed, "refuse": refuse, "polish": polish, "only": only, "say": say}
    examples = stream.sample.ordered()
    screening = screen(examples)
    if not screening.suspects.any() and screening.noise.is_constant:
        return learn_law(stream, **how)
    plain = learn_law(stream, **how | {"refuse": False, "polish": False})
    if plain.rmse <= _EXACT * float(examples.targets.std()):
        return plain

    def search(kept: Mask, **options: Any) -> LearnedLaw:
        part = Stream(seed)
        part.take(screening.weighted(examples).take(torch.from_numpy(kept)))
        return learn_law(part, **how | options)

    say("without outliers" if screening.noise.is_constant else "with noise proportional to results")
    found = _without_outliers(examples, screening, search)
    if found is not None:
        ours, theirs = (_residuals(law, examples) for law in (found, plain))
        units = screening.noise.units(examples.targets.numpy() + ours)
        if _log_likelihood(ours, units) > _log_likelihood(theirs, np.ones(len(theirs))):
            found.relative_noise = None if screening.noise.is_constant else _scale(ours / units)
            return found
    return learn_law(stream, **how)


class Noise(NamedTuple):
    r"""Model of noise: constant, or with standard deviation proportional to :math:`\sqrt{\hat y^2 + \varepsilon^2}`.

    Attributes:
        floor: :math:`\varepsilon`, or None if noise is constant.

    Example:
        >>> Noise(3.0).units(np.array([0.0, 4.0]))
        array([3., 5.])
    """

    floor: float | None = None

    @property
    def is_constant(self) -> bool:
        """Whether noise is the same for all results."""
        return self.floor is None

    def units(self, predicted: Array) -> Array:
        """Returns the standard deviation at each predicted result, up to a factor."""
        return np.ones(len(predicted)) if self.floor is None else np.hypot(predicted, self.floor)


class Screening(NamedTuple):
    """Result of a regression that assumes no law.

    Attributes:
        suspects: Which examples are far from the regression.
        residuals: Its residual on each example.
        features: Features of the elements of each example.
        noise: Model of noise.
        units: Standard deviation of the noise of each example, up to a factor.
    """

    suspects: Mask
    residuals: Array
    features: Array
    noise: Noise
    units: Array

    def weighted(self, examples: Multisets) -> Multisets:
        """Returns the examples weighted by the inverse variance of their noise, with mean weight 1."""
        if self.noise.is_constant:
            return examples
        weights = 1 / np.square(self.units)
        weights = torch.from_numpy(weights / weights.mean())
        return Multisets(examples.values, examples.dim, ptr=examples.ptr, targets=examples.targets, weights=weights)


def screen(examples: Multisets) -> Screening:
    """Finds examples that a regression with bounded influence, one for each size, fails to explain, and its noise.

    Example:
        >>> rows = np.random.default_rng(0).uniform(-1, 1, (60, 3))
        >>> results = rows.prod(1)
        >>> results[5] = 2.0
        >>> screen(Multisets.from_arrays(rows, results)).suspects.nonzero()[0]
        array([5])
    """
    examples = examples.ordered()
    target, features = examples.targets.numpy(), _aggregates(examples)
    noise, units = Noise(), np.ones(len(target))
    residuals, scales = _regressions(examples, features, units)
    size = float(np.median(np.abs(target))) or float(np.abs(target).max()) or 1.0
    if _scale(residuals) > _ROUNDING * size:
        likelihood = _log_likelihood(residuals, units) + _EVIDENCE
        for floor in _FLOORS:
            other = Noise(floor * size).units(target - residuals)
            better = _log_likelihood(residuals, other)
            if better > likelihood:
                noise, units, likelihood = Noise(floor * size), other, better
        if not noise.is_constant:
            residuals, scales = _regressions(examples, features, units)
    tolerance = _CUT * scales * units + _ROUNDING * np.abs(target)
    excess = np.abs(residuals) / np.maximum(tolerance, 1e-300)
    limit = max(1.0, float(np.quantile(excess, _FEWEST_STARTED)))
    return Screening(excess > limit, residuals, features, noise, units)


def _without_outliers(
    examples: Multisets, screening: Screening, search: Callable[..., LearnedLaw]
) -> LearnedLaw | None:
    """Returns the law of all examples but those that disagree with it, or None if these are many or systematic."""
    kept = ~screening.suspects
    for _ in range(_ROUNDS if screening.suspects.any() else 0):
        agree = _agreeing(search(kept, refuse=False, polish=False), examples, kept, screening.noise)
        if (agree == kept).all():
            break
        kept = agree
    if (screening.noise.is_constant and kept.all()) or np.mean(~kept) > _MOST_LEFT_OUT:
        return None
    try:
        law = search(kept, refuse=True)
    except NoLawError:
        return None
    left_out = ~_agreeing(law, examples, kept, screening.noise)
    if left_out.mean() > _MOST_LEFT_OUT or _is_systematic(law, examples, screening, left_out):
        return None
    law.outliers = left_out.nonzero()[0].tolist()
    return law


def _agreeing(law: LearnedLaw, examples: Multisets, kept: Mask, noise: Noise) -> Mask:
    """Returns the examples whose residual is one of the distribution of those that were kept."""
    residuals, target = _residuals(law, examples), examples.targets.numpy()
    units = noise.units(target + residuals)
    rounding = _ROUNDING * (np.abs(target) + float(np.median(np.abs(target))))
    agree: Mask = np.abs(residuals) <= _CUT * _scale((residuals / units)[kept]) * units + rounding
    return agree


def _is_systematic(law: LearnedLaw, examples: Multisets, screening: Screening, left_out: Mask) -> bool:
    """Returns whether a regression explains what was left out, or the elements tell which examples were."""
    if not left_out.any():
        return False
    ours = np.median(np.abs(_residuals(law, examples)[left_out]))
    if float(np.median(np.abs(screening.residuals[left_out]))) < 0.5 * float(ours):
        return True
    count, others = int(left_out.sum()), int((~left_out).sum())
    for column in screening.features.T:
        _, places, ties = np.unique(column, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(ties) - (ties + 1) / 2)[places]
        above = (float(ranks[left_out].sum()) - count * (count - 1) / 2) / (count * others)
        # By more than chance, in standard errors of the rank sum.
        certain = abs(above - 0.5) > 5 * math.sqrt((count + others + 1) / (12 * count * others))
        if certain and max(above, 1 - above) > _RANKED:
            return True
    return False


def _log_likelihood(residuals: Array, units: Array) -> float:
    """Returns the log-likelihood, up to a constant, of residuals with the given units and a scale from their median."""
    scale = max(_scale(residuals / units), 1e-300)
    tails = (_DEGREES + 1) / 2 * np.log1p(np.square(residuals / (scale * units)) / _DEGREES)
    return -float(np.sum(np.log(scale * units) + tails))


def _scale(residuals: Array) -> float:
    """Returns the standard deviation of residuals, estimated from their median."""
    return float(np.median(np.abs(residuals))) / _MEDIAN


@torch.no_grad()
def _residuals(law: LearnedLaw, examples: Multisets) -> Array:
    """Returns prediction minus result of each example; very large if the law has none."""
    errors: Tensor = law.operation.reduce(examples)[:, 0] - examples.targets
    result: Array = errors.nan_to_num(_NO_RESULT, _NO_RESULT, -_NO_RESULT).numpy()
    return result


def _regressions(examples: Multisets, features: Array, units: Array) -> tuple[Array, Array]:
    """Returns residuals of the regression, result minus prediction, and the scale of noise at each example."""
    sizes, target = examples.sizes.numpy(), examples.targets.numpy()
    residuals, scales = np.zeros(len(target)), np.zeros(len(target))
    for chosen in _groups(sizes):
        rows, size = features[chosen], int(sizes[chosen].max())
        if size == sizes[chosen].min() and size <= _IN_ORDER:
            # A result that depends on the order of elements is no outlier.
            places = examples.ptr.numpy()[:-1][chosen][:, None] + np.arange(size)
            rows = np.concatenate((rows, examples.values[:, 0].numpy()[places]), 1)
        residuals[chosen], scales[chosen] = _robust_regression(rows, target[chosen], units[chosen])
    return residuals, scales


def _groups(sizes: np.ndarray[Any, Any]) -> list[Mask]:
    """Returns the examples that share a regression: those of one size, or of all rare sizes together."""
    names, counts = np.unique(sizes, return_counts=True)
    common = names[counts >= _OWN_REGRESSION]
    groups = [sizes == size for size in common]
    rare = ~np.isin(sizes, common)
    return [*groups, rare] if rare.any() else groups


def _aggregates(examples: Multisets) -> Array:
    """Returns features of each multiset: aggregates that people use, and power sums, on values of unit size."""
    starts, counts = examples.ptr.numpy()[:-1], examples.sizes.numpy().astype(np.float64)
    x = examples.values[:, 0].numpy()
    x = x / (float(np.abs(x).max()) or 1.0)

    def total(values: Array) -> Array:
        sums: Array = np.add.reduceat(values, starts)
        return sums

    with np.errstate(all="ignore"):
        logs, magnitudes = total(np.log(np.abs(x))), np.abs(x)
        cubes, squares = total(x**3), total(x**2)
        columns = [
            total(x),
            np.multiply.reduceat(x, starts),
            np.minimum.reduceat(x, starts),
            np.maximum.reduceat(x, starts),
            np.multiply.reduceat(1 - x, starts),
            np.multiply.reduceat(1 + x, starts),
            np.sqrt(squares),
            np.cbrt(cubes),
            1 / total(1 / magnitudes),
            logs,
            np.exp(logs / counts),
            squares,
            cubes,
            total(x) ** 2,
            np.log(total(np.exp(5 * x))),
            total(magnitudes),
            counts,
        ]
    return np.nan_to_num(np.stack(columns, 1), nan=0.0, posinf=0.0, neginf=0.0)


def _robust_regression(features: Array, target: Array, units: Array) -> tuple[Array, float]:
    """Returns residuals, and their scale in the given units, of a linear regression with bounded influence.

    Iteratively reweighted least squares: absolute errors first, which have one minimum, then the bisquare.
    """
    most = max(1, int(_FEATURES * len(target)))
    center, size = features.mean(0), features.std(0)
    varying = size > 1e-12 * np.abs(features).max(0)
    rows = ((features - center) / np.where(varying, size, 1.0))[:, varying][:, : most - 1]
    rows = np.concatenate((np.ones((len(target), 1)), rows), 1) / units[:, None]
    target = target / units
    smallest = 1e-12 * (_scale(target - np.median(target)) or float(np.abs(target).max()) or 1.0)
    freedom = math.sqrt(len(target) / max(1, len(target) - rows.shape[1]))
    residuals, weights, scale = target, np.ones(len(target)), 0.0
    for sweep in range(_SWEEPS):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(rows * root[:, None], target * root, rcond=1e-10)[0]
        residuals = target - rows @ solution
        scale = max(_scale(residuals) * freedom, smallest)
        ratio = np.abs(residuals) / scale
        if sweep < _SWEEPS // 2:
            weights = 1 / np.maximum(ratio, 0.1)
        else:
            weights = np.square(1 - np.minimum(1, np.square(ratio / _BISQUARE)))
    return residuals * units, scale
