"""Sliding-window aggregation of a stream by a learned group: each step adds one element and removes one.

The group is x∘y = cbrt(x³ + y³), learned from multisets of 2 to 4 elements; the window holds a thousand.
"""

from __future__ import annotations

import torch

from abelnet.experiments.synthetic import data as synthetic


def main() -> None:
    learned = synthetic.learn("cbrt", seed=0)
    stream = 10 * torch.rand(5000, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 5
    window = 1000
    accumulator = learned.law.operation.accumulator()
    worst = 0.0
    with torch.no_grad():
        for i, x in enumerate(stream):
            accumulator.add(x)
            if i >= window:
                accumulator.remove(stream[i - window])
            if i >= window and i % 500 == 0:
                truth = synthetic.OPERATIONS["cbrt"].fold(stream[i - window + 1 : i + 1, 0])
                value = accumulator.value().item()
                worst = max(worst, abs(value - truth.item()))
                print(f"after {i:4d}: {value:9.5f}, truth {truth.item():9.5f}")
    print(f"learned from sizes 2–4, applied at size {window}: largest error {worst:.1e}")


if __name__ == "__main__":
    main()
