"""Columns of a table: which of them are sets, elements and results."""

from __future__ import annotations

__all__ = ["Columns", "repeated"]

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from abelnet.errors import AbelnetError


@dataclass(frozen=True)
class Columns:
    """Columns of a table.

    In long form, each row is an element: ``set`` identifies its multiset and ``values`` are its coordinates. In wide
    form, without ``set``, each row is a multiset and ``values`` are its elements; empty cells are skipped.

    Attributes:
        values: Columns of the numbers.
        set: Column that identifies the multiset.
        targets: Columns of the results; in long form, repeated on each row of a set.

    Example:
        >>> Columns(("price", "tax"), "order").dim, Columns(("first", "second")).dim
        (2, 1)
    """

    values: tuple[str, ...]
    set: str | None = None
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.values:
            raise AbelnetError("value: expected at least one column, got none")
        wanted = len(self.values) if self.set is not None else 1
        if self.targets and len(self.targets) != wanted:
            raise AbelnetError(f"target: expected {wanted} columns, one per dimension, got {len(self.targets)}")
        twice = repeated(self.all)
        if twice is not None:
            raise AbelnetError(f"value, target, set: expected different columns, got {twice} twice")

    @property
    def dim(self) -> int:
        """Number of dimensions of an element."""
        return len(self.values) if self.set is not None else 1

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that contain numbers: values, then targets."""
        return self.values + self.targets

    @property
    def all(self) -> tuple[str, ...]:
        """All columns that are read."""
        return self.numbers if self.set is None else (*self.numbers, self.set)


def repeated(names: Iterable[str]) -> str | None:
    """Returns the first name that occurs twice, if any.

    Example:
        >>> repeated(["a", "b", "a"])
        'a'
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)
