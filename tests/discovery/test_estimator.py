"""The front in the manner of scikit-learn: what it takes, in parts, saved, and what it refuses."""

from __future__ import annotations

import math
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from laws_of_practice import draw
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from abelnet import AbelnetError, LawRegressor, Multisets

ALL = "ABELNET_EXPORT" in os.environ
# Checks of scikit-learn that take a row of an array for a vector, of which each column is a feature, and two others.
OF_ROWS = "a row is a multiset, of any number of elements; the one feature of a number is the number itself"
EXPECTED_FAILURES = {
    "check_n_features_in": OF_ROWS,
    "check_n_features_in_after_fitting": OF_ROWS,
    "check_estimators_partial_fit_n_features": OF_ROWS,
    "check_supervised_y_2d": "results (R, 1) are of one coordinate, and so are predictions; nothing is converted",
    "check_sample_weight_equivalence_on_dense_data": "which examples are held out depends on their number and order",
    "check_dtype_object": "every error of the input is an AbelnetError, which is a ValueError and not a TypeError",
}


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
    for method in (model.predict, model.extrapolated, model.predict_interval):
        with pytest.raises(NotFittedError, match="expected a fitted model, got none; call fit first"):
            method([[1.0]])
    with pytest.raises(AbelnetError, match="alpha: expected one of seed"):
        model.set_params(alpha=1)
    for name in ("laws_", "n_features_in_", "feature_names_in_"):
        assert not hasattr(model, name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Estimator's parameters changed")
def test_checks_of_scikit_learn() -> None:
    # Of results that follow no law the best mean is found sooner than the best fold.
    model = LawRegressor(refuse=False, polish=False, only=None if ALL else "means")
    done = check_estimator(model, legacy=ALL, expected_failed_checks=EXPECTED_FAILURES)
    failed = {one["check_name"] for one in done if one["status"] == "xfail"}
    assert failed == {name for name in EXPECTED_FAILURES if ALL or name == "check_n_features_in_after_fitting"}
    assert sum(one["status"] == "passed" for one in done) >= (45 if ALL else 13)


def hypotenuses(count: int = 60) -> tuple[Any, Any]:
    pairs = np.random.default_rng(0).uniform(1, 2, (count, 2))
    return pairs, np.hypot(*pairs.T)


def test_cross_validation_and_search() -> None:
    X, y = hypotenuses()
    lists = [list(row) for row in X]
    model = LawRegressor(polish=False)
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(model, X, y, cv=folds)
    assert scores.min() > 1 - 1e-9
    with parallel_config("loky" if ALL else "threading"):
        np.testing.assert_allclose(cross_val_score(model, lists, y, cv=folds, n_jobs=2), scores)
    search = GridSearchCV(LawRegressor(polish=False, refuse=False), {"only": ["means", "folds"]}, cv=2).fit(lists, y)
    assert search.best_params_ == {"only": "folds"}
    assert search.best_estimator_.laws_[0].formula == "x∘y = (x^2 + y^2)^(1/2)"
    assert search.score(lists, y) == pytest.approx(1)


def test_in_a_pipeline() -> None:
    X, y = hypotenuses()
    pipeline = make_pipeline(FunctionTransformer(np.square), LawRegressor(polish=False)).fit(X, y**2)
    assert pipeline[-1].laws_[0].formula == "x∘y = x + y"
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    assert pipeline.score(X, y**2) == r2_score(y**2, pipeline.predict(X))


def test_the_same_sets_in_every_container() -> None:
    sets = [[1.0, 2.0], [3.0], [1.0, 1.0, 4.0], [2.0, 2.0], [5.0, 1.0], [3.0, 0.5], [2.5, 1.5]]
    y = [sum(one) for one in sets]
    padded = np.array([one + [np.nan] * (3 - len(one)) for one in sets])
    objects = np.empty(len(sets), dtype=object)
    objects[:] = [np.array(one) for one in sets]
    frame = pd.DataFrame({"items": sets, "total": y})
    model = LawRegressor(polish=False).fit(sets, y)
    assert model.n_features_in_ == 1
    assert not hasattr(model, "feature_names_in_")
    for X in (padded, objects, objects[:, None], frame["items"], frame[["items"]], pd.DataFrame(padded)):
        other = LawRegressor(polish=False).fit(X, frame["total"])
        assert other.laws_[0].formula == "x∘y = x + y"
        np.testing.assert_array_equal(other.predict(X), model.predict(sets))


def test_names_of_coordinates(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    sets = [generator.uniform(1, 5, (3, 2)) for _ in range(60)]
    y = np.array([(one[:, 0].sum(), one.prod(1).sum() / one[:, 0].sum()) for one in sets])
    columns = pd.DataFrame({"m": [list(one[:, 0]) for one in sets], "x": [list(one[:, 1]) for one in sets]})
    frames = [pd.DataFrame(one, columns=["m", "x"]) for one in sets]
    found = LawRegressor().fit(columns, y)
    assert found.laws_[0].formula == "m = Σ m, x = Σ(m·x) / m"
    assert found.feature_names_in_.tolist() == LawRegressor().partial_fit(frames, y).feature_names_in_.tolist()
    found.save(tmp_path)
    again = LawRegressor.load(tmp_path)
    assert again.feature_names_in_.tolist() == ["m", "x"]
    assert again.n_features_in_ == found.n_features_in_ == 2
    np.testing.assert_array_equal(again.predict(frames), found.predict(columns))
    with pytest.raises(AbelnetError, match="lists of equal length in the columns of set 1"):
        found.predict(pd.DataFrame({"m": [[1.0], [1.0, 2.0]], "x": [[1.0], [1.0]]}))
    with pytest.raises(AbelnetError, match="sample_weight: expected equal weights for elements of 2 coordinates"):
        LawRegressor().fit(sets, y, np.arange(60))


def test_weights_of_sets() -> None:
    X, y = hypotenuses(80)
    # Sets of weight 0 do not count; others as far as their weight says: here, most have a sum for a result.
    wrong = np.arange(80) % 2 == 0
    y[wrong] = X[wrong].sum(1)
    none = LawRegressor(polish=False).fit(X, y, sample_weight=np.where(wrong, 0.0, 2.0))
    assert none.laws_[0].formula == "x∘y = (x^2 + y^2)^(1/2)"
    assert none.score(X, y, sample_weight=~wrong) > none.score(X, y)
    models = [
        LawRegressor(polish=False, refuse=False).fit(X, y, sample_weight=np.where(wrong, weight, 1 / weight))
        for weight in (0.1, 10.0)
    ]
    errors = [np.abs(model.predict(X) - y) for model in models]
    assert errors[0][~wrong].mean() < errors[1][~wrong].mean()
    assert errors[0][wrong].mean() > errors[1][wrong].mean()
    targeted = Multisets.from_arrays(X, y)
    assert LawRegressor(polish=False).fit(targeted, sample_weight=~wrong).laws_[0].formula == none.laws_[0].formula


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
