"""Parts of reports as JSON."""

from __future__ import annotations

import json

from abelnet.explore.views import section_view
from abelnet.reporting.charts import Chart, Series
from abelnet.reporting.report import Section
from abelnet.reporting.table import Cell, Column, Table


def test_sections_have_their_tables_and_charts_and_no_images() -> None:
    table = Table("T", [Column("a"), Column("b", "right")], [[Cell("<b>"), Cell("1", True)]], ["a note"])
    chart = Chart("C", "x", "y", [Series("s", [1, 2], [1, 2])])
    view = section_view(Section("H", "text", [table], {"chart": chart, "image": b"\x89PNG"}))
    assert json.loads(json.dumps(view)) == view
    assert view["heading"] == "H"
    assert view["tables"][0]["rows"] == [[{"text": "<b>", "winner": False}, {"text": "1", "winner": True}]]
    assert view["tables"][0]["notes"] == ["a note"]
    assert [one["title"] for one in view["charts"]] == ["C"]
