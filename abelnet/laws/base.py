r"""Base class of laws: known commutative, associative operations :math:`u * v` on :math:`\mathbb{R}^d`."""

from __future__ import annotations

__all__ = ["Law", "PlainForm", "check_no_empty", "coefficient"]

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from abelnet.checks import is_checking, peek
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.laws.logs import LogSum
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from sympy import Expr


class PlainForm(NamedTuple):
    r"""Coordinates :math:`w = a u + o` in which a law is the plain sum or the plain product.

    Attributes:
        kind: ``"sum"`` or ``"product"``.
        factor: The coefficient :math:`a`, with shape :math:`(1)` or :math:`(d)`.
        offset: The offset :math:`o`, likewise.
    """

    kind: Literal["sum", "product"]
    factor: Tensor
    offset: Tensor


class Law(Configurable, nn.Module, ABC):
    r"""Commutative, associative operation :math:`u * v`, and its aggregation over multisets.

    Aggregation uses a mergeable *state*: :meth:`lift` turns an element into a state, :meth:`merge` merges two, and
    :meth:`lower` turns a state back into an element, so that

    .. math:: u_1 * \dots * u_n = \mathrm{lower}(\mathrm{lift}(u_1) + \dots + \mathrm{lift}(u_n)) .

    States add (those of maximum and minimum merge by the larger one), so :meth:`reduce` is one fused sum,
    :meth:`cumulative` one ``cumsum``, streaming keeps a single state, and any engine that sums a column can aggregate.
    Subclasses implement :meth:`combine`, :meth:`lift` and :meth:`lower`, and declare what else is known about the law.
    """

    channels: int = 1
    """A state of :math:`d` dimensions has shape :math:`(*, channels \\cdot d)`."""

    aggregate: str = "sum"
    """How two states merge in every column, by ``"sum"`` or by ``"max"``."""

    is_associative: bool = True
    """Whether results combine as elements do; otherwise only states merge, as those of means."""

    @property
    def is_mean(self) -> bool:
        """Whether the result of a multiset is that of the results of its equal parts, as for means."""
        return False

    @property
    def is_group(self) -> bool:
        """Whether every element has an inverse."""
        return False

    @property
    def has_real_powers(self) -> bool:
        """Whether an element can count any number of times, such as 1/2; otherwise only whole numbers of times."""
        return self.is_group

    def check_element_weights(self, multisets: Multisets) -> None:
        """Raises unless elements can count as many times as their weights say."""
        weights = multisets.element_weights
        if weights is None or self.has_real_powers or not is_checking():
            return
        if peek((weights != weights.round()).any(), False):
            raise AbelnetError(
                f"element_weights: expected whole numbers, since {self.name} has no other powers, got others; use a "
                "group, a mean or a maximum"
            )

    @property
    def has_removal(self) -> bool:
        """Whether states can be subtracted, so that an element that was added can be removed again."""
        return self.is_group

    def check_dim(self, dim: int) -> None:
        """Raises unless the coefficients match elements of :math:`d` dimensions."""
        for name, tensor in (*self.named_parameters(), *self.named_buffers()):
            if tensor.numel() not in (1, dim):
                raise AbelnetError(f"{name}: expected 1 or {dim} coefficients, got {tensor.numel()}")

    @property
    def name(self) -> str:
        """Name used in messages."""
        return type(self).__name__

    def reset_parameters(self) -> None:
        """Resets parameters to the initial values of the constructor."""

    @abstractmethod
    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        """Returns :math:`u * v`, with broadcasting."""

    def contains(self, u: Tensor) -> Tensor:
        """Returns whether each number is an element of the domain on which the law is stated."""
        return torch.ones_like(u, dtype=torch.bool)

    def lift(self, u: Tensor) -> Tensor:
        """Returns the state of the single element :math:`u`."""
        return u

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        """Returns the element that a state represents."""
        return state.to(dtype)

    def empty(self, dim: int) -> Tensor:
        """Returns the state of the empty multiset."""
        return torch.zeros(self.channels * dim, dtype=torch.float64)

    def merge(self, state: Tensor, other: Tensor) -> Tensor:
        """Merges two states into that of the union of their multisets."""
        return state + other

    def remove(self, state: Tensor, other: Tensor) -> Tensor:
        """Returns the state of a multiset without a part of it; see :attr:`has_removal`."""
        return state - other

    def gather(self, states: Tensor) -> Tensor:
        """Merges the states of a set, :math:`(*, n, k)` to :math:`(*, k)`."""
        return states.sum(-2)

    def scan(self, states: Tensor) -> Tensor:
        """Merges each state of a sequence with all before it, along the second last dimension of :math:`(*, n, k)`."""
        return states.cumsum(-2)

    def scatter(self, states: Tensor, index: Tensor, more: Tensor) -> Tensor:
        """Merges the states ``more``, :math:`(N, k)`, into the rows ``index`` of ``states``, :math:`(G, k)`."""
        return states.index_add(0, index, more)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        """Returns :math:`u_1 * \\dots * u_n` of each set: rows :math:`(N, d)` to :math:`(*, d)`."""
        return self.lower(multisets.sum(self.lift(u)), u.dtype)

    @property
    def adds_elements(self) -> bool:
        """Whether the result of a set depends on the sum of its elements; :meth:`reduce_sum` says how."""
        return False

    def reduce_sum(self, total: Tensor, multisets: Multisets) -> Tensor:
        """Returns what :meth:`reduce` does, from the sum of the elements of each set, with shape :math:`(*, d)`."""
        return total

    def reduce_logs(self, x: Tensor, offset: Tensor, least: Tensor, multisets: Multisets) -> Tensor:
        r"""Returns the fold of :math:`\log \max(x_i + c, l)` of each set: rows :math:`(N, d)` to :math:`(*, d)`.

        Arguments:
            x: Rows, with shape :math:`(N, d)`.
            offset: The offset :math:`c`, with shape :math:`(d)`.
            least: The least number :math:`l` of which a logarithm is taken, positive, with shape :math:`(d)`.
            multisets: The sets.
        """
        return self.reduce((torch.maximum(x, least - offset.detach()) + offset).log(), multisets)

    def cumulative(self, u: Tensor) -> Tensor:
        """Returns the prefix scan :math:`u_1, u_1 * u_2, \\dots` along the elements of :math:`(*, n, d)`."""
        return self.lower(self.scan(self.lift(u)), u.dtype)

    def power(self, u: Tensor, n: float) -> Tensor:
        """Returns :math:`u * \\dots * u`, ``n`` copies combined."""
        return self.lower(n * self.lift(u), u.dtype)

    def identity(self, dim: int) -> Tensor | None:
        """Returns the identity :math:`e`, with :math:`u * e = u` and shape :math:`(d)`, or None."""
        return None

    def absorbing(self, dim: int) -> Tensor | None:
        """Returns the absorbing element :math:`z`, with :math:`u * z = z` and shape :math:`(d)`, or None."""
        return None

    def in_logs(self) -> LogSum | None:
        r"""Returns how the law folds positive numbers by their logarithms, without overflow; None if it does not."""
        return None

    @property
    def unlimited(self) -> Law:
        """The law without its cap or floor; itself if it has none."""
        return self

    @property
    def sensitivity(self) -> float | None:
        """Largest change of a result if no element changes by more than 1, whatever the bijection; None if any."""
        return None

    def plain_form(self) -> PlainForm | None:
        """Returns the coordinates in which the law is the plain sum or product, or None if it is neither."""
        return None

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        """Returns :math:`u * v` in one dimension as a sympy expression."""
        raise AbelnetError(f"expression: expected a law with a closed form, got {self.name}")

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        """Returns the state of one element in one dimension as sympy expressions, merged by :attr:`aggregate`."""
        return (u,)

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        """Returns the element that a state represents as a sympy expression."""
        return state[0]

    def contains_expression(self, u: Expr, dimension: int = 0) -> Any:
        """Returns :meth:`contains` in one dimension as a sympy condition."""
        from sympy import true

        return true

    def inverse(self, u: Tensor) -> Tensor:
        """Returns the inverse :math:`u^{-1}`, with :math:`u * u^{-1} = e`; groups only."""
        raise AbelnetError(f"inverse: expected a group, got {self.name}, in which not every element has an inverse")


def check_no_empty(name: str, multisets: Multisets) -> None:
    """Raises if a set is empty; for what has no identity."""
    if is_checking() and peek((multisets.sizes == 0).any(), False):
        raise AbelnetError(f"values: expected no empty set, since {name} has no identity; drop empty sets")


def coefficient(
    name: str, value: float | Sequence[float] | Tensor, device: torch.device | None, dtype: torch.dtype | None
) -> Tensor:
    """Returns a coefficient of a law as a tensor, in float64 unless ``dtype`` is given."""
    tensor = torch.as_tensor(value, device=device, dtype=dtype or torch.float64).detach().reshape(-1).clone()
    if not tensor.is_meta and not peek(tensor.isfinite().all(), True):
        raise AbelnetError(f"{name}: expected finite numbers, got {tensor.tolist()}")
    return tensor
