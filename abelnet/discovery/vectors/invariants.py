r"""Additive invariants of examples: functions with :math:`\sum_i f(x_i) = f(y)`, found one at a time.

The functions that add up are a vector space, in which formulas are hidden by any rotation. They are read off by trying
all sets of one, two and three terms of a dictionary: each is a small eigenproblem, in the norm of
:mod:`~abelnet.discovery.vectors.rows`, and the plainest of the best is taken. Then results are moved onto what is known
(:math:`f_1(y) = \sum_i f_1(x_i)`, which removes noise), and only gradients along the level sets of known invariants
count, so that the next invariant is independent of them.
"""

from __future__ import annotations

__all__ = ["Invariant", "find_invariants", "project", "refit"]

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections.terms import Term
from abelnet.discovery.vectors.dictionary import dictionary, is_moderate
from abelnet.discovery.vectors.parametric import ParametricSearch
from abelnet.discovery.vectors.rows import DEFINED, EXACT, NEW, Rows, Solution, sum_terms
from abelnet.multisets import Multisets
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr

Array = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]

# A plainer invariant is preferred if its error is at most this many times that of the best one.
_TOLERANCE = 1.25
# Sets of terms of each size that are solved accurately, and most sets that are tried at all.
_KEPT, _MOST_SETS = 300, 300_000
_LARGEST_SET = 3
# With more coordinates than this, invariants bring in one or two coordinates at a time.
_ALL_AT_ONCE = 3
# Terms with a new coordinate that are then tried, the plainest.
_LEADS = 30
# Digits of coefficients are dropped while the squared error grows by less than this many times its uncertainty.
_ROUNDING = 4.0
_MOST_DIGITS = 12
_PROJECTIONS = 3
# Sets of terms whose subsets are tried as well, the best.
_SIMPLIFIED = 40
# Invariants whose distance from the results is measured, by this many steps.
_MEASURED, _STEPS = 200, 3
# Part of the results, the farthest, that is left out of this distance.
_TRIMMED = 0.03


@dataclass(frozen=True)
class Invariant:
    """Sum of terms that adds up.

    Attributes:
        terms: The terms.
        coefficients: Their coefficients; that of the plainest term is 1.
        error: Root mean squared error, as a fraction of the spread of the results.
    """

    terms: tuple[Term, ...]
    coefficients: tuple[float, ...]
    error: float

    @property
    def coordinates(self) -> frozenset[int]:
        """Coordinates that the invariant depends on."""
        return frozenset().union(*(term.coordinates for term in self.terms))

    @property
    def period(self) -> float:
        """Values that differ by a multiple of this are the same; 0 if there is no such number."""
        return max(abs(c) * term.period for c, term in zip(self.coefficients, self.terms, strict=True))

    def values(self, x: Tensor) -> Tensor:
        """Returns the values :math:`(*)` at vectors :math:`(*, d)`."""
        total = torch.zeros(x.shape[:-1], dtype=x.dtype)
        for c, term in zip(self.coefficients, self.terms, strict=True):
            total = total + c * term.values(x)
        return total

    def gradient(self, x: Tensor) -> Tensor:
        """Returns the gradients :math:`(*, d)` at vectors :math:`(*, d)`."""
        total = torch.zeros_like(x)
        for c, term in zip(self.coefficients, self.terms, strict=True):
            total = total + c * term.gradient(x)
        return total

    def expression(self, x: Sequence[Expr]) -> Expr:
        """Returns the invariant of the coordinates :math:`x` as a sympy expression."""
        import sympy

        parts = zip(self.coefficients, self.terms, strict=True)
        return sympy.Add(*(symbolic_number(c) * term.expression(x) for c, term in parts))


def find_invariants(examples: Multisets, *, say: Callable[[str], None] = lambda _: None) -> list[Invariant]:
    """Returns independent invariants, at most one for each coordinate, those with the smallest error first.

    Arguments:
        examples: Multisets of vectors with their results.
        say: Called with the name of each step.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> sets = [np.exp(generator.normal(size=(3, 2))) for _ in range(100)]
        >>> results = [(one[:, 0].sum(), one.prod(1).sum() / one[:, 0].sum()) for one in sets]
        >>> [len(one.terms) for one in find_invariants(Multisets.from_arrays(sets, results))]
        [1, 1]
    """
    elements, results = examples.values, examples.targets
    terms = dictionary(elements, results)
    whole = torch.ones(len(results), dtype=torch.bool)
    for term in terms:
        whole &= term.is_defined(results) & is_moderate(term, results)
    examples = examples.take(whole.nonzero()[:, 0])
    search = _Search(examples, terms)
    found: list[Invariant] = []
    for _ in range(examples.dim):
        say(f"invariant {len(found) + 1} of {examples.dim}")
        new = search.next(found)
        if new is None:
            break
        found.append(new)
    return found


def refit(examples: Multisets, invariants: Sequence[Invariant]) -> list[Invariant]:
    """Returns invariants of the same terms, with coefficients fitted to other examples.

    Arguments:
        examples: Multisets of vectors with their results.
        invariants: Invariants in the order in which they were found.
    """
    found: list[Invariant] = []
    for one in invariants:
        search = _Search(examples, one.terms)
        at = search.moved(found)
        rows = Rows(examples, one.terms, at, search.units, _normals(found, at, search.units), search.sums)
        rows = rows.rows(np.isfinite(rows.a).all(1) & np.isfinite(rows.j).all((1, 2)))
        c = np.array(one.coefficients) * rows.scale
        new = _rounded(rows, rows.refine(range(len(c)), c)) if len(rows.a) else one
        found.append(new)
    return found


def project(invariants: Sequence[Invariant], sums: Tensor, results: Tensor, units: Tensor) -> Tensor:
    """Returns the points nearest to results at which invariants have given values, by Gauss–Newton steps.

    Arguments:
        invariants: Known invariants.
        sums: Value of each invariant :math:`(R, m)`.
        results: Results :math:`(R, d)`.
        units: Standard deviation of each coordinate, in which distances are measured :math:`(d)`.
    """
    at = results
    for _ in range(_PROJECTIONS if invariants else 0):
        gap = torch.stack([one.values(at) for one in invariants], 1) - sums
        for k, one in enumerate(invariants):
            if one.period:
                gap[:, k] = torch.remainder(gap[:, k] + one.period / 2, one.period) - one.period / 2
        gradients = torch.stack([one.gradient(at) for one in invariants], 1) * units
        step = (torch.linalg.pinv(gradients) @ gap[..., None])[..., 0] * units
        there = at - step
        values = torch.stack([one.values(there) for one in invariants], 1)
        # A step that leaves the domain, or is longer than the spread, is not taken.
        sound = values.isfinite().all(1) & (step.abs() < units).all(1)
        at = torch.where(sound[:, None], there, at)
    return at


class _Search:
    """Search for one invariant after another."""

    def __init__(self, examples: Multisets, terms: Sequence[Term]) -> None:
        self.examples, self.terms = examples, list(terms)
        self.units = examples.targets.std(0, unbiased=False).clamp(min=1e-300)
        self.sums = sum_terms(examples, terms)

    def next(self, known: Sequence[Invariant]) -> Invariant | None:
        """Returns the plainest of the best new invariants; None if there is no new one."""
        at = self.moved(known)
        normals = _normals(known, at, self.units)
        rows = Rows(self.examples, self.terms, at, self.units, normals, self.sums)
        finite = np.isfinite(rows.a) & np.isfinite(rows.j).all(2)
        rows = rows.take(np.flatnonzero(finite.mean(0) >= DEFINED))
        sound = finite[:, finite.mean(0) >= DEFINED].all(1)
        rows = rows.rows(sound)
        seen = frozenset().union(*(one.coordinates for one in known))
        pool = [
            (one, rows)
            for subsets in self._subsets(rows.terms, seen)
            for one in rows.new(rows.best(subsets, _KEPT), NEW)
        ]
        pool += [(one, rows) for one in _simpler(rows, [one for one, _ in pool])]
        best = min((one.error for one, _ in pool), default=math.inf)
        if best > EXACT:
            pool += ParametricSearch(self.examples, self.units, at, normals, rows, sound, seen).find(best)
            best = min((one.error for one, _ in pool), default=math.inf)
        if not math.isfinite(best):
            return None
        solution, of = self._plainest(pool, at, known)
        return _rounded(of, of.refine(solution.columns, solution.coefficients))

    def _plainest(
        self, pool: list[tuple[Solution, Rows]], at: Tensor, known: Sequence[Invariant]
    ) -> tuple[Solution, Rows]:
        """Returns the plainest of the best, with errors measured along the way where level sets are not straight."""
        ranked = sorted(pool, key=lambda pair: pair[0].error)
        measured: dict[int, float] = {}

        def error_of(solution: Solution, rows: Rows) -> float:
            if id(solution) not in measured:
                one = _invariant(rows, solution)
                far = solution.error > EXACT
                measured[id(solution)] = max(solution.error, self._distance(one, at, known) if far else 0.0)
            return measured[id(solution)]

        best = math.inf
        for solution, rows in ranked[:_MEASURED]:
            if solution.error >= best:  # the distance is not smaller
                break
            best = min(best, error_of(solution, rows))
        limit = _TOLERANCE * best + EXACT
        near = [pair for pair in ranked if pair[0].error <= limit]
        near.sort(key=lambda pair: (_cost(pair[1], pair[0]), pair[0].error))
        return next(pair for pair in near if error_of(*pair) <= limit)

    def _distance(self, one: Invariant, at: Tensor, known: Sequence[Invariant]) -> float:
        """Returns the root mean squared distance of results from the level sets, along those of known invariants."""
        sums = torch.from_numpy(sum_terms(self.examples, one.terms)) @ torch.tensor(one.coefficients).double()
        x, left = at, torch.zeros(len(at), dtype=at.dtype)
        for step in range(_STEPS + 1):
            gap = one.values(x) - sums
            if one.period:
                gap = torch.remainder(gap + one.period / 2, one.period) - one.period / 2
            gradient = one.gradient(x) * self.units
            if known:
                others = torch.stack([other.gradient(x) for other in known], 1) * self.units
                projected = torch.linalg.pinv(others.nan_to_num(0, 0, 0)) @ others.nan_to_num(0, 0, 0)
                gradient = gradient - (gradient[:, None] @ projected)[:, 0]
            square = gradient.square().sum(1).clamp(min=1e-300)
            left = gap.square() / square
            if step < _STEPS:
                there = x - (gap / square)[:, None] * gradient * self.units
                sound = there.isfinite().all(1) & one.values(there).isfinite()
                x = torch.where(sound[:, None], there, x)
        distances = ((x - at) / self.units).square().sum(1) + left
        # Near a singular point, as the origin of polar coordinates, a step of a few results is far too long.
        kept = distances.nan_to_num(math.inf, math.inf).sort().values[: math.ceil((1 - _TRIMMED) * len(distances))]
        return math.sqrt(float(kept.mean()))

    def moved(self, known: Sequence[Invariant]) -> Tensor:
        """Returns the results moved onto known invariants."""
        sums = [
            torch.from_numpy(sum_terms(self.examples, one.terms)) @ torch.tensor(one.coefficients).double()
            for one in known
        ]
        results = self.examples.targets
        return project(known, torch.stack(sums, 1) if sums else results[:, :0], results, self.units)

    def _subsets(self, terms: Sequence[Term], seen: frozenset[int]) -> Iterator[Places]:
        """Yields sets of terms, as columns :math:`(M, k)`, each with a term that has a new coordinate.

        An invariant of known coordinates only is not new unless the known ones are fewer than their coordinates, as
        those of a map of the plane.
        """
        everything = list(range(len(terms)))
        left = [i for i in range(self.examples.dim) if i not in seen]
        if self.examples.dim <= _ALL_AT_ONCE or not left:
            scopes = [(everything, everything)]
        else:
            count = min(1 if seen else 2, len(left))
            scopes = [_scope(terms, seen, frozenset(new)) for new in itertools.combinations(left, count)]
        for leads, others in scopes:
            for size in range(1, _LARGEST_SET + 1):
                columns = list(others)
                # The least plain terms are left out of large sets if there are too many.
                while len(leads) * math.comb(len(columns), size - 1) > _MOST_SETS * (size if leads == others else 1):
                    columns.pop()
                yield _sets(leads[: len(columns)] if leads == others else leads, columns, size)


def _scope(terms: Sequence[Term], seen: frozenset[int], new: frozenset[int]) -> tuple[list[int], list[int]]:
    """Returns the plainest terms with new coordinates, and all terms of these and known coordinates."""
    inside = [k for k, term in enumerate(terms) if term.coordinates <= seen | new]
    leads = [k for k in inside if terms[k].coordinates & new][:_LEADS]
    return leads, [k for k in inside if k in leads or not terms[k].coordinates & new]


def _sets(leads: Sequence[int], columns: Sequence[int], size: int) -> Places:
    """Returns all sets of columns of a size that contain a lead, :math:`(M, k)`."""
    if size == 1 or list(leads) == list(columns):
        columns = leads
        return np.array(list(itertools.combinations(columns, size)), dtype=np.int64).reshape(-1, size)
    place = np.full(max(columns) + 1, len(leads))
    place[list(leads)] = np.arange(len(leads))
    rest = np.array(list(itertools.combinations(columns, size - 1)), dtype=np.int64).reshape(-1, size - 1)
    first = place[rest].min(1, initial=len(leads))  # sets with several leads are counted once
    parts = [
        np.concatenate((np.full((int((first > i).sum()), 1), lead), rest[first > i]), 1) for i, lead in enumerate(leads)
    ]
    return np.concatenate(parts)


def _normals(known: Sequence[Invariant], at: Tensor, units: Tensor) -> Array | None:
    """Returns the projections onto the gradients of known invariants at each point; None if there are none."""
    if not known:
        return None
    gradients = torch.stack([one.gradient(at) for one in known], 1).numpy() * units.numpy()
    projections: Array = np.linalg.pinv(gradients) @ gradients
    return projections


def _simpler(rows: Rows, found: Sequence[Solution]) -> Iterator[Solution]:
    """Yields the subsets of the best sets of terms, of which a rough ranking may have missed some."""
    known = {one.columns for one in found}
    best = sorted(found, key=lambda one: one.error)[:_SIMPLIFIED]
    for size in range(1, _LARGEST_SET):
        subsets = {part for one in best for part in itertools.combinations(one.columns, size)} - known
        if subsets:
            yield from rows.new(rows.solve(np.array(sorted(subsets), dtype=np.int64)), NEW)


def _invariant(rows: Rows, solution: Solution) -> Invariant:
    places = list(solution.columns)
    coefficients = (solution.coefficients / rows.scale[places]).tolist()
    return Invariant(tuple(rows.terms[k] for k in places), tuple(coefficients), solution.error)


def _cost(rows: Rows, solution: Solution) -> float:
    return sum(1 + rows.terms[k].complexity for k in solution.columns)


def _rounded(rows: Rows, solution: Solution) -> Invariant:
    """Returns the invariant with the coefficient 1 of its plainest term, the others with as few digits as possible."""
    order = sorted(solution.columns, key=lambda k: (rows.terms[k].coordinates == frozenset(), rows.terms[k].complexity))
    places = [solution.columns.index(k) for k in order]
    raw = solution.coefficients[places] / rows.scale[order]
    raw = raw / raw[0]
    scale = rows.scale[order]
    base = float(rows.errors(order, raw * scale).mean())
    allowed = base * (1 + _ROUNDING * len(order) / len(rows.a)) + (EXACT * 1e-3) ** 2
    for digits in range(1, _MOST_DIGITS + 1):
        trial = np.array([float(f"{value:.{digits}g}") for value in raw])
        if float(rows.errors(order, trial * scale).mean()) <= allowed:
            raw = trial
            break
    error = math.sqrt(float(rows.errors(order, raw * scale).mean()))
    return Invariant(tuple(rows.terms[k] for k in order), tuple(raw.tolist()), error)
