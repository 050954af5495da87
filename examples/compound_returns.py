"""Learns how returns compound from a few accounts with their total returns; then applies it to any number of periods.

On the command line:

    abelnet learn returns.csv --set account --value return --target total --out law
    abelnet apply law long.csv --set account --value return --out totals.csv
"""

import csv
import tempfile
from pathlib import Path

import numpy as np

from abelnet.engines.columns import Columns
from abelnet.engines.learning import learn_table

generator = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
with (folder / "returns.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["account", "return", "total"])
    for account in range(60):
        periods = generator.uniform(-0.1, 0.15, generator.integers(2, 5))
        total = np.prod(1 + periods) - 1
        writer.writerows([account, float(period), float(total)] for period in periods)

model = learn_table(folder / "returns.csv", Columns(("return",), "account", ("total",)))
print(model.laws_[0].summary())

# Twenty years of monthly returns for one account, far longer than in training.
months = generator.normal(0.005, 0.03, 240)
print(f"\n240 months: {model.predict([months]).item():.6f}, by compounding: {np.prod(1 + months) - 1:.6f}")
