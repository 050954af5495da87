"""The one table type: what :mod:`.terminal`, :mod:`.markdown` and :mod:`.page` render."""

from __future__ import annotations

__all__ = ["Align", "Cell", "Column", "Table"]

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from abelnet.errors import AbelnetError

Align = Literal["left", "right"]


class Cell(NamedTuple):
    """A cell: its text, and whether it is a winner of its row, which renderers set in bold."""

    text: str
    winner: bool = False


class Column(NamedTuple):
    """A column: its heading, and how its cells are aligned."""

    heading: str
    align: Align = "left"


@dataclass(frozen=True)
class Table:
    """A table of text; numbers are formatted by whoever makes it.

    Attributes:
        title: What the table shows.
        columns: The columns, left to right.
        rows: The rows, each with one cell per column.
        notes: Remarks that belong to this table, one sentence or more each.

    Example:
        >>> table = Table("RMSE", [Column("model"), Column("size 10", "right")], [[Cell("AGN"), Cell("0.04", True)]])
        >>> table.headings
        ['model', 'size 10']
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise AbelnetError(
                    f"rows: expected {len(self.columns)} cells in each, one per column, got {len(row)} "
                    f"in {[cell.text for cell in row]}"
                )

    @property
    def headings(self) -> list[str]:
        """The headings of all columns."""
        return [column.heading for column in self.columns]
