r"""What a law is: a known commutative, associative operation :math:`u * v` on :math:`\mathbb{R}^d`, per dimension."""

from __future__ import annotations

__all__ = ["Law", "PlainForm", "check_no_empty", "coefficient"]

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor, nn

from abelnet.checks import peek
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from sympy import Expr


class PlainForm(NamedTuple):
    r"""Coordinates :math:`w = a u + o` in which a law is the plain sum or the plain product.

    Attributes:
        kind: Which of the two.
        factor: The coefficient :math:`a`, with shape :math:`(1)` or :math:`(d)`.
        offset: The offset :math:`o`, likewise.
    """

    kind: Literal["sum", "product"]
    factor: Tensor
    offset: Tensor


class Law(Configurable, nn.Module, ABC):
    r"""A commutative, associative operation :math:`u * v`, with its fold over multisets.

    A fold goes through a *running state*: :meth:`lift` turns an element into one, :meth:`merge` joins two, and
    :meth:`lower` turns a state back into an element, so that

    .. math:: u_1 * \dots * u_n = \mathrm{lower}(\mathrm{lift}(u_1) + \dots + \mathrm{lift}(u_n)) .

    States add (those of maximum and minimum are joined by the larger one), hence one fused sum serves :meth:`reduce`,
    one ``cumsum`` serves :meth:`cumulative`, a stream needs to keep no more than a state, and any engine that can sum a
    column can fold. Subclasses give :meth:`combine`, :meth:`lift` and :meth:`lower`, and own what else is known.
    """

    channels: int = 1
    """A state of :math:`d` dimensions has shape :math:`(*, channels \\cdot d)`."""

    aggregate: str = "sum"
    """What joins two states, in every column: ``"sum"`` or ``"max"``."""

    @property
    def is_group(self) -> bool:
        """Whether every element has an inverse."""
        return False

    def check_dim(self, dim: int) -> None:
        """Raises unless the coefficients fit elements of :math:`d` dimensions."""
        for name, tensor in (*self.named_parameters(), *self.named_buffers()):
            if tensor.numel() not in (1, dim):
                raise AbelnetError(f"{name}: expected 1 or {dim} coefficients, got {tensor.numel()}")

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return type(self).__name__

    @abstractmethod
    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        """:math:`u * v`, broadcasting."""

    def lift(self, u: Tensor) -> Tensor:
        """The running state of the single element :math:`u`."""
        return u

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        """The element that a running state stands for."""
        return state.to(dtype)

    def empty(self, dim: int) -> Tensor:
        """The running state of no element."""
        return torch.zeros(self.channels * dim, dtype=torch.float64)

    def merge(self, state: Tensor, other: Tensor) -> Tensor:
        """The running state of the elements of both."""
        return state + other

    def gather(self, states: Tensor) -> Tensor:
        """The running state of all elements of a set: :math:`(*, n, k)` to :math:`(*, k)`."""
        return states.sum(-2)

    def scatter(self, states: Tensor, index: Tensor, more: Tensor) -> Tensor:
        """Running states :math:`(G, k)` with further ones :math:`(N, k)` merged into the rows that ``index`` says."""
        return states.index_add(0, index, more)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        """:math:`u_1 * \\dots * u_n` over each set: rows :math:`(N, d)` to :math:`(*, d)`."""
        return self.lower(multisets.sum(self.lift(u)), u.dtype)

    def cumulative(self, u: Tensor) -> Tensor:
        """:math:`u_1, u_1 * u_2, \\dots` along the elements: :math:`(*, n, d)` to :math:`(*, n, d)`."""
        return self.lower(self.lift(u).cumsum(-2), u.dtype)

    def power(self, u: Tensor, n: float) -> Tensor:
        """:math:`u * \\dots * u`, ``n`` times."""
        return self.lower(n * self.lift(u), u.dtype)

    def identity(self, dim: int) -> Tensor | None:
        """The element :math:`e` with :math:`u * e = u`, with shape :math:`(d)`; None where there is none."""
        return None

    def absorbing(self, dim: int) -> Tensor | None:
        """The element :math:`z` with :math:`u * z = z`, with shape :math:`(d)`; None where there is none."""
        return None

    def plain_form(self) -> PlainForm | None:
        """The plain sum or product that the law is in other coordinates; None where it is neither."""
        return None

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        """:math:`u * v` in one dimension, for sympy."""
        raise AbelnetError(f"expression: expected a law with a closed form, got {self.name}")

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        """The running state of one element in one dimension, for sympy: columns that :attr:`aggregate` joins."""
        return (u,)

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        """The element that a running state stands for, for sympy."""
        return state[0]

    def inverse(self, u: Tensor) -> Tensor:
        """The element :math:`u^{-1}` with :math:`u * u^{-1} = e`; groups only."""
        raise AbelnetError(f"inverse: expected a group, got {self.name}, in which not every element has one")


def check_no_empty(law: Law, multisets: Multisets) -> None:
    """Raises if a set is empty, for laws without an identity."""
    if peek((multisets.sizes == 0).any(), False):
        raise AbelnetError(f"values: expected no empty set, since {law.name} has no identity, got one")


def coefficient(
    name: str, value: float | Sequence[float] | Tensor, device: torch.device | None, dtype: torch.dtype | None
) -> Tensor:
    """A coefficient of a law as a tensor, in float64 unless asked otherwise."""
    tensor = torch.as_tensor(value, device=device, dtype=dtype or torch.float64).detach().reshape(-1).clone()
    if not peek(tensor.isfinite().all(), True):
        raise AbelnetError(f"{name}: expected finite numbers, got {tensor.tolist()}")
    return tensor
