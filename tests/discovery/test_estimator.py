"""Learning the law behind examples: the paper's operations, laws of practice, noise, and what is no law."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from abelnet import AbelnetError, LawRegressor, NoLawError
from abelnet.discovery.candidates import train_abelian_net
from abelnet.discovery.examples import Examples
from abelnet.discovery.families import Entry, fit_dictionary
from abelnet.discovery.spectral import SpectralFit
from abelnet.experiments.synthetic.data import OPERATIONS, MultisetData, make_dataset

Fold = Callable[[np.ndarray[Any, Any]], Any]


def table(data: MultisetData) -> np.ndarray[Any, Any]:
    return np.where(data.mask.numpy(), data.values.numpy(), np.nan)


def rmse(model: LawRegressor, data: MultisetData) -> float:
    return float(np.sqrt(np.mean((model.predict(table(data)) - data.target.numpy()) ** 2)))


def draw(
    low: float, high: float, fold: Fold, count: int = 300, seed: int = 0
) -> tuple[list[Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    sets = [generator.uniform(low, high, generator.integers(2, 5)) for _ in range(count)]
    return sets, np.array([fold(one) for one in sets])


PAPER = {
    "sum": (1e-9, 1e-8, "x∘y = x + y", True),
    "sum_plus_one": (1e-9, 1e-8, "x∘y = x + y + 1", True),
    "cbrt": (1e-3, 5e-3, "x∘y = (x^3 + y^3)^(1/3)", True),
    "product": (1e-6, 1e-3, "x∘y = x·y", False),
    "shifted_product": (1e-8, 1e-6, "x∘y = x + y + 0.5·x·y", False),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_papers_operations(name: str, seed: int) -> None:
    data = make_dataset(name, seed)
    small, large, formula, is_group = PAPER[name]
    model = LawRegressor().fit(table(data.train), data.train.target.numpy())
    (law,) = model.laws_
    assert rmse(model, data.small) <= small
    assert rmse(model, data.large) <= large
    assert law.formula == formula
    assert law.is_group is is_group
    absorbing = {"product": 0.0, "shifted_product": -2.0}.get(name)
    assert law.absorbing == (None if absorbing is None else pytest.approx(absorbing, abs=1e-4))
    assert model.score(table(data.small), data.small.target.numpy()) == pytest.approx(1.0)


@pytest.mark.parametrize("part", [0.01, 0.1])
@pytest.mark.parametrize("name", OPERATIONS)
def test_noise(name: str, part: float) -> None:
    data = make_dataset(name, 3)
    noise = part * float(data.train.target.std())
    target = data.train.target.numpy() + noise * np.random.default_rng(3).normal(size=500)
    model = LawRegressor().fit(table(data.train), target)
    assert rmse(model, data.small) <= 0.5 * noise
    assert model.laws_[0].is_group is PAPER[name][3]


LAWS: dict[str, tuple[float, float, Fold, str]] = {
    "noisy or": (0, 1, lambda x: 1 - np.prod(1 - x), "x∘y = x + y − x·y"),
    "odds": (
        0.02,
        0.98,
        lambda x: reduce(lambda a, b: a * b / (a * b + (1 - a) * (1 - b)), x),
        "x∘y = g⁻¹(g(x) + g(y)), g(x) = log(x / (1 - x))",
    ),
    "velocities": (-0.9, 0.9, lambda x: np.tanh(np.arctanh(x).sum()), "x∘y = (x + y) / (1 + x·y)"),
    "resistors": (1, 1e4, lambda x: 1 / np.sum(1 / x), "x∘y = (x^(−1) + y^(−1))^(−1)"),
    "lengths": (0, 5, lambda x: np.sqrt(np.sum(x**2)), "x∘y = (x^2 + y^2)^(1/2)"),
    "large sums": (-1e6, 1e6, np.sum, "x∘y = x + y"),
    "around a million": (0.9e6, 1.1e6, np.sum, "x∘y = x + y"),
    "large products": (-1e6, 1e6, np.prod, "x∘y = x·y"),
    "log-sum-exp": (-5, 5, lambda x: np.log(np.exp(x).sum()), "x∘y = log(exp(x) + exp(y))"),
    "returns": (-0.3, 0.5, lambda x: np.prod(1 + x) - 1, "x∘y = x + y + x·y"),
    "arcsinh": (-5, 5, lambda x: np.sinh(np.arcsinh(x).sum()), "x∘y = g⁻¹(g(x) + g(y)), g(x) = arcsinh(x / 1)"),
    "tiny sums": (1e-30, 1e-28, np.sum, "x∘y = x + y"),
    "exclusive or": (0, 1, lambda x: (1 - np.prod(1 - 2 * x)) / 2, "x∘y = x + y − 2·x·y"),
    "largest": (-5, 5, np.max, "x∘y = max(x, y)"),
    "smallest": (-5, 5, np.min, "x∘y = min(x, y)"),
}


@pytest.mark.parametrize("count", [300, 60])
@pytest.mark.parametrize("name", LAWS)
def test_laws_of_practice(name: str, count: int) -> None:
    low, high, fold, formula = LAWS[name]
    sets, target = draw(low, high, fold, count)
    model = LawRegressor().fit(sets, target)
    assert model.laws_[0].formula == formula
    generator = np.random.default_rng(1)
    large = [generator.uniform(low, high, 12) for _ in range(20)]
    wanted = np.array([fold(one) for one in large])
    np.testing.assert_allclose(model.predict(large), wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    gamma=st.floats(0.05, 2) | st.floats(-2, -0.05),
    absorbing=st.floats(-8, 8),
    exponent=st.floats(0.4, 4),
    shift=st.floats(-3, 3),
)
def test_random_members_of_the_families(gamma: float, absorbing: float, exponent: float, shift: float) -> None:
    folds: list[tuple[float, Fold]] = [
        (-3, lambda x: absorbing + gamma ** (len(x) - 1.0) * np.prod(x - absorbing)),
        (-3, lambda x: x.sum() + (len(x) - 1) * shift),
        (0.1, lambda x: (x**exponent).sum() ** (1 / exponent)),
    ]
    for low, fold in folds:
        sets, target = draw(low, 3, fold, 120)
        model = LawRegressor(polish=False).fit(sets, target)
        fresh, wanted = draw(low, 3, fold, 20, seed=1)
        np.testing.assert_allclose(model.predict(fresh), wanted, rtol=1e-6, atol=1e-6 * np.abs(target).max())


def test_four_orders_of_magnitude() -> None:
    generator = np.random.default_rng(0)
    sets = [10 ** generator.uniform(0, 4, generator.integers(2, 5)) for _ in range(300)]
    for fold in (np.sum, np.prod, lambda x: 1 / np.sum(1 / x)):
        model = LawRegressor().fit(sets, [fold(one) for one in sets])
        wanted = [fold(one) for one in sets]
        np.testing.assert_allclose(model.predict(sets), wanted, rtol=1e-9)


def test_a_law_that_no_formula_has() -> None:
    cubic = lambda x: x + x**3
    grid = np.linspace(-10, 10, 2_000_001)
    heights = cubic(grid)
    undo = lambda u: np.interp(u, heights, grid)
    sets, target = draw(-2, 2, lambda x: undo(cubic(x).sum()))
    model = LawRegressor().fit(sets, target)
    (law,) = model.laws_
    assert law.entry is None
    assert law.is_group
    fresh, wanted = draw(-2, 2, lambda x: undo(cubic(x).sum()), seed=1)
    assert np.sqrt(np.mean((model.predict(fresh) - wanted) ** 2)) < 1e-3
    assert "φ" in law.formula


NO_LAWS: dict[str, Fold] = {
    "difference": lambda x: x[0] - x[1:].sum(),
    "mean": np.mean,
    "weighted": lambda x: x[0] + 2 * x[1:].sum(),
    "range": np.ptp,
    "none at all": lambda x: math.sin(1e3 * x[0]),
}


@pytest.mark.parametrize("name", NO_LAWS)
def test_what_is_no_law_is_refused(name: str) -> None:
    sets, target = draw(-5, 5, NO_LAWS[name])
    with pytest.raises(NoLawError, match=r"expected the results of a commutative, associative law; .* eigenvalues"):
        LawRegressor(polish=name == "none at all").fit(sets, target)
    assert LawRegressor(refuse=False, polish=False).fit(sets, target).predict(sets).shape == (300,)


def test_vectors_element_by_element(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    sets = [generator.uniform(0.1, 2, (generator.integers(2, 5), 2)) for _ in range(120)]
    target = np.array([[one[:, 0].sum(), one[:, 1].prod()] for one in sets])
    model = LawRegressor().fit(sets, target)
    assert [law.formula for law in model.laws_] == ["x∘y = x + y", "x∘y = x·y"]
    assert model.predict(sets[:3]).shape == (3, 2)
    model.save(tmp_path)
    np.testing.assert_array_equal(LawRegressor.load(tmp_path).predict(sets), model.predict(sets))


def test_a_curve_is_saved_too(tmp_path: Path) -> None:
    sets, target = draw(0.1, 3, lambda x: np.log(np.expm1(x + x**2).sum() + 1) / 2, 80)
    model = LawRegressor(refuse=False, polish=False).fit(sets, target)
    model.save(tmp_path)
    again = LawRegressor.load(tmp_path)
    np.testing.assert_array_equal(again.predict(sets), model.predict(sets))
    assert again.laws_[0].summary() == model.laws_[0].summary()


def test_in_parts_as_at_once() -> None:
    sets, target = draw(0, 1, lambda x: 1 - np.prod(1 - x), 400)
    whole = LawRegressor().fit(sets, target)
    parts = LawRegressor()
    for low in range(0, 400, 100):
        parts.partial_fit(sets[low : low + 100], target[low : low + 100])
    assert parts.laws_[0].formula == whole.laws_[0].formula
    fits = [SpectralFit(), SpectralFit()]
    data = Examples(*make_dataset("product", 0).train)
    fits[0].partial_fit(data)
    half = torch.arange(250)
    fits[1].partial_fit(data)  # the same knots
    fits[1].merge(fits[0])
    assert fits[1].count == 1000
    assert fits[1].solve()[1].eigenvalue == pytest.approx(fits[0].solve()[1].eigenvalue, rel=1e-3)
    with pytest.raises(AbelnetError, match="expected a fit with the same knots"):
        fits[0].merge(SpectralFit().partial_fit(data.take(half)))


def test_eigenvalues_tell_group_from_semigroup() -> None:
    for name, operation in OPERATIONS.items():
        data = Examples(*make_dataset(name, 5).train)
        group, semigroup, _ = SpectralFit().partial_fit(data).refine(data).solve()
        if operation.is_group:
            assert group.eigenvalue < 1e-5
        else:
            assert group.eigenvalue > 1e-2 > 1e-5 > semigroup.eigenvalue
            assert semigroup.absorbing == pytest.approx({"product": 0.0}.get(name, -2.0), abs=1e-4)


def test_abelian_net_becomes_what_the_examples_are() -> None:
    for name, wanted in (("sum_plus_one", 0.0), ("shifted_product", 0.5)):
        data = make_dataset(name, 0)
        fitted, held_out = Examples(*data.train), Examples(*data.validation)
        candidate = train_abelian_net(fitted, held_out, epochs=500).judge(held_out)
        assert candidate.rmse < 1e-2 * float(held_out.target.std())
        # γ times the slope of φ is the coefficient of xy near the identity, whatever the units of φ.
        operation = candidate.operation
        slope = operation.bijection.log_abs_det(operation.identity()).exp()
        mixed = float((operation.law.gamma * slope).detach())  # type: ignore[operator]
        assert mixed == pytest.approx(wanted, abs=1e-2)


def test_constant_duplicates_and_single_elements() -> None:
    sets, _ = draw(-5, 5, np.sum, 30)
    constant = LawRegressor().fit(sets, np.full(30, 7.0))
    assert constant.laws_[0].formula == "x∘y = 7"
    assert constant.predict([[1.0, 2.0, 3.0]]).tolist() == [7.0]
    twice = LawRegressor().fit(sets * 3, [one.sum() for one in sets] * 3)
    assert twice.laws_[0].formula == "x∘y = x + y"
    assert twice.predict([[4.0], [], [1.0] * 1000]).tolist() == [4.0, 0.0, 1000.0]
    with_singles = LawRegressor().fit([*sets, [1.0], [2.0]], [*(one.sum() for one in sets), 1.0, 2.0])
    assert with_singles.laws_[0].formula == "x∘y = x + y"


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0], [3.0], [4.0], [5.0]], [1.0, 2, 3, 4, 5], "a set of one element says nothing"),
        ([[1.0, 2.0]] * 9, [3.0] * 8, "expected one result of 1 dimensions for each of 9 sets"),
        ([[1.0, 2.0], []] * 9, [3.0] * 18, "expected no empty set to learn from, got 9"),
        ([["a", 2.0]] * 9, [3.0] * 9, "X: expected numbers"),
        ([[1.0, math.inf]] * 9, [3.0] * 9, "X: expected finite numbers in set 0"),
        ([[1.0, 2.0]] * 9, [math.nan] * 9, "y: expected finite numbers, got 9"),
        ("table.csv", [1.0], "X: expected a list of arrays"),
        ([[1e150, 2.0]] * 9, [3.0] * 9, "expected numbers of sizes from 1e-100 to 1e100, got 1e[+]150"),
        ([], [], "X: expected at least one set"),
    ],
)
def test_bad_input(X: Any, y: Any, message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        LawRegressor().fit(X, y)


def test_in_the_manner_of_scikit_learn() -> None:
    model = clone(LawRegressor(seed=3, polish=False))
    assert model.get_params() == {"seed": 3, "refuse": True, "polish": False}
    assert model.set_params(seed=1).seed == 1
    with pytest.raises(AbelnetError, match="expected a fit before it"):
        model.predict([[1.0]])
    with pytest.raises(AbelnetError, match="alpha: expected one of seed"):
        model.set_params(alpha=1)


def test_rounding_keeps_what_the_examples_tell() -> None:
    sets, target = draw(-5, 5, lambda x: x.sum() + (len(x) - 1) * 0.123456789)
    (law,) = LawRegressor().fit(sets, target).laws_
    assert law.entry is not None
    assert law.entry.coefficients[0] == pytest.approx(0.123456789, rel=1e-9)


def test_entries_are_what_their_operations_are() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(50, 3, generator=generator, dtype=torch.float64) * 0.8 + 0.1
    examples = Examples(values, torch.ones(50, 3, dtype=torch.bool), values.sum(1))
    for entry in (
        Entry("power", "sum", (3.0,), (0.5,)),
        Entry("logit", "sum", (), ()),
        Entry("arctanh", "product", (2.0,), (-0.3, 0.7)),
        Entry("exponential", "product", (0.5,), (0.2, -1.3)),
    ):
        folded = entry.operation().reduce(values[..., None])[:, 0]
        torch.testing.assert_close(folded, entry.predict(examples), rtol=1e-10, atol=1e-10)
    assert next(fit_dictionary(examples)).title == "sum of affine"
