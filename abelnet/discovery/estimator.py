"""Estimator with the scikit-learn interface: fit, predict and score a law."""

from __future__ import annotations

__all__ = ["LawRegressor"]

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from abelnet.config import Configurable
from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.search import learn_law
from abelnet.discovery.stream import Stream
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.saving import load, save


class LawRegressor(Configurable):
    r"""Learns a commutative, associative law from examples, with the scikit-learn interface.

    Assumes that vectors are combined elementwise: each dimension has its own law.

    Arguments:
        seed: Random seed of the held-out examples.
        refuse: Whether to raise :class:`NoLawError` if the examples follow no law; otherwise the best law is kept.
        polish: Whether to train curves by gradient descent if no parametric law fits.

    Attributes:
        laws_: A :class:`LearnedLaw` for each dimension, after fitting.

    Example:
        >>> X = [[0.1, 0.2], [0.05, -0.1, 0.3], [0.2, 0.2], [-0.1, 0.4], [0.3, 0.1]] * 4
        >>> y = [np.prod(1 + np.array(returns)) - 1 for returns in X]
        >>> model = LawRegressor().fit(X, y)
        >>> print(model.laws_[0].formula)
        x∘y = x + y + x·y
        >>> model.predict([[0.1] * 10]).round(4)
        array([1.5937])
    """

    def __init__(self, seed: int = 0, refuse: bool = True, polish: bool = True) -> None:
        self.seed, self.refuse, self.polish = seed, refuse, polish
        self._streams: list[Stream] = []
        self._laws: list[LearnedLaw] | None = None
        self._flat = True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the arguments by name."""
        return {"seed": self.seed, "refuse": self.refuse, "polish": self.polish}

    def set_params(self, **parameters: Any) -> LawRegressor:
        """Sets arguments by name."""
        for name, value in parameters.items():
            if name not in self.get_params():
                raise AbelnetError(f"{name}: expected one of {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any = None, *, on_step: Callable[[str], None] | None = None) -> LawRegressor:
        """Fits the law to multisets and their results.

        Arguments:
            X: A list of arrays :math:`(n_i)` or :math:`(n_i, d)`; an array :math:`(R, n)` or :math:`(R, n, d)` padded
                with NaN; or :class:`~abelnet.Multisets`.
            y: Results, with shape :math:`(R)` or :math:`(R, d)`; not needed if ``X`` has targets.
            on_step: Called with the name of each step.
        """
        self._streams, self._laws = [], None
        self.partial_fit(X, y)
        self._solve(on_step)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> LawRegressor:
        """Adds examples in a stream; the law is fitted when it is next needed."""
        examples = Multisets.from_arrays(X, y)
        if not examples.has_targets:
            raise AbelnetError("y: expected a result for each set, got none")
        empty = int((examples.sizes == 0).sum())
        if empty:
            raise AbelnetError(f"X: expected no empty set to learn from, got {empty}")
        if not self._streams:
            self._streams = [Stream(self.seed) for _ in range(examples.dim)]
            self._flat = examples.targets.ndim == 1
        if len(self._streams) != examples.dim:
            raise AbelnetError(f"X: expected {len(self._streams)} dimensions as in earlier calls, got {examples.dim}")
        for i, stream in enumerate(self._streams):
            stream.take(examples.column(i))
        self._laws = None
        return self

    @property
    def sample_(self) -> list[Multisets]:
        """Examples seen so far in each dimension, or a random sample if there are many."""
        return [stream.sample for stream in self._streams]

    @property
    def laws_(self) -> list[LearnedLaw]:
        if self._laws is None:
            self._solve(None)
        assert self._laws is not None
        return self._laws

    def predict(self, X: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Returns the result of each multiset, of any size: :math:`(R)` if ``y`` was, else :math:`(R, d)`."""
        operations = [law.operation for law in self.laws_]
        sets = Multisets.from_arrays(X)
        if sets.dim != len(operations):
            raise AbelnetError(f"X: expected elements of {len(operations)} dimensions, got {sets.dim}")
        with torch.no_grad():
            results = [operation.reduce(sets.column(i))[:, 0] for i, operation in enumerate(operations)]
        table: np.ndarray[Any, Any] = torch.stack(results, 1).numpy()
        if not np.isfinite(table).all():
            bad = int((~np.isfinite(table)).any(1).argmax())
            raise AbelnetError(
                f"X: expected sets on which the law is defined, got set {bad} with the result {table[bad].tolist()}"
            )
        return table[:, 0] if self._flat and len(operations) == 1 else table

    def score(self, X: Any, y: Any) -> float:
        """Returns the fraction :math:`R^2` of the variance of the results that the law explains, at most 1."""
        found = self.predict(X)
        target = np.asarray(y, dtype=np.float64).reshape(found.shape)
        spread = float(((target - target.mean(0)) ** 2).sum())
        return 1 - float(((target - found) ** 2).sum()) / spread if spread > 0 else math.nan

    def config(self) -> dict[str, Any]:
        return self.get_params() | {"flat": self._flat, "laws": self.laws_}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> LawRegressor:
        arguments = dict(config)
        flat, laws = arguments.pop("flat"), arguments.pop("laws")
        model = cls(**arguments)
        model._flat, model._laws = flat, laws
        return model

    def save(self, folder: str | Path) -> None:
        """Saves the model to a folder, with :func:`abelnet.save`."""
        save(self, folder)

    @staticmethod
    def load(folder: str | Path) -> LawRegressor:
        """Loads a model saved by :meth:`save`."""
        model: LawRegressor = load(folder)
        return model

    def _solve(self, on_step: Callable[[str], None] | None) -> None:
        if not self._streams:
            raise AbelnetError("predict: expected a fitted model, got none; call fit first")
        say = on_step or (lambda _: None)
        self._laws = [
            learn_law(stream, seed=self.seed, refuse=self.refuse, polish=self.polish, say=say)
            for stream in self._streams
        ]
