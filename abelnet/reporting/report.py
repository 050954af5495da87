"""Reports, independent of their renderer: sections of text, formulas, tables, figures and listings."""

from __future__ import annotations

__all__ = ["Report", "Section", "figure_suffix"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from abelnet.reporting.charts import Chart
from abelnet.reporting.table import Table


@dataclass(frozen=True)
class Section:
    """Section of a report.

    Attributes:
        heading: Heading; empty if the titles of the tables suffice.
        text: Preformatted lines, shown in a fixed-width font.
        tables: Tables.
        figures: Charts, or PNG images as returned by :func:`~abelnet.reporting.plots.draw`, by name.
        notes: Paragraphs at the start.
        formula: Formula as MathML, shown on the page only; the facts or the text have it in plain text.
        facts: What is known, each with its name.
        listings: Source code by title, folded on the page.
        commands: The command that makes what is shown, then others that make more of it.
    """

    heading: str = ""
    text: str = ""
    tables: Sequence[Table] = ()
    figures: Mapping[str, Chart | bytes] = field(default_factory=dict)
    notes: Sequence[str] = ()
    formula: str = ""
    facts: Sequence[tuple[str, str]] = ()
    listings: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = ()


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


def figure_suffix(figure: Chart | bytes) -> str:
    """Returns the suffix of the file of a figure, without a period.

    Example:
        >>> figure_suffix(Chart("Empty", "x", "y", []))
        'svg'
    """
    return "svg" if isinstance(figure, Chart) else "png"
