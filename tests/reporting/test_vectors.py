"""What is reported of a law on vectors."""

from __future__ import annotations

import numpy as np

from abelnet import LawRegressor
from abelnet.engines.columns import Columns
from abelnet.reporting.charts import Chart
from abelnet.reporting.laws import law_report


def test_centers_of_mass() -> None:
    generator = np.random.default_rng(0)
    sets = [np.stack((generator.uniform(1, 5, n), generator.uniform(-5, 5, n)), 1) for n in (2, 3, 4) * 40]
    results = np.array([[one[:, 0].sum(), one.prod(1).sum() / one[:, 0].sum()] for one in sets])
    model = LawRegressor().partial_fit(sets, results, names=("m", "x"))
    (section,) = law_report(model, Columns(("m", "x"), "id", ("M", "X")), "bodies.csv").sections
    assert list(section.figures) == ["results of m", "results of x", "errors by size"]
    errors = section.figures["errors by size"]
    assert isinstance(errors, Chart)
    assert [series.name for series in errors.series] == ["m", "x"]
    places = section.figures["results of x"]
    assert isinstance(places, Chart)
    assert places.title == "X: law against examples"
    assert list(section.listings) == ["LaTeX", "Python", "SQL, for DuckDB"]
    assert "<math" in section.formula
    facts = dict(section.facts)
    assert "in words" in facts
    assert "" not in facts
    assert facts["learned from"].endswith("; beyond, results are extrapolated")
