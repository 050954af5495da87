"""The synthetic experiment beside the paper."""

from __future__ import annotations

import math

import pytest
from report_samples import synthetic_results

from abelnet.reporting.charts import Chart
from abelnet.reporting.synthetic import curve_chart, synthetic_report, synthetic_table


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


def test_report_has_the_charts() -> None:
    report = synthetic_report(synthetic_results())
    (section,) = report.sections
    assert list(section.figures) == ["error_by_size_cbrt", "learned_curve_cbrt"]
    errors, curve = section.figures.values()
    assert isinstance(errors, Chart)
    assert isinstance(curve, Chart)
    assert [series.name for series in errors.series] == ["DeepSets", "AGN", "ASN"]
    assert errors.series[0].y[0] == 0.4  # the median of 0.2, 0.4 and a diverged run at size 2
    assert errors.shaded == (2, 4)
    assert errors.x_log
    assert errors.y_log
    assert curve.title == "φ of cbrt(x³ + y³), learned by AGN"
    assert "50 trials of 1000 epochs" in report.notes[0]


def test_the_learned_curve_is_scaled_to_the_true_one() -> None:
    x = [-5 + i / 10 for i in range(101)]
    group = curve_chart("cbrt", {"agn": [-2 * one**3 for one in x], "asn": None})
    semigroup = curve_chart("product", {"agn": None, "asn": [math.copysign(abs(one) ** 3, one) for one in x]})
    for chart in (group, semigroup):
        assert chart is not None
        learned, truth = chart.series
        assert learned.y == pytest.approx(truth.y, rel=1e-4, abs=1e-4)
    assert curve_chart("product", {"agn": x}) is None
