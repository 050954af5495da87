"""Laws run by DuckDB: equal to the states of torch, and to themselves whatever the order and the threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from abelnet import AbelianGroup, AbelianSemigroup, Generator, LawRegressor, Maximum, Mean, Monotonic, Operation
from abelnet.bijections.spline import spline_through
from abelnet.discovery.report import LearnedLaw
from abelnet.engines.columns import Columns
from abelnet.engines.folding import fold_states
from abelnet.engines.native import aggregate
from abelnet.engines.reading import open_table

Numbers = dict[str, np.ndarray]
AFFINE = Generator(1, "affine", dtype=torch.float64)
OPERATIONS = {
    "sum": AbelianGroup(AFFINE),
    "product": AbelianSemigroup(AFFINE),
    "norm": AbelianGroup(Generator(1, "positive power", [2.0], dtype=torch.float64)),
    "maximum": Operation(AFFINE, Maximum()),
    "mean": Operation(AFFINE, Mean()),
    "spline": AbelianGroup(spline_through(*2 * [np.linspace(-1, 4, 30) ** 3])),
    "network": AbelianGroup(Monotonic(1, seed=0, dtype=torch.float64)),
}


def model(operation: Operation) -> LawRegressor:
    law = LearnedLaw(operation, "a law", 0.0, 1.0)
    return LawRegressor.from_config(LawRegressor().get_params() | {"flat": True, "laws": [law]})


def table(count: int = 20_000) -> Numbers:
    generator = np.random.default_rng(0)
    numbers = generator.lognormal(0, 2, count)
    numbers[generator.integers(count, size=count // 10)] = 0
    return {"s": generator.integers(500, size=count), "x": numbers}


def run(numbers: Numbers, work: object, threads: int = 2) -> tuple[int, list[tuple[object, ...]]]:
    with open_table(numbers, Columns(("x",), "s")) as opened:
        opened.database.run(f"SET threads = {threads}")
        rows = work(opened)  # type: ignore[operator]
        return rows, opened.database.run("SELECT s, y0, strange FROM results ORDER BY s")


@pytest.mark.parametrize("name", OPERATIONS)
def test_equal_to_the_states_of_torch(name: str) -> None:
    numbers = table()
    rows, found = run(numbers, lambda opened: aggregate(opened, model(OPERATIONS[name])))
    assert rows == len(numbers["s"])
    _, expected = run(numbers, lambda opened: fold_states(opened, model(OPERATIONS[name])))
    assert [row[::2] for row in found] == [row[::2] for row in expected]
    np.testing.assert_allclose(*([row[1] for row in rows] for rows in (found, expected)), rtol=1e-12)


@pytest.mark.parametrize("name", ["spline", "network"])
def test_curves_need_no_states_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("abelnet.engines.native.fold_states")
    rows, _ = run(table(), lambda opened: aggregate(opened, model(OPERATIONS[name])))
    assert rows == len(table()["s"])


def test_the_same_bits_in_any_order() -> None:
    generator, law = np.random.default_rng(1), model(OPERATIONS["norm"])
    numbers = {"s": generator.integers(500, size=200_000), "x": generator.uniform(0.01, 1, 200_000)}
    order = generator.permutation(len(numbers["s"]))
    shuffled = {name: column[order] for name, column in numbers.items()}
    first, *others = [run(one, lambda opened: aggregate(opened, law), 4) for one in (numbers, numbers, shuffled)]
    assert all(other == first for other in [*others, run(numbers, lambda opened: aggregate(opened, law), 1)])
    sums = [np.sqrt(np.sum(numbers["x"][numbers["s"] == s] ** 2)) for s in range(500)]
    np.testing.assert_allclose([row[1] for row in first[1]], sums, rtol=1e-14)


def test_rows_that_the_files_count(tmp_path: Path) -> None:
    numbers, law = table(), model(OPERATIONS["norm"])
    expected = run(numbers, lambda opened: aggregate(opened, law))
    with open_table(numbers, Columns(("x",), "s")) as opened:
        for name, half in (("a", "<"), ("b", ">=")):
            rows = f"SELECT * FROM ({opened.rows}) WHERE s {half} 250"
            opened.database.run(f"COPY ({rows}) TO '{tmp_path / name}.parquet'")
    with open_table(tmp_path, Columns(("x0",), "s")) as opened:
        assert opened.count() == aggregate(opened, law) == expected[0]
        assert opened.database.run("SELECT s, y0, strange FROM results ORDER BY s") == expected[1]


def test_numbers_of_very_different_sizes() -> None:
    numbers = {"s": np.array([1, 1, 2, 2, 3]), "x": np.array([1.0, 1e300, 1e-200, 1e-200, 0.0])}
    _, found = run(numbers, lambda opened: aggregate(opened, model(OPERATIONS["sum"])))
    assert found == [(1, 1e300, False), (2, 2e-200, False), (3, 0.0, False)]


@pytest.mark.parametrize("share", [0.0005, 0.5])
def test_signs_that_the_first_rows_do_not_have(share: float) -> None:
    generator = np.random.default_rng(2)
    numbers = {"s": generator.integers(500, size=20_000), "x": generator.uniform(0.5, 2, 20_000)}
    later = np.flatnonzero((generator.random(20_000) < share) & (np.arange(20_000) > 2000))
    numbers["x"][later] *= -1
    numbers["x"][later[:2]] = 0
    _, found = run(numbers, lambda opened: aggregate(opened, model(OPERATIONS["product"])))
    products = [np.prod(numbers["x"][numbers["s"] == s]) for s in range(500)]
    assert min(products) < 0
    assert 0 in products
    np.testing.assert_allclose([row[1] for row in found], products, rtol=1e-12)


def test_many_numbers_that_are_larger_than_the_first() -> None:
    count = 2**17 + 1000  # of so many, the sum of integers overflows
    numbers = {"s": np.zeros(count, int), "x": np.where(np.arange(count) < 1000, 1.0, 1e6)}
    _, found = run(numbers, lambda opened: aggregate(opened, model(OPERATIONS["sum"])))
    assert found == [(0, 1000 + 2.0**17 * 1e6, False)]
