"""Charts: where points are, which are left out, and what a reader of the page is told."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from abelnet.reporting.charts import CHART_STYLE, Chart, Series, draw_chart

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "</title><script>alert('&')</script>"


def drawn(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(draw_chart(chart))


def texts(chart: Chart) -> list[str]:
    return [str(text.text) for text in drawn(chart).iter(f"{SVG}text")]


def runs(chart: Chart) -> list[list[tuple[float, float]]]:
    """Places of the points of the last line drawn, in unbroken runs."""
    path = [p.attrib["d"] for p in drawn(chart).iter(f"{SVG}path") if p.get("fill") == "none"][-1]
    return [
        [(float(x), float(y)) for x, y in re.findall(r"([-\d.]+) ([-\d.]+)", run)] for run in path.split("M") if run
    ]


def chart(x: list[float], y: list[float], **settings: bool) -> Chart:
    return Chart("Title", "size (elements)", "error (units)", [Series("", x, y)], **settings)


def test_points_and_labels() -> None:
    one = chart([0.0, 1.0, 2.0], [0.0, 10.0, -40.0])
    (((x0, y0), (x1, y1), (x2, y2)),) = runs(one)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert y1 < y0 < y2  # down the page
    assert {"Title", "size (elements)", "error (units)", "0", "1", "2", "−40", "−20"} <= set(texts(one))


def test_points_that_cannot_be_shown_break_the_line() -> None:
    y = [1.0, math.nan, 3.0, math.inf, 5.0, 0.0, 7.0, 8.0]
    assert [len(run) for run in runs(chart([1.0, 2, 3, 4, 5, 6, 7, 8], y))] == [1, 1, 4]
    assert [len(run) for run in runs(chart([1.0, 2, 3, 4, 5, 6, 7, 8], y, y_log=True))] == [1, 1, 1, 2]
    assert "no finite values to show" in texts(chart([1.0], [math.nan]))


def test_everything_is_inside() -> None:
    one = chart([1e-300, 1e300], [-1e300, 1e300], x_log=True)
    _, _, width, height = map(float, drawn(one).attrib["viewBox"].split())
    assert all(0 <= x <= width and 0 <= y <= height for run in runs(one) for x, y in run)


def test_many_points_are_thinned() -> None:
    (run,) = runs(chart(list(range(100_000)), list(range(100_000))))
    assert 1_000 < len(run) <= 2_000


def test_series_are_told_apart_without_color() -> None:
    names = ["DeepSets", "AGN", "ASN"]
    one = Chart("t", "x", "y", [Series(name, [1, 2], [1, 2]) for name in names], shaded=(1, 1.5), shaded_label="seen")
    assert {*names, "seen"} <= set(texts(one))
    lines = [path for path in drawn(one).iter(f"{SVG}path") if path.get("fill") == "none"]
    assert len({line.get("stroke-dasharray") for line in lines}) == 3
    assert len({line.get("stroke") for line in lines}) == 3


def test_an_axis_of_sizes_has_the_zero() -> None:
    for y in ([5.0, 6.5], [0.0, 0.0]):
        found = texts(Chart("t", "x", "y", [Series("", [1.5, 2.5], y)], from_zero=True))
        assert found.count("0") == 1
        assert not any(text.startswith("−") for text in found)


def test_text_alternative() -> None:
    one = drawn(chart([2.0, 100.0], [0.1, 3.0]))
    labels = one.attrib["aria-labelledby"].split()
    told = [str(part.text) for part in one if part.get("id") in labels]
    assert one.attrib["role"] == "img"
    assert told == ["Title", "error (units) against size (elements). error (units): from 0.1 at 2 to 3 at 100."]


def test_text_is_escaped_and_fits() -> None:
    one = Chart(EVIL, EVIL, EVIL, [Series(EVIL * 20, [0], [1]), Series("\x1b", [0], [1])], description=EVIL)
    page = draw_chart(one)
    assert "<script" not in page
    assert "\x1b" not in page
    assert max(map(len, texts(one))) < 100


def test_a_file_has_its_own_style() -> None:
    one = chart([1.0], [1.0])
    assert "prefers-color-scheme" in draw_chart(one, CHART_STYLE)
    assert "<style" not in draw_chart(one)
