"""A law in DataFusion: its exported SQL against an aggregate function in Python, on 5 million rows in 500,000 sets."""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa
from datafusion import Accumulator, SessionContext, udaf

from abelnet import LawRegressor


class Compound(Accumulator):
    """Compound returns, by the sum of log(1 + x); DataFusion makes one for each set."""

    def __init__(self) -> None:
        self.total = 0.0

    def update(self, values: pa.Array) -> None:
        self.total += float(np.log1p(values.to_numpy()).sum())

    def merge(self, states: list[pa.Array]) -> None:
        self.total += float(states[0].to_numpy(zero_copy_only=False).sum())

    def state(self) -> list[pa.Scalar]:
        return [pa.scalar(self.total)]

    def evaluate(self) -> pa.Scalar:
        return pa.scalar(float(np.expm1(self.total)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--sets", type=int, default=500_000)
    args = parser.parse_args()
    generator = np.random.default_rng(0)
    sample = generator.uniform(-0.05, 0.15, (300, 3))
    model = LawRegressor().fit(sample, (1 + sample).prod(1) - 1)
    table = pa.table({"s": generator.integers(0, args.sets, args.rows), "x": generator.uniform(-0.05, 0.15, args.rows)})
    context = SessionContext()
    context.register_record_batches("t", [table.to_batches(max_chunksize=65_536)])
    context.register_udaf(udaf(Compound, pa.float64(), pa.float64(), [pa.float64()], "stable", name="compound"))
    queries = {
        "exported SQL": model.sql(table="t", set="s", value="x", dialect="datafusion"),
        "aggregate function in Python": "SELECT s, compound(x) AS result FROM t GROUP BY s",
    }
    results = []
    for name, query in queries.items():
        start = time.perf_counter()
        found = pa.Table.from_batches(context.sql(query).collect())
        print(f"{name:30} {time.perf_counter() - start:8.2f} s", flush=True)
        results.append(found.sort_by("s")["result"].to_numpy())
    np.testing.assert_allclose(*results, rtol=1e-12, atol=1e-14)


if __name__ == "__main__":
    main()
