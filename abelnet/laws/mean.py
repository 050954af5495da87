r"""Means: sums divided by a power of the number of elements."""

from __future__ import annotations

__all__ = ["Mean"]

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.errors import AbelnetError
from abelnet.laws.base import Law, check_no_empty
from abelnet.laws.logs import LogSum, log_sum
from abelnet.multisets import Multisets
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


class Mean(Law):
    r"""Mean of a multiset, or its sum divided by another power of its size.

    .. math:: M(u_1, \dots, u_n) = n^{-a} \sum_i u_i

    With :math:`a = 1` an operation over it is the quasi-arithmetic mean
    :math:`\varphi^{-1}(\frac{1}{n} \sum_i \varphi(x_i))`: arithmetic, geometric, harmonic, root mean square,
    log-mean-exp. It is permutation-invariant but not associative: the mean of two means is not the mean of all. What
    merges is the state, sum and count, so means stream, merge and support removal as laws do. There is no mean of an
    empty multiset.

    Arguments:
        exponent: The exponent :math:`a` of the count; 1 is the mean, 1/2 adds independent z-scores (Stouffer).

    Example:
        >>> from abelnet import Generator, Operation
        >>> rms = Operation(Generator(1, "positive power", [2.0]), Mean())
        >>> rms.reduce(torch.tensor([[1.0], [5.0], [7.0]])).item()
        5.0
    """

    channels = 2
    is_associative = False
    has_removal = True
    has_real_powers = True

    def __init__(self, exponent: float = 1.0) -> None:
        super().__init__()
        if not isinstance(exponent, int | float) or not math.isfinite(exponent):
            raise AbelnetError(f"exponent: expected a finite number, got {exponent!r}")
        self.exponent = float(exponent)

    @property
    def is_mean(self) -> bool:
        return self.exponent == 1

    @property
    def adds_elements(self) -> bool:
        return True

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return (u + v) / 2**self.exponent

    def lift(self, u: Tensor) -> Tensor:
        return torch.cat((u, torch.ones_like(u)), -1)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        total, count = state.chunk(2, -1)
        return (total / count**self.exponent).to(dtype)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        # The count is known: only elements are summed.
        return self.reduce_sum(multisets.sum(u), multisets)

    def reduce_sum(self, total: Tensor, multisets: Multisets) -> Tensor:
        check_no_empty(self.name, multisets)
        return total / self._divisor(multisets, total.dtype)

    def reduce_logs(self, x: Tensor, offset: Tensor, least: Tensor, multisets: Multisets) -> Tensor:
        check_no_empty(self.name, multisets)
        return log_sum(x, offset, least, multisets) / self._divisor(multisets, x.dtype)

    def _divisor(self, multisets: Multisets, dtype: torch.dtype) -> Tensor:
        count = multisets.totals[..., None].to(dtype)
        return count if self.exponent == 1 else count**self.exponent

    def in_logs(self) -> LogSum:
        return LogSum(self.exponent)

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        return self.lower_expression(u + v, 2)

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        from sympy import Integer

        return u, Integer(1)

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        total, count = state
        return total / count ** symbolic_number(self.exponent)

    def config(self) -> dict[str, Any]:
        return {"exponent": self.exponent}

    def extra_repr(self) -> str:
        return f"exponent={self.exponent:g}"
