"""Base classes of estimators: those of scikit-learn where it is imported, and what they do where it is not.

Importing scikit-learn takes seconds and over 100 MB, which the command line has no use for. An estimator therefore has
the whole interface by itself, and takes scikit-learn's classes as its bases as soon as scikit-learn is imported.
"""

from __future__ import annotations

__all__ = ["Classifier", "Estimator", "Regressor", "check_sample_weight", "not_fitted", "r2_score"]

import inspect
import sys
from functools import cache
from typing import Any, Self

import numpy as np

from abelnet.errors import AbelnetError, NotFittedError

Array = np.ndarray[Any, np.dtype[np.float64]]


class _Plain:
    """What an estimator inherits from before scikit-learn is imported; bases of a class without any cannot change."""


class Estimator(_Plain):
    """Estimator with the interface of scikit-learn, which need not be installed.

    The constructor of a subclass has named arguments only, stores each as an attribute of the same name, unchanged, and
    does nothing else: arguments are checked by ``fit``. What ``fit`` finds are attributes whose names end in ``_``, or
    start with it; a class attribute holds what they are before.

    Example:
        >>> class Constant(Regressor):
        ...     def __init__(self, value: float = 0.0) -> None:
        ...         self.value = value
        >>> Constant(2.0).get_params()
        {'value': 2.0}
        >>> Constant().set_params(value=3.0)
        Constant(value=3.0)
    """

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        _join_scikit_learn()
        return super().__new__(cls)

    @classmethod
    def _argument_names(cls) -> list[str]:
        return list(inspect.signature(cls.__init__).parameters)[1:]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the arguments by name.

        Arguments:
            deep: Whether arguments of arguments that are estimators are returned as well, as ``name__argument``.
        """
        _join_scikit_learn()
        found = {name: getattr(self, name) for name in self._argument_names()}
        for name, value in list(found.items()):
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{inner}": one for inner, one in value.get_params().items()}
        return found

    def set_params(self, **parameters: Any) -> Self:
        """Sets arguments by name; those of an argument that is an estimator as ``name__argument``."""
        known = self._argument_names()
        nested: dict[str, dict[str, Any]] = {}
        for key, value in parameters.items():
            name, inner, rest = key.partition("__")
            if name not in known or (inner and not hasattr(getattr(self, name), "set_params")):
                raise AbelnetError(f"{key}: expected one of {', '.join(known)}")
            if inner:
                nested.setdefault(name, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, inner_parameters in nested.items():
            getattr(self, name).set_params(**inner_parameters)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        given = {name: getattr(self, name) for name in self._argument_names()}
        changed = [f"{name}={value!r}" for name, value in given.items() if repr(value) != repr(defaults[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether ``fit`` was called; a subclass that finds nothing with a name ending in ``_`` defines it."""
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def check_fitted(self, method: str) -> None:
        """Raises :class:`~abelnet.errors.NotFittedError`, in the name of a method, unless the model is fitted."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted(method)

    def __sklearn_tags__(self) -> Any:
        """Returns the tags of scikit-learn, which asks for them: elements of sets may have several coordinates."""
        if _join_scikit_learn():
            return self.__sklearn_tags__()  # by the new bases
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.three_d_array = True
        # A set that is smaller than others is padded with NaN.
        tags.input_tags.allow_nan = True
        return tags


class Regressor(Estimator):
    """Estimator of numbers: its ``score`` is :math:`R^2`."""

    _estimator_type = "regressor"

    def predict(self, X: Any) -> Any:
        """Returns the result of each multiset."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the fraction :math:`R^2` of the variance of the results that is explained, at most 1.

        Arguments:
            X: The multisets.
            y: Their results, :math:`(R)` or :math:`(R, d)`; of several coordinates, :math:`R^2` is averaged.
            sample_weight: Weight of each set, :math:`(R)`.
        """
        return r2_score(y, self.predict(X), sample_weight)


class Classifier(Estimator):
    """Estimator of classes: its ``score`` is the accuracy."""

    _estimator_type = "classifier"

    def predict(self, X: Any) -> Any:
        """Returns the class of each multiset."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the accuracy: the fraction of sets whose class is found.

        Arguments:
            X: The multisets.
            y: Their classes, :math:`(R)`.
            sample_weight: Weight of each set, :math:`(R)`.
        """
        found = self.predict(X)
        weights = check_sample_weight(sample_weight, len(found))
        return float(np.average(np.asarray(y).reshape(-1) == found, weights=weights))


def not_fitted(method: str) -> NotFittedError:
    """Returns the error of a method that needs a fitted model; scikit-learn's as well, if that is imported.

    Example:
        >>> not_fitted("predict")
        NotFittedError('predict: expected a fitted model, got none; call fit first')
    """
    return _not_fitted_class("sklearn.exceptions" in sys.modules)(
        f"{method}: expected a fitted model, got none; call fit first"
    )


@cache
def _not_fitted_class(has_scikit_learn: bool) -> type[NotFittedError]:
    if not has_scikit_learn:
        return NotFittedError
    theirs = sys.modules["sklearn.exceptions"].NotFittedError
    return type("NotFittedError", (NotFittedError, theirs), {"__module__": NotFittedError.__module__})


def check_sample_weight(sample_weight: Any, count: int) -> Array | None:
    """Returns the weight of each of ``count`` sets, or None if none are given; raises unless they are weights.

    Example:
        >>> check_sample_weight([1, 2], 2)
        array([1., 2.])
        >>> check_sample_weight([1, -2], 2)
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: sample_weight: expected finite numbers of at least 0, got [1, -2]
    """
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise AbelnetError(f"sample_weight: expected numbers, got {sample_weight!s:.60}") from None
    if weights.ndim == 0:
        weights = np.full(count, weights)
    if weights.shape != (count,):
        raise AbelnetError(f"sample_weight: expected one weight for each of {count} sets, got shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise AbelnetError(f"sample_weight: expected finite numbers of at least 0, got {sample_weight!s:.60}")
    if not weights.any():
        raise AbelnetError("sample_weight: expected at least one weight above 0, got only zeros")
    return weights


def r2_score(y: Any, found: Any, sample_weight: Any = None) -> float:
    """Returns :math:`R^2` as scikit-learn does: averaged over columns; constant results give 1 if exact, else 0.

    Example:
        >>> r2_score([1.0, 2.0, 4.0], [1.0, 2.0, 3.0])
        0.785714...
    """
    found = np.asarray(found, dtype=np.float64)
    target = np.asarray(y, dtype=np.float64)
    if target.size != found.size:
        raise AbelnetError(f"y: expected results of shape {found.shape}, got {target.shape}")
    found, target = found.reshape(len(found), -1), target.reshape(len(found), -1)
    if len(found) < 2:
        return float("nan")
    given = check_sample_weight(sample_weight, len(found))
    weights = np.ones((len(found), 1)) if given is None else given[:, None]
    errors = (weights * (target - found) ** 2).sum(0)
    spread = (weights * (target - np.average(target, 0, given)) ** 2).sum(0)
    constant = np.where(errors == 0, 1.0, 0.0)
    return float(np.where(spread > 0, 1 - errors / np.where(spread > 0, spread, 1), constant).mean())


def _join_scikit_learn() -> bool:
    """Makes estimators inherit from scikit-learn's classes, once these are imported; returns whether it has."""
    theirs = sys.modules.get("sklearn.base")
    base = getattr(theirs, "BaseEstimator", None)  # None while another thread imports it
    if base is None or issubclass(Estimator, base):
        return False
    assert theirs is not None
    mixins = ((Regressor, theirs.RegressorMixin), (Classifier, theirs.ClassifierMixin))
    Estimator.__bases__ = (base,)
    for own, mixin in mixins:
        own.__bases__ = (mixin, Estimator)
    # A subclass has the methods that request metadata, such as set_fit_request, from when it is defined.
    left: list[type] = [Estimator]
    while left:
        kind = left.pop()
        super(Estimator, kind).__init_subclass__()  # type: ignore[misc]
        left += kind.__subclasses__()
    return True
