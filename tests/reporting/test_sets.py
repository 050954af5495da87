"""The set experiment: winners of columns, runs without validation, and runs that diverged."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from abelnet.reporting.sets import set_report, set_table


def row(model: str, values: list[float | None], task: str = "digits", **options: Any) -> dict[str, Any]:
    places = ("20", "all") if task == "digits" else ("all",)
    runs = [
        {
            "lr": 0.01,
            "weight_decay": 0.1 if i else 1e-4,
            "validation": None if task != "digits" else 50.0,
            "accuracies": dict.fromkeys(places, value),
            "parameters": 12000,
        }
        for i, value in enumerate(values)
    ]
    return {"task": task, "model": model, "runs": runs, **options}


ROWS = [row("weighted", [90.0, 92.0]), row("softmax", [91.0, 89.0]), row("sum", [80.0, None])]


def test_the_best_mean_of_each_column_is_marked() -> None:
    table = set_table(ROWS)
    assert table.headings[:3] == ["aggregation", "test, 20 points", "test, all points"]
    texts = [cell.text for cell in table.rows[0][1:]]
    assert texts == ["91.0 ± 1.4", "91.0 ± 1.4", "50.0", "0.01, 0.0001 (×1); 0.01, 0.1 (×1)", "12000", "2"]
    assert [[cell.winner for cell in line[1:3]] for line in table.rows] == [[True] * 2, [False] * 2, [False] * 2]
    assert table.rows[2][1].text == "40.0 ± 56.6"  # what diverged counts as 0
    bags = set_table([row("max", [80.0], "musk1")])
    assert bags.headings[1] == "test"
    assert [cell.text for cell in bags.rows[0][1:3]] == ["80.0", "–"]


def test_report_has_a_section_and_a_plot_for_each_task(monkeypatch: pytest.MonkeyPatch) -> None:
    results = {"rows": [*ROWS, row("max", [80.0], "musk1")], "seconds_in_units": 10.0}
    report = set_report(results)
    assert [section.heading for section in report.sections] == ["digits, trained on 20 points", "Musk1"]
    assert [list(section.figures) for section in report.sections] == [["accuracy_digits"], ["accuracy_musk1"]]
    assert all(len(image) > 5_000 for section in report.sections for image in section.figures.values())
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not any(section.figures for section in set_report(results).sections)
