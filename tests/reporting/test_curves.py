"""The drawing of a curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from abelnet.reporting.curves import draw_curve

SVG = "{http://www.w3.org/2000/svg}"


def drawn(x: list[float], y: list[float]) -> tuple[list[tuple[float, float]], list[str]]:
    """Places of the points, and all texts."""
    tree = ElementTree.fromstring(draw_curve(x, y, "x", "φ(x)"))
    (line,) = tree.iter(f"{SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    return points, [str(text.text) for text in tree.iter(f"{SVG}text")]  # type: ignore[return-value]


def test_points_and_labels() -> None:
    points, texts = drawn([0.0, 1.0, 2.0], [0.0, 10.0, -40.0])
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert y1 < y0 < y2  # down the page
    assert texts[-2:] == ["x", "φ(x)"]
    assert {"0", "0.5", "1", "1.5", "2"} <= set(texts)
    assert {"−40", "−20", "0"} <= set(texts)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-12, 1.0, 1e100, 8e307])
@pytest.mark.parametrize("curve", [lambda t: t, lambda t: -t, lambda t: 2 * t - 1, lambda _: 1.0, lambda _: 0.0])
def test_any_range(curve: Callable[[float], float], scale: float) -> None:
    x = [i / 10 for i in range(11)]
    points, texts = drawn(x, [scale * curve(t) for t in x])
    assert all(80 <= a <= 585 and 15 <= b <= 345 for a, b in points)
    assert not any("nan" in text or "inf" in text for text in texts)


def test_labels_of_a_narrow_range_differ() -> None:
    _, texts = drawn([1e6, 1e6 + 1], [0.0, 1.0])
    labels = [text for text in texts if text.startswith("100")]
    assert len(set(labels)) == len(labels) > 3


def test_a_single_point() -> None:
    points, _ = drawn([3.0], [math.pi])
    assert len(points) == 1
