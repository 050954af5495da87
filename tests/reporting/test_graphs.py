"""The graph experiment: winners, aggregations of one form, laws."""

from __future__ import annotations

import sys

import pytest
from report_samples import graph_results

from abelnet.reporting.graphs import graph_report, graph_table, law_table

ALIGNED = [row for row in graph_results()["rows"] if row["form"] == "aligned"]


def test_winners_and_all_that_is_rounding_are_marked() -> None:
    table = graph_table(ALIGNED, "small")
    assert table.headings == ["task", "aggregation", "bank (ours)", "sum", "min", "DeepSets"]
    first, second = table.rows
    assert [cell.text for cell in first] == [
        "min-plus",
        "min x",
        "1.0e-07 (3e-08 – 2e-07)",
        "2.0e-01 (1e-01 – 3e-01)",
        "4.0e-08 (4e-08 – inf)",
        "inf (4e-01 – inf)",
    ]
    assert [cell.winner for cell in first] == [False, False, True, False, True, False]
    assert second[0].text == "median (no law)"
    dense = graph_table([row for row in ALIGNED if row["model"] in ("sum", "deepsets")], "dense")
    assert [cell.winner for cell in dense.rows[0]] == [False, False, True, False]


def test_an_aggregation_that_does_not_take_part_has_a_dash() -> None:
    rows = [row for row in ALIGNED if (row["task"], row["model"]) != ("median", "min")]
    assert graph_table(rows, "small").rows[1][4].text == "–"


def test_laws_are_counted() -> None:
    table = law_table(ALIGNED)
    assert len(table.rows) == 6
    assert [cell.text for cell in table.rows[1]] == ["min-plus", "1", "2 × x + y, min(x, y)"]


def test_only_the_most_common_laws_are_shown() -> None:
    (row, *_) = (row for row in graph_results()["rows"] if row["model"] == "bank")
    row["runs"] = [dict(row["runs"][0], laws=["a", "b", "c", "d", "d", "e"])]
    assert law_table([row]).rows[0][2].text == "2 × d, a, b, 2 more"


def test_report_has_a_section_and_a_plot_for_each_form() -> None:
    report = graph_report(graph_results())
    assert [section.heading for section in report.sections] == ["Aligned messages", "Generic messages"]
    assert [list(section.figures) for section in report.sections] == [["errors_aligned"], ["errors_generic"]]
    assert all(len(image) > 10_000 for section in report.sections for image in section.figures.values())
    assert [len(section.tables) for section in report.sections] == [4, 4]
    assert "3 seeds, of models trained for 1000 steps" in report.notes[0]


def test_report_without_ours_or_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    results = graph_results()
    results["rows"] = [row for row in results["rows"] if row["model"] != "bank"]
    report = graph_report(results)
    assert not any(section.figures for section in report.sections)
    assert [len(section.tables) for section in report.sections] == [3, 3]


def test_the_note_counts_seeds_and_names_exact_rivals() -> None:
    results = graph_results()
    results["experiment"]["seeds"] = 1
    results["rows"] = [row for row in results["rows"] if row["form"] == "aligned"][:3]
    for row, error in zip(results["rows"], (1e-9, 1e-3, 1e-9), strict=True):
        row["runs"] = [dict(row["runs"][0], errors=dict.fromkeys(("small", "large", "dense"), error))]
    note = graph_report(results).notes[0]
    assert "5–20 nodes), 1 seed, of models" in note
    title = graph_table(results["rows"], "small").rows[0][0].text
    assert note.endswith(f"Exact rivals, which no error can be far below: min on {title} (aligned).")
