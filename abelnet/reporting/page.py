"""HTML renderer: a report as one self-contained page, with inline style and figures, and without scripts."""

from __future__ import annotations

__all__ = ["html_page"]

import base64
import hashlib
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

import abelnet
from abelnet.reporting.charts import Chart, chart_element
from abelnet.reporting.printable import printable
from abelnet.reporting.report import Report, Section
from abelnet.reporting.style import STYLE
from abelnet.reporting.table import Cell, Column, Table

_CONTENTS_FROM = 3  # sections with headings; a page with fewer has no table of contents


def html_page(report: Report) -> str:
    """Renders a report as a self-contained page.

    The page is built as a tree, so all text is escaped, wherever it comes from; and a browser that shows it runs no
    script and loads nothing.

    Example:
        >>> "<h1>x &lt; y</h1>" in html_page(Report("x < y", []))
        True
    """
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    style = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; form-action 'none'"
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": policy})
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    SubElement(head, "meta", name="color-scheme", content="light dark")
    _add(head, "title", f"abelnet: {report.title}")
    SubElement(head, "style").text = STYLE
    body = SubElement(html, "body")
    header = SubElement(body, "header")
    _add(header, "h1", report.title)
    for note in report.notes:
        _add(header, "p", note)
    _add_contents(header, report)
    main = SubElement(body, "main")
    for number, section in enumerate(report.sections, 1):
        _add_section(main, section, number)
    _add(SubElement(body, "footer"), "p", f"Made by abelnet {abelnet.__version__}")
    return f"<!doctype html>\n{tostring(html, encoding='unicode', method='html')}\n"


def _add_contents(header: Element, report: Report) -> None:
    headings = {number: section.heading for number, section in enumerate(report.sections, 1) if section.heading}
    if len(headings) < _CONTENTS_FROM:
        return
    entries = SubElement(SubElement(header, "nav", {"aria-label": "Contents"}), "ol")
    for number, heading in headings.items():
        _add(SubElement(entries, "li"), "a", heading).set("href", f"#section-{number}")


def _add_section(main: Element, section: Section, number: int) -> None:
    parent = SubElement(main, "section", id=f"section-{number}")
    if section.heading:
        _add(parent, "h2", section.heading)
    for note in section.notes:
        _add(parent, "p", note)
    if section.formula:
        box = SubElement(parent, "div", {"class": "formula scroll", "tabindex": "0", "role": "group"})
        box.set("aria-label", "Formula")
        box.append(_without_namespace(fromstring(section.formula)))
    if section.facts:
        facts = SubElement(parent, "dl")
        for name, fact in section.facts:
            entry = SubElement(facts, "div")
            _add(entry, "dt", name)
            _add(entry, "dd", fact)
    if section.text:
        _add(parent, "pre", section.text)
    _add_figures(parent, section)
    for table in section.tables:
        _add_table(parent, table)
    for title, code in section.listings.items():
        listing = SubElement(parent, "details")
        _add(listing, "summary", title)
        _add(listing, "pre", code).attrib.update({"tabindex": "0", "role": "group", "aria-label": printable(title)})
    if section.commands:
        made = SubElement(parent, "p", {"class": "made"})
        made.text = "Made by "
        for i, command in enumerate(section.commands):
            _add(made, "code", command).tail = "; see also " if i == 0 and len(section.commands) > 1 else " "


def _add_figures(parent: Element, section: Section) -> None:
    if not section.figures:
        return
    grid = SubElement(parent, "div", {"class": "figures"})
    for name, figure in section.figures.items():
        frame = SubElement(grid, "figure")
        if isinstance(figure, Chart):
            frame.append(chart_element(figure))
        else:
            source = f"data:image/png;base64,{base64.b64encode(figure).decode()}"
            SubElement(frame, "img", alt=printable(name), src=source)


def _add_table(parent: Element, table: Table) -> None:
    box = SubElement(parent, "div", {"class": "scroll", "tabindex": "0", "role": "group"})
    box.set("aria-label", printable(" ".join(table.title.splitlines())))
    rows = SubElement(box, "table")
    _add(SubElement(rows, "caption"), "span", table.title)
    head = SubElement(SubElement(rows, "thead"), "tr")
    for column in table.columns:
        # A heading without text is no heading.
        _add_cell(head, "th" if column.heading else "td", column, Cell(column.heading), "col")
    body = SubElement(rows, "tbody")
    for row in table.rows:
        line = SubElement(body, "tr")
        for i, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
            _add_cell(line, "td" if i or not cell.text else "th", column, cell, "row")
    if table.notes:
        notes = SubElement(parent, "ul", {"class": "notes"})
        for note in table.notes:
            _add(notes, "li", note)


def _add_cell(row: Element, tag: str, column: Column, cell: Cell, scope: str) -> None:
    element = SubElement(row, tag, {"scope": scope} if tag == "th" else {})
    if column.align == "right":
        element.set("class", "right")
    if cell.winner:
        element = SubElement(element, "strong")
    element.text = printable(cell.text)


def _add(parent: Element, tag: str, text: str) -> Element:
    element = SubElement(parent, tag)
    element.text = "\n".join(map(printable, text.splitlines()))
    return element


def _without_namespace(element: Element) -> Element:
    """Returns a tree as HTML has it: elements of MathML are known by their names."""
    for one in element.iter():
        one.tag = one.tag.rpartition("}")[2]
    return element
