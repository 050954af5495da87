r"""Products by sign and log-magnitude: the state of a factor, and the product that a sum of states represents."""

from __future__ import annotations

__all__ = ["factor_states", "is_zero", "limit_beside_zeros", "pack", "product_of_states", "unpack"]

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from sympy import Expr


def is_zero(factor: Tensor) -> Tensor:
    """Returns a mask of the zero factors."""
    # Denormal factors count as zeros: the gradient of their logarithm would overflow.
    return factor.abs() < torch.finfo(factor.dtype).tiny


def pack(log: Tensor, factor: Tensor, zero: Tensor) -> Tensor:
    """Packs the state of a product: log-magnitudes, counts of negative and zero factors, and the values of the zeros.

    The values make the gradient correct where a factor is zero.
    """
    negative = (factor < 0) & ~zero
    return torch.cat((log, negative.to(log.dtype), zero.to(log.dtype), torch.where(zero, factor, 0)), -1)


def unpack(state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Unpacks log-magnitude and sign of the nonzero factors, the number of zero factors, and their product."""
    log, negatives, zeros, rest = state.chunk(4, -1)
    return log, 1 - 2 * negatives.remainder(2), zeros, torch.where(zeros == 0, 1, torch.where(zeros == 1, rest, 0))


def limit_beside_zeros(log: Tensor, zeros: Tensor, dtype: torch.dtype) -> Tensor:
    """Keeps the gradient finite where a zero makes the product 0, however large the other factors are."""
    return torch.where(zeros == 0, log, log.clamp(max=math.log(torch.finfo(dtype).max)))


def factor_states(factor: Expr) -> tuple[Expr, Expr, Expr]:
    """Returns the state of a factor as sympy expressions: log-magnitude, is negative, is zero."""
    import sympy

    zero = sympy.Eq(factor, 0)
    log = sympy.Piecewise((0, zero), (sympy.log(sympy.Abs(factor)), True))
    return log, sympy.Piecewise((1, factor < 0), (0, True)), sympy.Piecewise((1, zero), (0, True))


def product_of_states(
    log: Expr, negatives: Expr, zeros: Expr, *, then: Callable[[Expr], Expr] = lambda product: product
) -> Expr:
    """Returns the product that a sum of such states represents, or a function of it."""
    import sympy

    even = sympy.Eq(sympy.Mod(negatives, 2), 0)
    zero, size = sympy.Integer(0), sympy.exp(log)
    return sympy.Piecewise((then(zero), zeros > 0), (then(size), even), (then(-size), True))
