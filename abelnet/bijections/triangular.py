r"""Additive invariants that are inverted in closed form, one coordinate at a time."""

from __future__ import annotations

__all__ = ["Triangular"]

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.bijections.intervals import Enclosed, Interval, cells, hull, largest_norm
from abelnet.bijections.invariants import Invariants
from abelnet.bijections.slopes import Enclosure
from abelnet.bijections.steps import plan
from abelnet.checks import check_values
from abelnet.errors import AbelnetError
from abelnet.symbols import check_expressions, symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


class Triangular(Invariants):
    r"""Invariants that bring in one coordinate at a time, so that the map is inverted in closed form.

    .. math:: f_1(x) = s_1 g_1(x_1) + t_1, \quad f_2(x) = s_2(x_1)\, g_2(x_2) + t_2(x_1), \quad \dots

    with :math:`g` a power, a logarithm or an exponential function. The invariants, and the coordinates that they bring
    in, may be in any order. Two of them may also bring in two coordinates at once by a map of the plane, such as the
    logarithm of a complex number; angles are found up to whole turns.

    The inverse is NaN where there is none, such as the center of no mass: the empty set has no result. A result that is
    beyond the end of the domain by no more than rounding, such as a negative sum of squares, is at its end.

    Arguments:
        dim: Number of dimensions :math:`d`.
        invariants: Terms of each invariant.
        coefficients: Coefficients of the terms.
        signs: For each coordinate, 1 if it is at least :math:`o_i`, -1 if it is at most :math:`o_i`, 0 if it may be
            on both sides.
        origin: Point :math:`o` that coordinates are measured from; 0 by default.

    Example:
        The center of mass, of mass :math:`m` and place :math:`x`, keeps :math:`m` and :math:`m x`:

        >>> from abelnet import AbelianGroup
        >>> from abelnet.bijections.terms import Monomial, Power
        >>> mass, moment = Monomial((Power(0),)), Monomial((Power(0), Power(1)))
        >>> center = AbelianGroup(Triangular(2, [[mass], [moment]], [[1.0], [1.0]], signs=[1, 0]))
        >>> center.reduce(torch.tensor([[1.0, 2.0], [3.0, 6.0]])).tolist()
        [4.0, 5.0]
    """

    def check_terms(self) -> None:
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
            step.solve(list(self.coefficients), y, found)
        x = torch.stack(found, -1)
        return x + self.origin_like(x) if any(self.origin) else x

    @torch.no_grad()
    def inverse_slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        """Returns :meth:`slope_bounds` of the inverse, over a box of values; infinite if some have no inverse."""
        low, high = (end.double() for end in region)
        if not bool((low.isfinite() & high.isfinite()).all()):
            return Enclosure.unknown(self.dim)
        box = cells(low, high)
        one, zero = Interval.constant(1.0, box[0]), Interval.constant(0.0, box[0])
        y = [Enclosed(cell, tuple(one if k == j else zero for k in range(self.dim))) for j, cell in enumerate(box)]
        found = [Enclosed.constant(0.0, y[0])] * self.dim
        for step in self._steps:
            step.enclose([c.tolist() for c in self.coefficients], y, found)
        values = [x.value.plus(o) for x, o in zip(found, self.origin, strict=True)]
        return Enclosure(largest_norm([x.gradient for x in found]), *hull(values))

    def inverse_expression(self, y: Any, dimension: int = 0) -> Expr:
        """Returns the coordinate :math:`x_i` for invariants :math:`y`, a list of sympy expressions."""
        y = check_expressions("y", y, self.dim)
        found: list[Any] = [None] * self.dim
        for step in self._steps:
            step.solve_expressions(self._symbolic_coefficients(), y, found)
        return found[dimension] + symbolic_number(self.origin[dimension])

    def _symbolic_coefficients(self) -> list[list[Expr]]:
        return [[symbolic_number(c) for c in one.detach()] for one in self.coefficients]

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
        origin = [symbolic_number(one) for one in self.origin]
        given = [one - o for one, o in zip(x, origin, strict=True)]
        found: list[Any] = list(given)
        results: list[Any] = list(x)
        for step in self._steps:
            step.solve_expressions(self._symbolic_coefficients(), y, found)
            for i in step.coordinates:
                results[i], found[i] = found[i] + origin[i], given[i]
        return results
