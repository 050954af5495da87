r"""Base class of bijections by additive invariants: sums of terms of several coordinates."""

from __future__ import annotations

__all__ = ["Invariants"]

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from abelnet.bijections.base import Bijection
from abelnet.bijections.intervals import Interval, cells, hull, largest_norm
from abelnet.bijections.slopes import FROM_ZERO, Enclosure, Region
from abelnet.bijections.terms import PLANES, Exponential, Factor, Monomial, Planar, Power, Term
from abelnet.checks import check_values, is_checking, peek
from abelnet.errors import AbelnetError
from abelnet.symbols import check_expressions, is_between, symbolic_number

if TYPE_CHECKING:
    from sympy import Expr

# Points drawn to probe an operation.
_PROBES = 256


class Invariants(Bijection):
    r"""Map by :math:`d` sums of terms, one for each coordinate of the result.

    .. math:: f_j(x) = \sum_k c_{jk} B_{jk}(x - o)

    If vectors are combined such that each :math:`f_j` adds up, they are combined by the group
    :math:`f^{-1}(f(x) + f(y))`: the :math:`f_j` are its additive invariants. Coordinates may be measured from an origin
    :math:`o`: polynomials such as :math:`s + n m^2` lose digits if :math:`m` is far from 0 compared with its spread.

    Arguments:
        dim: Number of dimensions :math:`d`.
        invariants: Terms :math:`B_{jk}` of each sum.
        coefficients: Coefficients :math:`c_{jk}` of each sum.
        signs: For each coordinate, 1 if it is at least :math:`o_i`, -1 if it is at most :math:`o_i`, 0 if it may be
            on both sides.
        origin: The point :math:`o`, with :math:`d` numbers; 0 by default.
    """

    def __init__(
        self,
        dim: int,
        invariants: Sequence[Sequence[Term]],
        coefficients: Sequence[Sequence[float] | Tensor],
        signs: Sequence[int] = (),
        origin: Sequence[float] = (),
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim)
        self.invariants = [list(terms) for terms in invariants]
        self.signs = list(signs) or [0] * dim
        self.origin = [float(one) for one in origin] or [0.0] * dim
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
        if len(self.origin) != dim or not all(map(math.isfinite, self.origin)):
            raise AbelnetError(f"origin: expected {dim} finite numbers, got {self.origin}")
        self._ends = [self._ends_of(i) for i in range(dim)]
        for i, (low, high) in enumerate(self._ends):
            if low >= high:
                raise AbelnetError(f"signs: expected numbers on which terms are defined, got none for coordinate {i}")
        self.check_terms()
        self._start = [one.detach().clone() if isinstance(one, Tensor) else list(one) for one in coefficients]
        self.coefficients = nn.ParameterList(_numbers(one, device, dtype) for one in coefficients)
        Invariants.check_state(self)

    def check_terms(self) -> None:
        """Raises unless the terms are those of this class."""

    def _ends_of(self, i: int) -> tuple[float, float]:
        """Returns the lower and upper limit of a coordinate measured from the origin, exclusive."""
        own = [factor for terms in self.invariants for term in terms for factor in _factors(term, i)]
        end = FROM_ZERO if all(factor.is_defined_at_zero for factor in own) else 0.0
        low, high = end if self.signs[i] > 0 else -math.inf, -end if self.signs[i] < 0 else math.inf
        for factor in own:
            bottom, top = factor.domain
            low, high = max(low, float(bottom)), min(high, float(top))
        return low, high

    def check_state(self) -> None:
        for one in self.coefficients:
            if not one.is_meta and not peek(one.isfinite().all(), True):
                raise AbelnetError(f"coefficients: expected finite numbers, got {one.tolist()}")

    @property
    def domain(self) -> Region:
        ends = [
            [o + end if o == 0 or end == 0 or math.isinf(end) else math.nextafter(o, math.copysign(math.inf, end))]
            for o, both in zip(self.origin, self._ends, strict=True)
            for end in both
        ]
        low, high = torch.tensor(ends, dtype=torch.float64, device="cpu").reshape(-1, 2).unbind(-1)
        return low, high

    def is_defined(self, x: Tensor) -> Tensor:
        return self.is_defined_from_origin(self.from_origin(x))

    def is_defined_from_origin(self, x: Tensor) -> Tensor:
        """Returns :meth:`is_defined` for coordinates measured from the origin."""
        masks = [_is_between(one, *ends) for one, ends in zip(x.unbind(-1), self._ends, strict=True)]
        for terms in self.invariants:
            for term in terms:
                defined = term.is_defined(x)
                for i in term.coordinates:
                    masks[i] = masks[i] & defined
        return torch.stack(masks, -1)

    def describe_domain(self) -> str:
        names = [f"x{i + 1}" for i in range(self.dim)]
        return self.describe_domain_of(names)

    def describe_domain_of(self, names: Sequence[str]) -> str:
        """Returns the domain as conditions on named coordinates, such as ``m > 0``."""
        parts = []
        for name, o, (bottom, top) in zip(names, self.origin, self._ends, strict=True):
            if bottom > -math.inf:
                parts.append(f"{name} ≥ {o:g}" if bottom == FROM_ZERO else f"{name} > {o + bottom:g}")
            if top < math.inf:
                parts.append(f"{name} ≤ {o:g}" if top == -FROM_ZERO else f"{name} < {o + top:g}")
        planes = dict.fromkeys(
            (term.plane, term.first, term.second)
            for terms in self.invariants
            for term in terms
            if isinstance(term, Planar)
        )
        for name, i, j in planes:
            conditions = PLANES[name].condition.format(a=names[i], b=names[j]).split(", ")
            parts += [one for one in conditions if one not in parts]
        return ", ".join(parts) or "all real numbers"

    @torch.no_grad()
    def translatable(self) -> list[bool]:
        r"""Returns whether each coordinate may be measured from any origin without a change of the operation.

        This is so if the invariants of :math:`x - o` are linear combinations of those of :math:`x`. For example,
        :math:`m (x - o) = m x - o\, m`, but :math:`x - o` has a constant that does not add up.

        Example:
            >>> from abelnet.bijections import Triangular
            >>> from abelnet.bijections.terms import Monomial, Power
            >>> mass, moment = Monomial((Power(0),)), Monomial((Power(0), Power(1)))
            >>> Triangular(2, [[mass], [moment]], [[1.0], [1.0]], signs=[1, 0]).translatable()
            [False, True]
        """
        generator = torch.Generator().manual_seed(0)
        count = 8 * sum(map(len, self.invariants)) + 8
        x = 0.5 + torch.rand(count, self.dim, generator=generator, dtype=torch.float64)
        x = x * torch.tensor([sign or 1 for sign in self.signs])
        x = x[self.is_defined_from_origin(x).all(-1)]
        found = []
        for i in range(self.dim):
            terms = [term for terms in self.invariants for term in terms if i in term.coordinates]
            if self.signs[i] or not all(isinstance(term, Monomial) and _is_smooth(term.on(i)) for term in terms):
                found.append(False)
                continue
            moved = x.clone()
            moved[:, i] += 1
            here, there = self.sums_from_origin(x), self.sums_from_origin(moved)
            unit = here.abs().amax(0).clamp(min=torch.finfo(torch.float64).tiny)
            mixed = torch.linalg.lstsq(here / unit, there).solution
            error = (here / unit @ mixed - there).abs().amax(0)
            found.append(len(x) > 2 * self.dim and bool((error <= 1e-9 * there.abs().amax(0)).all()))
        return found

    def with_origin(self, origin: Sequence[float]) -> Self:
        """Returns a copy whose coordinates are measured from another origin, for the same operation but for rounding.

        Choose the middle of the elements, where those of other coordinates cancel. Raises if a coordinate is not
        :meth:`translatable`.

        Example:
            >>> from abelnet.bijections import Triangular
            >>> from abelnet.bijections.terms import Monomial, Power
            >>> mass, moment = Monomial((Power(0),)), Monomial((Power(0), Power(1)))
            >>> Triangular(2, [[mass], [moment]], [[1.0], [1.0]], signs=[1, 0]).with_origin([0.0, 1e6]).origin
            [0.0, 1000000.0]
        """
        if len(origin) != self.dim or not all(map(math.isfinite, origin)):
            raise AbelnetError(f"origin: expected {self.dim} finite numbers, got {list(origin)}")
        movable = self.translatable()
        for i, (old, new) in enumerate(zip(self.origin, origin, strict=True)):
            if new != old and not movable[i]:
                raise AbelnetError(f"origin: expected {old} for coordinate {i}, which another would change the law of")
        found = copy.deepcopy(self)
        found.origin = [float(one) for one in origin]
        return found

    @torch.no_grad()
    def with_coefficients(self, coefficients: Sequence[Sequence[float] | Tensor]) -> Self:
        """Returns a copy with other coefficients, as many for each invariant.

        Example:
            >>> from abelnet.bijections import Triangular
            >>> from abelnet.bijections.terms import Monomial, Power
            >>> double = Triangular(1, [[Monomial((Power(0),))]], [[1.0]]).with_coefficients([[2.0]])
            >>> double(torch.tensor([3.0])).item()
            6.0
        """
        if [len(one) for one in coefficients] != [len(terms) for terms in self.invariants]:
            raise AbelnetError("coefficients: expected one for each term of each invariant, got another number")
        found = copy.deepcopy(self)
        for one, values in zip(found.coefficients, coefficients, strict=True):
            one.copy_(torch.as_tensor(values, dtype=one.dtype, device=one.device))
        found.check_state()
        return found

    def probes(self) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        shape = (_PROBES, self.dim)
        draw = torch.rand(*shape, generator=generator, dtype=torch.float64)
        scale = torch.linspace(-12, 12, _PROBES, dtype=torch.float64)[torch.randperm(_PROBES, generator=generator)]
        sizes = 10 ** (torch.where(torch.arange(_PROBES) % 2 == 0, scale, 0.0)[:, None] + 4 * draw - 2)
        both = torch.where(torch.rand(*shape, generator=generator) < 0.5, -1.0, 1.0)
        sides = torch.tensor([(low > -math.inf) - (high < math.inf) for low, high in self._ends], dtype=torch.float64)
        points = sizes * torch.where(sides == 0, both, sides)
        points = points[self.is_defined_from_origin(points).all(-1)]
        return points + torch.tensor(self.origin, dtype=torch.float64)

    @torch.no_grad()
    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets to the given coefficients; nothing is random."""
        for one, start in zip(self.coefficients, self._start, strict=True):
            one.copy_(torch.as_tensor(start, dtype=one.dtype, device=one.device))

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        x = self.from_origin(x)
        if is_checking():
            self._check_domain(x.detach())
        return self.sums_from_origin(x)

    def _check_domain(self, x: Tensor) -> None:
        outside = ~self.is_defined_from_origin(x).all(-1) & ~x.isnan().any(-1)
        if peek(outside.any(), False):
            raise AbelnetError(
                f"x: expected vectors of the domain, {self.describe_domain()}, got {int(outside.sum())} of "
                f"{outside.numel()} that are not"
            )

    def from_origin(self, x: Tensor) -> Tensor:
        """Measures coordinates from the origin, as terms do."""
        return x - self.origin_like(x) if any(self.origin) else x

    def origin_like(self, x: Tensor) -> Tensor:
        """Returns the origin in the dtype of a tensor and on its device."""
        return torch.tensor(self.origin, dtype=x.dtype, device=x.device)

    def sums_from_origin(self, x: Tensor) -> Tensor:
        """Returns the invariants of coordinates measured from the origin."""
        return torch.stack([self._sum(j, x) for j in range(self.dim)], -1)

    def _sum(self, j: int, x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[:-1])
        for c, term in zip(self.coefficients[j].unbind(), self.invariants[j], strict=True):
            total = total + c * term.values(x)
        return total

    def jacobian(self, x: Tensor) -> Tensor:
        r"""Returns the matrices :math:`\partial f_j / \partial x_i`, with shape :math:`(*, d, d)`."""
        return self.jacobian_from_origin(self.from_origin(x))

    def jacobian_from_origin(self, x: Tensor) -> Tensor:
        """Returns :meth:`jacobian` for coordinates measured from the origin."""
        rows = []
        for one, terms in zip(self.coefficients, self.invariants, strict=True):
            row = torch.zeros_like(x)
            for c, term in zip(one.unbind(), terms, strict=True):
                row = row + c * term.gradient(x)
            rows.append(row)
        return torch.stack(rows, -2)

    def log_abs_det(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        found: Tensor = torch.linalg.slogdet(self.jacobian(x)).logabsdet
        return found

    @torch.no_grad()
    def slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        r"""Bounds the norm of the Jacobian and the values over a box, cut into cells; proved in exact arithmetic.

        The norm is infinite if the box is, or if it contains a pole, or negative numbers at which an angle jumps.
        """
        low, high = (self.from_origin(end.double()) for end in region)
        for end, (bottom, top) in zip(zip(low.tolist(), high.tolist(), strict=True), self._ends, strict=True):
            if end[0] < bottom or end[1] > top:
                raise AbelnetError(
                    f"region: expected a box of the domain, {self.describe_domain()}, got {end[0]:g} to {end[1]:g}"
                )
        if not bool((low.isfinite() & high.isfinite()).all()):
            return Enclosure.unknown(self.dim)
        box = cells(low, high)
        jacobian, values = [], []
        for one, terms in zip(self.coefficients, self.invariants, strict=True):
            total, row = Interval.constant(0.0, box[0]), [Interval.constant(0.0, box[0])] * self.dim
            for c, term in zip(one.tolist(), terms, strict=True):
                value, gradient = term.enclose(box)
                total = total + value.scaled(c)
                row = [sum_ + slope.scaled(c) for sum_, slope in zip(row, gradient, strict=True)]
            values.append(total)
            jacobian.append(row)
        return Enclosure(largest_norm(jacobian), *hull(values))

    def expression(self, x: Any, dimension: int = 0) -> Expr:
        """Returns the invariant :math:`f_j` of the coordinates :math:`x`, a list of sympy expressions."""
        import sympy

        x = check_expressions("x", x, self.dim)
        x = [one - symbolic_number(o) for one, o in zip(x, self.origin, strict=True)]
        coefficients = (symbolic_number(c) for c in self.coefficients[dimension].detach())
        parts = zip(coefficients, self.invariants[dimension], strict=True)
        return sympy.Add(*(c * term.expression(x) for c, term in parts))

    def is_defined_expression(self, x: Any, dimension: int = 0) -> Any:
        import sympy

        x = check_expressions("x", x, self.dim)
        x = [one - symbolic_number(o) for one, o in zip(x, self.origin, strict=True)]
        terms = (term for terms in self.invariants for term in terms if dimension in term.coordinates)
        own = is_between(x[dimension], *self._ends[dimension])
        return sympy.And(own, *(term.is_defined_expression(x) for term in terms))

    def config(self) -> dict[str, Any]:
        return {
            "dim": self.dim,
            "invariants": self.invariants,
            "coefficients": [one.tolist() for one in self.coefficients],
            "signs": self.signs,
            "origin": self.origin,
        }


def _is_smooth(factors: Sequence[Factor]) -> bool:
    """Returns whether factors are defined on all real numbers, from any origin."""
    return all(
        isinstance(factor, Exponential) or (isinstance(factor, Power) and factor.exponent in range(1, 100))
        for factor in factors
    )


def _is_between(x: Tensor, low: float, high: float) -> Tensor:
    # In float32 the limit that includes 0 would be 0 itself.
    above = x >= 0 if low == FROM_ZERO else x > low
    return above & (x <= 0 if high == -FROM_ZERO else x < high)


def _factors(term: Term, coordinate: int) -> Sequence[Factor]:
    return term.on(coordinate) if isinstance(term, Monomial) else ()


def _numbers(values: Sequence[float] | Tensor, device: torch.device | None, dtype: torch.dtype | None) -> Tensor:
    given = values.dtype if isinstance(values, Tensor) and values.is_floating_point() else torch.get_default_dtype()
    return torch.as_tensor(values, dtype=dtype or given, device=device).detach().clone()
