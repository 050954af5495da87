"""The HTML page: escaped, well-formed, and in need of nothing else."""

from __future__ import annotations

import base64
from html.parser import HTMLParser

from abelnet.reporting.page import html_page
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

EVIL = "<script>alert('&')</script>\""


class Reader(HTMLParser):
    """Collects tags with their attributes and text; fails on a tag that is closed out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def read(self, page: str) -> Reader:
        self.feed(page)
        self.close()
        assert not self._open
        return self


def test_whatever_is_in_a_report_is_escaped() -> None:
    table = Table(EVIL, [Column(EVIL), Column(EVIL)], [[Cell(EVIL), Cell(EVIL, winner=True)]], [EVIL])
    page = html_page(Report(EVIL, [Section(EVIL, EVIL, [table], {EVIL: b"PNG"})], [EVIL]))
    reader = Reader().read(page)
    assert "script" not in reader.tags
    # Heading, note, section, text, title of the table, two headings, two cells, note of the table.
    assert reader.texts.count(EVIL) == 10
    assert f"abelnet: {EVIL}" in reader.texts
    assert ("alt", EVIL) in reader.attributes


def test_winners_are_strong_and_columns_aligned() -> None:
    columns = [Column("model"), Column("RMSE", "right")]
    page = html_page(Report("t", [Section(tables=[Table("e", columns, [[Cell("AGN"), Cell("1", winner=True)]])])]))
    assert '<td>AGN</td><td class="right"><strong>1</strong></td>' in page
    assert '<th>model</th><th class="right">RMSE</th>' in page


def test_figures_are_in_the_page() -> None:
    page = html_page(Report("t", [Section(figures={"curve": b"image"})]))
    source = f"data:image/png;base64,{base64.b64encode(b'image').decode()}"
    assert {("alt", "curve"), ("src", source)} <= set(Reader().read(page).attributes)
    assert "http" not in page


def test_empty_parts_leave_nothing_behind() -> None:
    tags = Reader().read(html_page(Report("t", [Section()]))).tags
    assert not {"h2", "h3", "pre", "table", "figure", "ul", "p"} & set(tags)


def test_control_characters_are_escaped() -> None:
    bad = "x\x1b\u202e"
    table = Table(bad, [Column(bad)], [[Cell(bad)]], [bad])
    page = html_page(Report(bad, [Section(bad, f"one\ntwo {bad}", [table])], [bad]))
    assert not set(bad[1:]) & set(page)
    assert "<pre>one\ntwo x\\x1b\\u202e</pre>" in page
