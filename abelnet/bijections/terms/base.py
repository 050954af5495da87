"""Base class of terms."""

from __future__ import annotations

__all__ = ["Term"]

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from abelnet.bijections.intervals import Interval
from abelnet.config import Configurable
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from sympy import Expr


class Term(Configurable, ABC):
    r"""Function :math:`B(x)` of some coordinates of a vector :math:`x`."""

    @property
    @abstractmethod
    def coordinates(self) -> frozenset[int]:
        """Coordinates that the term depends on."""

    @property
    @abstractmethod
    def complexity(self) -> float:
        """How hard the term is to read; of terms that are equally exact, a search prefers the plainest."""

    @property
    def period(self) -> float:
        """Numbers that differ by a multiple of this are the same value, such as angles; 0 if there is none."""
        return 0.0

    @abstractmethod
    def is_defined(self, x: Tensor) -> Tensor:
        """Returns whether the term is defined at each vector :math:`(*, d)`, as a mask :math:`(*)`."""

    @abstractmethod
    def values(self, x: Tensor) -> Tensor:
        """Returns the values :math:`(*)` at vectors :math:`(*, d)`."""

    @abstractmethod
    def gradient(self, x: Tensor) -> Tensor:
        """Returns the gradients :math:`(*, d)` at vectors :math:`(*, d)`."""

    @abstractmethod
    def renamed(self, places: Mapping[int, int]) -> Term:
        """Returns the term with other indices of its coordinates."""

    @abstractmethod
    def expression(self, x: Sequence[Expr]) -> Expr:
        """Returns the term of the coordinates :math:`x` as a sympy expression."""

    @abstractmethod
    def is_defined_expression(self, x: Sequence[Expr]) -> Any:
        """Returns :meth:`is_defined` as a sympy condition."""

    def enclose(self, x: Sequence[Interval]) -> tuple[Interval, list[Interval]]:
        """Returns the ranges of the value and of its derivatives by each coordinate, over cells."""
        raise AbelnetError(f"slope_bounds: expected terms with proved slope bounds, got {type(self).__name__}")
