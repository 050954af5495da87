r"""Robust search: a law of most examples, and the examples that disagree with it.

Least squares follows a few gross outliers rather than the rest, and a few large results if noise is proportional to
them. Examples are therefore screened (:mod:`~abelnet.discovery.screening`), by a regression that takes milliseconds.
If it finds neither, the search is the ordinary one; so it is if a formula is exact on all examples. Otherwise a law
is searched without the suspects, with squared errors weighted by the inverse variance of the noise. Then all examples
that agree with this law are taken back and the others left out, until the choice is stable. Residuals of the law
decide, not those of the regression, so that no example is left out because the regression fails there.

The law replaces that of the ordinary search only if it has a higher likelihood and passes the same checks on the
examples that are left, if at most a fifth is left out, and if these are not systematic: what a regression explains,
or what can be told from the elements alone, is no outlier but evidence against the law.
"""

from __future__ import annotations

__all__ = ["learn_robust_law"]

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.screening import CUT, ROUNDING, Screening, choose_noise, log_likelihood, scale_of, screen
from abelnet.discovery.search import Search, learn_law
from abelnet.discovery.stream import Stream
from abelnet.discovery.yardstick import mean_ranks
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
# More examples than this fraction that disagree are no outliers.
_MOST_LEFT_OUT = 0.2
_ROUNDS = 4
# Curves approximate a law: errors below this part of the spread of the results are theirs, and tell of no outlier.
_CURVE_ERROR = 0.02
# Residuals of the ordinary law below this many times those of the regression leave nothing to gain.
_AS_GOOD = 1.5
# Examples left out are systematic if a regression has less than this part of the error of the law on them, or if a
# feature of their elements ranks them above (below) the others this often.
_EXPLAINED, _RANKED = 0.5, 0.85
# The law with outliers left out is kept if its log-likelihood is not lower by more than this.
_AS_LIKELY = 1.0
# Residual where a law has no result; its square is finite.
_NO_RESULT = 1e150


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
    how: dict[str, Any] = {"seed": seed, "refuse": refuse, "polish": polish, "only": only, "say": say}
    examples = stream.sample.ordered()
    screening = screen(examples)
    if not screening.suspects.any() and screening.noise.is_constant:
        return learn_law(stream, **how)
    of_all, quick = Search(stream, only, seed), {"refuse": False, "polish": False}
    plain = _Fitted(learn_law(stream, **how | quick, search=of_all, intervals=False), examples)
    if plain.is_exact:
        return learn_law(stream, **how | quick, search=of_all)

    # Rounds may come back to the same examples, and the last search goes on with those of the stable choice.
    known: dict[tuple[bytes, bytes], Search] = {}

    def search(kept: Mask, units: Array, **options: Any) -> LearnedLaw:
        key = kept.tobytes(), units.tobytes()
        if key not in known:
            part = Stream(seed)
            part.take(_weighted(examples, units).take(torch.from_numpy(kept)))
            known[key] = Search(part, only, seed)
        return learn_law(known[key].stream, **how | options, search=known[key])

    say("robust search")
    try:
        found = _without_outliers(plain, screening, search)
    except AbelnetError:  # there is no law, or too few different examples are left
        found = None
    if found is not None and found.log_likelihood >= plain.log_likelihood - _AS_LIKELY:
        found.law.outliers = (~found.agree).nonzero()[0].tolist()
        found.law.relative_noise = found.relative_noise
        if found.relative_noise is not None:  # that of the search is weighted; what is stated is not
            found.law.explained = found.explained
        return found.law
    return learn_law(stream, **how, search=of_all)


class _Fitted:
    """Law with its residuals on all examples, and the noise that those it was fitted to tell of.

    Attributes:
        law: The law.
        examples: All examples.
        residuals: Prediction minus result of each example.
        noise: Model of noise.
        units: Standard deviation of the noise of each example, up to a factor.
        agree: Examples whose residual is one of the distribution of those that the law was fitted to.
    """

    def __init__(self, law: LearnedLaw, examples: Multisets, kept: Mask | None = None) -> None:
        kept = np.ones(len(examples), dtype=bool) if kept is None else kept
        target = examples.targets.numpy()
        self.law, self.examples = law, examples
        self.residuals = _residuals(law, examples)
        predicted = np.where(np.abs(self.residuals) < _NO_RESULT, target + self.residuals, target)
        self.noise = choose_noise(self.residuals[kept], predicted[kept])
        self.units = self.noise.units(predicted)
        self.scale = scale_of((self.residuals / self.units)[kept])
        center = float(np.median(target))
        tolerance = CUT * self.scale * self.units + ROUNDING * (np.abs(target) + abs(center))
        if not law.operation.bijection.is_short:
            tolerance += _CURVE_ERROR * scale_of(target - center)
        self.agree: Mask = np.abs(self.residuals) <= tolerance

    @property
    def is_exact(self) -> bool:
        # On held-out examples, and on all others: a wrong one among them may not have mattered, but is listed.
        return bool(self.law.rmse <= ROUNDING * float(self.examples.targets.std()) and self.agree.all())

    @property
    def log_likelihood(self) -> float:
        # Laws that are exact up to rounding are equally likely.
        size = float(np.median(np.abs(self.examples.targets.numpy()) / self.units))
        return log_likelihood(self.residuals, self.units, max(ROUNDING * size, 1e-300))

    @property
    def explained(self) -> float:
        """Explained fraction of the variance of the examples that agree."""
        mse = float(np.mean(np.square(self.residuals[self.agree])))
        return 1 - mse / float(self.examples.targets.numpy()[self.agree].var())

    @property
    def relative_noise(self) -> float | None:
        return None if self.noise.is_constant else self.scale


def _without_outliers(plain: _Fitted, screening: Screening, search: Callable[..., LearnedLaw]) -> _Fitted | None:
    """Returns the law of all examples but those that disagree with it; None if these are none, many or systematic."""
    examples, kept, units = plain.examples, ~screening.suspects, screening.units
    good = scale_of(plain.residuals) <= _AS_GOOD * scale_of(screening.residuals)
    if kept.all() or (good and plain.agree.all()):
        if plain.noise.is_constant:
            return None
        kept, units = plain.agree, plain.units
    else:
        for _ in range(_ROUNDS):
            found = _Fitted(search(kept, units, refuse=False, polish=False, intervals=False), examples, kept)
            units, stable = found.units, bool((found.agree == kept).all())
            kept = found.agree
            if stable or np.mean(~kept) > _MOST_LEFT_OUT:
                break
        if kept.all() and found.noise.is_constant:
            return None
    # Results that are equal but for a few follow no law.
    if np.mean(~kept) > _MOST_LEFT_OUT or np.ptp(examples.targets.numpy()[kept]) == 0:
        return None
    found = _Fitted(search(kept, units, refuse=True), examples, kept)
    return None if np.mean(~found.agree) > _MOST_LEFT_OUT or _is_systematic(found, screening) else found


def _is_systematic(found: _Fitted, screening: Screening) -> bool:
    """Returns whether a regression explains what was left out, or the elements tell which examples were."""
    left_out = ~found.agree
    count, others = int(left_out.sum()), int(found.agree.sum())
    if count == 0:
        return False
    ours, theirs = (float(np.median(np.abs(one[left_out]))) for one in (found.residuals, screening.residuals))
    if theirs < _EXPLAINED * ours:
        return True
    for column in screening.features.T:
        ranks = mean_ranks(column)[left_out]
        above = (float(ranks.sum()) - count * (count + 1) / 2) / (count * others)
        # By more than chance, in standard errors of the rank sum.
        certain = abs(above - 0.5) > 5 * math.sqrt((count + others + 1) / (12 * count * others))
        if certain and max(above, 1 - above) > _RANKED:
            return True
    return False


def _weighted(examples: Multisets, units: Array) -> Multisets:
    """Returns the examples weighted, in addition, by the inverse variance of their noise, with mean weight 1."""
    if (units == 1).all():
        return examples
    inverse = np.square(units.min() / units)
    weights = examples.weights * torch.from_numpy(inverse / inverse.mean())
    return Multisets(examples.values, examples.dim, ptr=examples.ptr, targets=examples.targets, weights=weights)


@torch.no_grad()
def _residuals(law: LearnedLaw, examples: Multisets) -> Array:
    """Returns prediction minus result of each example; very large if the law has none."""
    errors: Tensor = law.operation.reduce(examples)[:, 0] - examples.targets
    result: Array = errors.nan_to_num(_NO_RESULT, _NO_RESULT, -_NO_RESULT).clamp(-_NO_RESULT, _NO_RESULT).numpy()
    return result
