"""``abelnet apply`` against DuckDB's and Polars' hand-written expression of the same law: whole commands, interleaved.

5 million rows in 500,000 sets, as CSV and Parquet, by a law with a formula (compound returns) and by one with a curve.
A formula may take 1.5 times as long as DuckDB beside its start-up, a curve 4 times; start-up is the same command on a
table of ten rows. ``--large`` has 50 million rows in 5 million sets, within ``--memory-limit 2GB``, as DuckDB's own;
Polars has no such limit. Tables in a folder that is named by ``--tables`` are kept, and used again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

FORMATS = ("csv", "parquet")
DUCKDB = """
import duckdb, sys
with duckdb.connect() as connection:
    if sys.argv[3:]: connection.execute(f"SET memory_limit = '{sys.argv[3]}'")
    query = f"SELECT s, exp(sum(ln(1 + x))) - 1 AS result FROM '{sys.argv[1]}' GROUP BY s"
    connection.execute(f"COPY ({query}) TO '{sys.argv[2]}' (FORMAT csv)")
"""
POLARS = """
import polars, sys
table = (polars.scan_csv if sys.argv[1].endswith(".csv") else polars.scan_parquet)(sys.argv[1])
result = (((1 + polars.col("x")).log()).sum().exp() - 1).alias("result")
table.group_by("s").agg(result).sink_csv(sys.argv[2])
"""


def prepare(folder: Path, rows: int, sets: int) -> None:
    """Saves a law with a formula, one with a curve, and the tables."""
    import duckdb
    import numpy as np

    from abelnet import LawRegressor

    sample = np.random.default_rng(0).uniform(-0.05, 0.15, (300, 3))
    LawRegressor().fit(sample, (1 + sample).prod(1) - 1).save(folder / "formula")
    grid = np.linspace(-1, 2, 100_001)
    curve = grid + np.sin(8 * grid) / 10
    results = np.interp((sample + np.sin(8 * sample) / 10).sum(1), curve, grid)
    LawRegressor().fit(sample, results).save(folder / "curve")
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        numbers = f"SELECT 'g' || (hash(i) % {sets}) AS s, round(random() * 0.2 - 0.05, 6) AS x FROM range({rows}) r(i)"
        connection.execute(f"COPY ({numbers}) TO '{folder / 'table.parquet'}'")
        for name, limit in (("table.csv", ""), ("small.csv", "LIMIT 10")):
            connection.execute(f"COPY (FROM '{folder / 'table.parquet'}' {limit}) TO '{folder / name}'")
        connection.execute(f"COPY (FROM '{folder / 'small.csv'}') TO '{folder / 'small.parquet'}'")


def run(command: list[str]) -> tuple[float, float, float]:
    """Returns the seconds, the seconds of all cores, and the peak memory, in MB, of a command."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def compare(folder: Path, suffix: str, limit: list[str], repeats: int) -> None:
    """Prints the medians of all commands on one format, and their ratios."""
    out, table, small = str(folder / "out.csv"), f"table.{suffix}", f"small.{suffix}"

    def apply(law: str, table: str) -> list[str]:
        columns = ["--set", "s", "--value", "x", "--out", out]
        return ["-m", "abelnet", "apply", str(folder / law), str(folder / table), *columns, *limit]

    commands = {
        "DuckDB": ["-c", DUCKDB, str(folder / table), out, *limit[1:]],
        "Polars": ["-c", POLARS, str(folder / table), out],
        "formula": apply("formula", table),
        "start-up": apply("formula", small),
        "curve": apply("curve", table),
        "start-up of the curve": apply("curve", small),
    }
    found: dict[str, list[tuple[float, float, float]]] = {key: [] for key in commands}
    for _ in range(repeats):
        for key, command in commands.items():
            found[key].append(run(command))
    middle = {key: [median(one) for one in zip(*runs, strict=True)] for key, runs in found.items()}
    for key, (seconds, cores, memory) in middle.items():
        print(f"{suffix:8s} {key:22s} {seconds:6.2f} s  {cores:6.2f} s of all cores  {memory:5.0f} MB")
    for key, own, most in (("formula", "start-up", 1.5), ("curve", "start-up of the curve", 4.0)):
        for rival in ("DuckDB", "Polars"):
            wall, cores = ((middle[key][i] - middle[own][i]) / middle[rival][i] for i in (0, 1))
            bar = f", at most {most}" if rival == "DuckDB" else ""
            print(f"{suffix:8s} {key}: {wall:.2f} × {rival} beside start-up{bar}; {cores:.2f} × of cores", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.prepare:
        prepare(args.tables, *((50_000_000, 5_000_000) if args.large else (5_000_000, 500_000)))
        return
    with tempfile.TemporaryDirectory(prefix="abelnet-bench-") as name:
        folder = args.tables or Path(name)
        if not (folder / "small.parquet").exists():
            folder.mkdir(exist_ok=True)
            # In a process of its own: a command starts with the peak memory of the process that runs it.
            run([__file__, "--prepare", "--tables", str(folder), *(["--large"] if args.large else [])])
        for suffix in args.formats:
            compare(folder, suffix, ["--memory-limit", "2GB"] if args.large else [], args.repeats)
    print("load:", ", ".join(f"{one:.1f}" for one in os.getloadavg()))


if __name__ == "__main__":
    main()
