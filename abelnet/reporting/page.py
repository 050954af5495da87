"""HTML renderer: a report as one self-contained page, with inline style and figures."""

from __future__ import annotations

__all__ = ["html_page"]

import base64
from xml.etree.ElementTree import Element, SubElement, tostring

from abelnet.reporting.charts import CHART_STYLE, Chart, chart_element
from abelnet.reporting.printable import printable
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 75rem; margin: 2rem auto; padding: 0 1rem }
pre { background: #f6f6f6; padding: 1rem; font-size: 1.1rem; white-space: pre-wrap }
div { overflow-x: auto }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { border-bottom: 1px solid #ddd; padding: .2rem .8rem; text-align: left; white-space: nowrap }
.right { text-align: right }
figure { margin: 1rem 0 }
img { max-width: 100% }
"""


def html_page(report: Report) -> str:
    """Renders a report as a self-contained page.

    The page is built as a tree, so all text is escaped, wherever it comes from.

    Example:
        >>> "<h1>x &lt; y</h1>" in html_page(Report("x < y", []))
        True
    """
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _add(head, "title", f"abelnet: {report.title}")
    _add(head, "style", _STYLE + CHART_STYLE)
    body = SubElement(html, "body")
    _add(body, "h1", report.title)
    for note in report.notes:
        _add(body, "p", note)
    for section in report.sections:
        _add_section(body, section)
    return f"<!doctype html>\n{tostring(html, encoding='unicode', method='html')}\n"


def _add_section(body: Element, section: Section) -> None:
    parent = SubElement(body, "section")
    if section.heading:
        _add(parent, "h2", section.heading)
    if section.text:
        _add(parent, "pre", section.text)
    for table in section.tables:
        _add_table(parent, table)
    for name, figure in section.figures.items():
        frame = SubElement(parent, "figure")
        if isinstance(figure, Chart):
            frame.append(chart_element(figure))
        else:
            source = f"data:image/png;base64,{base64.b64encode(figure).decode()}"
            SubElement(frame, "img", alt=name, src=source)


def _add_table(parent: Element, table: Table) -> None:
    _add(parent, "h3", table.title)
    rows = SubElement(SubElement(parent, "div"), "table")
    head = SubElement(SubElement(rows, "thead"), "tr")
    for column in table.columns:
        _add_cell(head, "th", column, Cell(column.heading))
    body = SubElement(rows, "tbody")
    for row in table.rows:
        line = SubElement(body, "tr")
        for column, cell in zip(table.columns, row, strict=True):
            _add_cell(line, "td", column, cell)
    if table.notes:
        notes = SubElement(parent, "ul")
        for note in table.notes:
            _add(notes, "li", note)


def _add_cell(row: Element, tag: str, column: Column, cell: Cell) -> None:
    element = SubElement(row, tag, {"class": "right"} if column.align == "right" else {})
    if cell.winner:
        element = SubElement(element, "strong")
    element.text = printable(cell.text)


def _add(parent: Element, tag: str, text: str) -> None:
    SubElement(parent, tag).text = "\n".join(map(printable, text.splitlines()))
