r"""Bijections by additive invariants: sums of terms of several coordinates, inverted in closed form or numerically."""

from __future__ import annotations

__all__ = ["Implicit", "Invariants", "Triangular"]

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from abelnet.bijections.base import Bijection
from abelnet.bijections.slopes import FROM_ZERO, Region
from abelnet.bijections.terms import Factor, Monomial, Planar, Term
from abelnet.checks import check_number, check_values, peek
from abelnet.errors import AbelnetError
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr

# Newton's method: most steps, halvings of a step, and starts that are tried.
_STEPS, _HALVINGS, _STARTS = 60, 30, 4
# Known points kept as starts.
_MOST_KNOWN = 512


class Invariants(Bijection):
    r"""Map by :math:`d` sums of terms, one for each coordinate of the result.

    .. math:: f_j(x) = \sum_k c_{jk} B_{jk}(x)

    If vectors are combined such that each :math:`f_j` adds up, they are combined by the group
    :math:`f^{-1}(f(x) + f(y))`: the :math:`f_j` are its additive invariants.

    Arguments:
        dim: Number of dimensions :math:`d`.
        invariants: Terms :math:`B_{jk}` of each sum.
        coefficients: Coefficients :math:`c_{jk}` of each sum.
        signs: For each coordinate, 1 if it is at least 0, -1 if it is at most 0, 0 if it may have both signs.
    """

    def __init__(
        self,
        dim: int,
        invariants: Sequence[Sequence[Term]],
        coefficients: Sequence[Sequence[float] | Tensor],
        signs: Sequence[int] = (),
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim)
        self.invariants = [list(terms) for terms in invariants]
        self.signs = list(signs) or [0] * dim
        if len(self.invariants) != dim or not all(self.invariants):
            raise AbelnetError(f"invariants: expected {dim} lists of terms, got {len(self.invariants)}")
        for terms in self.invariants:
            for term in terms:
                if not isinstance(term, Term) or max(term.coordinates, default=0) >= dim:
                    raise AbelnetError(f"invariants: expected terms of {dim} coordinates, got {term!s:.80}")
        if [len(one) for one in coefficients] != [len(terms) for terms in self.invariants]:
            raise AbelnetError("coefficients: expected one for each term of each invariant, got another number")
        if len(self.signs) != dim or not set(self.signs) <= {-1, 0, 1}:
            raise AbelnetError(f"signs: expected {dim} of -1, 0 and 1, got {self.signs}")
        self.coefficients = nn.ParameterList(
            torch.as_tensor(one, dtype=dtype, device=device).clone() for one in coefficients
        )

    def check_state(self) -> None:
        for one in self.coefficients:
            if not one.is_meta and not peek(one.isfinite().all(), True):
                raise AbelnetError(f"coefficients: expected finite numbers, got {one.tolist()}")

    @property
    def domain(self) -> Region:
        low, high = torch.full((self.dim,), -math.inf).double(), torch.full((self.dim,), math.inf).double()
        factors = [factor for terms in self.invariants for term in terms for factor in _factors(term)]
        for i, sign in enumerate(self.signs):
            own = [factor for factor in factors if factor.coordinate == i]
            end = FROM_ZERO if all(factor.is_defined_at_zero for factor in own) else 0.0
            if sign > 0:
                low[i] = end
            if sign < 0:
                high[i] = -end
            for factor in own:
                bottom, top = factor.domain
                low[i], high[i] = max(float(low[i]), float(bottom)), min(float(high[i]), float(top))
        return low, high

    def is_defined(self, x: Tensor) -> Tensor:
        low, high = (torch.as_tensor(end, device=x.device) for end in self.domain)
        defined = (x > low) & (x < high)
        for terms in self.invariants:
            for term in terms:
                places = list(term.coordinates)
                defined[..., places] = defined[..., places] & term.is_defined(x)[..., None]
        return defined

    def describe_domain(self) -> str:
        names = [f"x{i + 1}" for i in range(self.dim)]
        return self.describe_domain_of(names)

    def describe_domain_of(self, names: Sequence[str]) -> str:
        """Returns the domain as conditions on named coordinates, such as ``m > 0``."""
        low, high = self.domain
        parts = []
        for name, bottom, top in zip(names, torch.as_tensor(low).tolist(), torch.as_tensor(high).tolist(), strict=True):
            if bottom > -math.inf:
                parts.append(f"{name} ≥ 0" if bottom == FROM_ZERO else f"{name} > {bottom:g}")
            if top < math.inf:
                parts.append(f"{name} ≤ 0" if top == -FROM_ZERO else f"{name} < {top:g}")
        planes = dict.fromkeys(
            (term.plane, term.first, term.second)
            for terms in self.invariants
            for term in terms
            if isinstance(term, Planar)
        )
        parts += [f"where the {name} map of ({names[i]}, {names[j]}) is defined" for name, i, j in planes]
        return ", ".join(parts) or "all real numbers"

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        if peek((~self.is_defined(x.detach())).any(), False):
            raise AbelnetError(f"x: expected vectors of the domain, {self.describe_domain()}, got others")
        return self._sums(x)

    def _sums(self, x: Tensor) -> Tensor:
        return torch.stack([self._sum(j, x) for j in range(self.dim)], -1)

    def _sum(self, j: int, x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[:-1])
        for c, term in zip(self.coefficients[j], self.invariants[j], strict=True):
            total = total + c * term.values(x)
        return total

    def jacobian(self, x: Tensor) -> Tensor:
        r"""Returns the matrices :math:`\partial f_j / \partial x_i`, with shape :math:`(*, d, d)`."""
        rows = []
        for one, terms in zip(self.coefficients, self.invariants, strict=True):
            row = torch.zeros_like(x)
            for c, term in zip(one, terms, strict=True):
                row = row + c * term.gradient(x)
            rows.append(row)
        return torch.stack(rows, -2)

    def log_abs_det(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        found: Tensor = torch.linalg.slogdet(self.jacobian(x)).logabsdet
        return found

    def expression(self, x: Any, dimension: int = 0) -> Expr:
        """Returns the invariant :math:`f_j` of the coordinates :math:`x`, a list of sympy expressions."""
        import sympy

        coefficients = (symbolic_number(c) for c in self.coefficients[dimension].detach())
        parts = zip(coefficients, self.invariants[dimension], strict=True)
        return sympy.Add(*(c * term.expression(x) for c, term in parts))

    def config(self) -> dict[str, Any]:
        return {
            "dim": self.dim,
            "invariants": self.invariants,
            "coefficients": [one.tolist() for one in self.coefficients],
            "signs": self.signs,
        }


class Triangular(Invariants):
    r"""Invariants that bring in one coordinate at a time, so that the map is inverted in closed form.

    .. math:: f_1(x) = s_1 g_1(x_1) + t_1, \quad f_2(x) = s_2(x_1)\, g_2(x_2) + t_2(x_1), \quad \dots

    with :math:`g` a power, a logarithm or an exponential function. The invariants, and the coordinates that they bring
    in, may be in any order. Two of them may also bring in two coordinates at once by a map of the plane, such as the
    logarithm of a complex number.

    Arguments:
        dim: Number of dimensions :math:`d`.
        invariants: Terms of each invariant.
        coefficients: Coefficients of the terms.
        signs: For each coordinate, 1 if it is at least 0, -1 if it is at most 0, 0 if it may have both signs.

    Example:
        The center of mass, of mass :math:`m` and place :math:`x`, keeps :math:`m` and :math:`m x`:

        >>> from abelnet import AbelianGroup
        >>> from abelnet.bijections.terms import Monomial, Power
        >>> mass, moment = Monomial((Power(0),)), Monomial((Power(0), Power(1)))
        >>> center = AbelianGroup(Triangular(2, [[mass], [moment]], [[1.0], [1.0]], signs=[1, 0]))
        >>> center.reduce(torch.tensor([[1.0, 2.0], [3.0, 6.0]])).tolist()
        [4.0, 5.0]
    """

    def __init__(
        self,
        dim: int,
        invariants: Sequence[Sequence[Term]],
        coefficients: Sequence[Sequence[float] | Tensor],
        signs: Sequence[int] = (),
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim, invariants, coefficients, signs, device=device, dtype=dtype)
        steps = plan(self.invariants, self.signs)
        if steps is None:
            raise AbelnetError(
                "invariants: expected each to bring in one coordinate by a power, a logarithm or an exponential, got "
                "others; use Implicit"
            )
        self._steps = steps

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        found: list[Tensor] = [y.new_zeros(y.shape[:-1])] * self.dim
        for step in self._steps:
            step.solve(self, y, found)
        return torch.stack(found, -1)

    def inverse_expression(self, y: Any, dimension: int = 0) -> Expr:
        """Returns the coordinate :math:`x_i` for invariants :math:`y`, a list of sympy expressions."""
        found: list[Any] = [None] * self.dim
        for step in self._steps:
            step.solve_expressions(self, y, found)
        return found[dimension]

    @property
    def order(self) -> list[int]:
        """Coordinates in the order in which they are found."""
        return [i for step in self._steps for i in sorted(step.coordinates)]

    def solved(self, y: Sequence[Expr], x: Sequence[Expr]) -> list[Expr]:
        """Returns each coordinate in terms of the invariants and of the coordinates that are found before it.

        Arguments:
            y: The invariants, as sympy expressions.
            x: The coordinates, as sympy expressions.
        """
        found: list[Any] = list(x)
        results: list[Any] = list(x)
        for step in self._steps:
            step.solve_expressions(self, y, found)
            for i in step.coordinates:
                results[i], found[i] = found[i], x[i]
        return results


class Implicit(Invariants):
    r"""Invariants of any form, inverted by Newton's method.

    The inverse of :math:`y` is searched by damped steps from the nearest of some known points. Where the error of
    :math:`f(x) = y` stays above the tolerance, relative to the size of the terms of :math:`f`, the inverse is NaN.

    Arguments:
        dim: Number of dimensions :math:`d`.
        invariants: Terms of each invariant.
        coefficients: Coefficients of the terms.
        signs: For each coordinate, 1 if it is at least 0, -1 if it is at most 0, 0 if it may have both signs.
        known: Points to start from, with shape :math:`(n, d)`.
        tolerance: Largest error.

    Example:
        >>> from abelnet.bijections.terms import Monomial, Power
        >>> x, y = Monomial((Power(0),)), Monomial((Power(1),))
        >>> cubes = [Monomial((Power(0, 3.0),)), Monomial((Power(1, 3.0),))]
        >>> known = torch.tensor([[1.0, 1.0]])
        >>> bijection = Implicit(2, [[x, cubes[1]], [y, cubes[0]]], [[3.0, 1.0], [-3.0, 1.0]], known=known)
        >>> bijection.inverse(bijection(torch.tensor([1.5, 0.7]))).detach().round(decimals=4)
        tensor([1.5000, 0.7000])
    """

    def __init__(
        self,
        dim: int,
        invariants: Sequence[Sequence[Term]],
        coefficients: Sequence[Sequence[float] | Tensor],
        signs: Sequence[int] = (),
        *,
        known: Tensor | Sequence[Sequence[float]],
        tolerance: float = 1e-9,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim, invariants, coefficients, signs, device=device, dtype=dtype)
        check_number("tolerance", tolerance, above=0)
        self.tolerance = tolerance
        points = torch.as_tensor(known, dtype=self.coefficients[0].dtype, device=device)
        if points.ndim != 2 or points.shape[1] != dim or len(points) == 0:
            raise AbelnetError(f"known: expected points of shape (n, {dim}), got {tuple(points.shape)}")
        self.known: Tensor
        self.register_buffer("known", points[:: max(1, len(points) // _MOST_KNOWN)][:_MOST_KNOWN].clone())

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        rows = y.reshape(-1, self.dim)
        with torch.no_grad():
            x = self._solve(rows.detach())
        # One more step, which has the derivatives of the inverse.
        sound = x.isfinite().all(-1)
        at = torch.where(sound[:, None], x, self.known[0])
        step = torch.linalg.solve(self.jacobian(at).detach(), self._gap(at, rows)[..., None])[..., 0]
        step = torch.where(step.isfinite(), step, 0)
        return torch.where(sound[:, None], at - step, math.nan).reshape(y.shape)

    def _gap(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns :math:`f(x) - y`, where periodic invariants differ by less than half a period."""
        gap = self._sums(x) - y
        for j, terms in enumerate(self.invariants):
            period = max(
                term.period * abs(float(c)) for c, term in zip(self.coefficients[j].detach(), terms, strict=True)
            )
            if period:
                gap[:, j] = torch.remainder(gap[:, j] + period / 2, period) - period / 2
        return gap

    def _sizes(self, x: Tensor) -> Tensor:
        """Returns the size of the terms of each invariant, :math:`(n, d)`."""
        sizes = []
        for one, terms in zip(self.coefficients, self.invariants, strict=True):
            sizes.append(sum((c * term.values(x)).abs() for c, term in zip(one, terms, strict=True)))
        return torch.stack([torch.as_tensor(size) for size in sizes], -1)

    def _solve(self, y: Tensor) -> Tensor:
        known = self.known[self._is_sound(self.known)]
        of_known = self._sums(known)
        unit = of_known.std(0, unbiased=False).clamp(min=torch.finfo(y.dtype).tiny)
        found = torch.full_like(y, math.nan)
        left = y.isfinite().all(-1)
        # Ranks of the starts are of use only in the order of their distance.
        for rank in range(min(_STARTS, len(known))):
            rows = left.nonzero()[:, 0]
            if len(rows) == 0:
                break
            distances = ((self._gap_to(of_known, y[rows])) / unit).square().sum(-1)
            start = known[distances.topk(rank + 1, largest=False).indices[:, -1]]
            x, good = self._newton(start, y[rows], unit)
            found[rows[good]] = x[good]
            left[rows[good]] = False
        return found

    def _gap_to(self, sums: Tensor, y: Tensor) -> Tensor:
        return sums[None] - y[:, None]

    def _newton(self, x: Tensor, y: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
        """Returns points after damped steps, and whether the error is within the tolerance."""
        size = (self._gap(x, y) / unit).square().sum(-1)
        # Below the tolerance, down to rounding: steps go on until they gain nothing.
        running = torch.ones(len(x), dtype=torch.bool, device=x.device)
        for _ in range(_STEPS):
            jacobian = self.jacobian(x) / unit[:, None]
            gap = self._gap(x, y) / unit
            step = torch.linalg.lstsq(jacobian, gap[..., None]).solution[..., 0]
            step = torch.where(step.isfinite(), step, 0)
            better = torch.zeros_like(running)
            scale = torch.ones(len(x), 1, dtype=x.dtype, device=x.device)
            for _ in range(_HALVINGS):
                there = x - scale * step
                sound = self._is_sound(there)
                new = (self._gap(torch.where(sound[:, None], there, x), y) / unit).square().sum(-1)
                good = sound & (new < size) & running & ~better
                x, size = torch.where(good[:, None], there, x), torch.where(good, new, size)
                better |= good
                if bool((better | ~running).all()):
                    break
                scale = scale / 2
            running &= better
            if not bool(running.any()):
                break
        error = (self._gap(x, y) / (self._sizes(x) + y.abs() + 1e-3 * unit)).abs().amax(-1)
        return x, error <= self.tolerance

    def _is_sound(self, x: Tensor) -> Tensor:
        return self.is_defined(x).all(-1) & x.isfinite().all(-1)

    def config(self) -> dict[str, Any]:
        return super().config() | {"known": self.known.tolist(), "tolerance": self.tolerance}


def plan(invariants: Sequence[Sequence[Term]], signs: Sequence[int]) -> list[Step] | None:
    """Returns the steps that invert invariants in closed form; None if there are none.

    Arguments:
        invariants: Terms of each invariant.
        signs: Sign of each coordinate, 0 for both.
    """
    known: frozenset[int] = frozenset()
    left = list(range(len(invariants)))
    steps: list[Step] = []
    while left:
        step = next(filter(None, (_single(invariants, signs, j, known) for j in left)), None) or next(
            filter(None, (_pair(invariants, i, j, known) for i in left for j in left if i != j)), None
        )
        if step is None:
            return None
        steps.append(step)
        known |= step.coordinates
        left = [j for j in left if j not in step.places]
    return steps


class Step(ABC):
    """Step that finds some coordinates from some invariants and the coordinates before it.

    Attributes:
        places: Invariants that are used.
        coordinates: Coordinates that are found.
    """

    places: tuple[int, ...]
    coordinates: frozenset[int]

    @abstractmethod
    def solve(self, bijection: Invariants, y: Tensor, found: list[Tensor]) -> None:
        """Writes the coordinates, with shape :math:`(*)`, into the list."""

    @abstractmethod
    def solve_expressions(self, bijection: Invariants, y: Sequence[Expr], found: list[Any]) -> None:
        """Writes the coordinates as sympy expressions into the list."""


class _Single(Step):
    """Solves :math:`s g(x_i) + t = y_j` for one coordinate."""

    def __init__(self, j: int, factor: Factor, sign: int, with_it: Sequence[int], without: Sequence[int]) -> None:
        self.places, self.coordinates = (j,), frozenset((factor.coordinate,))
        self._factor, self._sign, self._with, self._without = factor, sign, with_it, without

    def solve(self, bijection: Invariants, y: Tensor, found: list[Tensor]) -> None:
        (j,), x = self.places, torch.stack(found, -1)
        c, terms = bijection.coefficients[j], bijection.invariants[j]
        rest = y[..., j]
        for k in self._without:
            rest = rest - c[k] * terms[k].values(x)
        i = self._factor.coordinate
        scale = y.new_zeros(y.shape[:-1])
        for k in self._with:
            scale = scale + c[k] * _without(terms[k], i).values(x)
        root = self._factor.inverse(rest / scale)
        found[i] = -root if self._sign < 0 and not self._factor.is_injective else root

    def solve_expressions(self, bijection: Invariants, y: Sequence[Expr], found: list[Any]) -> None:
        (j,), i = self.places, self._factor.coordinate
        c, terms = [symbolic_number(one) for one in bijection.coefficients[j].detach()], bijection.invariants[j]
        rest = y[j] - sum(c[k] * terms[k].expression(found) for k in self._without)
        scale = sum(c[k] * _without(terms[k], i).expression(found) for k in self._with)
        root = self._factor.inverse_expression(rest / scale)
        found[i] = -root if self._sign < 0 and not self._factor.is_injective else root


class _Pair(Step):
    """Solves :math:`c p(a, b) + t = y_j` and the same for the other part of a map of the plane."""

    def __init__(self, terms: tuple[Planar, Planar], places: tuple[int, int], which: tuple[int, int]) -> None:
        self.places, self.coordinates = places, terms[0].coordinates
        self._term, self._which = terms[0], which

    def solve(self, bijection: Invariants, y: Tensor, found: list[Tensor]) -> None:
        parts, x = [], torch.stack(found, -1)
        for j, k in zip(self.places, self._which, strict=True):
            c, rest = bijection.coefficients[j], y[..., j]
            for other, term in enumerate(bijection.invariants[j]):
                if other != k:
                    rest = rest - c[other] * term.values(x)
            parts.append(rest / c[k])
        found[self._term.first], found[self._term.second] = self._term.map.inverse(parts[0], parts[1])

    def solve_expressions(self, bijection: Invariants, y: Sequence[Expr], found: list[Any]) -> None:
        parts = []
        for j, k in zip(self.places, self._which, strict=True):
            c = [symbolic_number(one) for one in bijection.coefficients[j].detach()]
            rest = sum(c[i] * term.expression(found) for i, term in enumerate(bijection.invariants[j]) if i != k)
            parts.append((y[j] - rest) / c[k])
        a, b = self._term.map.inverse_expressions(parts[0], parts[1])
        found[self._term.first], found[self._term.second] = a, b


def _single(
    invariants: Sequence[Sequence[Term]], signs: Sequence[int], j: int, known: frozenset[int]
) -> _Single | None:
    """Returns the step by which an invariant brings in one coordinate, if it does."""
    terms = invariants[j]
    new = frozenset().union(*(term.coordinates for term in terms)) - known
    if len(new) != 1:
        return None
    (i,) = new
    with_it = [k for k, term in enumerate(terms) if i in term.coordinates]
    factors = {term.on(i) if isinstance(term, Monomial) else () for term in (terms[k] for k in with_it)}
    if len(factors) != 1:
        return None
    (own,) = factors
    if len(own) != 1 or not (own[0].is_injective or signs[i] != 0):
        return None
    return _Single(j, own[0], signs[i], with_it, [k for k in range(len(terms)) if k not in with_it])


def _pair(invariants: Sequence[Sequence[Term]], i: int, j: int, known: frozenset[int]) -> _Pair | None:
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
    return _Pair((first, second), (i, j), (which[0], which[1]))


def _factors(term: Term) -> Sequence[Factor]:
    return term.factors if isinstance(term, Monomial) else ()


def _without(term: Term, coordinate: int) -> Monomial:
    assert isinstance(term, Monomial)  # by the plan
    return term.without(coordinate)
