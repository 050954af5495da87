r"""Multiplication."""

from __future__ import annotations

__all__ = ["Product"]

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.laws.base import Law, PlainForm
from abelnet.laws.factors import factor_states, is_zero, limit_beside_zeros, pack, product_of_states, unpack
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from sympy import Expr


class Product(Law):
    r"""Elementwise multiplication: a commutative monoid with identity 1 and absorbing element 0.

    .. math:: u * v = u v, \quad
        \prod_i u_i = \Big(\prod_i \operatorname{sign} u_i\Big) \exp \sum_i \log |u_i|

    Aggregation works on sign and log-magnitude in float64, so intermediate values do not overflow unless the result
    does. Zeros are counted, not multiplied: a single zero makes the result exactly 0 and still gets the gradient
    :math:`\partial \prod / \partial u_i = \prod_{j \neq i} u_j`.

    Example:
        >>> law = Product()
        >>> x = torch.tensor([[1e30], [-1e30], [1e-30], [1e-30]])
        >>> law.reduce(x, Multisets(x, 1))
        tensor([-1.])
        >>> sign, log_magnitude = law.log_reduce(x[:2], Multisets(x[:2], 1))
        >>> sign, log_magnitude
        (tensor([-1.], dtype=torch.float64), tensor([138.1551], dtype=torch.float64))
    """

    channels = 4

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return u * v

    def lift(self, u: Tensor) -> Tensor:
        u = u.double()
        zero = is_zero(u)
        return pack(torch.where(zero, 1, u).abs().log(), u, zero)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        log, sign, zeros, rest = unpack(state)
        return (sign * limit_beside_zeros(log, zeros, dtype).exp() * rest).to(dtype)

    def log_reduce(self, u: Tensor, multisets: Multisets) -> tuple[Tensor, Tensor]:
        """Returns sign and log-magnitude of the product of each set, in float64; finite where the product overflows."""
        log, sign, zeros, _ = unpack(multisets.sum(self.lift(u)))
        return torch.where(zeros == 0, sign, 0), torch.where(zeros == 0, log, -math.inf)

    def power(self, u: Tensor, n: float) -> Tensor:
        return u**n

    def identity(self, dim: int) -> Tensor:
        return torch.ones(dim)

    def absorbing(self, dim: int) -> Tensor:
        return torch.zeros(dim)

    def plain_form(self) -> PlainForm:
        return PlainForm("product", torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64))

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        return u * v

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        return factor_states(u)

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        return product_of_states(*state)

    def config(self) -> dict[str, Any]:
        return {}
