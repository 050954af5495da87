"""Figures, drawn with matplotlib if it is installed (``pip install "abelnet[plots]"``)."""

from __future__ import annotations

__all__ = ["Panel", "draw"]

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL = (5.0, 3.8)  # width and height in inches
_RESOLUTION = 120  # dots per inch


class Panel(NamedTuple):
    """Panel of a figure: its title, and the function that draws it."""

    title: str
    draw: Callable[[Axes], Any]


def draw(figures: Mapping[str, Sequence[Panel]]) -> dict[str, bytes]:
    """Draws figures, each a row of panels.

    Arguments:
        figures: Panels of each figure, by name.

    Returns:
        PNG images by name; empty if matplotlib is not installed.

    Example:
        >>> images = draw({"line": [Panel("y = x", lambda axes: axes.axline((0, 0), slope=1))]})
        >>> images["line"][1:4]
        b'PNG'
    """
    try:
        # Figures created without pyplot have no global state, and need no display.
        from matplotlib.figure import Figure
    except ImportError:
        return {}
    images = {}
    width, height = _PANEL
    for name, panels in figures.items():
        figure = Figure(figsize=(width * len(panels), height), layout="constrained")
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(all_axes, panels, strict=True):
            axes.set_title(panel.title, parse_math=False)  # dollar signs are literal
            panel.draw(axes)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=_RESOLUTION)
        images[name] = buffer.getvalue()
    return images
