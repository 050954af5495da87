"""Picture of words in the plane, as SVG: points with labels that do not overlap, and arrows between them."""

from __future__ import annotations

__all__ = ["Arrow", "Point", "draw_words"]

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

Role = Literal["example", "query", "answer", "prediction", "other"]

_WIDTH, _HEIGHT, _MARGIN = 460.0, 300.0, 22.0
_LABEL = 56.0  # room for labels on both sides
_TEXT = 13.0
_PART_OF_EM = 0.62  # width of a letter, on the safe side for common sans-serif fonts
_RADIUS = 4.0
_COLORS = {"example": 1, "query": 2, "answer": 3, "prediction": 3}


class Point(NamedTuple):
    """A word at a place, and what it is in the analogy."""

    word: str
    x: float
    y: float
    role: Role


class Arrow(NamedTuple):
    """An arrow between two points, given by their numbers; dashed if it is no example."""

    start: int
    end: int
    is_example: bool


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def draw_words(title: str, about: str, points: Sequence[Point], arrows: Sequence[Arrow]) -> str:
    """Draws words in the plane.

    Labels of words that have no room are left out, but those of examples, queries and answers are always there.

    Arguments:
        title: Title, as a text alternative.
        about: What the picture shows.
        points: The words; those that matter most first, whose labels are placed first.
        arrows: Arrows between them.

    Example:
        >>> points = [Point("man", 0, 0, "example"), Point("king", 1, 0, "example")]
        >>> "man" in draw_words("Words", "Two words.", points, [Arrow(0, 1, True)])
        True
    """
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "chart words", "role": "img"})
    svg.set("viewBox", f"0 0 {_WIDTH:g} {_HEIGHT:g}")
    svg.set("fill", "currentColor")
    svg.set("font-family", "system-ui, sans-serif")
    key = hashlib.sha256(repr((title, points)).encode()).hexdigest()[:10]
    svg.set("aria-labelledby", f"title-{key} about-{key}")
    SubElement(svg, "title", id=f"title-{key}").text = title
    SubElement(svg, "desc", id=f"about-{key}").text = about
    places = list(_places(points))
    for arrow in arrows:
        _draw_arrow(svg, places[arrow.start], places[arrow.end], arrow.is_example)
    taken = [_Box(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in places]
    starts = {arrow.start for arrow in arrows}
    for i, (point, place) in enumerate(zip(points, places, strict=True)):
        _draw_point(svg, point, place, taken, is_start=i in starts)
    return tostring(svg, encoding="unicode")


def _places(points: Sequence[Point]) -> Iterator[tuple[float, float]]:
    """Yields the place of each point; both directions fill the picture, and parallel arrows stay parallel."""
    across = _stretched([one.x for one in points], _MARGIN + _LABEL, _WIDTH - _MARGIN - _LABEL)
    up = _stretched([one.y for one in points], _HEIGHT - _MARGIN, _MARGIN)
    return zip(across, up, strict=True)


def _stretched(values: Sequence[float], start: float, end: float) -> Iterator[float]:
    low, high = min(values), max(values)
    for value in values:
        yield start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def _draw_point(svg: Element, point: Point, place: tuple[float, float], taken: list[_Box], *, is_start: bool) -> None:
    x, y = place
    color = f"var(--chart-{_COLORS[point.role]})" if point.role in _COLORS else "currentColor"
    if point.role == "prediction":
        path = f"M{x - 5:.1f} {y:.1f}h10M{x:.1f} {y - 5:.1f}v10"
        SubElement(svg, "path", {"d": path, "stroke": color, "stroke-width": "2", "fill": "none"})
        return
    dot = SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{_RADIUS:g}", "fill": color})
    is_other = point.role == "other"
    if is_other:
        dot.attrib.update({"r": "2.5", "opacity": ".55"})
    labels = _labels(point.word, x, y, is_start)
    label = next((one for one in labels if not any(map(one.box.overlaps, taken))), None)
    if label is None:
        if is_other:
            return
        label = labels[0]
    taken.append(label.box)
    at = {"x": f"{label.x:.1f}", "y": f"{label.box.bottom - 4:.1f}", "text-anchor": label.anchor}
    text = SubElement(svg, "text", {**at, "font-size": f"{_TEXT:g}", "fill": "currentColor" if is_other else color})
    text.text = point.word
    text.attrib.update({"opacity": ".75"} if is_other else {"font-weight": "600"})


class _Label(NamedTuple):
    """Place of a label: where its text is anchored, and the room that it takes."""

    x: float
    anchor: str
    box: _Box


def _labels(word: str, x: float, y: float, is_start: bool) -> list[_Label]:
    """Returns places for a label that are inside the picture, the best first: away from an arrow that starts there."""
    width, height, gap = _PART_OF_EM * _TEXT * len(word), _TEXT + 3, _RADIUS + 3
    offsets = {"start": (x + gap, 0.0), "end": (x - gap, width), "middle": (x, width / 2)}
    first, second = ("end", "start") if is_start else ("start", "end")
    above, below = y - gap - height / 2, y + gap + height / 2
    wanted = [(first, y), ("middle", above), ("middle", below), (first, y - 11), (first, y + 11), (second, y)]
    wanted += [(second, y - 11), (second, y + 11)]
    found = []
    for anchor, center in wanted:
        at, before = offsets[anchor]
        box = _Box(at - before, center - height / 2, at - before + width, center + height / 2)
        if box.left >= 0 and box.right <= _WIDTH and box.top >= 0 and box.bottom <= _HEIGHT:
            found.append(_Label(at, anchor, box))
    held = min(max(0.0, x - width / 2), _WIDTH - width)
    return found or [_Label(held, "start", _Box(held, above - height / 2, held + width, above + height / 2))]


def _draw_arrow(svg: Element, start: tuple[float, float], end: tuple[float, float], is_example: bool) -> None:
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    if length < 16:
        return
    u, v = (x2 - x1) / length, (y2 - y1) / length
    x1, y1, x2, y2 = x1 + 7 * u, y1 + 7 * v, x2 - 8 * u, y2 - 8 * v
    color = f"var(--chart-{1 if is_example else 3})"
    line = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}", "stroke": color}
    SubElement(svg, "line", {**line, "stroke-width": "1.5", **({} if is_example else {"stroke-dasharray": "5 4"})})
    back = (x2 - 7 * u, y2 - 7 * v)
    left, right = (f"{back[0] + side * 3.5 * v:.1f} {back[1] - side * 3.5 * u:.1f}" for side in (1, -1))
    SubElement(svg, "path", {"d": f"M{x2:.1f} {y2:.1f}L{left}L{right}z", "fill": color})
