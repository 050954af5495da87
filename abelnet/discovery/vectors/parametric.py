r"""Invariants with a real parameter: powers with any exponent, exponential functions, and curves of a coordinate."""

from __future__ import annotations

__all__ = ["ParametricSearch"]

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections.terms import Factor, Monomial
from abelnet.discovery.vectors.curves import curve_term, ramps
from abelnet.discovery.vectors.dictionary import Parametric, companions, is_defined, parametric, plain_parameter
from abelnet.discovery.vectors.rows import DEFINED, EXACT, NEW, Rows, Solution, limited
from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]

# Terms of known coordinates that are tried beside a parametric one are at most this complex.
_PARTNER = 2.4
# Parametric terms that are refined, each from its best start.
_REFINED = 10
# A first search of a few steps shows whether a parameter may be better than all terms without one, by this factor.
_FIRST_STEPS, _HOPEFUL, _MOST_STEPS = 8, 1.5, 50
_GOLDEN = (math.sqrt(5) - 1) / 2
# Curves are tried if no formula has a smaller error.
_CURVED = 1e-3
# Error where an invariant has no solution, in units of the results.
_FAR = 1e3


class ParametricSearch:
    """Search for invariants with a parametric term, alone and beside a plain term of known coordinates.

    Arguments:
        examples: Multisets of vectors with their results.
        units: Standard deviation of each coordinate of the results, :math:`(d)`.
        at: Results moved onto known invariants, :math:`(R, d)`.
        normals: Projections onto the gradients of known invariants at these; None if none are known.
        rows: Rows of the terms without a parameter, of the sound examples.
        sound: Examples on which these are finite, :math:`(R)`.
        seen: Coordinates of known invariants.
    """

    def __init__(
        self,
        examples: Multisets,
        units: Tensor,
        at: Tensor,
        normals: Array | None,
        rows: Rows,
        sound: np.ndarray[Any, np.dtype[np.bool_]],
        seen: frozenset[int],
    ) -> None:
        self.examples, self.units, self.at, self.normals, self.sound = examples, units, at, normals, sound
        self._left = [i for i in range(examples.dim) if i not in seen] or list(range(examples.dim))
        partners = [
            k
            for k, term in enumerate(rows.terms)
            if not term.coordinates & set(self._left) and term.complexity <= _PARTNER
        ]
        self._beside = rows.take(partners)
        self._places = at[torch.from_numpy(sound)]
        self._errors: dict[Monomial, float] = {}

    def find(self, least: float) -> list[tuple[Solution, Rows]]:
        """Returns the best invariants, with the rows of their terms.

        Arguments:
            least: Smallest error of an invariant without a parameter; what cannot be better is not refined.
        """
        # The best start of each term: the best starts of all may be of terms that are wrong.
        starts: dict[int, tuple[float, Parametric]] = {}
        options = list(parametric(self.examples.values, self.examples.targets, self._left))
        self._learn_errors([option.term(option.start) for option in options])
        for option in options:
            error = self._error_of(option.term(option.start))
            if option.kind not in starts or error < starts[option.kind][0]:
                starts[option.kind] = error, option
        tried = sorted(starts.values(), key=lambda pair: pair[0])
        found: list[tuple[Solution, Rows]] = []
        refined = [option for error, option in tried[:_REFINED] if math.isfinite(error)]
        for option, best in zip(refined, self._first_errors(refined), strict=True):
            if best > _HOPEFUL * least:
                continue
            value, best = _minimize(partial(self._error_at, option), option)
            limit = best * (1 + 1e-3) + EXACT / 10
            found += self._solve(plain_parameter(option.term(value), partial(self._is_as_good, limit)))
        if min([least, *(one.error for one, _ in found)]) > _CURVED:
            for i, others in ((k, others) for k in self._left for others in companions(self.examples.values, k)):
                term = self._curve(i, others)
                found += () if term is None else self._solve(term)
        return found

    def _fit(self, terms: Sequence[Monomial]) -> Iterator[tuple[Monomial, list[Solution], Rows, Tensor]]:
        """Yields solutions with each term that is defined, with their rows and places."""
        terms = [term for term in terms if is_defined(term, self.examples.values, self.examples.targets)]
        if not terms:
            return
        alone = Rows(self.examples, terms, self.at, self.units, self.normals).rows(self.sound)
        finite = np.isfinite(alone.a) & np.isfinite(alone.j).all(2)
        # Terms that are defined on the same examples are solved together.
        groups: dict[bytes, list[int]] = {}
        for k in np.flatnonzero(finite.mean(0) >= DEFINED).tolist():
            groups.setdefault(finite[:, k].tobytes(), []).append(k)
        for group in groups.values():
            good, both = finite[:, group[0]], alone.take(group).beside(self._beside)
            both = both if good.all() else both.rows(good)
            first = np.arange(len(group), dtype=np.int64)[:, None]
            partners = np.arange(len(group), len(both.terms), dtype=np.int64)
            pairs = np.stack(np.broadcast_arrays(first, partners), 2).reshape(-1, 2)
            solved: dict[int, list[Solution]] = {}
            for subsets in (first, pairs):
                for one in both.solve(subsets) if len(subsets) else ():
                    solved.setdefault(one.columns[0], []).append(one)
            there = self._places[torch.from_numpy(good)]
            yield from ((terms[k], solved[column], both, there) for column, k in enumerate(group))

    def _solve(self, term: Monomial) -> Iterator[tuple[Solution, Rows]]:
        for _, solved, both, there in self._fit([term]):
            yield from ((self._solved(one, both, term, there), both) for one in both.new(solved, NEW))

    def _learn_errors(self, terms: Sequence[Monomial]) -> None:
        """Stores the smallest error of the solutions with each term, many at once."""
        terms = [term for term in dict.fromkeys(terms) if term not in self._errors]
        self._errors.update(dict.fromkeys(terms, math.inf))
        for term, solved, both, there in self._fit(terms):
            for one in sorted(solved, key=lambda one: one.error):
                if one.error >= self._errors[term]:  # that of the solved invariant is not smaller
                    break
                if both.new([one], NEW):
                    self._errors[term] = min(self._errors[term], self._solved(one, both, term, there).error)

    def _error_of(self, term: Monomial) -> float:
        if term not in self._errors:
            self._learn_errors([term])
        return self._errors[term]

    def _error_at(self, option: Parametric, parameter: float) -> float:
        return self._error_of(option.term(parameter))

    def _is_as_good(self, limit: float, term: Monomial) -> bool:
        return self._error_of(term) <= limit

    def _solved(self, solution: Solution, rows: Rows, term: Monomial, at: Tensor) -> Solution:
        """Returns an invariant with its error when solved for the coordinate with the parameter.

        For a steep exponential function, the first-order error is far too small.
        """
        *others, factor = term.factors
        gap = torch.from_numpy(rows.a[:, list(solution.columns)] @ solution.coefficients)
        scale = rows.scale[solution.columns[0]]
        rest = Monomial(tuple(others)).values(at) * float(solution.coefficients[0] / scale)
        x = at[:, factor.coordinate]
        root = factor.inverse(factor.forward(x) + gap / rest)
        errors = ((root - x) / self.units[factor.coordinate]).nan_to_num(_FAR, _FAR, _FAR).clamp(-_FAR, _FAR)
        error = math.sqrt(float(limited(errors.square().numpy())[0].mean()))
        return Solution(solution.columns, solution.coefficients, max(solution.error, error))

    def _first_errors(self, options: Sequence[Parametric]) -> list[float]:
        """Returns the smallest error of each option after a few steps of a golden-section search, all side by side."""
        # Low end, two inner points and high end of each interval: a step keeps three of them.
        points = [
            (low, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low), high)
            for low, high in map(_limits, options)
        ]
        least = [math.inf] * len(options)
        for _ in range(_FIRST_STEPS):
            self._learn_errors([option.term(x) for option, one in zip(options, points, strict=True) for x in one[1:3]])
            for k, (option, (low, a, b, high)) in enumerate(zip(options, points, strict=True)):
                first, second = self._error_of(option.term(a)), self._error_of(option.term(b))
                least[k] = min(least[k], first, second)
                points[k] = (
                    (low, b - _GOLDEN * (b - low), a, b) if first <= second else (a, b, a + _GOLDEN * (high - a), high)
                )
        return least

    def _curve(self, i: int, others: tuple[Factor, ...]) -> Monomial | None:
        """Returns the best curve of a coordinate times other factors; None if it is not monotonic."""
        examples = self.examples
        terms = ramps(i, others, torch.cat((examples.values, examples.targets)), len(examples))
        if len(terms) < 3 or not all(bool(term.is_defined(self.at).all()) for term in terms):
            return None
        rows = Rows(examples, terms, self.at, self.units, self.normals).rows(self.sound)
        if not (np.isfinite(rows.a).all() and np.isfinite(rows.j).all()):
            return None
        (best,) = rows.solve(np.arange(len(terms))[None])
        return curve_term(terms, best.coefficients / rows.scale)


def _limits(option: Parametric) -> tuple[float, float]:
    """Returns the smallest and the largest parameter near the start."""
    low, high = option.start - option.width, option.start + option.width
    return (max(low, option.least), high) if option.start > 0 else (low, min(high, -option.least))


def _minimize(function: Callable[[float], float], option: Parametric) -> tuple[float, float]:
    """Returns the parameter near its start that minimizes a function, and the value there."""
    from scipy.optimize import minimize_scalar

    def logarithm(parameter: float) -> float:
        value = function(parameter)
        return math.log(max(value, 1e-16)) if math.isfinite(value) else 1e3

    how = {"xatol": 1e-12 * abs(option.start), "maxiter": _MOST_STEPS}
    found = minimize_scalar(logarithm, bounds=_limits(option), method="bounded", options=how)
    return float(found.x), math.exp(float(found.fun))
