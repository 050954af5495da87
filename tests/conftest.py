import csv
from pathlib import Path

import numpy as np
import pytest
import torch


@pytest.fixture(autouse=True)
def _fixed_random_state() -> None:
    torch.manual_seed(0)
    # Tests work on small tensors, where a second thread costs more than it brings.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # tables would be cut to it


@pytest.fixture
def returns(tmp_path: Path) -> Path:
    """A table in long form: the returns of 100 accounts, and how they compound."""
    generator = np.random.default_rng(0)
    path = tmp_path / "returns.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["account", "x", "y"])
        for account in range(100):
            values = generator.uniform(-0.2, 0.3, generator.integers(2, 5))
            writer.writerows([f"a{account}", repr(float(x)), repr(float(np.prod(1 + values) - 1))] for x in values)
    return path
