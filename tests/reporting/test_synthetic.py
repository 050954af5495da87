"""The synthetic experiment beside the paper."""

from __future__ import annotations

import math
import sys

import pytest
from report_samples import synthetic_results

from abelnet.reporting.synthetic import synthetic_report, synthetic_table


def test_winners_are_marked_among_ours_the_searched_and_the_papers() -> None:
    table = synthetic_table(synthetic_results()["rows"])
    models = ["DeepSets", "AGN", "ASN"]
    searched, paper = ([f"{model} ({of})" for model in models] for of in ("searched", "paper"))
    assert table.headings == ["operation", "sizes", *models, *searched, *paper]
    small, large = table.rows
    assert [cell.text for cell in small[:3]] == ["cbrt(x³ + y³)", "2–4", "2.00e+00 (1.0e+00 – 3.0e+00)"]
    assert [cell.winner for cell in small] == [False] * 2 + [True, False, False, False, True, False, True, False, False]
    assert large[2].text == "2.00e+00 (1.0e+00 – inf)"
    assert not any(cell.winner for cell in large[5:8])  # where all diverged there is no winner
    assert large[5].text == str(math.inf)


def test_report_has_the_plots() -> None:
    report = synthetic_report(synthetic_results())
    (section,) = report.sections
    assert set(section.figures) == {"error_by_size", "learned_curves"}
    assert min(map(len, section.figures.values())) > 10_000
    assert "50 trials of 1000 epochs" in report.notes[0]


def test_report_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    (section,) = synthetic_report(synthetic_results()).sections
    assert not section.figures
    assert len(section.tables) == 1
