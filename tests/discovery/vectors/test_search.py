"""Laws on vectors, found from examples: textbook invariants, refusal of non-laws, and exact results at any size."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from vector_laws import (
    CORE,
    LAWS,
    NON_LAWS,
    WIDER,
    VectorLaw,
    draw,
    is_right,
    random_law,
    random_non_law,
    spoil,
)

from abelnet import AbelnetError, LawRegressor, Multisets, NoLawError
from abelnet.discovery.search import distinct


def learn(law: VectorLaw, count: int = 200, noise: float = 0.0, swapped: float = 0.0) -> LawRegressor:
    sets, target = spoil(*draw(law, count, seed=5), noise, 0.0, swapped, seed=5)
    return LawRegressor(polish=False).fit(sets, target, names=law.names)


def error(model: LawRegressor, law: VectorLaw, sizes: tuple[int, int]) -> float:
    sets, target = draw(law, 100, seed=6, sizes=sizes)
    return float(np.sqrt(np.mean(((model.predict(sets) - target) / target.std(0)) ** 2)))


@pytest.mark.parametrize(
    "name",
    ["center of mass", "pooled variance", "complex product", "Gaussian fusion", "mixing by pH", "pooled covariance"],
)
def test_laws_of_practice(name: str) -> None:
    law = (LAWS | WIDER)[name]
    model = learn(law)
    assert is_right(model, law, 1e-6), [one.formula for one in model.laws_]
    assert error(model, law, (2, 4)) < 1e-10
    assert error(model, law, (10, 12)) < 1e-9


@pytest.mark.parametrize("name", ["center of mass", "parallel impedance"])
def test_with_noise(name: str) -> None:
    law = CORE[name]
    model = learn(law, count=500, noise=0.01)
    assert is_right(model, law, 0.02), [one.formula for one in model.laws_]
    assert error(model, law, (2, 4)) < 0.01


def test_swapped_results_are_listed() -> None:
    law = CORE["pooled variance"]
    sets, target = draw(law, 300, seed=5)
    spoiled = spoil(sets, target, 0.0, 0.0, 0.03, seed=5)[1]
    (found,) = LawRegressor(polish=False).fit(sets, spoiled, names=law.names).laws_
    assert found.outliers == np.flatnonzero((spoiled != target).any(1)).tolist()
    assert found.invariants == list(law.invariants)


@pytest.mark.parametrize("name", [*NON_LAWS][1:4])
def test_non_laws_are_refused(name: str) -> None:
    law = NON_LAWS[name]
    with pytest.raises(NoLawError, match=r"^no law: "):
        LawRegressor(polish=False).fit(*draw(law, 300, seed=5), names=law.names)


def test_coordinates_with_laws_of_their_own_are_told_apart() -> None:
    """Masses and places mix; a third coordinate has a maximum, which no invariant describes."""
    generator = np.random.default_rng(0)
    sets = [
        np.stack((generator.uniform(1, 3, n), generator.normal(size=n), generator.normal(size=n)), 1)
        for n in generator.integers(2, 5, 200)
    ]
    target = np.array([(s[:, 0].sum(), s[:, 2].max(), (s[:, 0] * s[:, 1]).sum() / s[:, 0].sum()) for s in sets])
    sets = [s[:, [0, 2, 1]] for s in sets]
    model = LawRegressor(polish=False).fit(sets, target, names=["m", "height", "x"])
    assert model.blocks_ == [(0, 2), (1,)]
    assert [law.formula for law in model.laws_] == ["m = Σ m, x = Σ(m·x) / m", "x∘y = max(x, y)"]
    np.testing.assert_allclose(model.predict(sets), target, atol=1e-12)
    low, high = model.predict_interval(sets)
    assert ((low <= target + 1e-9) & (target - 1e-9 <= high)).all()


def test_saved_and_loaded_bit_for_bit(tmp_path: Path) -> None:
    law = CORE["pooled variance"]
    model = learn(law, noise=0.01)
    model.save(tmp_path)
    loaded = LawRegressor.load(tmp_path)
    sets, _ = draw(law, 20, seed=9)
    np.testing.assert_array_equal(model.predict(sets), loaded.predict(sets))
    for one, other in zip(model.predict_interval(sets), loaded.predict_interval(sets), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.laws_[0].summary() == model.laws_[0].summary()
    assert loaded.blocks_ == model.blocks_


def test_merging_summaries_of_a_million_numbers() -> None:
    """Parts of a million numbers, merged in a random tree by the learned law, have numpy's mean and variance."""
    law = CORE["pooled variance"]
    (found,) = learn(law).laws_
    generator = np.random.default_rng(0)
    numbers = generator.normal(5, 2, 1_000_000)
    cuts = np.sort(generator.choice(np.arange(1, len(numbers)), 999, replace=False))
    parts = [np.array((len(p), p.mean(), ((p - p.mean()) ** 2).sum())) for p in np.split(numbers, cuts)]
    states = []
    import torch

    for part in parts:
        accumulator = found.operation.accumulator()
        accumulator.add(torch.from_numpy(part))
        states.append(accumulator)
    while len(states) > 1:
        i, j = generator.choice(len(states), 2, replace=False)
        states[min(i, j)].merge(states[max(i, j)])
        states.pop(max(i, j))
    n, mean, m2 = states[0].value().tolist()
    assert n == 1_000_000
    assert mean == pytest.approx(numbers.mean(), rel=1e-9)
    assert m2 / n == pytest.approx(numbers.var(), rel=1e-9)


def test_coordinates_far_from_zero_are_measured_from_their_middle() -> None:
    """Sums of squares of large means would leave few digits of a variance."""
    law = CORE["pooled variance"]
    sets, target = draw(law, 200, seed=5)
    (found,) = LawRegressor(polish=False).fit(sets, target, names=law.names).laws_
    assert found.bijection.origin == [0.0, 5.2, 0.0]
    assert found.invariants == list(law.invariants)  # printed as measured from 0


def test_duplicates_are_not_held_out() -> None:
    sets, target = draw(CORE["center of mass"], 6, seed=5)
    copies = Multisets.from_arrays(sets * 3, np.tile(target, (3, 1)))
    assert len(distinct(copies)) == 6
    target[0, 1] += 1  # the same elements with another result are another example
    assert len(distinct(Multisets.join([copies, Multisets.from_arrays(sets, target)]))) == 7


def test_refusal_says_what_came_closest() -> None:
    law = NON_LAWS["center weighted by m²"]
    with pytest.raises(NoLawError, match=r"^no law: ") as error:
        LawRegressor(polish=False).fit(*draw(law, 300, seed=5), names=law.names)
    assert "best invariants are m" in error.value.details[-1]


def test_the_gallery_has_every_law() -> None:
    page = (Path(__file__).parents[3] / "docs" / "vectors.md").read_text(encoding="utf-8")
    for name in LAWS | WIDER:
        assert f"### {name[0].upper()}{name[1:]}\n" in page
        assert (Path(__file__).parents[3] / "docs" / "vectors" / f"{name.replace(' ', '_').lower()}.png").exists()


def _random_table(seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns elements of any scale with results of any kind: a law, noise, constants, duplicates, or one huge set."""
    generator = np.random.default_rng(seed)
    d, count = int(generator.integers(2, 5)), int(generator.integers(1, 80))
    scale = 10.0 ** generator.integers(-12, 13, d)
    low = generator.choice([-1.0, 0.0, 0.1], d)
    sets = [scale * generator.uniform(low, 1.0, (int(generator.integers(1, 6)), d)) for _ in range(count)]
    kind = generator.integers(8)
    if kind == 1:
        sets = [np.round(10 * one / scale) for one in sets]
    if kind == 2:
        sets = sets[: 1 + count // 5] * 5
    if kind == 3:
        sets[0] = scale * generator.uniform(low, 1.0, (3000, d))
    if kind == 4:
        sets = [np.full_like(one, scale) for one in sets]
    target = np.array([one.sum(0) for one in sets])
    if kind == 5:
        target = scale * generator.normal(size=target.shape)
    if kind == 6:
        target[:, -1] = 7.0
    if kind in (0, 7):
        weights = [np.abs(one[:, 0]) + 1e-3 * scale[0] for one in sets]
        for i in range(1, d):
            target[:, i] = [(w * one[:, i]).sum() / w.sum() for w, one in zip(weights, sets, strict=True)]
    return sets, target


@pytest.mark.parametrize("part", range(2))
def test_random_tables_end_in_no_traceback(part: int, tmp_path: Path) -> None:
    """What is accepted is saved and loaded bit for bit."""
    count = max(1, int(os.environ.get("ABELNET_FUZZ", "0")) // 20)
    for seed in range(part * 10_000, part * 10_000 + count):
        sets, target = _random_table(seed)
        try:
            model = LawRegressor(polish=False).fit(sets, target)
        except AbelnetError:
            continue
        model.save(tmp_path)
        np.testing.assert_array_equal(LawRegressor.load(tmp_path).predict(sets), model.predict(sets))


def test_a_random_law() -> None:
    """``benchmarks/vectors.py --random 200`` tries many more."""
    law = random_law(0)
    model = LawRegressor(polish=False).fit(*draw(law, 300, seed=1), names=law.names)
    assert error(model, law, (10, 12)) < 1e-6, (law.invariants, [one.formula for one in model.laws_])


def test_a_random_non_law() -> None:
    """``benchmarks/vectors.py --random 200 --non-laws`` tries many more."""
    law = random_non_law(1)
    with pytest.raises(NoLawError):
        LawRegressor(polish=False).fit(*draw(law, 300, seed=1), names=law.names)
