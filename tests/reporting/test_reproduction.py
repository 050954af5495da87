"""The experiments as ``abelnet reproduce`` shows them."""

from __future__ import annotations

import io

import pytest
from report_samples import reproduction
from rich.console import Console

from abelnet.reporting.charts import Chart
from abelnet.reporting.report import Report, Section
from abelnet.reporting.reproduction import reproduction_overview, reproduction_report
from abelnet.reporting.terminal import print_table


@pytest.fixture(scope="module")
def report() -> Report:
    return reproduction_report(reproduction())


def section(report: Report, heading: str) -> Section:
    (found,) = (one for one in report.sections if one.heading == heading)
    return found


def chart(report: Report, heading: str, name: str) -> Chart:
    found = section(report, heading).figures[name]
    assert isinstance(found, Chart)
    return found


def test_overview() -> None:
    overview = reproduction_overview(reproduction())
    (shown,) = overview.sections
    laws, networks, *_ = shown.tables
    assert [cell.text for cell in laws.rows[0][:2]] == ["cbrt(x³ + y³)", "cbrt(x^3 + y^3)"]
    assert [cell.text for cell in laws.rows[0][3:6:2]] == ["8.4e-02", "2.3e-01"]  # the paper's
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    print_table(laws, terminal)
    assert isinstance(terminal.file, io.StringIO)
    assert "cbrt(x^3 + y^3)" in terminal.file.getvalue()  # not folded: it fits a terminal of the usual width
    assert len(networks.rows) == 4
    assert "10 epochs" in overview.notes[0]
    assert overview.notes[1] == "returns.csv: x∘y = x + y + x·y (compound returns)"


def test_networks_beside_the_published_figures(report: Report) -> None:
    (table,) = section(report, "Five operations").tables
    assert table.headings[2:6] == ["DeepSets", "AGN", "ASN", "law in closed form"]
    assert table.headings[6:] == ["DeepSets (paper)", "AGN (paper)", "ASN (paper)"]
    small, large = table.rows[:2]
    assert [cell.text for cell in small[2:5]] == ["6.0e-01", "2.0e-01", "4.0e-01"]
    assert [cell.winner for cell in small[2:]] == [False, True, False, False, True, False, False]
    assert [cell.text for cell in large[2:5]] == ["diverged"] * 3
    assert not any(cell.winner for cell in large[2:5])


def test_errors_by_size(report: Report) -> None:
    errors = chart(report, "Error against multiset size", "errors of cbrt")
    assert [series.name for series in errors.series] == ["DeepSets", "AGN", "ASN", "law in closed form"]
    assert errors.series[-1].x[-1] == 100
    assert min(errors.series[-1].y) > 0  # an error of 0 is shown as rounding
    assert errors.shaded == (2, 4)


def test_what_else_is_shown(report: Report) -> None:
    assert chart(report, "Learned φ against the true one", "φ of cbrt").title.endswith("learned by AGN")
    assert chart(report, "Learned φ against the true one", "φ of shifted_product").title.endswith("learned by ASN")
    (evidence,) = section(report, "Evidence for each law").tables
    assert [row[2].text for row in evidence.rows] == ["group", "monoid"]
    assert chart(report, "Certified errors", "certificate 1").series[0].name == "measured"
    pairs = chart(report, "One and several example pairs", "all_candidates")
    assert [(series.name, list(series.x), list(series.y)) for series in pairs.series] == [
        ("3CosAvg", [1, 5], [10.0, 50.0]),
        ("group mean", [1, 5], [10.0, 50.0]),
    ]
    (answers,) = section(report, "Some analogies").tables
    assert [cell.text for cell in answers.rows[0]] == ["man : king = woman : ?", "queen", "✓ queen", "✗ lady", "family"]
    law = section(report, "A law learned from a table")
    assert dict(law.facts)["name"] == "compound returns"
    assert "SQL, for DuckDB" in law.listings
    assert all(one.commands for one in report.sections[:-1])


def test_every_axis_is_named_with_its_unit(report: Report) -> None:
    charts = [figure for one in report.sections for figure in one.figures.values()]
    assert len(charts) > 8
    for one in charts:
        assert isinstance(one, Chart)
        assert "(" in one.x_label
        assert "(" in one.y_label or one.y_label.endswith("by the law")
