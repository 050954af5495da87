r"""Sums with a cap or a floor."""

from __future__ import annotations

__all__ = ["CappedSum"]

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.checks import peek
from abelnet.errors import AbelnetError
from abelnet.laws.base import Law, coefficient
from abelnet.laws.polynomial import Polynomial
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr

# Rounding of shifted elements at the identity, in units of the cap.
_SLACK = 1e-9


class CappedSum(Law):
    r"""Sum with a cap, or with a floor: the nilpotent laws, such as the Łukasiewicz t-norm.

    .. math:: u * v = \min(u + v, c) \text{ on } 0 \le u \le c, \qquad
        u * v = \max(u + v, c) \text{ on } c \le u \le 0 \text{ if } c < 0

    With a shift :math:`s`, this holds for :math:`u + s` in place of :math:`u`. The state is the plain sum of elements,
    and :meth:`lower` clamps, so capped sums merge and support removal. Elements outside the domain act like its
    nearest end, which keeps the law associative everywhere. The identity is :math:`-s`, the absorbing element
    :math:`c - s`.

    Arguments:
        cap: The cap :math:`c > 0`, or the floor :math:`c < 0`, a number or a tensor with shape :math:`(d)` or
            :math:`(1)`.
        shift: Shift :math:`s`, likewise.

    Example:
        >>> CappedSum(15.0).combine(torch.tensor([9.0]), torch.tensor([8.0]))
        tensor([15.])
        >>> CappedSum(-1.0, shift=-1.0).combine(torch.tensor([0.9]), torch.tensor([0.3]))  # max(x + y - 1, 0)
        tensor([0.2000])
    """

    has_removal = True

    def __init__(
        self,
        cap: float | Sequence[float] | Tensor,
        shift: float | Sequence[float] | Tensor = 0.0,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.cap: Tensor
        self.shift: Tensor
        self.register_buffer("cap", coefficient("cap", cap, device, dtype))
        self.register_buffer("shift", coefficient("shift", shift, device, dtype))
        self.check_state()

    def check_state(self) -> None:
        if not peek((self.cap != 0).all(), True):
            raise AbelnetError(f"cap: expected a number other than 0, got {self.cap.tolist()}")

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return self.lower(self.lift(u) + self.lift(v), torch.result_type(u, v))

    def lift(self, u: Tensor) -> Tensor:
        return self._clamped(u.double() + self.shift)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        return (self._clamped(state) - self.shift).to(dtype)

    def contains(self, u: Tensor) -> Tensor:
        # Elements beyond the cap act as the cap; those on the other side of the identity would be lost.
        return (u.double() + self.shift) * self.cap.sign() >= -_SLACK * self.cap.abs()

    def _clamped(self, w: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(w, self.cap.clamp(max=0).to(w)), self.cap.clamp(min=0).to(w))

    @property
    def unlimited(self) -> Law:
        return Polynomial(0.0, self.shift)

    def identity(self, dim: int) -> Tensor:
        return 0 - self.shift.expand(dim)

    def absorbing(self, dim: int) -> Tensor:
        return (self.cap - self.shift).expand(dim)

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        cap, shift = self._symbolic(dimension)
        return _limited(u + v + shift, cap - shift, cap)

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        from sympy import Max, Min

        cap, shift = self._symbolic(dimension)
        # An element slightly outside the domain, by rounding, acts like its end.
        return (Max(u + shift, 0) if cap > 0 else Min(u + shift, 0),)

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        cap, shift = self._symbolic(dimension)
        return _limited(state[0], cap, cap) - shift

    def contains_expression(self, u: Expr, dimension: int = 0) -> Any:
        cap, shift = self._symbolic(dimension)
        return u + shift >= -_SLACK * cap if cap > 0 else u + shift <= -_SLACK * cap

    def config(self) -> dict[str, Any]:
        return {"cap": self.cap.tolist(), "shift": self.shift.tolist()}

    def _symbolic(self, dimension: int) -> list[Expr]:
        return [symbolic_number(value[min(dimension, len(value) - 1)]) for value in (self.cap, self.shift)]

    def extra_repr(self) -> str:
        return f"cap={self.cap.tolist()}, shift={self.shift.tolist()}"


def _limited(total: Expr, end: Expr, cap: Expr) -> Expr:
    from sympy import Max, Min

    return Min(total, end) if cap > 0 else Max(total, end)
