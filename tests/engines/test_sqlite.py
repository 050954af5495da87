from __future__ import annotations

import json
import math
import random
import sqlite3
from fractions import Fraction

import pytest
import torch
from cases import LAWS, VECTOR_CASES, relative_error, vectors

import abelnet
from abelnet import AbelianGroup, AbelnetError, Generator, Operation
from abelnet.engines.sqlite import ExactSums, register

F64 = torch.float64
ONE = {
    **{name: make for name, make in LAWS.items() if name != "polynomial_mixed"},
    "capped": lambda: abelnet.CappedSum(4.0),
    "mean": abelnet.Mean,
}


def table(rows: list[tuple[float | None, ...]]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    width = len(rows[0])
    connection.execute(f"CREATE TABLE data (i INTEGER PRIMARY KEY, {', '.join(f'x{k}' for k in range(width))})")
    places = ", ".join("?" * width)
    connection.executemany(
        f"INSERT INTO data ({', '.join(f'x{k}' for k in range(width))}) VALUES ({places})",
        rows,
    )
    return connection


@pytest.mark.parametrize("name", ONE)
def test_aggregates_and_sliding_frames(name: str) -> None:
    operation = Operation(Generator(1, "affine", dtype=F64), ONE[name]())
    generator = torch.Generator().manual_seed(0)
    x = 3 * torch.rand(60, 1, generator=generator, dtype=F64)
    x[::7] = 0.0
    x[1::9] *= -1
    rows: list[tuple[float | None, ...]] = [(value,) for value in x[:, 0].tolist()]
    rows[20:24] = [(None,)] * 4
    x[20:24] = math.nan
    connection = table(rows)
    register(connection, "fold", operation)
    there = x[~x.isnan()[:, 0]]
    (whole,) = connection.execute("SELECT fold(x0) FROM data").fetchone()
    assert relative_error(torch.tensor([whole], dtype=F64), operation.reduce(there)) <= 1e-9
    query = "SELECT fold(x0) OVER (ORDER BY i ROWS 3 PRECEDING) FROM data"
    found = [math.nan if value is None else value for (value,) in connection.execute(query)]
    expected = operation.rolling(x, 4, min_periods=1)[:, 0]
    assert torch.equal(torch.tensor(found).isnan(), expected.isnan())
    assert relative_error(torch.tensor(found, dtype=F64).nan_to_num()[:, None], expected.nan_to_num()[:, None]) <= 1e-9


def test_groups_empty_groups_and_frames_of_every_kind() -> None:
    connection = table([(float(i % 5), float(i % 3)) for i in range(3000)])
    register(connection, "largest", Operation(Generator(1, "affine", dtype=F64), abelnet.Maximum()))
    register(connection, "total", Operation(Generator(1, "affine", dtype=F64), abelnet.Sum()))
    query = "SELECT largest(x0), total(x0), max(x0), sum(x0) FROM data GROUP BY x1"
    for largest, total, their_largest, their_total in connection.execute(query):
        assert (largest, total) == (their_largest, their_total)
    assert connection.execute("SELECT largest(x0), total(x0) FROM data WHERE i < 0").fetchone() == (None, None)
    for frame in (
        "ROWS BETWEEN 2 FOLLOWING AND 4 FOLLOWING",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING",
        "ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW",
    ):
        over = f"OVER (PARTITION BY x1 ORDER BY i {frame})"
        query = f"SELECT largest(x0) {over}, total(x0) {over}, max(x0) {over}, sum(x0) {over} FROM data WHERE i < 100"
        for largest, total, their_largest, their_total in connection.execute(query):
            assert (largest, total) == (their_largest, their_total)


def test_vectors_are_json_arrays() -> None:
    center = AbelianGroup(VECTOR_CASES["center_of_mass"][0](F64))
    x = vectors("center_of_mass", 30)
    connection = table([tuple(row) for row in x.tolist()])
    register(connection, "center", center)
    query = "SELECT center(x0, x1) OVER (ORDER BY i ROWS 4 PRECEDING) FROM data"
    found = torch.tensor([json.loads(value) for (value,) in connection.execute(query)], dtype=F64)
    assert relative_error(found, center.rolling(x, 5, min_periods=1)) <= 1e-9
    (place,) = connection.execute("SELECT json_extract(center(x0, x1), '$[1]') FROM data").fetchone()
    assert place == pytest.approx(center.reduce(x)[1].item(), rel=1e-12)


def test_logarithms_neither_overflow_nor_leave_anything_behind() -> None:
    numbers = [1.0, 2.0, 2000.0, 3.0, 4.0]
    connection = table([(x,) for x in numbers])
    log_sum_exp = AbelianGroup(Generator(1, "exponential", [1.0], dtype=F64))
    register(connection, "log_sum_exp", log_sum_exp)
    query = "SELECT log_sum_exp(x0) OVER (ORDER BY i ROWS 1 PRECEDING) FROM data"
    found = [value for (value,) in connection.execute(query)]
    expected = [1.0, 2 + math.log1p(math.exp(-1)), 2000.0, 2000.0, 4 + math.log1p(math.exp(-1))]
    assert found == pytest.approx(expected, rel=1e-14)


def test_removal_is_exact() -> None:
    connection = table([(1e300,), (0.1,), (-1e-300,), (0.2,), (0.3,)])
    register(connection, "total_of", Operation(Generator(1, "affine", dtype=F64), abelnet.Sum()))
    query = "SELECT total_of(x0) OVER (ORDER BY i ROWS 1 PRECEDING) FROM data"
    assert [value for (value,) in connection.execute(query)] == [1e300, 1e300, 0.1, 0.2, 0.5]


def test_sums_are_exact() -> None:
    generator = random.Random(0)
    sums, held = ExactSums(1), list[float]()
    for _ in range(300):
        x = generator.uniform(-1, 1) * 2.0 ** generator.randint(-900, 900)
        sums.push(torch.tensor([[x]], dtype=F64))
        held.append(x)
        if generator.random() < 0.6:
            sums.remove(torch.tensor([held.pop(0)], dtype=F64))
        assert sums.total().item() == float(sum(map(Fraction, held)))


def test_misuse() -> None:
    connection = table([(math.inf,), (1.0,)])
    operation = Operation(Generator(1, "logarithm", [0.0], dtype=F64), abelnet.Sum())
    with pytest.raises(AbelnetError, match="name: expected letters, digits and underscores"):
        register(connection, "a b", operation)
    register(connection, "product_of", operation)
    for bad in ("x0", "-1.0", "'text'"):
        with pytest.raises(sqlite3.OperationalError, match=r"finalize|step"):
            connection.execute(f"SELECT product_of({bad}) FROM data").fetchone()
        with pytest.raises(sqlite3.OperationalError, match="value"):
            connection.execute(f"SELECT product_of({bad}) OVER (ROWS 1 PRECEDING) FROM data").fetchall()
    with pytest.raises(sqlite3.OperationalError, match="wrong number of arguments"):
        connection.execute("SELECT product_of(x0, x0) FROM data")
