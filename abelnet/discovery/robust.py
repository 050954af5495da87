r"""Robust search: a law of most examples, and the examples that disagree with it.

Least squares follows a few gross outliers rather than the rest. A regression that assumes no law,

.. math:: y_r \approx w_n^\top f(x_{r1}, \dots, x_{rn}) ,

on features that common aggregations are made of, is fitted with bounded influence at each size :math:`n`, in
milliseconds. If no residual exceeds 6 standard deviations, estimated from the median, the search is the ordinary one. So
it is if a formula is exact on all examples. Otherwise a law is searched without these suspects; then all examples that
agree with it are taken back, the others left out, until the choice is stable. Its residuals decide, not those of the
regression, so that an example of a law is not left out because the regression fails there.

The law replaces that of the ordinary search only if it passes the same checks on the examples that are left, if at most
a fifth is left out, and if these are not systematic: what a regression explains, or what can be told from the elements
alone, is no outlier but evidence against the law.
"""

from __future__ import annotations

__all__ = ["find_suspects", "learn_robust_law"]

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


def learn_robust_law(
    stream: Stream,
    *,
    seed: int = 0,
    refuse: bool = True,
    polish: bool = True,
    only: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> LearnedLaw:
    """Learns the law of one dimension from examples, a few of which may be wrong.

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
    examples = stream.sample

    def search(kept: Mask | None, **how: Any) -> LearnedLaw:
        part = stream
        if kept is not None:
            part = Stream(seed)
            part.take(examples.take(torch.from_numpy(kept)))
        return learn_law(part, **({"seed": seed, "refuse": refuse, "polish": polish, "only": only, "say": say} | how))

    suspicion = find_suspects(examples)
    if not suspicion.suspects.any():
        return search(None)
    quick = search(None, refuse=False, polish=False)
    if quick.rmse <= _EXACT * float(examples.targets.std()):
        return quick
    say("without outliers")
    found = _without_outliers(examples, suspicion, search)
    if found is not None:
        kept = np.ones(len(examples), dtype=bool)
        kept[found.outliers] = False
        if _mean_square(found, examples, kept) <= _mean_square(quick, examples, kept):
            return found
    return search(None)


class Suspicion(NamedTuple):
    """Result of a regression that assumes no law.

    Attributes:
        suspects: Which examples are far from the regression.
        residuals: Its residual on each example.
        features: Features of the elements of each example that could tell outliers from the others.
    """

    suspects: Mask
    residuals: Array
    features: Array


def find_suspects(examples: Multisets) -> Suspicion:
    """Returns the examples that a regression with bounded influence, one for each size, fails to explain.

    Example:
        >>> rows = np.random.default_rng(0).uniform(-1, 1, (60, 3))
        >>> results = rows.prod(1)
        >>> results[5] = 2.0
        >>> find_suspects(Multisets.from_arrays(rows, results)).suspects.nonzero()[0]
        array([5])
    """
    examples = examples.ordered()
    sizes, target = examples.sizes.numpy(), examples.targets.numpy()
    features = _aggregates(examples)
    residuals, scales = np.zeros(len(target)), np.zeros(len(target))
    for chosen in _groups(sizes):
        rows = features[chosen]
        size = int(sizes[chosen].max())
        if size == sizes[chosen].min() and size <= 6:
            # In their order: a result that depends on it is no outlier.
            places = examples.ptr.numpy()[:-1][chosen][:, None] + np.arange(size)
            rows = np.concatenate((rows, examples.values[:, 0].numpy()[places]), 1)
        residuals[chosen], scales[chosen] = _robust_regression(rows, target[chosen])
    tolerance = _CUT * scales + _ROUNDING * np.abs(target)
    excess = np.abs(residuals) / np.maximum(tolerance, 1e-300)
    limit = max(1.0, float(np.quantile(excess, _FEWEST_STARTED)))
    return Suspicion(excess > limit, residuals, features)


def _without_outliers(
    examples: Multisets, suspicion: Suspicion, search: Callable[..., LearnedLaw]
) -> LearnedLaw | None:
    """Returns the law of all examples but those that disagree with it, or None if these are many or systematic."""
    kept = ~suspicion.suspects
    for _ in range(_ROUNDS):
        agree = _agreeing(search(kept, refuse=False, polish=False), examples, kept)
        if (agree == kept).all():
            break
        kept = agree
    left_out = ~kept
    if not 0 < left_out.mean() <= _MOST_LEFT_OUT:
        return None
    try:
        law = search(kept, refuse=True)
    except NoLawError:
        return None
    left_out = ~_agreeing(law, examples, kept)
    if not 0 < left_out.mean() <= _MOST_LEFT_OUT or _is_systematic(law, examples, suspicion, left_out):
        return None
    law.outliers = left_out.nonzero()[0].tolist()
    return law


def _agreeing(law: LearnedLaw, examples: Multisets, kept: Mask) -> Mask:
    """Returns the examples whose residual is one of the distribution of those that were kept."""
    residuals = np.abs(_residuals(law, examples))
    scale = float(np.median(residuals[kept])) / _MEDIAN
    target = np.abs(examples.targets.numpy())
    return residuals <= _CUT * scale + _ROUNDING * (target + float(np.median(target)))


def _is_systematic(law: LearnedLaw, examples: Multisets, suspicion: Suspicion, left_out: Mask) -> bool:
    """Returns whether a regression explains what was left out, or the elements tell which examples were."""
    ours = np.median(np.abs(_residuals(law, examples)[left_out]))
    if float(np.median(np.abs(suspicion.residuals[left_out]))) < 0.5 * float(ours):
        return True
    count, others = int(left_out.sum()), int((~left_out).sum())
    for column in suspicion.features.T:
        _, places, ties = np.unique(column, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(ties) - (ties + 1) / 2)[places]
        above = (float(ranks[left_out].sum()) - count * (count - 1) / 2) / (count * others)
        # By more than chance, in standard errors of the rank sum.
        certain = abs(above - 0.5) > 5 * math.sqrt((count + others + 1) / (12 * count * others))
        if certain and max(above, 1 - above) > _RANKED:
            return True
    return False


def _mean_square(law: LearnedLaw, examples: Multisets, kept: Mask) -> float:
    return float(np.mean(_residuals(law, examples)[kept] ** 2))


@torch.no_grad()
def _residuals(law: LearnedLaw, examples: Multisets) -> Array:
    """Returns the residual of each example; infinite if the law has no result."""
    errors: Tensor = law.operation.reduce(examples)[:, 0] - examples.targets
    result: Array = errors.nan_to_num(math.inf, math.inf, -math.inf).numpy()
    return result


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


def _robust_regression(features: Array, target: Array) -> tuple[Array, float]:
    """Returns residuals and their standard deviation for a linear regression in which no example has much influence.

    Iteratively reweighted least squares: absolute errors first, which has one minimum, then the bisquare.
    """
    used = max(1, int(_FEATURES * len(target)))
    center, size = features.mean(0), features.std(0)
    varying = size > 1e-12 * np.abs(features).max(0)
    rows = ((features - center) / np.where(varying, size, 1.0))[:, varying][:, : used - 1]
    rows = np.concatenate((np.ones((len(target), 1)), rows), 1)
    unit = float(np.median(np.abs(target - np.median(target)))) or float(np.abs(target).max()) or 1.0
    weights = np.ones(len(target))
    residuals, scale = target, unit
    for sweep in range(_SWEEPS):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(rows * root[:, None], target * root, rcond=1e-10)[0]
        residuals = target - rows @ solution
        sizes = np.abs(residuals)
        scale = float(np.median(sizes)) / _MEDIAN * math.sqrt(len(target) / max(1, len(target) - rows.shape[1]))
        floor = max(scale, 1e-12 * unit)
        if sweep < _SWEEPS // 2:
            weights = 1 / np.maximum(sizes / floor, 0.1)
        else:
            weights = np.square(1 - np.minimum(1, np.square(sizes / (_BISQUARE * floor))))
    return residuals, scale
