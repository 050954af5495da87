"""A law on a Dask cluster of two processes: 50 million rows in 1 million groups, more than the workers' memory.

Compared in one run: Dask's own sum of two columns; our operation on vectors of these, centers of mass, by
`engines.dask.aggregate`; and the same while one worker is killed (SIGKILL) midway. Results are compared with numpy in
this process. Of its memory, each worker needs 370 MB for Python, torch, pandas and Dask.

    python benchmarks/dask_apply.py [--rows 50000000] [--groups 1000000] [--memory 590MB] [--table FOLDER]

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
from typing import TYPE_CHECKING

# Workers import this module, so that it imports no more than they need.
import dask
import dask.dataframe as dd
import numpy as np
from dask.distributed import Client, LocalCluster, wait
from dask.utils import format_bytes

if TYPE_CHECKING:
    import pandas as pd

    from abelnet import Operation

PART = 250_000  # rows of a partition, 6 MB
GROUPS_OF_A_PARTITION = 20_000  # of the result, which is merged from all partitions of the table
# For workers that have 200 MB to work with.
SETTINGS = {
    "distributed.p2p.comm.buffer": "16 MiB",  # of a shuffle; 1 GiB by default
    "distributed.p2p.storage.buffer": "16 MiB",
    # Most of the memory is code, which pausing does not free; above 95 % of the limit a worker is still killed.
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.spill": 0.85,
    # Allocators that give memory back.
    "distributed.nanny.pre-spawn-environ.ARROW_DEFAULT_MEMORY_POOL": "system",
    "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": 2,
    "distributed.scheduler.allowed-failures": 5,
}


def write(folder: Path, rows: int, groups: int) -> np.ndarray:
    """Writes masses and places in parts, and returns the mass and the center of each group, of shape (groups, 2)."""
    import pyarrow as pa
    from pyarrow import parquet

    known = folder / "expected.npy"
    if known.exists():
        return np.load(known)
    mass, moment = np.zeros((2, groups))
    for part, start in enumerate(range(0, rows, PART)):
        generator = np.random.default_rng(part)
        count = min(PART, rows - start)
        group, m, x = (
            generator.integers(0, groups, count),
            generator.uniform(0.5, 2, count),
            generator.normal(size=count),
        )
        mass += np.bincount(group, m, minlength=groups)
        moment += np.bincount(group, m * x, minlength=groups)
        table = pa.table({"group": group, "m": m, "x": x})
        parquet.write_table(table, folder / f"{part:04}.parquet", compression="none", use_dictionary=False)
    np.save(known, np.stack((mass, moment / mass), 1))
    return np.load(known)


def center_of_mass() -> Operation:
    import torch

    from abelnet import AbelianGroup, Triangular
    from abelnet.bijections.terms import Monomial, Power

    terms = [[Monomial((Power(0),))], [Monomial((Power(0), Power(1)))]]
    return AbelianGroup(Triangular(2, terms, [[1.0], [1.0]], signs=[1, 0], dtype=torch.float64))


def timed(client: Client, result: dd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Returns a result, and the seconds that it took."""
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
    from abelnet.engines.dask import aggregate

    expected = write(folder, arguments.rows, arguments.groups)
    print(
        f"{arguments.rows:,} rows, {arguments.groups:,} groups; {format_bytes(24 * arguments.rows)} in memory", end=", "
    )
    print(f"2 workers of {arguments.memory}", flush=True)
    # Workers say that one was killed in many lines.
    dask.config.set({**SETTINGS, "logging": {"distributed": "critical"}, "temporary-directory": str(folder)})
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=arguments.memory,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        frame = dd.read_parquet(folder / "*.parquet")
        split = max(arguments.groups // GROUPS_OF_A_PARTITION, 1)
        native = frame.groupby("group").agg({"m": "sum", "x": "sum"}, split_out=split)
        ours = aggregate(frame, "group", ["m", "x"], center_of_mass(), split_out=split)
        seconds: dict[str, list[float]] = {"Dask's own sum": [], "centers of mass": []}
        for _ in range(arguments.rounds):
            seconds["Dask's own sum"].append(timed(client, native)[1])
            found, taken = timed(client, ours)
            seconds["centers of mass"].append(taken)
            check("centers of mass", found, expected)
        medians = {name: float(np.median(one)) for name, one in seconds.items() if one}
        for name, median in medians.items():
            print(f"  {name:<44} {median:8.2f} s   {median / medians[next(iter(medians))]:.2f} of Dask's own sum")
        after = arguments.after if arguments.after is not None else medians["centers of mass"] / 2
        if after == 0:
            return
        timer = kill_later(cluster, after)
        found, taken = timed(client, ours)
        timer.join()
        check(f"centers of mass, a worker killed, {taken:.2f} s", found, expected)


def check(name: str, found: pd.DataFrame, expected: np.ndarray) -> None:
    """Compares masses with their sizes, and centers with the places of their elements, which are of size 1."""
    filled = np.zeros_like(expected)
    filled[found.index.to_numpy()] = found.to_numpy()
    error = np.max(np.abs(filled - expected) / np.maximum(np.abs(expected), 1))
    print(f"  {name}: largest relative error {error:.1e}", flush=True)
    assert error <= 1e-9


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--memory", default="590MB")
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
