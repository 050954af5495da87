"""Set models as estimators of scikit-learn: regression and classification of multisets of any size."""

from __future__ import annotations

__all__ = ["MultisetClassifier", "MultisetRegressor"]

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.checks import check_count, check_number
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.estimators import Classifier, Regressor, check_sample_weight, not_fitted
from abelnet.multisets import Multisets
from abelnet.nn.sets import SetModel
from abelnet.operation import Operation
from abelnet.pooling import Pooling
from abelnet.training import Settings, train

Array = np.ndarray[Any, np.dtype[Any]]
OnEpoch = Callable[[int, float, float | None], None]

_NO_TARGET = "y: expected a target for each set, got none; fit requires y to be passed, but the target y is None"


class _SetEstimator(Configurable):
    """What regression and classification share: reading sets, standardization, training and saving."""

    _model: SetModel | None = None

    def __init__(
        self,
        aggregation: str | Pooling | Operation = "weighted-mean",
        channels: int = 64,
        hidden: int = 64,
        epochs: int = 100,
        lr: float = 0.003,
        batch_size: int = 64,
        weight_decay: float = 1e-4,
        patience: int | None = None,
        validation_fraction: float = 0.15,
        set_column: str | None = None,
        seed: int = 0,
    ) -> None:
        self.aggregation = aggregation
        self.channels = channels
        self.hidden = hidden
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.set_column = set_column
        self.seed = seed

    @abstractmethod
    def _read_targets(self, y: Any, count: int) -> tuple[Tensor, int]:
        """Returns the targets of sets, and the number of outputs of the model."""

    @abstractmethod
    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Returns the loss of each set."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        mask: Any = None,
        element_weights: Any = None,
        on_epoch: OnEpoch | None = None,
    ) -> Self:
        """Trains the model on sets and their targets.

        Arguments:
            X: A list of arrays :math:`(n_i)` or :math:`(n_i, d)`; an array :math:`(R, n)` or :math:`(R, n, d)` padded
                with NaN, or with ``mask``; :class:`~abelnet.Multisets`; or, with ``set_column``, a data frame with a
                row for each element.
            y: Target of each set; with ``set_column``, in the order in which sets first appear, or a series indexed by
                the names of sets.
            sample_weight: Weight of each set in the loss, :math:`(R)`.
            mask: True for elements, False for padding, :math:`(R, n)`.
            element_weights: How many times each element counts: a list of arrays :math:`(n_i)`, or with ``mask`` an
                array :math:`(R, n)`, or with ``set_column`` the name of a column; once if None.
            on_epoch: Called after each epoch with its number, from 1, its loss, and the validation loss if any.
        """
        check_count("hidden", self.hidden)
        check_number("validation_fraction", self.validation_fraction, above=0, below=1)
        sets = self._read(X, mask, element_weights)
        targets, outputs = self._read_targets(self._of_sets(X, y), len(sets))
        weights = check_sample_weight(sample_weight, len(sets))
        self.n_features_in_ = sets.dim
        names = None if self.set_column is None else self._columns(X, element_weights)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if len(sets.values) == 0:
            raise AbelnetError(
                f"X: expected sets with elements, got 0 feature(s) (shape=({len(sets)}, 0)) while a minimum of 1 is "
                "required."
            )
        self._mean, self._scale = _statistics(sets.values)
        self._model = self._train(self._standardized(sets), targets, outputs, weights, on_epoch)
        return self

    def _train(
        self, sets: Multisets, targets: Tensor, outputs: int, weights: Array | None, on_epoch: OnEpoch | None
    ) -> SetModel:
        with torch.random.fork_rng(devices=()):  # modules of the caller may draw from torch's global generator
            torch.manual_seed(self.seed)
            model = SetModel.build(
                sets.dim,
                outputs,
                aggregation=self.aggregation if isinstance(self.aggregation, str) else _fresh(self.aggregation),
                channels=self.channels,
                encoder_hidden=(self.hidden, self.hidden),
                decoder_hidden=(self.hidden,),
                seed=self.seed,
            )
        scale = torch.ones(len(sets)) if weights is None else torch.from_numpy(weights / weights.mean()).float()
        places = torch.arange(len(sets))
        held_out = places[:0]
        if self.patience is not None:
            if len(sets) < 2:
                raise AbelnetError("patience: expected two or more sets, one of them to validate with, got one")
            order = torch.randperm(len(sets), generator=torch.Generator().manual_seed(self.seed))
            count = min(len(sets) - 1, max(1, round(self.validation_fraction * len(sets))))
            places, held_out = order[count:], order[:count]
        settings = Settings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            schedule="cosine",
            clip_norm=1.0,
            weight_decay=self.weight_decay,
            decoupled=True,
            patience=self.patience,
        )
        anneal = _Annealing(model.aggregation, self.epochs * -(-len(places) // min(self.batch_size, len(places))))

        def loss(model: SetModel, batch: tuple[Tensor, ...]) -> Tensor:
            (some,) = batch
            anneal.before(model)
            result = (scale[some] * self._losses(model(sets.take(some)), targets[some])).mean()
            anneal.after(result)
            return result

        train(
            model,
            (places,),
            loss,
            settings=settings,
            seed=self.seed,
            validation=(held_out,) if len(held_out) else None,
            on_epoch=None if on_epoch is None else _numbers(on_epoch),
        )
        anneal.finish()
        return model.eval()

    @property
    def model_(self) -> SetModel:
        """The trained model, of standardized elements."""
        if self._model is None:
            raise not_fitted("model_")
        return self._model

    def _outputs(self, method: str, X: Any, mask: Any, element_weights: Any) -> Tensor:
        """Returns the output of the model for each set."""
        if self._model is None:
            raise not_fitted(method)
        sets = self._read(X, mask, element_weights)
        if sets.dim != self.n_features_in_:
            raise AbelnetError(f"X: expected elements of {self.n_features_in_} dimensions, got {sets.dim}")
        with torch.no_grad():
            result: Tensor = self._model(self._standardized(sets))
        return result

    def _standardized(self, sets: Multisets) -> Multisets:
        return sets.with_values(((sets.values - self._mean) / self._scale).float())

    def _read(self, X: Any, mask: Any, element_weights: Any) -> Multisets:
        """Reads sets in any form, in float64."""
        if self.set_column is not None:
            if mask is not None:
                raise AbelnetError("mask: expected None with set_column, got a mask")
            return self._read_rows(X, element_weights)
        if mask is not None:
            values = torch.as_tensor(np.asarray(X, dtype=np.float64))
            values = values[..., None] if values.ndim == 2 else values
            there = torch.as_tensor(np.asarray(mask, dtype=bool))
            weights = None if element_weights is None else torch.as_tensor(np.asarray(element_weights, np.float64))
            return Multisets(values, values.shape[-1], mask=there, element_weights=weights)
        if element_weights is None:
            if isinstance(X, Multisets) and X.element_weights is not None:
                return X.with_values(X.values.double())
            return Multisets.from_arrays(X)
        sets = Multisets.from_arrays(X)
        given = [np.asarray(one, np.float64).reshape(-1) for one in element_weights]
        if [len(one) for one in given] != sets.sizes.tolist():
            raise AbelnetError("element_weights: expected an array with one weight per element of each set, got others")
        return Multisets(sets.values, sets.dim, ptr=sets.ptr, element_weights=torch.from_numpy(np.concatenate(given)))

    def _read_rows(self, X: Any, weight_column: str | None) -> Multisets:
        """Reads a data frame with a row for each element; sets are in the order in which they first appear."""
        columns = self._columns(X, weight_column)
        index = torch.from_numpy(_places(X[self.set_column])[0])
        rows = Multisets.from_arrays([X[columns].to_numpy()]).values
        weights = None if weight_column is None else torch.from_numpy(X[weight_column].to_numpy(np.float64, copy=True))
        return Multisets(rows, rows.shape[1], index=index, element_weights=weights)

    def _columns(self, X: Any, weight_column: str | None) -> list[str]:
        """Returns the columns of the coordinates of elements in a data frame."""
        missing = [c for c in (self.set_column, weight_column) if c is not None and c not in getattr(X, "columns", ())]
        if missing:
            raise AbelnetError(f"X: expected a data frame with a column {missing[0]!r}, got {type(X).__name__}")
        return [column for column in X.columns if column not in (self.set_column, weight_column)]

    def _of_sets(self, X: Any, y: Any) -> Any:
        """Returns targets in the order of sets: those of a series are found by the names of sets."""
        if self.set_column is None or not hasattr(y, "loc"):
            return y
        names = _places(X[self.set_column])[1]
        missing = [name for name in names if name not in y.index]
        if missing:
            raise AbelnetError(f"y: expected a series indexed by the names of sets, got no target of {missing[0]!r}")
        return y.loc[list(names)]

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # Of vectors, whose coordinates are in order; a row of an array is a set of numbers, which are not.
        for own in (tags.regressor_tags, tags.classifier_tags):
            if own is not None:
                own.poor_score = True
        tags.target_tags.multi_output = tags.regressor_tags is not None
        return tags

    def config(self) -> dict[str, Any]:
        if self._model is None:
            raise not_fitted("save")
        names = list(getattr(self, "feature_names_in_", ())) or None
        return {
            **self.get_params(deep=False),  # type: ignore[attr-defined]
            "model": self._model,
            "mean": self._mean.tolist(),
            "scale": self._scale.tolist(),
            "names": names,
            "targets": self._target_config(),
        }

    @abstractmethod
    def _target_config(self) -> dict[str, Any]:
        """Returns what the estimator knows about targets, as JSON data."""

    @abstractmethod
    def _set_targets(self, config: Mapping[str, Any]) -> None:
        """Sets what :meth:`_target_config` returned."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        arguments = dict(config)
        model, mean, scale, names, targets = (
            arguments.pop(key) for key in ("model", "mean", "scale", "names", "targets")
        )
        if not isinstance(model, SetModel) or len(mean) != len(scale):
            raise AbelnetError(f"model: expected a set model with mean and scale, got {type(model).__name__}")
        estimator = cls(**arguments)
        estimator._model = model.eval()
        with torch.device("cpu"):
            estimator._mean, estimator._scale = (torch.tensor(part, dtype=torch.float64) for part in (mean, scale))
        estimator.n_features_in_ = len(mean)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator._set_targets(targets)
        return estimator


class MultisetRegressor(_SetEstimator, Regressor):
    r"""Regression of multisets, with the scikit-learn interface: a :class:`~abelnet.nn.SetModel` of sets of any size.

    Elements and targets are standardized by those of training. Training is deterministic given the seed.

    Arguments:
        aggregation: Name of an aggregation in :func:`~abelnet.nn.make_aggregation`, a layer or an operation. Use
            ``"sum"`` if targets grow with the size of a set.
        channels: Number of channels that are aggregated, if the aggregation is given by its name.
        hidden: Width of the hidden layers, two of the encoder and one of the decoder.
        epochs: Number of passes through the sets.
        lr: Learning rate at the start, which a cosine schedule lowers to 0.
        batch_size: Number of sets per step.
        weight_decay: Weight decay of AdamW.
        patience: Number of epochs without a better validation loss after which training stops; then the best
            parameters are kept. If None, all epochs are trained and no set is held out.
        validation_fraction: Fraction of sets held out for ``patience``.
        set_column: Column of a data frame with the name of the set of each row; if given, ``X`` is such a data frame.
        seed: Random seed.

    Attributes:
        n_features_in_: Number of dimensions of an element.
        feature_names_in_: Names of the coordinates, if ``X`` was a data frame.
        model_: The trained model, of standardized elements.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> X = [generator.normal(size=(n, 2)) for n in generator.integers(2, 6, 200)]
        >>> y = [(one[:, 0] * one[:, 1]).sum() for one in X]
        >>> model = MultisetRegressor("sum", epochs=60, lr=0.01).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
    """

    def _read_targets(self, y: Any, count: int) -> tuple[Tensor, int]:
        if y is None:
            raise AbelnetError(_NO_TARGET)
        try:
            targets = torch.from_numpy(np.array(y, dtype=np.float64))
        except (TypeError, ValueError):
            raise AbelnetError(f"y: expected numbers, got {y!s:.60}") from None
        if targets.ndim not in (1, 2) or len(targets) != count or not bool(targets.isfinite().all()):
            raise AbelnetError(f"y: expected finite targets of {count} sets, got shape {tuple(targets.shape)}")
        self._flat = targets.ndim == 1
        targets = targets.reshape(count, -1)
        self._center, self._unit = _statistics(targets)
        return ((targets - self._center) / self._unit).float(), targets.shape[1]

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().mean(-1)

    def predict(self, X: Any, *, mask: Any = None, element_weights: Any = None) -> Array:
        """Returns the result of each set, :math:`(R)` if the targets were, else :math:`(R, k)`.

        Arguments are as in :meth:`fit`.
        """
        found = self._outputs("predict", X, mask, element_weights).double() * self._unit + self._center
        result: Array = found.numpy()
        return result[:, 0] if self._flat else result

    def _target_config(self) -> dict[str, Any]:
        return {"flat": self._flat, "center": self._center.tolist(), "unit": self._unit.tolist()}

    def _set_targets(self, config: Mapping[str, Any]) -> None:
        self._flat = bool(config["flat"])
        with torch.device("cpu"):
            self._center, self._unit = (torch.tensor(config[key], dtype=torch.float64) for key in ("center", "unit"))


class MultisetClassifier(_SetEstimator, Classifier):
    r"""Classification of multisets, with the scikit-learn interface: a :class:`~abelnet.nn.SetModel` of their classes.

    Arguments are those of :class:`MultisetRegressor`.

    Attributes:
        classes_: The classes, in ascending order.
        n_features_in_: Number of dimensions of an element.
        feature_names_in_: Names of the coordinates, if ``X`` was a data frame.
        model_: The trained model, of standardized elements.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> X = [generator.normal(size=(n, 2)) for n in generator.integers(2, 6, 200)]
        >>> y = ["wide" if np.ptp(one[:, 0]) > 2 else "narrow" for one in X]
        >>> model = MultisetClassifier(epochs=60, lr=0.01).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
        >>> model.predict([[[-3.0, 0.0], [3.0, 0.0]]])
        array(['wide'], dtype='<U6')

        A data frame with a row for each element:

        >>> import pandas
        >>> rows = pandas.DataFrame({"bag": ["a", "a", "b", "b"], "x": [0.0, 5.0, 1.0, 1.1]})
        >>> model = MultisetClassifier(set_column="bag", epochs=60).fit(rows, pandas.Series({"b": 0, "a": 1}))
        >>> model.predict(rows)
        array([1, 0])
    """

    def _read_targets(self, y: Any, count: int) -> tuple[Tensor, int]:
        if y is None:
            raise AbelnetError(_NO_TARGET)
        classes = np.asarray(y)
        if classes.ndim == 2 and classes.shape[1] == 1:
            classes = classes[:, 0]
        if classes.shape != (count,):
            raise AbelnetError(f"y: expected one class for each of {count} sets, got shape {classes.shape}")
        if classes.dtype.kind == "f" and not (np.isfinite(classes) & (classes == np.round(classes))).all():
            raise AbelnetError("y: expected classes, got Unknown label type: continuous, NaN or infinity")
        self.classes_, places = np.unique(classes, return_inverse=True)
        return torch.from_numpy(places.astype(np.int64)), len(self.classes_)

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs, targets, reduction="none")

    def predict_proba(self, X: Any, *, mask: Any = None, element_weights: Any = None) -> Array:
        """Returns the probability of each class, :math:`(R, k)`, in the order of ``classes_``.

        Arguments are as in :meth:`fit`.
        """
        result: Array = self._outputs("predict_proba", X, mask, element_weights).double().softmax(-1).numpy()
        return result

    def predict(self, X: Any, *, mask: Any = None, element_weights: Any = None) -> Array:
        """Returns the most likely class of each set, :math:`(R)`.

        Arguments are as in :meth:`fit`.
        """
        found = self._outputs("predict", X, mask, element_weights).argmax(-1).numpy()
        result: Array = self.classes_[found]
        return result

    def _target_config(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist()}

    def _set_targets(self, config: Mapping[str, Any]) -> None:
        self.classes_ = np.array(config["classes"])


class _Annealing:
    """Tells an aggregation that finds its own law how far training has come, before each step; others need nothing."""

    def __init__(self, aggregation: Any, steps: int) -> None:
        self._anneal = getattr(aggregation, "anneal", None)
        self._steps, self._step = steps, 0
        self._last: float | None = None

    def before(self, model: SetModel) -> None:
        if self._anneal is not None and model.training:
            self._anneal(min(1.0, self._step / self._steps), self._last)
            self._step += 1

    def after(self, loss: Tensor) -> None:
        if self._anneal is not None and loss.requires_grad:
            self._last = loss.item()

    def finish(self) -> None:
        if self._anneal is not None:
            self._anneal(1.0)


def _fresh(aggregation: Pooling | Operation) -> Pooling | Operation:
    """Returns a copy to train, so that an argument is not changed by ``fit``."""
    return copy.deepcopy(aggregation)


def _statistics(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns mean and standard deviation of columns; that of a constant is 1."""
    spread = values.std(0, correction=0)
    return values.mean(0), torch.where(spread > 0, spread, 1)


def _numbers(on_epoch: OnEpoch) -> Callable[[int, Tensor, Tensor | None], None]:
    return lambda epoch, loss, validation: on_epoch(
        epoch, loss.item(), None if validation is None else validation.item()
    )


def _places(names: Any) -> tuple[Array, Sequence[Any]]:
    """Returns the number of the set of each row, in the order in which names first appear, and the names."""
    found: dict[Any, int] = {}
    places = np.array([found.setdefault(name, len(found)) for name in names.tolist()], dtype=np.int64)
    return places, list(found)
