"""Laws learned from tables on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from abelnet import AbelnetError, LawRegressor
from abelnet.engines import tables
from abelnet.engines.learning import learn_table
from abelnet.engines.tables import Columns


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
    monkeypatch.setattr(tables, "_ROWS", 25)
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
