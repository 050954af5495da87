"""Drawing of one curve as SVG: every report of a law has it, and no memory is spent on matplotlib."""

from __future__ import annotations

__all__ = ["draw_curve"]

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

_WIDTH, _HEIGHT = 600, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 585, 15, 345  # edges of the plot
_MARGIN = 0.05  # between the curve and the edges, in parts of the range
_TICKS = 6  # at most about this many
_FONT = {"font-family": "system-ui, sans-serif", "font-size": "13", "fill": "#222"}


def draw_curve(x: Sequence[float], y: Sequence[float], x_label: str = "x", y_label: str = "y") -> bytes:
    """Draws a curve through points.

    Arguments:
        x: Abscissas, finite, at least one.
        y: Ordinates, finite, as many.
        x_label: Label of the horizontal axis.
        y_label: Label of the vertical axis.

    Returns:
        An SVG image.

    Example:
        >>> draw_curve([0, 1, 2], [0, 1, 4])[:4]
        b'<svg'
    """
    across, up = _Scale.of(x), _Scale.of(y)
    svg = Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {_HEIGHT}", width=str(_WIDTH))
    frame = {"x": str(_LEFT), "y": str(_TOP), "width": str(_RIGHT - _LEFT), "height": str(_BOTTOM - _TOP)}
    SubElement(svg, "rect", {**frame, "fill": "white", "stroke": "#888"})
    for tick in across.ticks:
        place = _LEFT + across.part(tick) * (_RIGHT - _LEFT)
        _line(svg, (place, _TOP), (place, _BOTTOM))
        _text(svg, place, _BOTTOM + 18, across.label(tick), "middle")
    for tick in up.ticks:
        place = _BOTTOM - up.part(tick) * (_BOTTOM - _TOP)
        _line(svg, (_LEFT, place), (_RIGHT, place))
        _text(svg, _LEFT - 7, place + 4, up.label(tick), "end")
    points = (
        f"{_LEFT + across.part(a) * (_RIGHT - _LEFT):.1f},{_BOTTOM - up.part(b) * (_BOTTOM - _TOP):.1f}"
        for a, b in zip(x, y, strict=True)
    )
    SubElement(svg, "polyline", {"points": " ".join(points), "fill": "none", "stroke": "#1f77b4", "stroke-width": "2"})
    _text(svg, (_LEFT + _RIGHT) / 2, _HEIGHT - 12, x_label, "middle")
    _text(svg, 15, (_TOP + _BOTTOM) / 2, y_label, "middle", turned=True)
    return tostring(svg)


class _Scale(NamedTuple):
    """Scale of an axis from ``low`` to ``high``, in units of a power of ten, in which no difference overflows."""

    low: float
    high: float
    unit: float
    step: float

    @staticmethod
    def of(numbers: Sequence[float]) -> _Scale:
        size = max(map(abs, numbers))
        unit = 10.0 ** max(-300, math.floor(math.log10(size))) if size > 0 else 1.0
        low, high = min(numbers) / unit, max(numbers) / unit
        margin = _MARGIN * (high - low)
        if not margin > 1e-13 * max(abs(low), abs(high)):  # all numbers are equal, up to rounding
            margin = 0.5
        low, high = low - margin, high + margin
        rough = (high - low) / _TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        return _Scale(low, high, unit, next(m * power for m in (1, 2, 5, 10) if m * power >= rough))

    @property
    def ticks(self) -> list[float]:
        first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
        return [self.unit * (i * self.step) for i in range(first, last + 1)]

    def part(self, number: float) -> float:
        """Returns the place of a number, from 0 to 1."""
        return (number / self.unit - self.low) / (self.high - self.low)

    def label(self, tick: float) -> str:
        """Returns a tick with the digits that tell it from its neighbors."""
        digits = math.ceil(math.log10(max(1.0, max(abs(self.low), abs(self.high)) / self.step))) + 1
        return f"{tick:.{digits}g}".replace("-", "\N{MINUS SIGN}")


def _line(svg: Element, start: tuple[float, float], end: tuple[float, float]) -> None:
    (x1, y1), (x2, y2) = start, end
    SubElement(svg, "line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", stroke="#ddd")


def _text(svg: Element, x: float, y: float, text: str, anchor: str, *, turned: bool = False) -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    if turned:
        place["transform"] = f"rotate(-90 {x:.1f} {y:.1f})"
    SubElement(svg, "text", {**place, **_FONT}).text = text
