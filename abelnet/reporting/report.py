"""What is reported, whatever it is rendered as: sections of text, tables and figures."""

from __future__ import annotations

__all__ = ["Report", "Section"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from abelnet.reporting.table import Table


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        heading: What the section is about; empty where the tables' own titles say enough.
        text: Preformatted lines, shown in a fixed-width font.
        tables: The tables.
        figures: PNG images by name, as :func:`~abelnet.reporting.plots.draw` makes them.
    """

    heading: str = ""
    text: str = ""
    tables: Sequence[Table] = ()
    figures: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        title: What it is about.
        sections: Its parts.
        notes: What a reader has to know first, one paragraph each.

    Example:
        >>> Report("Law of x", [Section("x", "x∘y = x + y")]).sections[0].heading
        'x'
    """

    title: str
    sections: Sequence[Section]
    notes: Sequence[str] = ()
