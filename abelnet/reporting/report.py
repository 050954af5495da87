"""Reports, independent of their renderer: sections of text, tables and figures."""

from __future__ import annotations

__all__ = ["Report", "Section", "image_format"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from abelnet.reporting.table import Table


@dataclass(frozen=True)
class Section:
    """Section of a report.

    Attributes:
        heading: Heading; empty if the titles of the tables suffice.
        text: Preformatted lines, shown in a fixed-width font.
        tables: Tables.
        figures: PNG or SVG images by name, as returned by :func:`~abelnet.reporting.plots.draw` and
            :func:`~abelnet.reporting.curves.draw_curve`.
    """

    heading: str = ""
    text: str = ""
    tables: Sequence[Table] = ()
    figures: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """Report with a title, sections and notes.

    Attributes:
        title: Title.
        sections: Sections.
        notes: Introductory notes, one paragraph each.

    Example:
        >>> Report("Law of x", [Section("x", "x∘y = x + y")]).sections[0].heading
        'x'
    """

    title: str
    sections: Sequence[Section]
    notes: Sequence[str] = ()


def image_format(image: bytes) -> str:
    """Returns the format of an image, which is also the suffix of its file.

    Example:
        >>> image_format(b"<svg></svg>")
        'svg'
    """
    return "svg" if image.startswith(b"<svg") else "png"
