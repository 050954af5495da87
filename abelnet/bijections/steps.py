r"""Steps that invert additive invariants in closed form, each of which finds one or two coordinates."""

from __future__ import annotations

__all__ = ["Step", "plan"]

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.bijections.intervals import Enclosed
from abelnet.bijections.slopes import EVERYWHERE
from abelnet.bijections.terms import Factor, Monomial, Planar, Term

if TYPE_CHECKING:
    from sympy import Expr

# Results beyond the end of the domain by this many units of rounding are at its end.
_ROUNDING = 1000


def plan(invariants: Sequence[Sequence[Term]], signs: Sequence[int]) -> list[Step] | None:
    """Returns the steps that invert invariants in closed form; None if there are none.

    Arguments:
        invariants: Terms of each invariant.
        signs: Sign of each coordinate, 0 for both.

    Example:
        >>> from abelnet.bijections.terms import Power
        >>> mass, moment = Monomial((Power(0),)), Monomial((Power(0), Power(1)))
        >>> [step.places for step in plan([[moment], [mass]], [1, 0])]
        [(1,), (0,)]
    """
    known: frozenset[int] = frozenset()
    left = list(range(len(invariants)))
    steps: list[Step] = []
    while left:
        step = next(filter(None, (_single(invariants, signs, j, known) for j in left)), None) or next(
            filter(None, (_pair(invariants, signs, i, j, known) for i in left for j in left if i != j)), None
        )
        if step is None:
            return None
        steps.append(step)
        known |= step.coordinates
        left = [j for j in left if j not in step.places]
    return steps


class Step(ABC):
    """Step that finds some coordinates from some invariants and the coordinates before it.

    Coefficients are those of each invariant; coordinates that are not found yet have any value.

    Attributes:
        places: Invariants that are used.
        coordinates: Coordinates that are found.
    """

    places: tuple[int, ...]
    coordinates: frozenset[int]

    @abstractmethod
    def solve(self, coefficients: Sequence[Tensor], y: Tensor, found: list[Tensor]) -> None:
        """Writes the coordinates, with shape :math:`(*)`, into the list; NaN where there are none."""

    @abstractmethod
    def solve_expressions(self, coefficients: Sequence[Sequence[Any]], y: Sequence[Expr], found: list[Any]) -> None:
        """Writes the coordinates as sympy expressions into the list."""

    @abstractmethod
    def enclose(self, coefficients: Sequence[Sequence[float]], y: Sequence[Enclosed], found: list[Enclosed]) -> None:
        """Writes the ranges of the coordinates, over cells of invariants, into the list."""


class _Single(Step):
    """Solves :math:`s g(x_i) + t = y_j` for one coordinate."""

    def __init__(self, j: int, terms: Sequence[Term], factor: Factor, sign: int, *, has_zero: bool) -> None:
        i = factor.coordinate
        self.places, self.coordinates = (j,), frozenset((i,))
        self._j, self._factor, self._sign, self._has_zero = j, factor, sign, has_zero
        self._scale = [
            (k, term.without(i)) for k, term in enumerate(terms) if isinstance(term, Monomial) and term.on(i)
        ]
        self._rest = [(k, term) for k, term in enumerate(terms) if i not in term.coordinates]

    def solve(self, coefficients: Sequence[Tensor], y: Tensor, found: list[Tensor]) -> None:
        c, x = coefficients[self._j], torch.stack(found, -1)
        rest = y[..., self._j]
        size = rest.detach().abs()
        for k, term in self._rest:
            part = c[k] * term.values(x)
            rest, size = rest - part, size + part.detach().abs()
        scale = y.new_zeros(y.shape[:-1])
        for k, term in self._scale:
            scale = scale + c[k] * term.values(x)
        root = self._factor.inverse(rest / scale)
        at_zero = self._factor.forward(torch.zeros_like(root.detach())) * scale.detach()
        near = (rest.detach() - at_zero).abs() <= _ROUNDING * torch.finfo(y.dtype).eps * size
        found[self._factor.coordinate] = self._within(root, near & (scale.detach() != 0))

    def _within(self, root: Tensor, near_zero: Tensor) -> Tensor:
        """Returns the root of the right sign; 0 if that is so up to rounding, NaN if it is not."""
        if self._sign == 0:
            return root
        root = -root if self._sign < 0 and not self._factor.is_injective else root
        if not self._has_zero:
            return torch.where(self._sign * root > 0, root, math.nan)
        return torch.where(self._sign * root >= 0, root, torch.where(near_zero, 0.0, math.nan).to(root))

    def solve_expressions(self, coefficients: Sequence[Sequence[Any]], y: Sequence[Expr], found: list[Any]) -> None:
        c = coefficients[self._j]
        rest = y[self._j] - sum(c[k] * term.expression(found) for k, term in self._rest)
        scale = sum(c[k] * term.expression(found) for k, term in self._scale)
        found[self._factor.coordinate] = self._factor.inverse_expression(rest / scale, self._sign)

    def enclose(self, coefficients: Sequence[Sequence[float]], y: Sequence[Enclosed], found: list[Enclosed]) -> None:
        c, rest = coefficients[self._j], y[self._j]
        for k, term in self._rest:
            rest = rest + _enclosed(term, found).scaled(-c[k])
        scale = Enclosed.constant(0.0, rest)
        for k, term in self._scale:
            scale = scale + _enclosed(term, found).scaled(c[k])
        value = rest / scale
        root, slope = self._factor.enclose_inverse(value.value, self._sign)
        found[self._factor.coordinate] = Enclosed.composed(root, (slope,), (value,))


class _Pair(Step):
    """Solves :math:`c p(a, b) + t = y_j` and the same for the other part of a map of the plane."""

    def __init__(
        self, places: tuple[int, int], terms: Sequence[Sequence[Term]], which: tuple[int, int], signs: Sequence[int]
    ) -> None:
        first = terms[places[0]][which[0]]
        assert isinstance(first, Planar)  # by the plan
        self.places, self.coordinates = places, first.coordinates
        self._term, self._which, self._signs = first, which, signs
        self._rest = [
            [(k, term) for k, term in enumerate(terms[j]) if k != own] for j, own in zip(places, which, strict=True)
        ]

    def solve(self, coefficients: Sequence[Tensor], y: Tensor, found: list[Tensor]) -> None:
        parts, x = [], torch.stack(found, -1)
        for j, own, others in zip(self.places, self._which, self._rest, strict=True):
            c, rest = coefficients[j], y[..., j]
            for k, term in others:
                rest = rest - c[k] * term.values(x)
            parts.append(rest / c[own])
        pair = self._term.map.inverse(parts[0], parts[1])
        places, size = (self._term.first, self._term.second), pair[0].detach().abs() + pair[1].detach().abs()
        for i, one in zip(places, pair, strict=True):
            near = one.detach().abs() <= _ROUNDING * torch.finfo(one.dtype).eps * size
            end = torch.where(near, 0.0, math.nan).to(one)
            found[i] = torch.where(self._signs[i] * one >= 0, one, end) if self._signs[i] else one

    def solve_expressions(self, coefficients: Sequence[Sequence[Any]], y: Sequence[Expr], found: list[Any]) -> None:
        parts = []
        for j, own, others in zip(self.places, self._which, self._rest, strict=True):
            rest = sum(coefficients[j][k] * term.expression(found) for k, term in others)
            parts.append((y[j] - rest) / coefficients[j][own])
        a, b = self._term.map.inverse_expressions(parts[0], parts[1])
        found[self._term.first], found[self._term.second] = a, b

    def enclose(self, coefficients: Sequence[Sequence[float]], y: Sequence[Enclosed], found: list[Enclosed]) -> None:
        parts = []
        for j, own, others in zip(self.places, self._which, self._rest, strict=True):
            rest = y[j]
            for k, term in others:
                rest = rest + _enclosed(term, found).scaled(-coefficients[j][k])
            parts.append(rest.scaled(1 / coefficients[j][own] if coefficients[j][own] else math.nan))
        values, slopes = self._term.map.enclose_inverse(parts[0].value, parts[1].value)
        for i, value, slope in zip((self._term.first, self._term.second), values, slopes, strict=True):
            found[i] = Enclosed.composed(value, slope, parts)


def _enclosed(term: Term, x: Sequence[Enclosed]) -> Enclosed:
    """Returns a term as a function of the invariants."""
    value, slopes = term.enclose([one.value for one in x])
    places = sorted(term.coordinates)
    if not places:
        return Enclosed(value, Enclosed.constant(0.0, x[0]).gradient)
    return Enclosed.composed(value, [slopes[i] for i in places], [x[i] for i in places])


def _single(
    invariants: Sequence[Sequence[Term]], signs: Sequence[int], j: int, known: frozenset[int]
) -> _Single | None:
    """Returns the step by which an invariant brings in one coordinate, if it does."""
    terms = invariants[j]
    new = frozenset().union(*(term.coordinates for term in terms)) - known
    if len(new) != 1:
        return None
    (i,) = new
    with_it = [term for term in terms if i in term.coordinates]
    factors = {term.on(i) if isinstance(term, Monomial) else () for term in with_it}
    if len(factors) != 1:
        return None
    (own,) = factors
    everywhere = [factor for one in invariants for term in one if isinstance(term, Monomial) for factor in term.on(i)]
    sign = signs[i] or int(any(factor.domain != EVERYWHERE for factor in everywhere))
    if len(own) != 1 or not (own[0].is_injective or sign != 0):
        return None
    return _Single(j, terms, own[0], sign, has_zero=all(factor.is_defined_at_zero for factor in everywhere))


def _pair(
    invariants: Sequence[Sequence[Term]], signs: Sequence[int], i: int, j: int, known: frozenset[int]
) -> _Pair | None:
    """Returns the step by which two invariants bring in two coordinates by a map of the plane, if they do."""
    chosen, which = [], []
    for place, part in ((i, 0), (j, 1)):
        new = [k for k, term in enumerate(invariants[place]) if not term.coordinates <= known]
        term = invariants[place][new[0]] if len(new) == 1 else None
        if not isinstance(term, Planar) or term.part != part or term.coordinates & known:
            return None
        chosen.append(term)
        which.append(new[0])
    first, second = chosen
    if (first.plane, first.first, first.second) != (second.plane, second.first, second.second):
        return None
    return _Pair((i, j), invariants, (which[0], which[1]), signs)
