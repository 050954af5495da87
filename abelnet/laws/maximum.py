r"""Maximum and minimum."""

from __future__ import annotations

__all__ = ["Maximum", "Minimum"]

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.laws.base import Law, check_no_empty
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from sympy import Expr


class Maximum(Law):
    r"""Elementwise maximum: an idempotent semigroup without an identity among the real numbers.

    .. math:: u * v = \max(u, v)

    In :meth:`combine` and :meth:`reduce`, tied largest elements share the gradient.

    Example:
        >>> Maximum().combine(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([2.])
    """

    aggregate = "max"

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return torch.maximum(u, v)

    def merge(self, state: Tensor, other: Tensor) -> Tensor:
        return torch.maximum(state, other)

    def gather(self, states: Tensor) -> Tensor:
        return states.amax(-2)

    def scatter(self, states: Tensor, index: Tensor, more: Tensor) -> Tensor:
        return states.scatter_reduce(0, index[:, None].expand_as(more), more, "amax")

    def empty(self, dim: int) -> Tensor:
        return torch.full((dim,), -math.inf, dtype=torch.float64)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        check_no_empty(self.name, multisets)
        return self.lower(multisets.amax(self.lift(u)), u.dtype)

    def cumulative(self, u: Tensor) -> Tensor:
        return self.lower(self.lift(u).cummax(-2).values, u.dtype)

    def power(self, u: Tensor, n: float) -> Tensor:
        return u

    @property
    def sensitivity(self) -> float:
        return 1.0

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        import sympy

        return sympy.Max(u, v)

    def config(self) -> dict[str, Any]:
        return {}


class Minimum(Maximum):
    r"""Elementwise minimum: the mirror image of :class:`Maximum`.

    .. math:: u * v = \min(u, v)

    Example:
        >>> Minimum().combine(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([1.])
    """

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return torch.minimum(u, v)

    def lift(self, u: Tensor) -> Tensor:
        return -u

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        check_no_empty(self.name, multisets)
        return multisets.amin(u)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        return -state.to(dtype)

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        import sympy

        return sympy.Min(u, v)

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        return (-u,)

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        return -state[0]
