"""The sample table."""

from __future__ import annotations

from pathlib import Path

from abelnet.engines.learning import learn_table
from abelnet.experiments.returns import RETURNS, write_returns

EXAMPLE = Path(__file__).parents[2] / "examples" / "returns.csv"


def test_the_example_is_this_table(tmp_path: Path) -> None:
    write_returns(tmp_path / "returns.csv")
    assert EXAMPLE.read_bytes() == (tmp_path / "returns.csv").read_bytes(), "run python tools/make_returns.py"


def test_it_has_the_law_of_compound_returns() -> None:
    law = learn_table(EXAMPLE, RETURNS).laws_[0]
    assert (law.formula, law.name) == ("x∘y = x + y + x·y", "compound returns")
