r"""The constant law."""

from __future__ import annotations

__all__ = ["Constant"]

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.laws.base import Law, check_no_empty, coefficient
from abelnet.multisets import Multisets
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


class Constant(Law):
    r"""Trivial associative symmetric polynomial: any two elements combine to the same constant.

    .. math:: u * v = \alpha

    A single element is unchanged; there is no identity.

    Arguments:
        alpha: The constant :math:`\alpha`, a number or a tensor with shape :math:`(d)` or :math:`(1)`.

    Example:
        >>> Constant(7.0).combine(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([7.])
    """

    channels = 2

    def __init__(
        self,
        alpha: float | Sequence[float] | Tensor,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.alpha: Tensor
        self.register_buffer("alpha", coefficient("alpha", alpha, device, dtype))

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return self.alpha.to(torch.promote_types(u.dtype, v.dtype)).expand_as(torch.maximum(u, v))

    def lift(self, u: Tensor) -> Tensor:
        return torch.cat((u, torch.ones_like(u)), -1)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        first, size = state.chunk(2, -1)
        return torch.where(size == 1, first, self.alpha).to(dtype)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        check_no_empty(self.name, multisets)
        return super().reduce(u, multisets)

    def power(self, u: Tensor, n: float) -> Tensor:
        return u if n == 1 else self.combine(u, u)

    @property
    def sensitivity(self) -> float:
        return 0.0

    def absorbing(self, dim: int) -> Tensor:
        return self.alpha.expand(dim)

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        return self._symbolic(dimension)

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        import sympy

        return u, sympy.Integer(1)

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        import sympy

        first, size = state
        return sympy.Piecewise((first, sympy.Eq(size, 1)), (self._symbolic(dimension), True))

    def config(self) -> dict[str, Any]:
        return {"alpha": self.alpha.tolist()}

    def _symbolic(self, dimension: int) -> Expr:
        return symbolic_number(self.alpha[min(dimension, len(self.alpha) - 1)])

    def extra_repr(self) -> str:
        return f"alpha={self.alpha.tolist()}"
