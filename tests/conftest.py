import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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


@pytest.fixture
def _units_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of experiments run in this process: others take seconds to import torch, and are tested for themselves."""

    def run_units(
        function: Callable[[Any, Callable[[float], None]], None],
        units: Sequence[Any],
        *,
        jobs: int = 1,
        on_unit: Callable[[Any], None] | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        for unit in units:
            done: list[float] = []
            function(unit, done.append)
            assert sum(done) <= 1 + 1e-9
            if on_unit is not None:
                on_unit(unit)
        if on_progress is not None:
            on_progress(1.0)

    modules = ("analogies.experiment", "graphs.comparison", "reproduction", "sets.comparison", "synthetic.comparison")
    for module in modules:
        monkeypatch.setattr(f"abelnet.experiments.{module}.run_units", run_units)
