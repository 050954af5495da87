"""Rolling aggregation of 10 million steps: drift against exact sums, and speed against pandas and DuckDB.

Ours runs on one core, as pandas does; DuckDB uses all. The rolling sum is what all three have; laws that only we have
follow, with ours alone.

    python benchmarks/rolling.py [--steps 10000000] [--window 1000]
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import time

import duckdb
import numpy as np
import pandas as pd
import torch
from _timing import interleave, report

from abelnet import AbelianGroup, Generator, Law, Maximum, Mean, Operation, Product, Sum
from abelnet.engines.sqlite import register

F64 = torch.float64


def over(law: Law) -> Operation:
    return Operation(Generator(1, "affine", dtype=F64), law)


def drift(steps: int, window: int) -> None:
    """Largest relative error against exact sums, at steps from a tenth of the way to the end."""
    generator = torch.Generator().manual_seed(0)
    x = 1 + torch.rand(steps, 1, generator=generator, dtype=F64)
    spiked = x.clone()
    spiked[steps // 10] = 1e40
    places = np.unique(np.linspace(steps // 10 + window, steps - 1, 2000).astype(int))
    for name, values in (("numbers from 1 to 2", x), ("the same, and one of 1e40 at a tenth of the way", spiked)):
        exact = [math.fsum(values[i + 1 - window : i + 1, 0].tolist()) for i in places]
        candidates = {
            "abelnet": over(Sum()).rolling(values, window)[places, 0].numpy(),
            "pandas": pd.Series(values[:, 0].numpy()).rolling(window).sum().to_numpy()[places],
        }
        sums = values[:, 0].cumsum(0)
        candidates["prefix sums, subtracted"] = (sums[places] - sums[places - window]).numpy()
        print(f"largest relative error over {steps:,} steps, windows of {window:,}: {name}")
        for who, found in candidates.items():
            print(f"  {who:<44} {np.max(np.abs(found - exact) / np.abs(exact)):.1e}", flush=True)


def speed(steps: int, window: int) -> None:
    x = 1 + torch.rand(steps, 1, dtype=F64)
    series = pd.Series(x[:, 0].numpy())
    connection = duckdb.connect()
    connection.register("frame", pd.DataFrame({"i": np.arange(steps), "x": series}))
    connection.execute("CREATE TABLE data AS SELECT * FROM frame")
    query = f"SELECT sum(sum) FROM (SELECT sum(x) OVER (ORDER BY i ROWS {window - 1} PRECEDING) AS sum FROM data)"
    group = over(Sum())
    candidates = {
        "pandas rolling(window).sum()": lambda: series.rolling(window).sum(),
        "DuckDB sum(x) OVER (ROWS …)": lambda: connection.execute(query).fetchone(),
        "abelnet rolling, sum": lambda: group.rolling(x, window),
    }
    medians = interleave(candidates, rounds=3, warm_up=1)
    report(f"{steps:,} steps, windows of {window:,}; times faster than pandas", medians, next(iter(candidates)))
    times = torch.arange(steps) * 60
    only_ours = {
        "maximum": lambda: over(Maximum()).rolling(x, window),
        "mean": lambda: over(Mean()).rolling(x, window),
        "product": lambda: over(Product()).rolling(x, window),
        "log-sum-exp": lambda: AbelianGroup(Generator(1, "exponential", [1.0], dtype=F64)).rolling(x, window),
        "sum by time": lambda: group.rolling(x, 60 * window, times=times),
    }
    medians = interleave(only_ours, rounds=1, warm_up=0)
    report("other laws, ours alone; times faster than the maximum", medians, "maximum")


def streams(steps: int) -> None:
    """Microseconds of one step of a stream, and of one row of a sliding frame of SQLite."""
    x = 1 + torch.rand(steps, 1, dtype=F64)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE data (i, x)")
    connection.executemany("INSERT INTO data VALUES (?, ?)", enumerate(x[:, 0].tolist()))
    for name, law in (("sum", Sum()), ("maximum", Maximum())):
        window = over(law).window(100)
        start = time.perf_counter()
        for one in x:
            window.push(one)
        pushed = time.perf_counter() - start
        register(connection, "fold", over(law))
        taken = []
        for query in ("SELECT fold(x) FROM data", "SELECT fold(x) OVER (ORDER BY i ROWS 99 PRECEDING) FROM data"):
            start = time.perf_counter()
            connection.execute(query).fetchall()
            taken.append(time.perf_counter() - start)
        each = [1e6 * seconds / steps for seconds in (pushed, *taken)]
        print(f"{name}: push {each[0]:.0f} µs; rows of SQLite: group {each[1]:.1f} µs, sliding frame {each[2]:.0f} µs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--window", type=int, default=1000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        drift(arguments.steps, arguments.window)
        speed(arguments.steps, arguments.window)
        streams(min(arguments.steps, 20_000))
