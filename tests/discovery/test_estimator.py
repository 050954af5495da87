"""The front in the manner of scikit-learn: what it takes, in parts, saved, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laws_of_practice import draw
from sklearn.base import clone

from abelnet import AbelnetError, LawRegressor


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
        ([[1e150, 2.0]] * 9, [3.0] * 9, "expected magnitudes from 1e-100 to 1e100, got 1e[+]150"),
        ([], [], "X: expected at least one set"),
        ([[1.0, 2.0]] * 9, None, "y: expected a result for each set, got none"),
    ],
)
def test_bad_input(X: Any, y: Any, message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        LawRegressor().fit(X, y)


def test_in_the_manner_of_scikit_learn() -> None:
    model = clone(LawRegressor(seed=3, polish=False))
    assert model.get_params() == {"seed": 3, "refuse": True, "polish": False, "only": None}
    assert model.set_params(seed=1).seed == 1
    with pytest.raises(AbelnetError, match="expected a fitted model, got none; call fit first"):
        model.predict([[1.0]])
    with pytest.raises(AbelnetError, match="alpha: expected one of seed"):
        model.set_params(alpha=1)


@pytest.mark.parametrize("dim", [None, 1, 2])
def test_loaded_is_fitted_bit_for_bit_and_shape_for_shape(dim: int | None, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    shape = () if dim is None else (dim,)
    sets = [generator.uniform(0.1, 2, (generator.integers(2, 5), *shape)) for _ in range(60)]
    model = LawRegressor().fit(sets, np.array([np.log(np.exp(one).sum(0)) for one in sets]))
    model.save(tmp_path)
    expected, found = model.predict(sets), LawRegressor.load(tmp_path).predict(sets)
    assert expected.shape == found.shape == (60, *shape)
    assert expected.tobytes() == found.tobytes()


def test_a_loaded_model_has_no_examples_to_add_to(tmp_path: Path) -> None:
    sets, target = draw(0, 1, lambda x: 1 - np.prod(1 - x), 60)
    LawRegressor().fit(sets, target).save(tmp_path)
    model = LawRegressor.load(tmp_path)
    with pytest.raises(AbelnetError, match=r"partial_fit: .* loaded, which has only the law; call fit"):
        model.partial_fit(sets[:5], target[:5])
    np.testing.assert_array_equal(model.predict(sets), LawRegressor.load(tmp_path).predict(sets))
    assert model.fit(sets, target).partial_fit(sets, target).laws_


def test_an_empty_set_is_the_identity_or_an_error() -> None:
    pairs = np.random.default_rng(0).uniform(1, 2, (60, 2))
    assert LawRegressor().fit(pairs, pairs.prod(1)).predict([[], [3.0]]).tolist() == pytest.approx([1.0, 3.0])
    for results in (pairs.max(1), 1 / (1 / pairs).sum(1), np.ones(60)):
        model = LawRegressor().fit(pairs, results)
        with pytest.raises(AbelnetError, match=r"X, set 1: expected at least one element, since .* has no identity"):
            model.predict([[3.0], []])
