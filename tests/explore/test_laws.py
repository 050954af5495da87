"""Learning on the page: the law, its code on the same table, its results on numbers, and refusals."""

from __future__ import annotations

import json
from typing import Any
from xml.etree.ElementTree import fromstring

import duckdb
import numpy as np
import pytest

from abelnet.errors import AbelnetError
from abelnet.explore import laws
from abelnet.explore.presets import PRESETS
from abelnet.explore.tables import stored
from abelnet.explore.tasks import run_task


def task(name: str, **given: Any) -> dict[str, Any]:
    return run_task(name, json.dumps(given).encode(), lambda step: None)


def learned(name: str) -> dict[str, Any]:
    preset = PRESETS[name]
    key, values, targets = preset.columns
    return task("learn", text=preset.text, set=key, values=values, targets=targets, table="examples")


@pytest.fixture(scope="module")
def returns() -> dict[str, Any]:
    return learned("returns")


@pytest.fixture(scope="module")
def fusion() -> dict[str, Any]:
    return learned("gaussian_fusion")


def test_a_law_has_its_formula_evidence_and_code(returns: dict[str, Any]) -> None:
    (law,) = returns["laws"]
    assert law["formula"] == "x∘y = x + y + x·y"
    assert fromstring(law["mathml"]).get("alttext") == law["formula"]
    assert {"domain", "held-out error"} <= {name for name, _ in law["facts"]}
    titles = [table["title"] for table in law["tables"]]
    assert "Candidate laws, best first" in titles
    assert "Error by multiset size" in titles
    assert all(fromstring(chart["svg"]).tag.endswith("svg") for chart in law["charts"])
    assert law["charts"]
    scope: dict[str, Any] = {}
    exec(returns["code"]["python"], scope)
    assert scope["aggregate"]([0.1, 0.2]) == pytest.approx(0.32)
    assert returns["code"]["latex"].startswith(r"x \circ y =")


@pytest.mark.parametrize("which", ["returns", "fusion"])
def test_the_sql_gives_the_results_of_the_table(which: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(which)
    preset = PRESETS["returns" if which == "returns" else "gaussian_fusion"]
    key, _, targets = preset.columns
    with stored(preset.text) as path, duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE examples AS FROM read_csv('{path}')")
        rows = connection.execute(found["code"]["sql"]["duckdb"]).fetchall()
        names = ", ".join(f'first("{name}")' for name in targets)
        truth = connection.execute(f'SELECT "{key}", {names} FROM examples GROUP BY ALL').fetchall()
    np.testing.assert_allclose(sorted(rows), sorted(truth), rtol=1e-9, atol=1e-9)


def test_a_set_is_combined_with_its_interval(returns: dict[str, Any], fusion: dict[str, Any]) -> None:
    answer = task("predict", id=returns["id"], elements="0.1, 0.2; 0.05")
    (result,) = answer["results"]
    assert answer["size"] == 3
    assert float(result["value"]) == pytest.approx(1.1 * 1.2 * 1.05 - 1)
    assert float(result["low"]) <= float(result["value"]) <= float(result["high"])
    assert not result["extrapolated"]
    assert task("predict", id=returns["id"], elements="5 5")["results"][0]["extrapolated"]
    answer = task("predict", id=fusion["id"], elements="1, 2\n3, 2\n")
    assert [one["value"] for one in answer["results"]] == ["2", "1"]
    assert [one["name"] for one in answer["results"]] == ["fused_mean", "fused_variance"]


def test_the_first_example_is_suggested(returns: dict[str, Any], fusion: dict[str, Any]) -> None:
    first = [line.split(",") for line in PRESETS["returns"].text.splitlines()[1:] if line.startswith("1,")]
    assert returns["try"] == ", ".join(row[1] for row in first)
    assert len(fusion["try"].splitlines()[0].split(",")) == 2


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ("", "at least one number"),
        ("1, two", "expected numbers, got 'two'"),
        ("1, inf", "expected numbers, got 'inf'"),
        ("1, nan", "expected numbers, got 'nan'"),
        ("<b>", "expected numbers"),
        ("1 " * 20_000, "at most 10,000"),
    ],
)
def test_elements_that_are_no_numbers(returns: dict[str, Any], elements: str, message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        task("predict", id=returns["id"], elements=elements)


def test_lines_of_vectors_have_all_coordinates(fusion: dict[str, Any]) -> None:
    with pytest.raises(AbelnetError, match=r"expected 2 numbers on each line \(mean, variance\), got 1"):
        task("predict", id=fusion["id"], elements="1 2\n1")


def test_a_row_per_set() -> None:
    lines = [f"{a},{b},{a + b}" for a in range(5) for b in range(5)]
    found = task("learn", text="a,b,sum\n" + "\n".join(lines), values=["a", "b"], targets=["sum"])
    assert found["laws"][0]["formula"] == "x∘y = x + y"
    assert not found["is_long"]
    assert '"value"' in found["code"]["sql"]["duckdb"]


def test_a_refusal_is_a_result() -> None:
    lines = [f"{a},{b},{a + 3 * b}" for a in range(1, 6) for b in range(1, 6)]
    found = task("learn", text="a,b,y\n" + "\n".join(lines), values=["a", "b"], targets=["y"])
    assert "the nearest law explains" in found["refusal"]
    assert not found["refusal"][0].islower()
    assert found["details"]
    assert "laws" not in found
    assert "\n" not in found["refusal"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "a,b,y\n1,2,3\n", "values": [], "targets": ["y"]}, "value: expected at least one column"),
        ({"text": "a,b,y\n1,2,3\n", "values": ["a", "b"], "targets": []}, "expected targets"),
        ({"text": "a,b,y\n1,2,3\n", "values": ["a", "c"], "targets": ["y"]}, "table: expected a column c"),
        ({"text": "a,b,y\n1,x,3\n", "values": ["a", "b"], "targets": ["y"]}, "table, line 2: expected a number"),
        ({"text": "s,a,y\n1,2,3\n1,,3\n", "set": "s", "values": ["a"], "targets": ["y"]}, "tick"),
    ],
)
def test_tables_that_do_not_fit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        task("learn", **given)


def test_laws_are_forgotten_in_turn(returns: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "_KEPT", 1)
    kept = dict(laws._laws)
    lines = [f"{a},{b},{a + b}" for a in range(5) for b in range(5)]
    task("learn", text="a,b,sum\n" + "\n".join(lines), values=["a", "b"], targets=["sum"])
    with pytest.raises(AbelnetError, match="no longer in memory; learn it again"):
        task("predict", id=returns["id"], elements="1")
    laws._laws.update(kept)
