"""Base classes of estimators, with scikit-learn and without it, whichever is imported first."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError as TheirNotFittedError
from sklearn.metrics import accuracy_score
from sklearn.metrics import r2_score as their_r2_score
from sklearn.utils.validation import check_is_fitted

from abelnet import AbelnetError
from abelnet.errors import NotFittedError
from abelnet.estimators import Classifier, Regressor, check_sample_weight, not_fitted, r2_score


class Level(Regressor):
    """The mean of what it is fitted to, plus an offset."""

    def __init__(self, offset: float = 0.0, inner: Regressor | None = None) -> None:
        self.offset, self.inner = offset, inner

    def fit(self, X: object, y: object, sample_weight: object = None) -> Level:
        self.level_ = float(np.mean(y)) + self.offset  # type: ignore[arg-type]
        return self

    def predict(self, X: object) -> object:
        self.check_fitted("predict")
        return np.full(len(X), self.level_)  # type: ignore[arg-type]


class Same(Classifier):
    """The class 1, whatever the set."""

    def predict(self, X: object) -> object:
        return np.ones(len(X))  # type: ignore[arg-type]


def test_is_an_estimator_of_scikit_learn() -> None:
    model = Level(offset=2.0)
    assert isinstance(model, BaseEstimator)
    assert isinstance(model, RegressorMixin)
    assert isinstance(Same(), ClassifierMixin)
    assert is_regressor(model)
    assert is_classifier(Same())
    assert clone(model).offset == 2.0
    assert repr(model) == "Level(offset=2.0)"
    with config_context(enable_metadata_routing=True):
        assert model.set_fit_request(sample_weight=True).get_metadata_routing().fit.requests == {"sample_weight": True}  # type: ignore[attr-defined]


def test_arguments_of_arguments() -> None:
    model = Level(inner=Level(offset=1.0))
    assert model.get_params()["inner__offset"] == 1.0
    assert model.set_params(inner__offset=3.0, offset=4.0).get_params()["inner__offset"] == 3.0
    for wrong in ({"other": 1}, {"offset__other": 1}):
        with pytest.raises(AbelnetError, match="expected one of offset, inner"):
            model.set_params(**wrong)


def test_not_fitted_is_both_errors() -> None:
    for kind in (TheirNotFittedError, NotFittedError, AbelnetError, AttributeError):
        with pytest.raises(kind, match="predict: expected a fitted model"):
            Level().predict([[1.0]])
    with pytest.raises(TheirNotFittedError):
        check_is_fitted(Level())
    check_is_fitted(Level().fit(None, [1.0]))
    assert isinstance(pickle.loads(pickle.dumps(Level().fit(None, [1.0]))), Level)
    assert str(copy.copy(not_fitted("score"))) == "score: expected a fitted model, got none; call fit first"


def test_scores_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    y, found, weights = generator.normal(size=(9, 2)), generator.normal(size=(9, 2)), generator.uniform(0, 2, 9)
    y[:, 1] = 3.0
    assert r2_score(y, found) == pytest.approx(their_r2_score(y, found))
    assert r2_score(y, found, weights) == pytest.approx(their_r2_score(y, found, sample_weight=weights))
    assert r2_score([2.0, 2.0], [2.0, 2.0]) == their_r2_score([2.0, 2.0], [2.0, 2.0]) == 1.0
    classes = generator.integers(0, 2, 9)
    assert Same().score(classes, classes, weights) == pytest.approx(
        accuracy_score(classes, np.ones(9), sample_weight=weights)
    )
    with pytest.raises(AbelnetError, match="y: expected results of shape"):
        r2_score([1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("weights", [[1.0], [[1.0, 1.0]], [1.0, np.nan], [-1.0, 1.0], [0.0, 0.0], ["a", "b"]])
def test_bad_weights(weights: object) -> None:
    with pytest.raises(AbelnetError, match="sample_weight: expected"):
        check_sample_weight(weights, 2)


WITHOUT = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
from abelnet.estimators import Regressor, not_fitted
from abelnet.errors import NotFittedError
class Level(Regressor):
    def __init__(self, offset=0.0):
        self.offset = offset
    def predict(self, X):
        return X
model = Level(offset=1.0)
assert model.get_params() == {"offset": 1.0} and repr(model.set_params(offset=2.0)) == "Level(offset=2.0)"
assert type(not_fitted("predict")) is NotFittedError and not model.__sklearn_is_fitted__()
assert model.score([1.0, 2.0], [1.0, 2.0]) == 1.0
"""
AFTERWARDS = """
import sys
from abelnet import LawRegressor
model = LawRegressor(seed=3)
model.get_params()
assert "sklearn" not in sys.modules, "importing or making an estimator imports scikit-learn"
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import get_tags
assert get_tags(model).estimator_type == "regressor"
assert isinstance(model, BaseEstimator) and isinstance(clone(model), RegressorMixin)
"""


@pytest.mark.parametrize("code", [WITHOUT, AFTERWARDS], ids=["without", "imported_afterwards"])
def test_in_another_process(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
