"""Laws learned from tables on disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from abelnet import AbelnetError, LawRegressor
from abelnet.engines import reading
from abelnet.engines.learning import learn_table
from abelnet.engines.tables import Columns

# Prints the peak memory, in MB, once everything is imported and at the end.
PEAK = """
import re, sys
from pathlib import Path

def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

folder, form = Path(sys.argv[1]), sys.argv[2]
"""
LEARN = """
import matplotlib.figure, pyarrow.parquet, scipy.interpolate, scipy.linalg, scipy.optimize, sympy
from abelnet.engines.learning import learn_table
from abelnet.engines.tables import Columns
from abelnet.reporting.laws import write_law
imported, columns = peak(), Columns(("x",), "s", ("y",))
write_law(learn_table(folder / f"t.{form}", columns), folder / "law", columns)
print(imported, peak())
"""
APPLY = """
import pyarrow.parquet, torch
imported = peak()
from abelnet import LawRegressor
from abelnet.engines.tables import Columns, apply_law
apply_law(LawRegressor.load(folder / "law"), folder / f"t.{form}", Columns(("x",), "s"), folder / "r.csv")
assert "scipy" not in sys.modules
print(imported, peak())
"""


@pytest.fixture
def products(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """A table of pairs and their products, and its numbers."""
    pairs = np.random.default_rng(0).uniform(0.5, 2, (60, 2))
    path = tmp_path / "products.csv"
    path.write_text("\n".join(["a,b,y", *(f"{a!r},{b!r},{a * b!r}" for a, b in pairs.tolist())]))
    return path, pairs


def test_in_parts_it_is_the_law_of_the_whole(
    products: tuple[Path, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pairs = products
    monkeypatch.setattr(reading, "_ROWS", 25)
    steps: list[str] = []
    model = learn_table(path, Columns(("a", "b"), targets=("y",)), on_step=steps.append)
    assert steps == [*(f"reading: {count} multisets" for count in (25, 50, 60)), "learning"]
    assert model.laws_[0].formula == LawRegressor().fit(pairs, pairs.prod(1)).laws_[0].formula == "x∘y = x·y"


def test_the_seed_is_that_of_the_model(products: tuple[Path, np.ndarray]) -> None:
    assert learn_table(products[0], Columns(("a", "b"), targets=("y",)), seed=7).seed == 7


def test_missing_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,x,y\n1,,3\n1,2,3\n")
    columns = Columns(("x",), "s", ("y",))
    with pytest.raises(AbelnetError, match="1 sets with missing ones"):
        learn_table(path, columns)
    with pytest.raises(AbelnetError, match=r"t\.csv: expected at least one multiset with its result, got none"):
        learn_table(path, columns, skip_missing=True)


def test_no_targets(products: tuple[Path, np.ndarray]) -> None:
    with pytest.raises(AbelnetError, match="columns: expected targets to learn from"):
        learn_table(products[0], Columns(("a", "b")))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_one_huge_set_among_small_ones_takes_little_memory(form: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    sizes = generator.integers(2, 5, 10_001)
    sizes[5000] = 20_000
    values, sets = generator.uniform(-5, 5, sizes.sum()).round(4), np.repeat(np.arange(len(sizes)), sizes)
    results = np.bincount(sets, values)[sets]
    if form == "csv":
        rows = zip(sets.tolist(), values.tolist(), results.tolist(), strict=True)
        (tmp_path / "t.csv").write_text("\n".join(["s,x,y", *(f"{s},{x!r},{y!r}" for s, x, y in rows)]))
    else:
        pyarrow.parquet.write_table(pa.table({"s": sets, "x": values, "y": results}), tmp_path / "t.parquet")
    # Padded to the largest, the sets take 1.6 GB.
    for script in (LEARN, APPLY):
        command = [sys.executable, "-c", PEAK + script, str(tmp_path), form]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        imported, peak = map(float, done.stdout.split())
        assert peak - imported < 80, f"{imported:.0f} MB once imported, {peak:.0f} MB at the peak"
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 1 + len(sizes)
