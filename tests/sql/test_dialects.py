"""Every law of the learner's tests on every engine, run by ``make test-engines``; dialects without an engine."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from cases import FAMILY_CASES, VECTOR_CASES
from laws_of_practice import CAPPED, LAWS, MEANS, draw
from sql_cases import ODD_NAMES, SCALAR, check, generator, multisets
from sql_engines import ENGINES
from vector_laws import LAWS as OF_VECTORS
from vector_laws import WIDER
from vector_laws import draw as draw_vectors

from abelnet import AbelianGroup, LawRegressor, Operation
from abelnet.bijections import FAMILIES
from abelnet.sql import DIALECTS, select

needs_engines = pytest.mark.skipif("ABELNET_ENGINES" not in os.environ, reason="run by make test-engines")


def test_every_dialect_is_one_query() -> None:
    for name in DIALECTS:
        query = select([(SCALAR["returns"][0], [0])], table="t", set="k", value="v", dialect=name)
        assert query.startswith("SELECT")
        assert ";" not in query


@cache
def learned() -> dict[str, tuple[LawRegressor, Any]]:
    """Learns every law of the lists, with a function that draws elements."""
    found: dict[str, tuple[LawRegressor, Any]] = {}
    for name, (low, high, fold, _) in (LAWS | MEANS | CAPPED).items():
        model = LawRegressor().fit(*draw(low, high, fold))
        found[name] = model, lambda g, n, low=low, high=high: g.uniform(low, high, n)
    for name, law in (OF_VECTORS | WIDER).items():
        found[name] = LawRegressor().fit(*draw_vectors(law, 300, 0), names=law.names), law.elements
    # A law without a formula.
    xs = np.linspace(-9, 9, 100_001)
    ys = xs + 0.9 * np.sin(xs) + 0.02 * xs**3
    sets, results = draw(-2, 2, lambda x: np.interp(np.interp(x, xs, ys).sum(), ys, xs))
    found["a curve"] = LawRegressor().fit(sets, results), lambda g, n: g.uniform(-2, 2, n)
    return found


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    if "ABELNET_ENGINES" not in os.environ:
        pytest.skip("run by make test-engines")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of engines about their own dependencies
        with ENGINES[request.param]() as run:
            yield request.param, run


@needs_engines
def test_learned_laws(engine: tuple[str, Any]) -> None:
    dialect, run = engine
    wrong = {}
    for name, (model, elements) in learned().items():
        laws = [(law.operation, block) for law, block in zip(model.laws_, model.blocks_, strict=True)]
        try:
            check(run, laws, multisets(elements), dialect)
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {error!s:.2500}"
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())


@needs_engines
def test_laws_of_all_kinds(engine: tuple[str, Any]) -> None:
    dialect, run = engine
    wrong = {}
    for name, (operation, low, high) in SCALAR.items():
        special = [x for x in (0.0, 1.0, -1.0, 0.5) if low <= x <= high]
        try:
            sets = multisets(lambda g, n, low=low, high=high: g.uniform(low, high, n), special)
            check(run, [(operation, [0])], sets, dialect)
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {error!s:.2500}"
    for name, (kind, parameters, low, high) in FAMILY_CASES.items():
        if "sum" not in FAMILIES[kind].forms:
            continue
        try:
            sets = multisets(lambda g, n, low=low, high=high: g.uniform(low, high, n), largest=200)
            check(run, [(AbelianGroup(generator(kind, *parameters)), [0])], sets, dialect)
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {error!s:.2500}"
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())


@needs_engines
def test_missing_elements(engine: tuple[str, Any]) -> None:
    dialect, run = engine
    norm = [(AbelianGroup(generator("positive power", 2.0)), [0])]
    rows = [(0, 3.0), (0, None), (0, 4.0), (1, 3.0), (1, -4.0), (2, None), (2, None)]
    found = dict(run(select(norm, table="t", set="set", value="v1", dialect=dialect), rows))
    assert found == {0: 5.0, 1: None, 2: None}
    center: list[tuple[Operation, list[int]]] = [
        (AbelianGroup(VECTOR_CASES["center_of_mass"][0](torch.float64)), [0, 1])
    ]
    rows_of_two = [(0, 1.0, 2.0), (0, None, None), (1, 1.0, 2.0), (1, 1.0, None), (2, -1.0, 1.0)]
    query = select(center, table="t", set="set", value=["v1", "v2"], dialect=dialect)
    assert {row[0]: tuple(row[1:]) for row in run(query, rows_of_two)} == {
        0: (1.0, 2.0),
        1: (None, None),
        2: (None, None),
    }


@needs_engines
@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_do_nothing_but_name_a_column(engine: tuple[str, Any], name: str) -> None:
    dialect, run = engine
    law = [(SCALAR["returns"][0], [0])]
    for table, group, value in ((name, "a", "b"), ("a", name, "b"), ("a", "b", name)):
        query = select(law, table=table, set=group, value=value, dialect=dialect, results=["total"])
        rows = run(query, [(1, 0.5), (2, 1.0), (1, 0.5)], [group, value], table)
        assert dict(rows) == pytest.approx({1: 1.25, 2: 1.0}, rel=1e-12)
    query = select(law, table="a", set="b", value="c", dialect=dialect, results=[name])
    assert dict(run(query, [(1, 0.5)], ["b", "c"], "a")) == pytest.approx({1: 0.5}, rel=1e-12)
