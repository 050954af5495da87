"""A law on a Dask cluster of two processes: 50 million rows in 1 million groups, more than the workers' memory.

Compared in one run: Dask's own sum of the column; our operation, compound growth, by `engines.dask.aggregate`; and the
same while one worker is killed (SIGKILL) midway. Results are compared with numpy in this process. Of its memory, each
worker needs 400 MB for Python, torch and Dask.

    python benchmarks/dask_apply.py [--rows 50000000] [--groups 1000000] [--memory 750MB] [--table FOLDER]

A table in a folder that is named is kept, and used again; ``--rounds 0 --after 30`` kills a worker after 30 s, and
nothing else.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import torch
from dask.distributed import Client, LocalCluster, wait
from dask.utils import format_bytes

from abelnet import AbelianGroup, Generator
from abelnet.engines.dask import aggregate

PART = 1_000_000


def write(folder: Path, rows: int, groups: int) -> np.ndarray:
    """Writes the table in parts, and returns the result of each group."""
    known = folder / "expected.npy"
    if known.exists():
        return np.load(known)
    logs = np.zeros(groups)
    for part, start in enumerate(range(0, rows, PART)):
        generator = np.random.default_rng(part)
        count = min(PART, rows - start)
        group, x = generator.integers(0, groups, count), generator.uniform(-0.05, 0.05, count)
        logs += np.bincount(group, np.log1p(x), minlength=groups)
        pd.DataFrame({"group": group, "x": x}).to_parquet(folder / f"{part:04}.parquet")
    np.save(known, np.expm1(logs))
    return np.load(known)


def timed(client: Client, result: dd.DataFrame) -> tuple[pd.DataFrame, float]:
    start = time.perf_counter()
    future = client.compute(result)
    wait(future)
    return future.result(), time.perf_counter() - start


def kill_later(cluster: LocalCluster, after: float) -> threading.Timer:
    """Kills a worker with SIGKILL once this many seconds have passed."""

    def kill() -> None:
        worker = next(iter(cluster.workers.values()))
        print(f"  killing worker {worker.pid} after {after:.1f} s", flush=True)
        os.kill(worker.pid, signal.SIGKILL)

    timer = threading.Timer(after, kill)
    timer.start()
    return timer


def compare(arguments: argparse.Namespace, folder: Path) -> None:
    expected = write(folder, arguments.rows, arguments.groups)
    compound = AbelianGroup(Generator(1, "logarithm", [1.0], dtype=torch.float64))
    size = 16 * arguments.rows
    print(f"{arguments.rows:,} rows, {arguments.groups:,} groups; {format_bytes(size)} in memory", end=", ")
    print(f"2 workers of {arguments.memory}", flush=True)
    # Workers say when they pause for memory, and that one was killed, in many lines.
    quiet = {"logging": {"distributed": "critical"}, "distributed.scheduler.allowed-failures": 5}
    dask.config.set({**quiet, "temporary-directory": str(folder)})
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=arguments.memory,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        frame = dd.read_parquet(folder / "*.parquet")
        split = max(arguments.groups // 100_000, 1)
        native = frame.groupby("group").agg({"x": "sum"}, split_out=split)
        ours = aggregate(frame, "group", "x", compound, split_out=split)
        seconds: dict[str, list[float]] = {"Dask's own sum": [], "compound growth": []}
        for _ in range(arguments.rounds):
            seconds["Dask's own sum"].append(timed(client, native)[1])
            found, taken = timed(client, ours)
            seconds["compound growth"].append(taken)
            check("compound growth", found, expected)
        medians = {name: float(np.median(one)) for name, one in seconds.items() if one}
        for name, median in medians.items():
            print(f"  {name:<44} {median:8.2f} s   {median / medians[next(iter(medians))]:.2f} of Dask's own sum")
        after = arguments.after if arguments.after is not None else medians["compound growth"] / 2
        if after == 0:
            return
        timer = kill_later(cluster, after)
        found, taken = timed(client, ours)
        timer.join()
        check(f"compound growth, a worker killed, {taken:.2f} s", found, expected)


def check(name: str, found: pd.DataFrame, expected: np.ndarray) -> None:
    filled = np.zeros_like(expected)
    filled[found.index.to_numpy()] = found["x"].to_numpy()
    error = np.max(np.abs(filled - expected) / np.maximum(np.abs(1 + expected), 1))
    print(f"  {name}: largest relative error {error:.1e}", flush=True)
    assert error <= 1e-9


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--memory", default="750MB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--after", type=float, help="seconds; half of the time that it takes if not given, 0 for never")
    parser.add_argument("--table", type=Path, default=None)
    given = parser.parse_args()
    if given.table is not None:
        given.table.mkdir(exist_ok=True)
        compare(given, given.table)
    else:
        with tempfile.TemporaryDirectory() as name:
            compare(given, Path(name))
