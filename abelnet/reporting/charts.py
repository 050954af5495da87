"""Charts as SVG, drawn by hand: a report of a law spends no memory on matplotlib, and a page needs no script."""

from __future__ import annotations

__all__ = ["CHART_STYLE", "Chart", "Series", "chart_element", "draw_chart"]

import hashlib
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from abelnet.reporting.axes import Axis, linear_axis, log_axis
from abelnet.reporting.printable import printable

Kind = Literal["line", "points", "dashed"]

_WIDTH = 460  # of the drawing; narrow, so that its text can be read on a phone
_PLOT_HEIGHT = 220
_MOST_POINTS = 2_000  # of a series; others are left out evenly
_MOST_MARKED = 40  # a line of more points has no markers
_RADIUS = 3.2  # of markers, unless there are many
_TITLE, _TEXT = 15.0, 12.5  # font sizes
# Light and dark, each with a contrast of at least 4.5 to 1 to its background; markers and dashes tell series apart too.
_LIGHT = ("#0b5cad", "#b3410a", "#1b7340", "#7a3c9e", "#7d5a00", "#56606b")
_DARK = ("#6cb2ff", "#ff9d66", "#6ccf8e", "#cf9df2", "#e2b84d", "#a9b3bf")
_LAYERS: tuple[Kind, ...] = ("line", "dashed", "points")  # from the lowest; dashes are seen on the line they equal
_DASHES = ("", "8 3", "2 3", "10 3 2 3", "5 2", "1 4")
_MARKERS = (  # outlines around their places, for a radius of 1
    "m-1 0a1 1 0 1 0 2 0a1 1 0 1 0 -2 0",
    "m-.9 -.9h1.8v1.8h-1.8z",
    "m0 -1.25l1.25 1.25l-1.25 1.25l-1.25 -1.25z",
    "m0 -1.2l1.15 2h-2.3z",
    "m0 1.2l1.15 -2h-2.3z",
    "m-1.1 -.35h2.2v.7h-2.2z",
)


def _style(colors: Sequence[str]) -> str:
    return "; ".join(f"--chart-{i}: {color}" for i, color in enumerate(colors, 1))


CHART_STYLE = f""":root {{ {_style(_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_style(_DARK)} }} }}
svg:root {{ color: #1d2329 }}
@media (prefers-color-scheme: dark) {{ svg:root {{ color: #e4e8ec }} }}
.chart {{ display: block; width: 100%; max-width: {_WIDTH * 1.2:.0f}px; height: auto; font-family: inherit }}
@media print {{ :root {{ {_style(_LIGHT)} }} }}
"""
"""Style of a page with charts: the colors of their series in light and dark. Other colors are those of the text."""


class Series(NamedTuple):
    """Series of a chart: a line with markers, points, or a gray dashed line to compare with."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    kind: Kind = "line"


@dataclass(frozen=True)
class Chart:
    """Chart of series over two named axes.

    Attributes:
        title: Title.
        x_label: Label of the horizontal axis, with its unit.
        y_label: Label of the vertical axis, with its unit.
        series: Series; points that are not finite, or not positive on a logarithmic axis, are left out.
        x_log: Whether the horizontal axis is logarithmic.
        y_log: Whether the vertical axis is logarithmic.
        from_zero: Whether a linear vertical axis has the 0, as the numbers are sizes of something.
        shaded: Range of the horizontal axis that is shaded.
        shaded_label: What the shaded range is.
        description: Text alternative; by default the axes, and the range of each series.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = False
    from_zero: bool = False
    shaded: tuple[float, float] | None = None
    shaded_label: str = ""
    description: str = ""


def draw_chart(chart: Chart, style: str = "") -> str:
    """Draws a chart as SVG, for a page or for a file.

    Its width is that of its place. Text has the color of the text around, and series have those of
    :data:`CHART_STYLE`, or without it the light ones.

    Arguments:
        chart: The chart.
        style: Style to put into the drawing, if it is a file of its own: :data:`CHART_STYLE`.

    Example:
        >>> draw_chart(Chart("Squares", "x", "x²", [Series("x²", [0, 1, 2], [0, 1, 4])]))[:4]
        '<svg'
    """
    svg = chart_element(chart)
    if style:
        SubElement(svg, "style").text = style
    return tostring(svg, encoding="unicode")


def chart_element(chart: Chart) -> Element:
    """Draws a chart as an element of a page."""
    marked = [_Marked.of(i, one, chart) for i, one in enumerate(chart.series)]
    x = (log_axis if chart.x_log else linear_axis)([a for one in marked for a, _ in one.points])
    heights = [b for one in marked for _, b in one.points]
    if chart.from_zero and not chart.y_log:
        heights += [0.0] if any(heights) else [0.0, 1.0]
    y = (log_axis if chart.y_log else linear_axis)(heights)

    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "chart", "role": "img"})
    key = hashlib.sha256(repr(chart).encode()).hexdigest()[:10]
    svg.set("aria-labelledby", f"title-{key} about-{key}")
    SubElement(svg, "title", id=f"title-{key}").text = printable(chart.title)
    SubElement(svg, "desc", id=f"about-{key}").text = printable(chart.description or _description(chart, marked))
    svg.set("fill", "currentColor")
    svg.set("font-family", "system-ui, sans-serif")
    svg.set("font-size", f"{_TEXT:g}")

    top = 0.0
    for line in _wrapped(chart.title, _WIDTH, _TITLE * 1.06):
        top += 20
        _text(svg, 0, top - 5, line).attrib.update({"font-size": f"{_TITLE:g}", "font-weight": "600"})
    top = _draw_legend(svg, chart, marked, top + 4)
    _text(svg, 0, top + 13, _cut(chart.y_label, _WIDTH)).set("opacity", ".8")
    top += 24

    y_ticks = y.ticks(6)
    left = min(120.0, max((_measure(label) for _, label in y_ticks), default=0.0) + 10)
    x_ticks = _fitting(x, _WIDTH - left)
    right = _WIDTH - max((_measure(label) / 2 for _, label in x_ticks[-1:]), default=0.0) - 2
    box = _Box(left, right, top, top + _PLOT_HEIGHT)
    _draw_axes(svg, box, x_ticks, y_ticks)
    _text(svg, right, box.bottom + 38, _cut(chart.x_label, right - left), "end").set("opacity", ".8")
    svg.set("viewBox", f"0 0 {_WIDTH} {box.bottom + 44:g}")

    if chart.shaded is not None and any(one.points for one in marked):
        low, high = (min(1.0, max(0.0, x.place(end))) for end in chart.shaded)
        band = {"x": f"{box.across(low):.1f}", "y": f"{box.top:.1f}", "height": f"{_PLOT_HEIGHT}", "opacity": ".1"}
        SubElement(svg, "rect", {**band, "width": f"{(high - low) * (box.right - box.left):.1f}"})
    for one in sorted(marked, key=lambda one: _LAYERS.index(one.kind)):
        one.draw(svg, box, x, y)
    if not any(one.points for one in marked):
        middle = (box.left + box.right) / 2, (box.top + box.bottom) / 2
        _text(svg, *middle, "no finite values to show", "middle").set("opacity", ".8")
    return svg


class _Box(NamedTuple):
    """Edges of the plot."""

    left: float
    right: float
    top: float
    bottom: float

    def across(self, part: float) -> float:
        return self.left + part * (self.right - self.left)

    def up(self, part: float) -> float:
        return self.bottom - part * (self.bottom - self.top)


class _Marked(NamedTuple):
    """Series with its points, its color, and whether its points have markers."""

    number: int
    name: str
    kind: Kind
    points: list[tuple[float, float]]
    runs: list[list[tuple[float, float]]]

    @staticmethod
    def of(number: int, series: Series, chart: Chart) -> _Marked:
        """Leaves out points that cannot be shown; a line is broken there."""
        pairs = list(zip(map(float, series.x), map(float, series.y), strict=True))
        step = max(1, math.ceil(len(pairs) / _MOST_POINTS))
        runs: list[list[tuple[float, float]]] = [[]]
        for a, b in pairs[::step]:
            if math.isfinite(a) and math.isfinite(b) and (a > 0 or not chart.x_log) and (b > 0 or not chart.y_log):
                runs[-1].append((a, b))
            elif runs[-1]:
                runs.append([])
        points = [point for run in runs for point in run]
        return _Marked(number, series.name, series.kind, points, runs)

    @property
    def color(self) -> str:
        i = len(_LIGHT) - 1 if self.kind == "dashed" else self.number % (len(_LIGHT) - 1)
        return f"var(--chart-{i + 1}, {_LIGHT[i]})"

    @property
    def radius(self) -> float:
        return _RADIUS if len(self.points) <= _MOST_MARKED else 2.2 if len(self.points) <= 400 else 1.5

    @property
    def has_markers(self) -> bool:
        if self.kind == "points":
            return True
        return self.kind == "line" and len(self.points) <= _MOST_MARKED

    def draw(self, svg: Element, box: _Box, x: Axis, y: Axis) -> None:
        places = [[(box.across(x.place(a)), box.up(y.place(b))) for a, b in run] for run in self.runs]
        self.draw_line(svg, places)
        self.draw_markers(svg, [place for run in places for place in run], self.radius)

    def draw_line(self, svg: Element, runs: Sequence[Sequence[tuple[float, float]]]) -> None:
        if self.kind == "points":
            return
        path = " ".join(f"M{'L'.join(f'{a:.1f} {b:.1f}' for a, b in run)}" for run in runs if run)
        line = SubElement(svg, "path", {"d": path, "fill": "none", "stroke": self.color, "stroke-width": "2"})
        line.set("stroke-linejoin", "round")
        dash = "6 4" if self.kind == "dashed" else _DASHES[self.number % len(_DASHES)]
        if dash:
            line.set("stroke-dasharray", dash)

    def draw_markers(self, svg: Element, places: Sequence[tuple[float, float]], radius: float) -> None:
        if not self.has_markers or not places:
            return
        outline = _scaled(_MARKERS[self.number % len(_MARKERS)], radius)
        path = "".join(f"M{a:.1f} {b:.1f}{outline}" for a, b in places)
        marks = SubElement(svg, "path", {"d": path, "fill": self.color})
        if len(places) > _MOST_MARKED:
            marks.set("fill-opacity", ".6")


def _draw_axes(
    svg: Element, box: _Box, x_ticks: Sequence[tuple[float, str]], y_ticks: Sequence[tuple[float, str]]
) -> None:
    for part, label in y_ticks:
        _line(svg, (box.left, box.up(part)), (box.right, box.up(part)), ".13")
        _text(svg, box.left - 7, box.up(part) + 4.5, label, "end").set("opacity", ".8")
    for part, label in x_ticks:
        _line(svg, (box.across(part), box.bottom), (box.across(part), box.bottom + 5), ".5")
        _text(svg, box.across(part), box.bottom + 19, label, "middle").set("opacity", ".8")
    _line(svg, (box.left, box.bottom), (box.right, box.bottom), ".5")


def _draw_legend(svg: Element, chart: Chart, marked: Sequence[_Marked], top: float) -> float:
    """Draws the names of series and of the shaded range in rows; returns where they end."""
    x, y, sample, gap = 0.0, top, 26.0, 18.0
    entries: list[tuple[str, _Marked | None]] = [(one.name, one) for one in marked if one.name]
    if chart.shaded is not None and chart.shaded_label:
        entries.append((chart.shaded_label, None))
    if not entries:
        return top
    for name, one in entries:
        text = _cut(name, _WIDTH - sample - 6)
        width = sample + 6 + _measure(text)
        if x and x + width > _WIDTH:
            x, y = 0.0, y + 19
        if one is None:
            place = {"x": f"{x:.1f}", "y": f"{y + 3:.1f}", "width": f"{sample:g}", "height": "12", "opacity": ".14"}
            SubElement(svg, "rect", place)
        else:
            one.draw_line(svg, [[(x, y + 9), (x + sample, y + 9)]])
            one.draw_markers(svg, [(x + sample / 2, y + 9)], _RADIUS)
        _text(svg, x + sample + 6, y + 13.5, text)
        x += width + gap
    return y + 26


def _fitting(axis: Axis, width: float) -> list[tuple[float, str]]:
    """Returns as many ticks as have room for their labels."""
    ticks: list[tuple[float, str]] = []
    for count in (8, 6, 5, 4, 3, 2):
        ticks = axis.ticks(count)
        places = [(part * width - _measure(label) / 2, part * width + _measure(label) / 2) for part, label in ticks]
        if all(end + 8 <= start for (_, end), (start, _) in pairwise(places)):
            break
    return ticks


def _description(chart: Chart, marked: Sequence[_Marked]) -> str:
    parts = [f"{chart.y_label} against {chart.x_label}."]
    for one in marked:
        if one.points:
            (x0, y0), (x1, y1) = min(one.points), max(one.points)
            parts.append(f"{one.name or chart.y_label}: from {y0:.3g} at {x0:.3g} to {y1:.3g} at {x1:.3g}.")
    return " ".join(parts)


def _scaled(outline: str, radius: float) -> str:
    """Returns an outline for another radius; the flags of arcs are no lengths."""
    if "a" in outline:
        r = f"{radius:g}"
        return f"m-{r} 0a{r} {r} 0 1 0 {2 * radius:g} 0a{r} {r} 0 1 0 -{2 * radius:g} 0"
    words = "".join(f" {c} " if c.isalpha() else c for c in outline).split()
    return "".join(f"{word} " if word.isalpha() else f"{float(word) * radius:.2f} " for word in words)


def _line(svg: Element, start: tuple[float, float], end: tuple[float, float], opacity: str) -> None:
    (x1, y1), (x2, y2) = start, end
    place = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
    SubElement(svg, "line", {**place, "stroke": "currentColor", "opacity": opacity})


def _text(svg: Element, x: float, y: float, text: str, anchor: str = "start") -> Element:
    element = SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor})
    element.text = text
    return element


# Widths are guessed, as no font is at hand: on the safe side for common sans-serif fonts.


def _measure(text: str, size: float = _TEXT) -> float:
    return sum(map(_part_of_em, text)) * size


def _part_of_em(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in " .,:;'|ijl!()[]":
        return 0.36
    return 0.8 if character.isupper() or character in "mw%@…" else 0.64


def _cut(text: str, width: float, size: float = _TEXT) -> str:
    text = printable(" ".join(text.split()))
    if _measure(text, size) <= width:
        return text
    while text and _measure(text + "…", size) > width:
        text = text[: min(len(text) - 1, 200)]
    return text.rstrip() + "…"


def _wrapped(text: str, width: float, size: float, most: int = 3) -> Iterator[str]:
    words = text.split()
    for i in range(most):
        line: list[str] = []
        while words and (not line or _measure(" ".join([*line, words[0]]), size) <= width):
            line.append(words.pop(0))
        if line:
            yield _cut(" ".join([*line, *words] if i == most - 1 else line), width, size)
