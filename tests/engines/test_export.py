"""Learned laws as text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from abelnet import AbelnetError, LawRegressor
from abelnet.engines.export import FORMATS, export_law


@pytest.fixture(scope="module")
def center() -> LawRegressor:
    generator = np.random.default_rng(0)
    sets = [generator.uniform(1, 5, (3, 2)) for _ in range(60)]
    results = [(one[:, 0].sum(), one.prod(1).sum() / one[:, 0].sum()) for one in sets]
    return LawRegressor().fit(sets, results, names=["mass", "place"])


def test_every_format_is_text(center: LawRegressor) -> None:
    texts = {to: export_law(center, to, set=["body"]) for to in FORMATS}
    assert '"mass"' in texts["sql"]
    assert texts["sql"].startswith("SELECT")
    assert "\\sum" in texts["latex"]
    assert "def aggregate" in texts["python"]
    assert "export function aggregate" in texts["javascript"]


def test_other_formats_are_named(center: LawRegressor) -> None:
    with pytest.raises(AbelnetError, match="to: expected one of sql, latex, python, javascript, got 'cobol'"):
        export_law(center, "cobol")


def test_the_example_of_the_docs_runs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})
