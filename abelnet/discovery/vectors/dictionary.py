r"""Terms that invariants of vectors may consist of, defined on all elements and nearly all results.

Monomials have whole exponents, below zero for coordinates that keep one sign; logarithms of positive coordinates occur
alone and times a coordinate. Pairs of coordinates have the parts of maps of the plane. Real exponents and exponential
functions have a parameter each, and are found by a search (:func:`parametric`).
"""

from __future__ import annotations

__all__ = [
    "companions",
    "Parametric",
    "dictionary",
    "is_defined",
    "is_moderate",
    "parametric",
    "plain_parameter",
    "signs_of",
]

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections.terms import PLANES, Exponential, Factor, Logarithm, Monomial, Planar, Power, Term

# Most terms of the dictionary: the subsets that are tried grow with the cube of their number.
_MOST_TERMS = 110  # of up to three coordinates; of more, only those of few coordinates are tried at a time
_DEGREES = (4, 3, 2)
_SMALLEST_EXPONENT = -2
# Fraction of results at which a term has to be defined; with noise, a few leave its domain.
_DEFINED = 0.98
# Terms are between this and its reciprocal, so that their squares are finite in any unit.
_LARGEST = 1e60
# Exponents that are tried first, and rates in spreads of the coordinate.
_EXPONENTS = (-2.5, -1.5, -0.75, -0.5, -1 / 3, -0.2, 0.2, 1 / 3, 0.5, 0.75, 1.25, 1.5, 1.75, 2.5)
_RATES = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
_LEAST_EXPONENT, _LEAST_RATE = 0.12, 0.12


def signs_of(points: Tensor) -> list[int]:
    """Returns the sign of each coordinate over points :math:`(N, d)`: 1 or -1 if none has another one, else 0.

    Example:
        >>> signs_of(torch.tensor([[0.0, -1.0, -1.0], [2.0, 3.0, -2.0]]))
        [1, 0, -1]
    """
    low, high = points.amin(0).tolist(), points.amax(0).tolist()
    return [1 if bottom >= 0 else -1 if top <= 0 else 0 for bottom, top in zip(low, high, strict=True)]


def dictionary(elements: Tensor, results: Tensor) -> list[Term]:
    """Returns the terms for elements :math:`(N, d)` and results :math:`(R, d)`, the plainest first.

    Example:
        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <torch...
        >>> masses_and_places = torch.stack((torch.rand(9) + 1, torch.randn(9)), 1)
        >>> terms = dictionary(masses_and_places, masses_and_places)
        >>> Monomial((Power(0, 1.0), Power(1, 1.0))) in terms, Monomial((Power(1, -1.0),)) in terms
        (True, False)
    """
    d = elements.shape[1]
    away = _keeps_away_from_zero(elements)
    terms: list[Term] = [Monomial()]
    for degree in _DEGREES:
        ranges = [range(_SMALLEST_EXPONENT if away[i] else 0, degree + 1) for i in range(d)]
        exponents = [e for e in itertools.product(*ranges) if 0 < sum(map(abs, e)) <= degree]
        if len(exponents) <= _MOST_TERMS or degree == _DEGREES[-1] or d > 3:
            break
    terms += [_monomial(e) for e in exponents]
    for i in range(d):
        if float(elements[:, i].min()) > 0:
            terms.append(Monomial((Logarithm(i),)))
            terms += [Monomial((Power(j), Logarithm(i))) for j in range(d)]
            terms += [Monomial((Power(j, -1.0), Logarithm(i))) for j in range(d) if away[j] and j != i]
    for name, plane in PLANES.items():
        for i, j in itertools.permutations(range(d), 2):
            if plane.is_symmetric and i > j:
                continue
            a, b = elements[:, i], elements[:, j]
            if bool(plane.is_defined(a, b).all()) and plane.is_of_use(a, b):
                terms += [Planar(name, part, i, j) for part in (0, 1)]
    return sorted((term for term in terms if is_defined(term, elements, results)), key=lambda term: term.complexity)


def is_defined(term: Term, elements: Tensor, results: Tensor) -> bool:
    """Returns whether a term is defined at all elements and at nearly all results, and its squares do not overflow."""
    if not bool(term.is_defined(elements).all()) or not bool((term.values(elements).abs() <= _LARGEST).all()):
        return False
    sizes = term.values(results).abs()
    there = term.is_defined(results) & (sizes <= _LARGEST) & _is_moderate_slope(term, results)
    return bool(there.double().mean() >= _DEFINED) and float(sizes[there].max()) >= 1 / _LARGEST


def is_moderate(term: Term, points: Tensor) -> Tensor:
    """Returns whether a term and its gradient are finite at each point, and so are their squares."""
    return (term.values(points).abs() <= _LARGEST) & _is_moderate_slope(term, points)


def _is_moderate_slope(term: Term, points: Tensor) -> Tensor:
    return (term.gradient(points).abs() <= _LARGEST).all(-1)


class Parametric(NamedTuple):
    """Term with a parameter.

    Attributes:
        term: Returns the term for a parameter.
        start: Parameter to start from.
        width: Largest distance from the start.
        least: Smallest magnitude; closer to 0, the term is nearly a logarithm or a coordinate itself.
        kind: Number of the term, which several starts share.
    """

    term: Callable[[float], Monomial]
    start: float
    width: float
    least: float
    kind: int


def parametric(elements: Tensor, results: Tensor, coordinates: Sequence[int]) -> Iterator[Parametric]:
    """Yields terms with a real exponent or an exponential function, from several starts.

    Arguments:
        elements: Elements :math:`(N, d)`.
        results: Results :math:`(R, d)`.
        coordinates: Coordinates that may have a parameter.
    """
    points = torch.cat((elements, results))
    kinds = itertools.count()
    for i in coordinates:
        for rest in companions(elements, i):
            if float(elements[:, i].min()) > 0:

                def power(p: float, i: int = i, rest: tuple[Factor, ...] = rest) -> Monomial:
                    return Monomial((*rest, Power(i, p)))

                kind = next(kinds)
                yield from (Parametric(power, start, 0.3, _LEAST_EXPONENT, kind) for start in _EXPONENTS)
            spread = float(points[:, i].std()) or 1.0

            def exponential(k: float, i: int = i, rest: tuple[Factor, ...] = rest) -> Monomial:
                return Monomial((*rest, Exponential(i, k)))

            kind = next(kinds)
            for rate in (sign * rate / spread for rate in _RATES for sign in (1, -1)):
                yield Parametric(exponential, rate, 0.6 * abs(rate), _LEAST_RATE / spread, kind)


def companions(elements: Tensor, coordinate: int) -> list[tuple[Factor, ...]]:
    """Returns the factors that a function of a coordinate is multiplied by: none, or another coordinate."""
    others = [j for j in range(elements.shape[1]) if j != coordinate]
    away = _keeps_away_from_zero(elements)
    return [(), *((Power(j, 1.0),) for j in others), *((Power(j, -1.0),) for j in others if away[j])]


def plain_parameter(term: Monomial, accept: Callable[[Monomial], bool]) -> Monomial:
    """Returns the term with the plainest parameter that is accepted: few digits, and exponentials of base 10 or 2.

    Arguments:
        term: Term whose last factor has a parameter.
        accept: Returns whether a term is as good.
    """
    *rest, last = term.factors
    options: list[Factor] = []
    for digits in range(1, 7):
        if isinstance(last, Power):
            options += [Power(last.coordinate, value) for value in _rounded(last.exponent, digits) if value]
        if isinstance(last, Exponential):
            for base in Exponential.BASES[1:] + Exponential.BASES[:1]:
                rate = last.rate * math.log(last.base) / math.log(base)
                if base == math.e or digits <= 2:  # other bases only if that makes the rate plain
                    options += [Exponential(last.coordinate, value, base) for value in _rounded(rate, digits) if value]
    return next((one for one in (Monomial((*rest, option)) for option in options) if accept(one)), term)


def _rounded(value: float, digits: int) -> list[float]:
    """Returns a number rounded to significant digits; for two, also as a simple fraction."""
    found = [float(f"{value:.{digits}g}")]
    if digits == 2:
        found += [round(value * n) / n for n in (2, 3, 4)]
    return found


def _keeps_away_from_zero(elements: Tensor) -> list[bool]:
    return [bool(one) for one in np.logical_or((elements > 0).all(0).numpy(), (elements < 0).all(0).numpy())]


def _monomial(exponents: Sequence[int]) -> Monomial:
    return Monomial(tuple(Power(i, float(e)) for i, e in enumerate(exponents) if e))
