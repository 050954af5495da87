"""Axes of charts."""

from __future__ import annotations

import pytest

from abelnet.reporting.axes import linear_axis, log_axis

SCALES = [5e-324, 1e-300, 1e-12, 1.0, 1e100, 8e307]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("numbers", [[0.0, 1.0], [-1.0, 1.0], [-1.0, -0.25], [1.0, 1.0], [0.0, 0.0]])
def test_numbers_of_any_size(numbers: list[float], scale: float) -> None:
    numbers = [scale * number for number in numbers]
    axis = linear_axis(numbers)
    assert all(0 <= axis.place(number) <= 1 for number in numbers)
    ticks = axis.ticks(6)
    assert 0 < len(ticks) <= 8
    assert all(0 <= place <= 1 for place, _ in ticks)
    assert not any(word in label for _, label in ticks for word in ("nan", "inf", "e"))


@pytest.mark.parametrize("low", SCALES)
@pytest.mark.parametrize("ratio", [1.0, 1.00001, 1.5, 20.0, 1e8, 1e300])
def test_positive_numbers_of_any_size(low: float, ratio: float) -> None:
    high = min(low * ratio, 1.7e308)
    axis = log_axis([low, high])
    assert 0 <= axis.place(low) <= axis.place(high) <= 1
    ticks = axis.ticks(6)
    assert len(ticks) <= 12
    assert ticks == sorted(ticks)
    assert all(-1e-6 <= place <= 1 + 1e-6 for place, _ in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


def test_equal_steps_and_equal_ratios() -> None:
    line, log = linear_axis([0, 10]), log_axis([1, 100])
    assert line.place(5) - line.place(0) == pytest.approx(line.place(10) - line.place(5))
    assert log.place(10) - log.place(1) == pytest.approx(log.place(100) - log.place(10))
    assert log.place(0) < log.place(1)


def test_ticks_of_whole_numbers_are_whole() -> None:
    assert [label for _, label in linear_axis([2, 3, 4]).ticks(8)] == ["2", "3", "4"]
    assert [label for _, label in linear_axis([2, 3, 4.5]).ticks(8)] == ["2", "2.5", "3", "3.5", "4", "4.5"]


def test_labels_of_a_narrow_range_differ() -> None:
    for axis in (linear_axis([1e6, 1e6 + 1.5]), log_axis([1.00001, 1.00003])):
        labels = [label for _, label in axis.ticks(6)]
        assert len(set(labels)) == len(labels) > 3


def test_an_axis_without_numbers() -> None:
    assert [label for _, label in linear_axis([]).ticks(2)] == ["0", "1"]
    assert [label for _, label in log_axis([]).ticks(2)] == ["1", "5"]
