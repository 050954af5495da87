"""Charts of learned laws."""

from __future__ import annotations

import torch

from abelnet import LawRegressor
from abelnet.reporting.law_charts import agreement_chart, curve_chart, size_chart, size_errors


def test_the_curve_is_drawn_over_elements_and_results() -> None:
    pairs = [[a, b] for a in range(1, 6) for b in range(1, 6)]
    model = LawRegressor().fit(pairs, [(a * a + b * b) ** 0.5 for a, b in pairs])
    chart = curve_chart(model.laws_[0], model.sample_[0], "side")
    curve, elements = chart.series
    assert curve.x[0] == 1
    assert abs(curve.x[-1] - 50**0.5) < 1e-12
    assert set(elements.x) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert chart.x_label == "x (unit of side)"


def test_examples_that_were_left_out_are_a_series_of_their_own() -> None:
    targets = torch.tensor([1.0, 2.0, 3.0])
    kept, left_out, diagonal = agreement_chart("y", targets, targets + torch.tensor([0.0, 5.0, 0.0]), [1]).series
    assert (kept.x, kept.y) == ([1.0, 3.0], [1.0, 3.0])
    assert (left_out.x, left_out.y) == ([2.0], [7.0])
    assert diagonal.x == diagonal.y == [1.0, 3.0]
    assert len(agreement_chart("y", targets, targets).series) == 2


def test_errors_by_size() -> None:
    errors = torch.tensor([[1.0, 0.0], [7.0, 0.0], [1.0, 2.0]])
    rows = size_errors(errors, torch.tensor([2, 2, 50]), [1])
    assert rows == [(2, 1, [1.0, 0.0]), (50, 1, [1.0, 2.0])]
    chart = size_chart(["a", "b"], rows)
    assert [(one.name, list(one.x), list(one.y)) for one in chart.series] == [
        ("a", [2, 50], [1.0, 1.0]),
        ("b", [2, 50], [0.0, 2.0]),
    ]
    assert chart.x_log
    assert not chart.y_log  # zeros would be left out
