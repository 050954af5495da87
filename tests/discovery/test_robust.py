"""Laws from examples some of which are wrong; and that nothing changes where none is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from laws_of_practice import LAWS, Fold, draw

from abelnet import LawRegressor, NoLawError
from abelnet.discovery import LearnedLaw
from abelnet.discovery.search import Search
from abelnet.discovery.stream import Stream

MEAN: Fold = np.mean
CASES: dict[str, tuple[float, float, Fold, str]] = {
    name: LAWS[name] for name in ("noisy or", "velocities", "large products")
} | {"mean": (-5, 5, MEAN, "M(x₁, …, xₙ) = Σ x / n")}


def spoil(target: np.ndarray[Any, Any], how: str, seed: int = 0) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Returns results with a few wrong ones, and which are wrong."""
    generator = np.random.default_rng(seed)
    wrong = generator.permutation(len(target))[: len(target) // (20 if how == "gross" else 10)]
    spoiled = target.copy()
    if how == "gross":
        spoiled[wrong] += target.std() * generator.choice([-1, 1], len(wrong)) * generator.uniform(3, 10, len(wrong))
    else:
        spoiled[wrong] = np.roll(target[wrong], 1)
    return spoiled, sorted(wrong.tolist())


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records how many examples each search is given."""
    counts: list[int] = []
    start = Search.__init__

    def recorded(self: Search, stream: Stream, *arguments: Any) -> None:
        counts.append(len(stream.sample))
        start(self, stream, *arguments)

    monkeypatch.setattr(Search, "__init__", recorded)
    return counts


@pytest.mark.parametrize(
    ("name", "how"),
    [("noisy or", "gross"), ("mean", "gross"), ("velocities", "copies"), ("large products", "copies")],
)
def test_wrong_results_are_left_out_and_listed(name: str, how: str) -> None:
    low, high, fold, formula = CASES[name]
    sets, target = draw(low, high, fold, 200)
    spoiled, wrong = spoil(target, how)
    (law,) = LawRegressor(polish=False).fit(sets, spoiled).laws_
    assert law.formula == formula
    assert law.outliers == wrong
    assert f"examples that disagree with the law, and were left out: {len(wrong)}" in law.summary()


NO_LAWS: dict[str, Fold] = {
    "difference": lambda x: x[0] - x[1:].sum(),
    "exception": lambda x: x.sum() if x.max() < 4.4 else -20 * x.max(),
    "equal but for a few": lambda x: 1.0 if x[0] < 4 else x[0],
}


@pytest.mark.parametrize("name", NO_LAWS)
def test_leaving_out_examples_makes_no_law(name: str) -> None:
    sets, target = draw(-5, 5, NO_LAWS[name], 200)
    spoiled = spoil(target, "gross")[0] if name == "difference" else target
    with pytest.raises(NoLawError, match=r"^no law: "):
        LawRegressor(polish=False).fit(sets, spoiled)


@pytest.mark.parametrize("name", ["velocities", "large products", "log-sum-exp"])
def test_exact_laws_take_one_search(name: str, searches: list[int]) -> None:
    low, high, fold, formula = LAWS[name]
    (law,) = LawRegressor().fit(*draw(low, high, fold)).laws_
    assert searches == [300]
    assert law.formula == formula
    assert list(law.outliers) == []


def test_gaussian_noise_takes_one_search(searches: list[int]) -> None:
    sets, target = draw(-5, 5, np.prod)
    noise = 0.1 * target.std() * np.random.default_rng(0).normal(size=300)
    (law,) = LawRegressor(polish=False).fit(sets, target + noise).laws_
    assert searches == [300]
    assert law.relative_noise is None


@pytest.mark.parametrize("outliers", [0, 10])
def test_noise_proportional_to_the_result(outliers: int) -> None:
    low, high, fold, _ = LAWS["returns"]
    sets, target = draw(10 * low, 10 * high, fold, 400)
    generator = np.random.default_rng(0)
    noisy = target * (1 + 0.1 * generator.normal(size=400))
    noisy[:outliers] = -9 * target.std()
    (law,) = LawRegressor(polish=False).fit(sets, noisy).laws_
    assert law.formula == "x∘y = x + y + x·y"
    assert law.relative_noise == pytest.approx(0.1, rel=0.3)
    assert "% of the result" in law.summary()
    assert list(law.outliers) == list(range(outliers))


def test_a_model_saved_without_outliers_loads() -> None:
    law = LearnedLaw(LawRegressor().fit([[1, 2], [2, 2], [3, 1], [2, 4]], [3, 4, 4, 6]).laws_[0].operation, "sum", 0, 1)
    config = {name: value for name, value in law.config().items() if name not in ("outliers", "relative_noise")}
    assert list(LearnedLaw.from_config(config).outliers) == []
