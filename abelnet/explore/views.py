"""Parts of reports as JSON, for the page."""

from __future__ import annotations

__all__ = ["chart_view", "section_view", "table_view"]

from typing import Any

from abelnet.reporting.charts import Chart, draw_chart
from abelnet.reporting.report import Section
from abelnet.reporting.table import Table


def table_view(table: Table) -> dict[str, Any]:
    """Returns a table.

    Example:
        >>> from abelnet.reporting.table import Cell, Column
        >>> table_view(Table("Errors", [Column("size", "right")], [[Cell("2", winner=True)]]))["rows"]
        [[{'text': '2', 'winner': True}]]
    """
    return {
        "title": table.title,
        "columns": [{"heading": column.heading, "align": column.align} for column in table.columns],
        "rows": [[{"text": cell.text, "winner": cell.winner} for cell in row] for row in table.rows],
        "notes": list(table.notes),
    }


def chart_view(chart: Chart) -> dict[str, str]:
    """Returns a chart as SVG, with its title."""
    return {"title": chart.title, "svg": draw_chart(chart)}


def section_view(section: Section) -> dict[str, Any]:
    """Returns the tables and charts of a section of a report; images are left out."""
    charts = [chart_view(figure) for figure in section.figures.values() if isinstance(figure, Chart)]
    return {"heading": section.heading, "tables": [table_view(one) for one in section.tables], "charts": charts}
