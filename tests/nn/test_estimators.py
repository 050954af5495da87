"""Set models as estimators: forms of input, seeds, weights, early stopping, saving, and scikit-learn's tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import abelnet
from abelnet import AbelnetError, Multisets
from abelnet.nn import MultisetClassifier, MultisetRegressor, make_aggregation

Sets = list[np.ndarray[Any, np.dtype[np.float64]]]
FAST = {"epochs": 25, "lr": 0.02, "batch_size": 16, "hidden": 16, "channels": 8}

ALL = "ABELNET_EXPORT" in os.environ
OF_ROWS = "a row is a multiset, of any number of elements; the one feature of a number is the number itself"
EXPECTED_FAILURES = {
    "check_n_features_in": OF_ROWS,
    "check_n_features_in_after_fitting": OF_ROWS,
    "check_classifiers_train": OF_ROWS,
    "check_sample_weight_equivalence_on_dense_data": "the sets of a step depend on their number and order",
    "check_dtype_object": "every error of the input is an AbelnetError, which is a ValueError and not a TypeError",
    "check_supervised_y_2d": "classes (R, 1) are read as (R) without a warning",
}


def sets(count: int = 60) -> Sets:
    generator = np.random.default_rng(0)
    return [3 + generator.normal(size=(n, 2)) for n in generator.integers(2, 6, count)]


def widths(X: Sets) -> list[str]:
    return ["wide" if np.ptp(one[:, 0]) > 1.5 else "narrow" for one in X]


def padded(X: Sets) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    values, mask = Multisets.from_arrays(X).padded()
    return values.numpy(), mask.numpy()


def test_all_forms_of_sets_give_the_same_model() -> None:
    X = sets()
    y = widths(X)
    model = MultisetClassifier(**FAST).fit(X, y)  # type: ignore[arg-type]
    expected = model.predict_proba(X)
    values, mask = padded(X)
    np.testing.assert_allclose(model.predict_proba(values, mask=mask), expected, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(np.where(mask[..., None], values, np.nan)), expected, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(Multisets.from_arrays(X)), expected, atol=1e-6)
    again = MultisetClassifier(**FAST).fit(values, y, mask=mask)  # type: ignore[arg-type]
    np.testing.assert_allclose(again.predict_proba(X), expected, atol=1e-6)
    assert model.n_features_in_ == 2
    assert list(model.classes_) == ["narrow", "wide"]
    np.testing.assert_allclose(expected.sum(1), 1)
    assert (model.predict(X) == model.classes_[expected.argmax(1)]).all()
    assert model.score(X, y) > 0.8


def test_a_data_frame_with_a_row_for_each_element() -> None:
    X = sets()
    y = widths(X)
    rows = pandas.DataFrame(np.concatenate(X), columns=["x", "y"])
    rows["bag"] = [f"bag {i}" for i, one in enumerate(X) for _ in one]
    long = MultisetClassifier(set_column="bag", **FAST).fit(rows, y)  # type: ignore[arg-type]
    plain = MultisetClassifier(**FAST).fit(X, y)  # type: ignore[arg-type]
    np.testing.assert_allclose(long.predict_proba(rows), plain.predict_proba(X), atol=1e-6)
    assert list(long.feature_names_in_) == ["x", "y"]
    # Rows in any order, and targets found by the names of sets.
    mixed = rows.sample(frac=1.0, random_state=0)
    series = pandas.Series(dict(zip(rows["bag"].unique(), y, strict=True))).sort_index()
    shuffled = clone(long).fit(mixed, series)
    assert shuffled.score(mixed, series.loc[mixed["bag"].unique()]) > 0.8
    weighted = rows.assign(w=1.0)
    np.testing.assert_allclose(long.predict_proba(weighted, element_weights="w"), long.predict_proba(rows), atol=1e-6)
    with pytest.raises(
        AbelnetError, match="y: expected a series indexed by the names of sets, got no target of 'bag 0'"
    ):
        clone(long).fit(rows, series.iloc[1:])
    with pytest.raises(AbelnetError, match="X: expected a data frame with a column 'bag', got list"):
        long.predict(X)


def test_the_seed_decides() -> None:
    X = sets(30)
    y = [float(one.sum()) for one in X]
    options = {**FAST, "epochs": 4}
    torch.manual_seed(1)
    first = MultisetRegressor(seed=3, **options).fit(X, y).predict(X)  # type: ignore[arg-type]
    torch.manual_seed(2)
    again = MultisetRegressor(seed=3, **options).fit(X, y).predict(X)  # type: ignore[arg-type]
    other = MultisetRegressor(seed=4, **options).fit(X, y).predict(X)  # type: ignore[arg-type]
    assert (first == again).all()
    assert not np.allclose(first, other)


def test_regression_of_totals_in_any_units() -> None:
    X = sets(150)
    y = np.array([one.prod(1).sum() for one in X])
    model = MultisetRegressor("sum", epochs=60, lr=0.01, hidden=32).fit(X, y)
    assert model.score(X, y) > 0.95
    scaled = MultisetRegressor("sum", epochs=60, lr=0.01, hidden=32).fit([1e3 * one for one in X], 1e6 * y)
    np.testing.assert_allclose(scaled.predict([1e3 * one for one in X]), 1e6 * model.predict(X), rtol=1e-3, atol=1e4)
    both = MultisetRegressor("sum", **FAST).fit(X, np.stack((y, -y), 1)).predict(X[:3])  # type: ignore[arg-type]
    assert both.shape == (3, 2)


def test_weights_of_sets_and_elements() -> None:
    X = sets(40)
    y = np.array([0.0, 1.0] * 20)
    # Sets of weight 0 have no say: all others have the same target.
    model = MultisetRegressor(**FAST).fit(X, y, sample_weight=y)  # type: ignore[arg-type]
    assert np.abs(model.predict(X) - 1).mean() < 0.2
    once = MultisetRegressor("mean", **FAST).fit(X, y)  # type: ignore[arg-type]
    twice = [np.concatenate((one, one[:1])) for one in X]
    weights = [np.array([2.0] + [1.0] * (len(one) - 1)) for one in X]
    np.testing.assert_allclose(once.predict(X, element_weights=weights), once.predict(twice), atol=1e-5)
    values, mask = padded(X)
    table = np.where(mask, 1.0, np.nan)
    table[:, 0] = 2
    np.testing.assert_allclose(once.predict(values, mask=mask, element_weights=table), once.predict(twice), atol=1e-5)
    learned = clone(once).fit(X, y, element_weights=weights)
    np.testing.assert_allclose(learned.predict(twice), clone(once).fit(twice, y).predict(twice), atol=0.2)
    with pytest.raises(AbelnetError, match="element_weights: expected an array with one weight per element"):
        once.predict(X, element_weights=weights[:-1])


def test_training_stops_early_and_reports_epochs() -> None:
    X = sets(40)
    noise = np.random.default_rng(1).normal(size=40)
    seen: list[tuple[int, float, float | None]] = []
    model = MultisetRegressor(epochs=200, patience=3, lr=0.02, hidden=16, channels=8)
    model.fit(X, noise, on_epoch=lambda *news: seen.append(news))
    assert 4 <= len(seen) < 200
    assert [epoch for epoch, _, _ in seen] == list(range(1, len(seen) + 1))
    assert all(validation is not None for _, _, validation in seen)
    with pytest.raises(AbelnetError, match="patience: expected two or more sets"):
        model.fit(X[:1], noise[:1])


@pytest.mark.parametrize("kind", [MultisetClassifier, MultisetRegressor])
def test_saved_and_loaded(kind: Any, tmp_path: Path) -> None:
    X = sets(30)
    y = [float(len(one) % 2) for one in X]
    model = kind(aggregation=make_aggregation("mean", 8), **{**FAST, "epochs": 3}).fit(X, y)
    abelnet.save(model, tmp_path)
    loaded = abelnet.load(tmp_path)
    assert (loaded.predict(X) == model.predict(X)).all()
    assert loaded.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert loaded.n_features_in_ == 2
    fresh = kind()
    for call in (lambda: fresh.predict(X), lambda: abelnet.save(fresh, tmp_path / "fresh"), lambda: fresh.model_):
        with pytest.raises(AbelnetError, match="expected a fitted model, got none; call fit first"):
            call()


def test_an_aggregation_that_finds_its_law_is_annealed() -> None:
    X = sets(40)
    y = [float(one.sum()) for one in X]
    model = MultisetRegressor("bank", channels=4, hidden=8, epochs=6, batch_size=20).fit(X, y)
    assert model.model_.aggregation.is_hard  # type: ignore[union-attr]
    assert np.isfinite(model.predict(X)).all()


def test_scikit_learn_selects_and_validates() -> None:
    X = np.empty(60, dtype=object)
    X[:] = sets()
    y = np.array(widths(list(X)))
    search = GridSearchCV(MultisetClassifier(**FAST), {"aggregation": ["mean", "max"]}, cv=2)  # type: ignore[arg-type]
    search.fit(X, y)
    assert search.best_score_ > 0.6
    scores = cross_val_score(MultisetRegressor(**{**FAST, "epochs": 2}), X, (y == "wide").astype(float), cv=2)  # type: ignore[arg-type]
    assert np.isfinite(scores).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Estimator's parameters changed")
@pytest.mark.parametrize("kind", [MultisetClassifier, MultisetRegressor])
def test_checks_of_scikit_learn(kind: Any) -> None:
    done = check_estimator(
        kind(epochs=3, hidden=8, channels=4), legacy=ALL, expected_failed_checks=EXPECTED_FAILURES, on_skip=None
    )
    failed = {one["check_name"] for one in done if one["status"] == "xfail"}
    assert failed <= set(EXPECTED_FAILURES)
    assert "check_n_features_in_after_fitting" in failed
    assert sum(one["status"] == "passed" for one in done) >= (45 if ALL else 10)


def test_what_is_refused() -> None:
    X = sets(4)
    model = MultisetRegressor(**{**FAST, "epochs": 1})  # type: ignore[arg-type]
    for y, message in (([1.0] * 3, "y: expected finite targets of 4 sets"), (["a"] * 4, "y: expected numbers")):
        with pytest.raises(AbelnetError, match=message):
            model.fit(X, y)
    with pytest.raises(AbelnetError, match="y: expected one class for each of 4 sets"):
        MultisetClassifier().fit(X, [0, 1])
    with pytest.raises(AbelnetError, match="X: expected elements of 2 dimensions, got 1"):
        model.fit(X, [1.0, 2.0, 3.0, 4.0]).predict([[1.0], [2.0]])
    with pytest.raises(AbelnetError, match="X: expected sets with elements, got 0 feature"):
        model.fit([[], []], [1.0, 2.0])
    with pytest.raises(AbelnetError, match="validation_fraction"):
        MultisetRegressor(validation_fraction=2.0).fit(X, [1.0] * 4)
