r"""Addition."""

from __future__ import annotations

__all__ = ["Sum"]

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.laws.base import Law, PlainForm
from abelnet.laws.logs import LogSum, log_sum
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from sympy import Expr


class Sum(Law):
    r"""Addition, the group that every Abelian Lie group on :math:`\mathbb{R}^d` is conjugate to.

    .. math:: u * v = u + v, \quad e = 0, \quad u^{-1} = -u

    Example:
        >>> Sum().combine(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([3.])
    """

    @property
    def is_group(self) -> bool:
        return True

    @property
    def adds_elements(self) -> bool:
        return True

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return u + v

    def reduce_logs(self, x: Tensor, offset: Tensor, least: Tensor, multisets: Multisets) -> Tensor:
        return log_sum(x, offset, least, multisets)

    def identity(self, dim: int) -> Tensor:
        return torch.zeros(dim)

    def inverse(self, u: Tensor) -> Tensor:
        return -u

    def in_logs(self) -> LogSum:
        return LogSum()

    def plain_form(self) -> PlainForm:
        return PlainForm("sum", torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64))

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        return u + v

    def config(self) -> dict[str, Any]:
        return {}
