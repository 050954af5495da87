"""Universality as a table and a plot."""

from __future__ import annotations

import pytest

from abelnet import AbelnetError
from abelnet.experiments.universality import UniversalityRow
from abelnet.reporting.universality import universality_report


def test_report() -> None:
    rows = [
        UniversalityRow(dim, seed, model, 1234, [2, 50], [0.5, 2.0])
        for dim in (2, 3)
        for seed in (0, 1)
        for model in ("AGN 1 × 8", "DeepSets")
    ]
    (section,) = universality_report(rows).sections
    (table,) = section.tables
    assert table.headings == ["dim", "seed", "model", "parameters", "2", "50"]
    assert [cell.text for cell in table.rows[-1]] == ["3", "1", "DeepSets", "1234", "0.5", "2"]
    assert len(section.figures["universality"]) > 5_000


def test_no_rows() -> None:
    with pytest.raises(AbelnetError, match="rows: expected at least one"):
        universality_report([])
