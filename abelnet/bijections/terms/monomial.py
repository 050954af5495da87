r"""Products of functions of one coordinate each."""

from __future__ import annotations

__all__ = ["Monomial"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from abelnet.bijections.intervals import Interval
from abelnet.bijections.slopes import FROM_ZERO
from abelnet.bijections.terms.base import Term
from abelnet.bijections.terms.factors import Factor
from abelnet.errors import AbelnetError
from abelnet.symbols import is_between

if TYPE_CHECKING:
    from sympy import Expr


@dataclass(frozen=True)
class Monomial(Term):
    r"""Product :math:`\prod_k g_k(x_{i_k})` of functions of one coordinate each; 1 if there are none.

    Arguments:
        factors: The functions :math:`g_k`.

    Example:
        >>> from abelnet.bijections.terms import Power
        >>> Monomial((Power(0), Power(1, 2.0))).values(torch.tensor([[2.0, 3.0]]))
        tensor([18.])
    """

    factors: Sequence[Factor] = ()

    def __post_init__(self) -> None:
        if not all(isinstance(factor, Factor) for factor in self.factors):
            raise AbelnetError(f"factors: expected Factor instances, got {list(self.factors)!s:.80}")
        object.__setattr__(self, "factors", tuple(self.factors))

    @property
    def coordinates(self) -> frozenset[int]:
        return frozenset(factor.coordinate for factor in self.factors)

    @property
    def complexity(self) -> float:
        return sum(factor.complexity for factor in self.factors)

    def on(self, coordinate: int) -> tuple[Factor, ...]:
        """Returns the factors that depend on a coordinate."""
        return tuple(factor for factor in self.factors if factor.coordinate == coordinate)

    def without(self, coordinate: int) -> Monomial:
        """Returns the product of all other factors."""
        return Monomial(tuple(factor for factor in self.factors if factor.coordinate != coordinate))

    def renamed(self, places: Mapping[int, int]) -> Monomial:
        return Monomial(tuple(replace(factor, coordinate=places[factor.coordinate]) for factor in self.factors))

    def is_defined(self, x: Tensor) -> Tensor:
        defined = torch.ones(x.shape[:-1], dtype=torch.bool, device=x.device)
        for factor in self.factors:
            low, high = factor.domain
            one = x[..., factor.coordinate]
            # In float32 the limit that includes 0 would be 0 itself.
            defined = defined & (one >= 0 if low == FROM_ZERO else one > low) & (one < high)
            if not factor.is_defined_at_zero:
                defined = defined & (one != 0)
        return defined

    def values(self, x: Tensor) -> Tensor:
        product = x.new_ones(x.shape[:-1])
        for factor in self.factors:
            product = product * factor.forward(x[..., factor.coordinate])
        return product

    def gradient(self, x: Tensor) -> Tensor:
        columns = [x.new_zeros(x.shape[:-1]) for _ in range(x.shape[-1])]
        for k, factor in enumerate(self.factors):
            others = Monomial((*self.factors[:k], *self.factors[k + 1 :])).values(x)
            columns[factor.coordinate] = columns[factor.coordinate] + factor.slope(x[..., factor.coordinate]) * others
        return torch.stack(columns, -1)

    def expression(self, x: Sequence[Expr]) -> Expr:
        import sympy

        return sympy.Mul(*(factor.expression(x[factor.coordinate]) for factor in self.factors))

    def is_defined_expression(self, x: Sequence[Expr]) -> Any:
        import sympy

        conditions = []
        for factor in self.factors:
            one = x[factor.coordinate]
            conditions.append(is_between(one, *(float(end) for end in factor.domain)))
            if not factor.is_defined_at_zero:
                conditions.append(sympy.Ne(one, 0))
        return sympy.And(*conditions)

    def enclose(self, x: Sequence[Interval]) -> tuple[Interval, list[Interval]]:
        parts = [factor.enclose(x[factor.coordinate]) for factor in self.factors]
        gradient = [Interval.constant(0.0, x[0])] * len(x)
        for k, factor in enumerate(self.factors):
            slope = _product(x[0], [parts[k][1], *(value for i, (value, _) in enumerate(parts) if i != k)])
            gradient[factor.coordinate] = gradient[factor.coordinate] + slope
        return _product(x[0], [value for value, _ in parts]), gradient

    def config(self) -> dict[str, Any]:
        return {"factors": list(self.factors)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        return cls(tuple(config["factors"]))


def _product(like: Interval, ranges: Sequence[Interval]) -> Interval:
    product = Interval.constant(1.0, like)
    for one in ranges:
        product = product * one
    return product
