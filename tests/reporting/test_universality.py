"""Universality as a table and charts."""

from __future__ import annotations

import pytest

from abelnet import AbelnetError
from abelnet.experiments.universality import UniversalityRow
from abelnet.reporting.charts import Chart
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
    assert list(section.figures) == ["universality_2", "universality_3"]
    chart = section.figures["universality_3"]
    assert isinstance(chart, Chart)
    assert [(series.name, list(series.x), list(series.y)) for series in chart.series] == [
        ("AGN 1 × 8", [2, 50], [0.5, 2.0]),
        ("DeepSets", [2, 50], [0.5, 2.0]),
    ]
    assert chart.shaded == (2, 4)


def test_no_rows() -> None:
    with pytest.raises(AbelnetError, match="rows: expected at least one"):
        universality_report([])
