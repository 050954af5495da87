"""Table type, rendered by :mod:`.terminal`, :mod:`.markdown` and :mod:`.page`."""

from __future__ import annotations

__all__ = ["Align", "Cell", "Column", "Table"]

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from abelnet.errors import AbelnetError

Align = Literal["left", "right"]


class Cell(NamedTuple):
    """Cell with its text, and whether it is a winner of its row, which is rendered in bold."""

    text: str
    winner: bool = False


class Column(NamedTuple):
    """Column with its heading and alignment."""

    heading: str
    align: Align = "left"


@dataclass(frozen=True)
class Table:
    """Table of text; the caller formats numbers.

    Attributes:
        title: Title.
        columns: Columns, left to right.
        rows: Rows, each with one cell per column.
        notes: Notes on the table, one sentence or more each.

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
        """Headings of all columns."""
        return [column.heading for column in self.columns]
