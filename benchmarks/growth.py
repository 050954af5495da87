"""How the cost of ``abelnet apply`` and ``abelnet learn`` grows with rows, sets and dimensions: whole commands.

Prints seconds, seconds of all cores and peak memory, and the cost of one more row by least squares. ``--figure FILE``
draws the curves, ``--quick`` has tables ten times smaller.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

from apply import run

Measured = list[tuple[float, float, float, float]]  # rows, sets or dimensions; seconds; of all cores; MB
Result = TypeVar("Result")
COLORS = {"apply, formula": "tab:blue", "apply, curve": "tab:orange", "learn": "tab:green"}
DIMENSIONS = (1, 2, 4, 8)


class Growth(NamedTuple):
    """How the axis of what grows is drawn."""

    label: str
    unit: float
    scale: str


GROWTHS = {
    "rows": Growth("rows (millions), ten per set", 1e6, "linear"),
    "sets": Growth("sets of 2 million rows", 1, "log"),
    "dimensions": Growth("dimensions of 2 million rows", 1, "linear"),
}


def prepare(folder: Path) -> None:
    """Saves laws: compound growth in each number of dimensions, and a curve."""
    import numpy as np

    from abelnet import LawRegressor

    sample = np.random.default_rng(0).uniform(-0.05, 0.15, (300, 3, max(DIMENSIONS)))
    for dims in DIMENSIONS:
        own = sample[:, :, :dims]
        LawRegressor().fit(list(own), (1 + own).prod(1) - 1).save(folder / f"formula{dims}")
    one = sample[:, :, 0]
    grid = np.linspace(-1, 2, 100_001)
    results = np.interp((one + np.sin(8 * one) / 10).sum(1), grid + np.sin(8 * grid) / 10, grid)
    LawRegressor().fit(one, results).save(folder / "curve")


def write(path: Path, rows: int, sets: int, dims: int = 1) -> Path:
    """Writes a table, with the result of each set."""
    import duckdb

    numbers = ", ".join(f"round(random() * 0.2 - 0.05, 6) AS x{k}" for k in range(dims))
    table = f"SELECT hash(i) % {sets} AS s, {numbers} FROM range({rows}) r(i)"
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"CREATE TEMP TABLE t AS {table}")
        connection.execute(
            f"COPY (SELECT t.*, y FROM t JOIN (SELECT s, exp(sum(ln(1 + x0))) - 1 AS y FROM t GROUP BY s) USING (s)) "
            f"TO '{path}'"
        )
    return path


def apart(work: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function in a process of its own: a command starts with the peak memory of the process that runs it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def measure(command: list[str], repeats: int) -> tuple[float, float, float]:
    seconds, cores, memory = zip(*(run(["-m", "abelnet", *command]) for _ in range(repeats)), strict=True)
    return median(seconds), median(cores), median(memory)


def slope(found: Measured, column: int) -> float:
    """Returns the cost of one more, by least squares."""
    import numpy as np

    x, y = np.array([one[0] for one in found]), np.array([one[column] for one in found])
    return float(np.polyfit(x, y, 1)[0])


def draw(path: Path, found: dict[str, Measured]) -> None:
    """Draws a column of panels for rows, sets and dimensions each: processor time above memory."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    all_axes = figure.subplots(2, len(GROWTHS), sharey="row")
    for column, (word, growth) in enumerate(GROWTHS.items()):
        for kind, measured in found.items():
            command, counted = kind.rsplit(", ", 1)
            if counted.split()[0] != word:
                continue
            for axes, place in zip(all_axes[:, column], (2, 3), strict=True):
                counts = [one[0] / growth.unit for one in measured]
                axes.plot(counts, [one[place] for one in measured], "o-", color=COLORS[command], label=command)
        for axes in all_axes[:, column]:
            axes.set(xlabel=growth.label, xscale=growth.scale, ylim=(0, None))
            axes.grid(alpha=0.3)
    for axes, label in zip(all_axes[:, 0], ("processor time (s)", "largest process (MB)"), strict=True):
        axes.set_ylabel(label)
    all_axes[0, 0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    unit = 100_000 if args.quick else 1_000_000
    found: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory(prefix="abelnet-bench-") as name:
        folder = Path(name)
        apart(prepare, folder)

        def apply(law: str, table: Path, dims: int = 1) -> list[str]:
            columns = [f"--value=x{k}" for k in range(dims)]
            return ["apply", str(folder / law), str(table), "--set=s", *columns, "--out", str(folder / "r.parquet")]

        def note(kind: str, count: int, command: list[str]) -> None:
            seconds, cores, memory = measure(command, args.repeats)
            found.setdefault(kind, []).append((count, seconds, cores, memory))
            print(f"{kind:40} {count:12,}  {seconds:6.2f} s  {cores:6.2f} s of all cores  {memory:5.0f} MB", flush=True)

        for rows in (unit // 10, unit, 2 * unit, 5 * unit, 10 * unit):
            table = apart(write, folder / "t.parquet", rows, rows // 10)
            learn = ["learn", str(table), "--set=s", "--value=x0", "--target=y", "--out", str(folder / "learned")]
            note("apply, formula, rows", rows, apply("formula1", table))
            note("apply, curve, rows", rows, apply("curve", table))
            note("learn, rows", rows, learn)
        for sets in (10, 1000, unit // 10, unit):
            table = apart(write, folder / "t.parquet", 2 * unit, sets)
            for law, saved in (("formula", "formula1"), ("curve", "curve")):
                note(f"apply, {law}, sets of {2 * unit:,} rows", sets, apply(saved, table))
        for dims in DIMENSIONS:
            table = apart(write, folder / "t.parquet", 2 * unit, unit // 5, dims)
            note(f"apply, formula, dimensions of {2 * unit:,} rows", dims, apply(f"formula{dims}", table, dims))
    for kind, measured in found.items():
        print(f"{kind}, one more: {slope(measured, 2) * 1e9:,.0f} ns of a core, {slope(measured, 3) * 1e6:,.0f} bytes")
    if args.figure:
        draw(args.figure, found)
    print("load:", ", ".join(f"{one:.1f}" for one in os.getloadavg()))


if __name__ == "__main__":
    main()
