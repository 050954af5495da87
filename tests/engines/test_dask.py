"""On small frames with the synchronous scheduler; ``make test-engines`` has a cluster of two processes."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import torch
from cases import VECTOR_CASES, vectors

import abelnet
from abelnet import AbelianGroup, AbelnetError, Generator, LawRegressor, Operation
from abelnet.engines.dask import aggregate, aggregation, fit

F64 = torch.float64
OPERATIONS = {
    "sum": lambda: Operation(Generator(1, "affine", dtype=F64), abelnet.Sum()),
    "product": lambda: Operation(Generator(1, "affine", dtype=F64), abelnet.Product()),
    "maximum": lambda: Operation(Generator(1, "affine", dtype=F64), abelnet.Maximum()),
    "mean": lambda: Operation(Generator(1, "affine", dtype=F64), abelnet.Mean()),
    "capped": lambda: Operation(Generator(1, "affine", dtype=F64), abelnet.CappedSum(4.0)),
    "compound": lambda: AbelianGroup(Generator(1, "logarithm", [10.0], dtype=F64)),
    "log_sum_exp": lambda: AbelianGroup(Generator(1, "exponential", [300.0], dtype=F64)),
    "log_mean_exp": lambda: Operation(Generator(1, "exponential", [300.0], dtype=F64), abelnet.Mean()),
}
ON_CLUSTER = pytest.mark.skipif("ABELNET_ENGINES" not in os.environ, reason="a cluster takes long: make test-engines")


@pytest.fixture(autouse=True)
def _synchronous() -> Iterator[None]:
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def table() -> pd.DataFrame:
    """Numbers of 40 groups, in no order; some numbers are missing, those of the last group all."""
    generator = np.random.default_rng(0)
    group = generator.integers(0, 40, 500)
    x = generator.uniform(-3, 3, 500).round(1)
    x[generator.random(500) < 0.1] = np.nan
    x[group == 39] = np.nan
    names = pd.Series([f"g{k:02}" for k in group])
    names[generator.random(500) < 0.02] = None  # rows without a group are left out, as by pandas
    return pd.DataFrame({"group": names, "x": x})


def folds(operation: Operation, table: pd.DataFrame) -> dict[str, float]:
    """The fold of each group by ``reduce``."""
    kept = table.dropna()
    return {
        name: operation.reduce(torch.tensor(part["x"].to_numpy(copy=True))[:, None]).item()
        for name, part in kept.groupby("group")
    }


@pytest.mark.parametrize("name", OPERATIONS)
def test_groups_are_folds(name: str, table: pd.DataFrame) -> None:
    operation = OPERATIONS[name]()
    expected = pd.Series(folds(operation, table))
    frame = dd.from_pandas(table, npartitions=5)
    for found in (
        aggregate(frame, "group", "x", operation).compute()["x"],
        aggregate(frame, ["group"], ["x"], operation, split_out=3).compute()["x"],
        frame.groupby("group").agg({"x": aggregation(operation)}).compute()["x"].dropna(),
        frame.groupby("group")["x"].agg(aggregation(operation)).compute().dropna(),
    ):
        assert found.index.name == "group"
        np.testing.assert_allclose(found.sort_index(), expected, rtol=1e-9, atol=1e-9)


def test_two_operations_in_one_call(table: pd.DataFrame) -> None:
    largest, total = (aggregation(OPERATIONS[name](), name) for name in ("maximum", "sum"))
    found = dd.from_pandas(table, npartitions=3).groupby("group").agg({"x": [largest, total]}).compute()["x"]
    np.testing.assert_allclose(found.loc["g03", "maximum"], table[table["group"] == "g03"]["x"].max())
    np.testing.assert_allclose(found.loc["g03", "sum"], table[table["group"] == "g03"]["x"].sum())
    assert found.loc["g39"].isna().all()


@pytest.mark.parametrize("name", ["center_of_mass", "pooled_variance", "complex_product"])
def test_vectors(name: str) -> None:
    operation, x = AbelianGroup(VECTOR_CASES[name][0](F64)), vectors(name, 60)
    index = torch.arange(60) % 7
    columns = [f"c{i}" for i in range(operation.dim)]
    table = pd.DataFrame(x.numpy(), columns=columns).assign(a=index.numpy() // 2, b=index.numpy() % 2)
    found = aggregate(dd.from_pandas(table, npartitions=4), ["a", "b"], columns, operation).compute().sort_index()
    assert list(found.columns) == columns
    np.testing.assert_allclose(found, operation.reduce(x, index=index).detach(), rtol=1e-9, atol=1e-9)


def test_elements_outside_the_domain(table: pd.DataFrame) -> None:
    logarithm = AbelianGroup(Generator(1, "logarithm", [0.0], dtype=F64))
    table["x"] = table["x"].where(table["group"] > "g09", 0.1 + table["x"].abs())
    frame = dd.from_pandas(table, npartitions=2)
    with pytest.raises(AbelnetError, match="x: expected x > -0, where"):
        aggregate(frame, "group", "x", logarithm).compute()
    found = frame.groupby("group").agg({"x": aggregation(logarithm)}).compute()["x"]
    positive = (table["x"] > 0) | table["x"].isna()
    fine = positive.groupby(table["group"]).all() & table["x"].notna().groupby(table["group"]).any()
    assert 10 <= fine.sum() < 39
    assert (found.sort_index().notna() == fine).all()
    unit = AbelianGroup(Generator(1, "logit", dtype=F64))  # Dask's own numbers, 1.0, are outside of it
    halves = dd.from_pandas(table.assign(x=0.5), npartitions=2).groupby("group").agg({"x": aggregation(unit)})
    assert (halves.compute()["x"] == 0.5).all()


def test_misuse(table: pd.DataFrame) -> None:
    frame, center = dd.from_pandas(table, npartitions=2), AbelianGroup(VECTOR_CASES["center_of_mass"][0](F64))
    with pytest.raises(AbelnetError, match="operation: expected one of one dimension, got 2; call aggregate"):
        aggregation(center)
    with pytest.raises(AbelnetError, match="columns: expected 2, as the operation has, got 1"):
        aggregate(frame, "group", "x", center)
    with pytest.raises(AbelnetError, match=r"by, columns: expected columns of the dataframe, .* got \['y'\]"):
        aggregate(frame, "group", "y", OPERATIONS["sum"]())
    with pytest.raises(AbelnetError, match="columns: expected numbers"):
        aggregate(frame.assign(x="a"), "group", "x", OPERATIONS["sum"]()).compute()
    with pytest.raises(AbelnetError, match="columns: expected finite values"):
        aggregate(frame.assign(x=np.inf), "group", "x", OPERATIONS["sum"]()).compute()
    with pytest.raises(AbelnetError, match="targets: expected as many as columns, 1, got 2"):
        fit(frame, "group", "x", ["x", "x"])
    with pytest.raises(AbelnetError, match=r"targets: expected one result for each group, got several or none for"):
        fit(frame, "group", "x", "x")
    with pytest.raises(AbelnetError, match="frame: expected at least one group with its result, got none"):
        fit(frame[frame["group"] == ""], "group", "x", "x")


def examples() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"set": np.arange(1200) // 3, "x": generator.uniform(0.2, 2, 1200)})
    table["y"] = np.sqrt((table["x"] ** 2).groupby(table["set"]).transform("sum"))
    return table.sample(frac=1, random_state=0)


def test_a_law_is_learned_from_all_partitions() -> None:
    model = fit(dd.from_pandas(examples(), npartitions=4), "set", "x", "y", model=LawRegressor(seed=3))
    assert model.laws_[0].formula == "x∘y = (x^2 + y^2)^(1/2)"
    assert len(model.sample_[0]) == 400
    assert model.predict([[3.0, 4.0]])[0] == pytest.approx(5.0)


def test_a_law_on_vectors_is_learned_from_all_partitions() -> None:
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {"set": np.arange(600) // 3, "m": generator.uniform(1, 5, 600), "x": generator.normal(size=600)}
    )
    table["mass"] = table["m"].groupby(table["set"]).transform("sum")
    table["place"] = (table["m"] * table["x"]).groupby(table["set"]).transform("sum") / table["mass"]
    model = fit(dd.from_pandas(table, npartitions=3), "set", ["m", "x"], ["mass", "place"])
    assert model.laws_[0].formula == "m = Σ m, x = Σ(m·x) / m"


def test_models_travel_between_processes() -> None:
    X = np.random.default_rng(0).uniform(1, 2, (50, 2))
    model = LawRegressor().partial_fit(X, X.sum(1))
    other = pickle.loads(pickle.dumps(model.empty_copy(seed=1).partial_fit(X + 1, X.sum(1) + 2)))
    assert model.merge(other).laws_[0].formula == "x∘y = x + y"


@ON_CLUSTER
def test_a_cluster_whose_worker_is_killed() -> None:
    """Two processes; one is killed with the work half done, and another takes its place."""
    from dask.distributed import Client, LocalCluster

    operation = AbelianGroup(Generator(1, "logarithm", [1.0], dtype=F64))
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"set": generator.integers(0, 5000, 500_000), "x": generator.uniform(-0.01, 0.01, 500_000)})
    expected = np.expm1(np.log1p(table["x"]).groupby(table["set"]).sum())
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        dask.config.set(scheduler=None),
    ):
        frame = dd.from_pandas(table, npartitions=40)
        future = client.compute(aggregate(frame, "set", "x", operation, split_out=4))
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        found = future.result(timeout=120)["x"].sort_index()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        model = fit(dd.from_pandas(examples(), npartitions=4), "set", "x", "y")
    assert model.laws_[0].formula == "x∘y = (x^2 + y^2)^(1/2)"
