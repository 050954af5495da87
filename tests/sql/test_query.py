"""Queries give the results of operations, in DuckDB and in SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from cases import ELEMENTWISE, FAMILY_CASES, VECTOR_CASES, randomise
from laws_of_practice import LAWS, draw
from sql_cases import ODD_NAMES, SCALAR, check, generator, multisets
from sql_engines import in_duckdb, in_sqlite

from abelnet import (
    AbelianGroup,
    AbelnetError,
    LawRegressor,
    Mean,
    Operation,
    Polynomial,
    RationalQuadraticSpline,
    Sum,
    Triangular,
)
from abelnet.bijections import FAMILIES
from abelnet.bijections.terms import Curve, Monomial, Power
from abelnet.sql import aggregate_query, quote, select

FORMS = {"sum": Sum(), "mean": Mean(), "shifted sum": Polynomial(0.0, 0.37), "product": Polynomial(-0.7, 0.3)}


@pytest.fixture(scope="module")
def duck() -> Iterator[Any]:
    with in_duckdb() as run:
        yield run


@pytest.fixture(scope="module")
def lite() -> Iterator[Any]:
    with in_sqlite() as run:
        yield run


@pytest.mark.parametrize("name", SCALAR)
def test_laws_of_numbers(duck: Any, lite: Any, name: str) -> None:
    operation, low, high = SCALAR[name]
    special = [x for x in (0.0, 1.0, -1.0, 0.5) if low <= x <= high]
    sets = multisets(lambda g, n: g.uniform(low, high, n), special)
    check(duck, [(operation, [0])], sets, "duckdb")
    check(lite, [(operation, [0])], sets, "sqlite")


@pytest.mark.parametrize("name", FAMILY_CASES)
def test_families_in_all_their_forms(duck: Any, name: str) -> None:
    kind, parameters, low, high = FAMILY_CASES[name]
    special = [x for x in (0.0, 1.0) if low <= x <= high]
    sets = multisets(lambda g, n: g.uniform(low, high, n), special, 200)
    for form in FAMILIES[kind].forms:
        check(duck, [(Operation(generator(kind, *parameters), FORMS[form]), [0])], sets, "duckdb")


@pytest.mark.parametrize("name", [name for name in VECTOR_CASES if "implicit" not in name])
def test_laws_of_vectors(duck: Any, lite: Any, name: str) -> None:
    make, low, high = VECTOR_CASES[name]
    sets = multisets(lambda g, n: g.uniform(low, high, (n, len(low))), largest=1000)
    operation = AbelianGroup(make(torch.float64))
    check(duck, [(operation, range(len(low)))], sets, "duckdb")
    if name in ("pooled_variance", "complex_product", "phasors", "real_powers"):
        check(lite, [(operation, range(len(low)))], sets, "sqlite")


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_curves(duck: Any, name: str) -> None:
    operation = Operation(ELEMENTWISE[name](torch.float64), Polynomial(0.2))
    sets = multisets(lambda g, n: g.uniform(-7, 7, (n, 3)) / n**0.5, largest=1000)
    check(duck, [(operation, range(3))], sets, "duckdb")


def test_curves_in_sqlite(lite: Any) -> None:
    spline = randomise(RationalQuadraticSpline(1, bins=5, dtype=torch.float64))
    check(lite, [(AbelianGroup(spline), [0])], multisets(lambda g, n: g.uniform(-7, 7, n)), "sqlite")


def test_curves_within_a_law_of_vectors(duck: Any) -> None:
    for heights in ([0.0, 1.0, 4.0, 5.0], [3.0, 1.0, 0.5, -2.0]):
        mass, moment = Monomial((Power(0),)), Monomial((Power(0), Curve(1, [0.0, 1.0, 2.0, 3.0], heights)))
        law = AbelianGroup(Triangular(2, [[mass], [moment]], [[1.0], [1.0]], signs=[1, 0], dtype=torch.float64))
        check(duck, [(law, [0, 1])], multisets(lambda g, n: g.uniform(0.1, 3, (n, 2))), "duckdb")


def test_several_laws_in_any_order(duck: Any, lite: Any) -> None:
    center = AbelianGroup(VECTOR_CASES["center_of_mass"][0](torch.float64))
    laws = [(center, [2, 0]), (SCALAR["log-sum-exp far out"][0], [1]), (SCALAR["returns"][0], [3])]
    sets = multisets(lambda g, n: g.uniform(0.1, 2, (n, 4)))
    check(duck, laws, sets, "duckdb")
    check(lite, laws, sets, "sqlite")


def test_learned_models_agree_with_predict(duck: Any) -> None:
    sets, results = draw(*LAWS["returns"][:3], count=60)
    model = LawRegressor().fit(sets, results)
    rows = [(i, float(x)) for i, one in enumerate(sets) for x in one]
    found = dict(duck(model.sql(table="t", set="set", value="v1"), rows))
    assert np.allclose([found[i] for i in range(60)], model.predict(sets), rtol=1e-12)
    assert model.laws_[0].sql(table="t", set="set", value="v1") == model.sql(table="t", set="set", value="v1")


@pytest.mark.parametrize("engine", ["duck", "lite"])
def test_missing_elements_and_elements_outside_the_domain(engine: str, request: pytest.FixtureRequest) -> None:
    run, dialect = request.getfixturevalue(engine), {"duck": "duckdb", "lite": "sqlite"}[engine]
    norm = [(AbelianGroup(generator("positive power", 2.0)), [0])]
    rows = [(0, 3.0), (0, None), (0, 4.0), (1, 3.0), (1, -4.0), (2, None), (None, 3.0)]
    found = dict(run(select(norm, table="t", set="set", value="v1", dialect=dialect), rows))
    assert found == {0: 5.0, 1: None, 2: None, None: 3.0}
    center = [(AbelianGroup(VECTOR_CASES["center_of_mass"][0](torch.float64)), [0, 1])]
    rows = [(0, 1.0, 2.0), (0, None, None), (1, 1.0, 2.0), (1, 1.0, None), (2, -1.0, 1.0)]
    found = {
        row[0]: row[1:] for row in run(select(center, table="t", set="set", value=["v1", "v2"], dialect=dialect), rows)
    }
    assert found == {0: (1.0, 2.0), 1: (None, None), 2: (None, None)}
    sigmoid = [(SCALAR["log-sum-exp far out"][0], [0])]
    rows = [(0, None), (0, 1000.0), (1, None)]
    assert dict(run(select(sigmoid, table="t", set="set", value="v1", dialect=dialect), rows)) == {0: 1000.0, 1: None}


def test_a_law_without_a_result_gives_null(duck: Any) -> None:
    law = [(Operation(generator("positive power", 2.0), Polynomial(0.0, -1.0)), [0])]  # x² + y² − 1
    assert duck(select(law, table="t", set=None, value="v1"), [(0, 0.1), (0, 0.2)]) == [(None,)]


def test_integers_decimals_and_whole_tables(duck: Any, lite: Any) -> None:
    harmonic = [(AbelianGroup(generator("positive power", -1.0)), [0])]
    assert duck(select(harmonic, table="t", set=None, value="v1"), [(0, 3), (0, 6)]) == [(2.0,)]
    assert lite(select(harmonic, table="t", set=None, value="v1", dialect="sqlite"), [(0, 3), (0, 6)]) == [(2.0,)]
    query = aggregate_query(
        harmonic, "(VALUES (1, 3.0::DECIMAL(4, 1)), (1, 6)) AS a(k, v)", ["k"], ["v"], compensated=True
    )
    assert "fsum" in query
    assert duck(query, [(0, 0.0)]) == [(1, 2.0)]


@pytest.mark.parametrize("name", ["returns", "log-sum-exp far out", "mean"])
def test_largest_of_a_further_column(duck: Any, name: str) -> None:
    source = "(VALUES (1, 0.5, 3::TINYINT), (1, 0.25, -1), (2, 0.5, NULL)) AS a(k, v, mark)"
    query = aggregate_query([(SCALAR[name][0], [0])], source, ["k"], ["v"], count="n", largest="mark")
    assert {row[0]: row[2:] for row in duck(query, [(0, 0.0)])} == {1: (3, 2), 2: (None, 1)}
    assert duck(f"SELECT DISTINCT typeof(mark) FROM ({query})", [(0, 0.0)]) == [("TINYINT",)]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_do_nothing_but_name_a_column(duck: Any, lite: Any, name: str) -> None:
    law = [(SCALAR["returns"][0], [0])]
    for run, dialect in ((duck, "duckdb"), (lite, "sqlite")):
        for table, group, value in ((name, name, "b"), ("a", "b", name)):
            query = select(law, table=table, set=group, value=value, dialect=dialect, results=["total"])
            rows = run(query, [(1, 0.5), (2, 1.0), (1, 0.5)], [group, value], table)
            assert dict(rows) == pytest.approx({1: 1.25, 2: 1.0}, rel=1e-12)
        query = select(law, table="a", set="b", value="c", dialect=dialect, results=[name])
        assert dict(run(query, [(1, 0.5)], ["b", "c"], "a")) == pytest.approx({1: 0.5}, rel=1e-12)


def test_wrong_arguments_are_named() -> None:
    law = [(SCALAR["returns"][0], [0])]
    for bad, message in (
        ({"value": ["a", "b"]}, "value: expected 1 columns"),
        ({"dialect": "oracle"}, "dialect: expected one of duckdb"),
        ({"results": ["k"]}, "results: expected 1 names other than"),
        ({"table": ""}, "name: expected the name"),
        ({"value": "a\0b"}, "name: expected the name"),
    ):
        with pytest.raises(AbelnetError, match=message):
            select(law, **({"table": "t", "set": "k", "value": "v"} | bad))
    implicit = AbelianGroup(VECTOR_CASES["implicit"][0](torch.float64))
    with pytest.raises(AbelnetError, match="law: expected one with a closed form, got one over Implicit"):
        select([(implicit, [0, 1])], table="t", set="k", value=["a", "b"])


def test_quoting_keeps_every_character() -> None:
    assert [quote(name)[1:-1].replace('""', '"') for name in ODD_NAMES] == ODD_NAMES


def test_queries_of_plain_laws_are_plain() -> None:
    def query(operation: Operation) -> str:
        return select([(operation, [0])], table="sales", set="shop", value="price")

    assert (
        query(SCALAR["sum"][0])
        == 'SELECT "shop", SUM(CAST("price" AS DOUBLE)) AS "result" FROM "sales" GROUP BY "shop"'
    )
    assert query(SCALAR["minimum"][0]).startswith('SELECT "shop", MIN(CAST("price" AS DOUBLE)) AS "result"')
    spline = AbelianGroup(RationalQuadraticSpline(1, bins=20, dtype=torch.float64))
    assert len(query(spline)) < 20_000
