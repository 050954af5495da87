"""What is reported of a law that was learned from a table."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from abelnet import LawRegressor
from abelnet.engines.columns import Columns
from abelnet.reporting.charts import Chart
from abelnet.reporting.laws import law_overview, law_report, write_law
from abelnet.reporting.table import Table

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def model() -> LawRegressor:
    """A sum, off by 0.5 on one multiset of 3."""
    generator = np.random.default_rng(0)
    sets = [generator.uniform(-5, 5, size) for size in (2, 3, 4, 12) * 15]
    results = [one.sum() for one in sets]
    results[1] += 0.5
    return LawRegressor().fit(sets, results)


def tables(model: LawRegressor, columns: Columns) -> dict[str, Table]:
    (section,) = law_report(model, columns).sections
    return {table.title: table for table in section.tables}


def test_evidence(model: LawRegressor) -> None:
    found = tables(model, Columns(("x",), "account", ("y",)))
    assert found["Candidate laws, best first"].headings == ["law", "parameters", "held-out RMSE"]
    sizes = found["Error by multiset size"].rows
    # One example of three elements was left out.
    counts = [("2", "15"), ("3", "14"), ("4", "15"), ("12", "15")]
    assert [tuple(cell.text for cell in row[:2]) for row in sizes] == counts
    assert max(float(row[2].text) for row in sizes) < 0.03
    ((elements, result, law),) = found["Examples that disagree with the law"].rows
    assert len(elements.text.split(", ")) == 3
    assert float(result.text) - float(law.text) == pytest.approx(0.5, rel=1e-4)
    worst = found["Worst-fitting examples"].rows
    assert len(worst) == 10
    assert elements.text not in [row[0].text for row in worst]
    assert any(row[0].text.endswith(" …") for row in worst)  # of twelve elements eight are shown
    curve = found["The curve φ"].rows
    assert len(curve) == 11


def test_dimensions_are_named_by_the_column_that_tells_them_apart(model: LawRegressor) -> None:
    long, wide = Columns(("x",), "account", ("y",)), Columns(("a", "b"), None, ("y",))
    assert [section.heading for section in law_report(model, long).sections] == ["x"]
    assert [section.heading for section in law_report(model, wide).sections] == ["y"]
    assert law_report(model, wide).title == "The law of y"


def test_overview_is_short(model: LawRegressor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model.laws_[0], "tried", [("sum", 0, 0.1)] * 20)
    columns = Columns(("x",), "account", ("y",))
    (section,) = law_overview(model, columns).sections
    assert section.text.startswith(model.laws_[0].summary())
    assert "intervals: results of the law are known to ±" in section.text
    assert [len(table.rows) for table in section.tables] == [6, 4]
    assert len(tables(model, columns)["Candidate laws, best first"].rows) == 12
    assert not section.figures


def test_page_beside_the_model(model: LawRegressor, tmp_path: Path) -> None:
    path = write_law(model, tmp_path / "law", Columns((EVIL,), "account", ("y",)))
    assert path == tmp_path / "law" / "report.html"
    page = path.read_text(encoding="utf-8")
    assert "<h2>&lt;script&gt;alert(1)&lt;/script&gt;</h2>" in page
    assert "><script" not in page
    assert page.count("<svg") == 3
    assert LawRegressor.load(tmp_path / "law").laws_[0].formula == model.laws_[0].formula


def test_the_curve_is_drawn_without_matplotlib(model: LawRegressor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    (section,) = law_report(model, Columns(("x",), "account", ("y",))).sections
    assert isinstance(section.figures["φ of x"], Chart)
    assert "The curve φ" in [table.title for table in section.tables]


def test_what_it_was_learned_from(model: LawRegressor) -> None:
    columns = Columns(("x",), "account", ("y",))
    report = law_report(model, columns, "accounts.csv")
    (note,) = report.notes
    assert "60 multisets of 2 to 12 numbers in accounts.csv" in note
    assert "from x to y, multisets by account; random seed 0" in note
    (section,) = report.sections
    facts = dict(section.facts)
    assert facts["law"] == model.laws_[0].formula
    assert facts["learned from"].startswith("elements from ")
    assert "<math" in section.formula
    assert section.listings["SQL, for DuckDB"].endswith('FROM "elements" GROUP BY "account"')
    assert list(section.figures) == ["φ of x", "results of x", "errors of x"]
    agreement = section.figures["results of x"]
    assert isinstance(agreement, Chart)
    assert agreement.title == "y: law against examples"
