"""On a cluster of threads in this process; ``make test-engines`` has one of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster

from abelnet import AbelnetError, LawRegressor
from abelnet.engines.applying import apply_law
from abelnet.engines.cluster import apply_on_cluster
from abelnet.engines.columns import Columns

COLUMNS = Columns(("x",), "s")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def compound() -> LawRegressor:
    pairs = np.random.default_rng(0).uniform(-0.5, 1, (50, 2))
    return LawRegressor().fit(pairs, (1 + pairs).prod(1) - 1)


@pytest.fixture
def table() -> pd.DataFrame:
    generator = np.random.default_rng(1)
    names = [f"set {k}" for k in generator.integers(0, 30, 400)]
    return pd.DataFrame({"s": names, "x": generator.uniform(-0.5, 1, 400), "other": "text"})


def written(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"s": str})


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "jsonl", "folder"])
def test_results_are_those_of_one_process(
    form: str, table: pd.DataFrame, compound: LawRegressor, address: str, tmp_path: Path
) -> None:
    source = tmp_path / f"t.{form}"
    if form == "parquet":
        table.to_parquet(source)
    elif form == "jsonl":
        table.to_json(source, orient="records", lines=True)
    elif form == "folder":
        source.mkdir()
        table[:100].to_csv(source / "1.csv", index=False, sep=";", decimal=",")
        table[100:].to_csv(source / "2.csv", index=False)
    else:
        table.to_csv(source, index=False)
    rows: list[int] = []
    apart = apply_on_cluster(compound, source, COLUMNS, tmp_path / "apart.csv", address, on_rows=rows.append)
    assert rows == [400]
    assert apart == apply_law(compound, source, COLUMNS, tmp_path / "own.csv")
    pd.testing.assert_frame_equal(written(tmp_path / "apart.csv"), written(tmp_path / "own.csv"), rtol=1e-12)


def test_vectors(address: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    bodies = generator.uniform(0.5, 2, (300, 3, 2))
    mass = bodies[:, :, 0].sum(1)
    centers = np.stack((mass, (bodies[:, :, 0] * bodies[:, :, 1]).sum(1) / mass), 1)
    model = LawRegressor().fit(list(bodies), centers)
    table = pd.DataFrame(bodies.reshape(-1, 2), columns=["m", "x"]).assign(s=np.repeat(np.arange(300), 3))
    table.to_csv(tmp_path / "t.csv", index=False)
    columns = Columns(("m", "x"), "s")
    apply_on_cluster(model, tmp_path / "t.csv", columns, tmp_path / "apart.csv", address)
    apply_law(model, tmp_path / "t.csv", columns, tmp_path / "own.csv")
    pd.testing.assert_frame_equal(written(tmp_path / "apart.csv"), written(tmp_path / "own.csv"), rtol=1e-12)


@pytest.mark.skipif("ABELNET_ENGINES" not in os.environ, reason="a cluster takes long: make test-engines")
def test_the_command_on_processes(table: pd.DataFrame, compound: LawRegressor, tmp_path: Path) -> None:
    compound.save(tmp_path / "law")
    table[:200].to_parquet(tmp_path / "1.parquet")
    table[200:].to_parquet(tmp_path / "2.parquet")
    columns = ["--set", "s", "--value", "x"]
    apply = [sys.executable, "-m", "abelnet", "apply", str(tmp_path / "law"), str(tmp_path / "*.parquet"), *columns]
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        out = ["--out", str(tmp_path / "apart.csv"), "--scheduler", cluster.scheduler_address]
        done = subprocess.run([*apply, *out], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "30 multisets of 400 rows" in done.stdout
    apply_law(compound, tmp_path / "*.parquet", COLUMNS, tmp_path / "own.csv")
    pd.testing.assert_frame_equal(written(tmp_path / "apart.csv"), written(tmp_path / "own.csv"), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s,x\na,1\nb,word\n", "expected a table that the workers can read, got: .*'word'"),
        ("s,x\na,1\nb,\n", "expected a finite number in each row"),
        ("s,x\na,1\n,2\n", "expected the name of a set in column s"),
        ("s,x\n", "expected at least one row, got none"),
        ("s,y\na,1\n", "expected a column x"),
    ],
)
def test_what_is_wrong_is_one_line(
    text: str, message: str, compound: LawRegressor, address: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(AbelnetError, match=message):
        apply_on_cluster(compound, tmp_path / "t.csv", COLUMNS, tmp_path / "r.csv", address)
    assert not (tmp_path / "r.csv").exists()


def test_elements_outside_the_domain(address: str, tmp_path: Path) -> None:
    pairs = np.random.default_rng(0).uniform(0.5, 2, (50, 2))
    geometric = LawRegressor().fit(pairs, pairs.prod(1) ** 0.5)
    (tmp_path / "t.csv").write_text("s,x\na,1\nb,-3\n")
    with pytest.raises(AbelnetError, match="set b: expected an element of the domain of the law"):
        apply_on_cluster(geometric, tmp_path / "t.csv", COLUMNS, tmp_path / "r.csv", address)


def test_a_cluster_takes_sets(compound: LawRegressor, tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="a cluster takes tables in long form alone"):
        apply_on_cluster(compound, tmp_path / "t.csv", Columns(("x", "y")), tmp_path / "r.csv", "tcp://127.0.0.1:1")


def test_no_scheduler(compound: LawRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abelnet.engines.cluster._SECONDS_TO_CONNECT", 0.1)
    (tmp_path / "t.csv").write_text("s,x\na,1\n")
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(AbelnetError, match="scheduler: expected the address of one that runs"):
            apply_on_cluster(compound, tmp_path / "t.csv", COLUMNS, tmp_path / "r.csv", address)
