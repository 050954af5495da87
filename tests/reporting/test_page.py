"""The HTML page: escaped, well-formed, and in need of nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from abelnet.reporting.charts import Chart, Series
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
    chart = Chart(EVIL, EVIL, EVIL, [Series(EVIL, [1], [1])], description=EVIL)
    figures = {EVIL: b"PNG", "chart": chart}
    section = Section(
        EVIL, EVIL, [table], figures, [EVIL], facts=[(EVIL, EVIL)], listings={EVIL: EVIL}, commands=[EVIL]
    )
    page = html_page(Report(EVIL, [section] * 3, [EVIL]))
    reader = Reader().read(page)
    assert "script" not in reader.tags
    # Heading, note; of each section: its entry in the contents, heading, note, two of facts, text, five of the chart,
    # title of the table, two headings, two cells, note of the table, two of the listing, command.
    assert reader.texts.count(EVIL) == 2 + 3 * (6 + 6 + 6 + 3)
    assert f"abelnet: {EVIL}" in reader.texts
    assert ("alt", EVIL) in reader.attributes


def test_winners_are_strong_and_columns_aligned() -> None:
    columns = [Column("model"), Column("RMSE", "right")]
    page = html_page(Report("t", [Section(tables=[Table("e", columns, [[Cell("AGN"), Cell("1", winner=True)]])])]))
    assert '<th scope="row">AGN</th><td class="right"><strong>1</strong></td>' in page
    assert '<th scope="col">model</th><th scope="col" class="right">RMSE</th>' in page
    assert "<caption><span>e</span></caption>" in page


def test_figures_are_in_the_page() -> None:
    page = html_page(Report("t", [Section(figures={"curve": b"image"})]))
    source = f"data:image/png;base64,{base64.b64encode(b'image').decode()}"
    assert {("alt", "curve"), ("src", source)} <= set(Reader().read(page).attributes)
    assert "http:" not in page
    assert "https:" not in page


def test_charts_are_drawn_in_the_page() -> None:
    chart = Chart("Errors", "size", "RMSE", [Series("AGN", [1, 2], [3, 4])])
    reader = Reader().read(html_page(Report("t", [Section(figures={"errors": chart})])))
    assert "svg" in reader.tags
    assert {"Errors", "size", "RMSE", "AGN"} <= set(reader.texts)


def test_the_page_runs_and_loads_nothing() -> None:
    page = html_page(Report("t", [Section("h", "text", commands=["abelnet learn"])]))
    attributes = dict(Reader().read(page).attributes)
    policy = re.search(r'content="(default-src[^"]*)"', page)
    assert policy is not None
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy[1].startswith(f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:;")
    assert not {"style", "onclick"} & set(attributes)  # which the policy would refuse


def test_it_fits_a_phone_in_light_and_dark() -> None:
    page = html_page(Report("t", [Section(tables=[Table("wide", [Column("a")] * 40, [[Cell("1")] * 40])])]))
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "prefers-color-scheme: dark" in page
    assert '<div class="scroll" tabindex="0" role="group" aria-label="wide"><table>' in page


def test_contents_lead_to_the_sections() -> None:
    page = html_page(Report("t", [Section("one"), Section(), Section("two"), Section("three")]))
    links = re.findall(r'<a href="#([\w-]+)">(\w+)</a>', page)
    assert [name for _, name in links] == ["one", "two", "three"]
    assert all(f'<section id="{place}"><h2>{name}</h2>' in page for place, name in links)
    assert "<nav" not in html_page(Report("t", [Section("one"), Section("two")]))


def test_formulas_are_typeset() -> None:
    formula = '<math xmlns="http://www.w3.org/1998/Math/MathML" alttext="x"><mi>x</mi></math>'
    page = html_page(Report("t", [Section(formula=formula)]))
    assert '<math alttext="x"><mi>x</mi></math>' in page


def test_empty_parts_leave_nothing_behind() -> None:
    main = re.search("<main>.*</main>", html_page(Report("t", [Section()])))
    assert main is not None
    assert main[0] == '<main><section id="section-1"></section></main>'


def test_control_characters_are_escaped() -> None:
    bad = "x\x1b\u202e"
    table = Table(bad, [Column(bad)], [[Cell(bad)]], [bad])
    page = html_page(Report(bad, [Section(bad, f"one\ntwo {bad}", [table])], [bad]))
    assert not set(bad[1:]) & set(page)
    assert "<pre>one\ntwo x\\x1b\\u202e</pre>" in page
