"""The table type."""

from __future__ import annotations

import pytest

from abelnet import AbelnetError
from abelnet.reporting.table import Cell, Column, Table


def test_defaults() -> None:
    table = Table("t", [Column("a"), Column("b", "right")], [[Cell("1"), Cell("2", winner=True)]])
    assert table.headings == ["a", "b"]
    assert [column.align for column in table.columns] == ["left", "right"]
    assert [cell.winner for cell in table.rows[0]] == [False, True]
    assert table.notes == ()


def test_a_row_has_one_cell_per_column() -> None:
    with pytest.raises(AbelnetError, match=r"rows: expected 2 cells in each, one per column, got 1 in \['x'\]"):
        Table("t", [Column("a"), Column("b")], [[Cell("1"), Cell("2")], [Cell("x")]])
