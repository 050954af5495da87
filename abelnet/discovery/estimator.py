"""Estimator with the scikit-learn interface: fit, predict and score a law."""

from __future__ import annotations

__all__ = ["LawRegressor", "places"]

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from torch import Tensor

from abelnet.arrays import coordinate_names
from abelnet.config import Configurable
from abelnet.discovery.evidence import NoLawError
from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.robust import learn_robust_law
from abelnet.discovery.stream import Stream
from abelnet.discovery.vectors.evidence import check_own_law, depends_on_others
from abelnet.discovery.vectors.gram import InvariantFit
from abelnet.discovery.vectors.report import LearnedVectorLaw
from abelnet.discovery.vectors.search import MOST_COORDINATES, learn_vector_laws
from abelnet.errors import AbelnetError, ExtrapolationWarning
from abelnet.estimators import Regressor, check_sample_weight, not_fitted
from abelnet.multisets import Multisets
from abelnet.saving import load, save
from abelnet.sql import select

Array = np.ndarray[Any, np.dtype[np.float64]]
AnyLaw = LearnedLaw | LearnedVectorLaw
Block = tuple[int, ...]


class LawRegressor(Regressor, Configurable):
    r"""Learns a commutative, associative law from examples, with the scikit-learn interface.

    Coordinates of vectors may each have a law of their own, or mix: of up to four coordinates, laws are found by
    additive invariants, such as :math:`m` and :math:`m x` of the center of mass. A law is stated on its domain, and
    known in the range of its examples (:attr:`LearnedLaw.seen`).

    It is an estimator of scikit-learn where that is imported, and works without it. One sample is one multiset, and its
    features are the :math:`d` coordinates of an element, whatever the number of elements.

    Arguments:
        seed: Random seed of the held-out examples.
        refuse: Whether to raise :class:`NoLawError` if the examples follow no law; otherwise the best law is kept.
        polish: Whether to train curves by gradient descent if no parametric law fits.
        only: ``"folds"`` to search commutative, associative laws alone, ``"means"`` for means; None for both.

    Attributes:
        laws_: The laws, after fitting: a :class:`LearnedLaw` for each coordinate that has a law of its own, and a
            :class:`LearnedVectorLaw` for each block of coordinates that mix.
        blocks_: Coordinates of each law.
        n_features_in_: Number of coordinates :math:`d` of an element.
        feature_names_in_: Names of the coordinates, if they were given, or are those of data frames.

    Example:
        >>> X = [[0.1, 0.2], [0.05, -0.1, 0.3], [0.2, 0.2], [-0.1, 0.4], [0.4, 0.4]] * 4
        >>> y = [np.prod(1 + np.array(returns)) - 1 for returns in X]
        >>> model = LawRegressor().fit(X, y)
        >>> print(model.laws_[0].formula)
        x∘y = x + y + x·y
        >>> model.predict([[0.1] * 5]).round(4)
        array([0.6105])

        The center of mass, from masses and places:

        >>> generator = np.random.default_rng(0)
        >>> X = [generator.uniform(1, 5, (3, 2)) for _ in range(60)]
        >>> y = [(one[:, 0].sum(), one.prod(1).sum() / one[:, 0].sum()) for one in X]
        >>> model = LawRegressor().fit(X, y, names=["m", "x"])
        >>> print(model.laws_[0].formula)
        m = Σ m, x = Σ(m·x) / m
        >>> model.predict([[[1.0, 2.0], [3.0, 4.0], [4.0, 4.0]]])
        array([[8.  , 3.75]])
    """

    # What is found is no attribute of an estimator that is not fitted: class attributes hold what it is before.
    _streams: Sequence[Stream] = ()
    _laws: dict[Block, AnyLaw] | None = None
    _given_names: Sequence[str] = ()
    _joint: InvariantFit | None = None
    _flat = True

    def __init__(self, seed: int = 0, refuse: bool = True, polish: bool = True, only: str | None = None) -> None:
        self.seed, self.refuse, self.polish, self.only = seed, refuse, polish, only

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        names: Sequence[str] = (),
        on_step: Callable[[str], None] | None = None,
    ) -> LawRegressor:
        """Fits the law to multisets and their results.

        Arguments:
            X: The multisets: a list, an array of objects or a column of a data frame with arrays :math:`(n_i)` or
                :math:`(n_i, d)`; an array :math:`(R, n)`, each row of which is a multiset of numbers, or
                :math:`(R, n, d)`, padded with NaN; a data frame of lists, with a column for each coordinate; or
                :class:`~abelnet.Multisets`.
            y: Results, with shape :math:`(R)` or :math:`(R, d)`; not needed if ``X`` has targets.
            sample_weight: Weight of each set in squared errors, :math:`(R)`, by which parameters are fitted and laws
                compared; sets of weight 0 are left out. Elements of several coordinates need equal weights.
            names: Names of the coordinates, for formulas; if empty, those of data frames, or ``x1``, ``x2``, ….
            on_step: Called with the name of each step.
        """
        self._streams, self._laws = (), None
        self.partial_fit(X, y, sample_weight, names=names)
        self._solve(on_step)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, names: Sequence[str] = ()
    ) -> LawRegressor:
        """Adds examples in a stream; the law is fitted when it is next needed. A loaded model has none to add to."""
        if self._laws is not None and not self._streams:
            raise AbelnetError(
                "partial_fit: expected a model with the examples it was fitted to, got one that was loaded, which has "
                "only the law; call fit, or partial_fit of a new LawRegressor, with all examples"
            )
        examples = Multisets.from_arrays(X, y)
        if not examples.has_targets:
            raise AbelnetError(
                "y: expected a result for each set, got none; LawRegressor requires y to be passed, but the target y "
                "is None"
            )
        examples = _weighted(examples, sample_weight)
        empty = int((examples.sizes == 0).sum())
        if empty == len(examples):
            raise AbelnetError(
                f"X: expected sets with elements, got 0 feature(s) (shape=({empty}, 0)) while a minimum of 1 is "
                "required."
            )
        if empty:
            raise AbelnetError(f"X: expected no empty set to learn from, got {empty}")
        if not self._streams:
            self._streams = [Stream(self.seed) for _ in range(examples.dim)]
            self._flat = examples.targets.ndim == 1
            self._joint = InvariantFit() if 1 < examples.dim <= MOST_COORDINATES else None
            self._given_names = list(names) or coordinate_names(X)
            if self._given_names and len(set(self._given_names)) != examples.dim:
                raise AbelnetError(f"names: expected {examples.dim} different names, got {self._given_names}")
        if len(self._streams) != examples.dim:
            raise AbelnetError(f"X: expected {len(self._streams)} dimensions as in earlier calls, got {examples.dim}")
        for i, stream in enumerate(self._streams):
            stream.take(examples.column(i))
        if self._joint is not None:
            self._joint.partial_fit(examples)
        self._laws = None
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on results that follow no law of the elements
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._laws is not None or len(self._streams) > 0

    @property
    def n_features_in_(self) -> int:
        self.check_fitted("n_features_in_")
        return len(self._streams) or self._dim

    @property
    def feature_names_in_(self) -> np.ndarray[Any, np.dtype[np.object_]]:
        self.check_fitted("feature_names_in_")
        if not self._given_names:
            raise AttributeError("feature_names_in_: expected names of the coordinates, got none; pass names to fit")
        return np.asarray(self._given_names, dtype=object)

    @property
    def _names(self) -> Sequence[str]:
        return self._given_names or [f"x{i + 1}" for i in range(len(self._streams))]

    def empty_copy(self, seed: int) -> LawRegressor:
        """Returns a model for other examples of the same law, to call ``partial_fit`` elsewhere and then :meth:`merge`.

        Units and knots of the closed form are those of the examples of this model, which has to have some.

        Arguments:
            seed: Random seed of the sample it keeps, another one for each copy; the law is learned with that of the
                model it is merged into.

        Example:
            >>> X = np.random.default_rng(0).uniform(-0.5, 1, (300, 2))
            >>> y = X.sum(1) + X.prod(1)
            >>> model = LawRegressor().partial_fit(X[:100], y[:100])
            >>> parts = [model.empty_copy(seed=i).partial_fit(X[i::2][50:], y[i::2][50:]) for i in (0, 1)]
            >>> print(model.merge(parts[0].merge(parts[1])).laws_[0].formula)
            x∘y = x + y + x·y
        """
        if not self._streams:
            raise AbelnetError("empty_copy: expected a model with examples, got none; call partial_fit first")
        copy = LawRegressor(**self.get_params())
        copy._streams = [stream.empty_copy(seed) for stream in self._streams]
        copy._joint = None if self._joint is None else self._joint.empty_copy()
        copy._given_names, copy._flat = self._given_names, self._flat
        return copy

    def merge(self, other: LawRegressor) -> LawRegressor:
        """Adds the examples of another model, made by :meth:`empty_copy` of this one or of the same model."""
        if len(other._streams) != len(self._streams) or not self._streams:
            got = f"{len(self._streams)} and {len(other._streams)}"
            raise AbelnetError(f"other: expected a model made by empty_copy, of as many dimensions, got {got}")
        for mine, theirs in zip(self._streams, other._streams, strict=True):
            mine.merge(theirs)
        if self._joint is not None and other._joint is not None:
            self._joint.merge(other._joint)
        self._laws = None
        return self

    @property
    def sample_(self) -> list[Multisets]:
        """Examples of each law, in its coordinates, or a random sample if there are many."""
        return [self._sample(block) for block in self._by_block]

    @property
    def n_examples_(self) -> int:
        """Number of examples that the laws were learned from."""
        return self._streams[0].count

    @property
    def laws_(self) -> list[Any]:
        return list(self._by_block.values())

    @property
    def blocks_(self) -> list[Block]:
        return list(self._by_block)

    @property
    def _by_block(self) -> dict[Block, AnyLaw]:
        if self._laws is None:
            self._solve(None)
        assert self._laws is not None
        return self._laws

    @property
    def _dim(self) -> int:
        return sum(map(len, self._by_block))

    def _sample(self, block: Block) -> Multisets:
        """Returns the examples in some coordinates; streams with one seed keep the same examples."""
        parts = [self._streams[i].sample for i in block]
        if len(parts) == 1:
            return parts[0]
        values, targets = torch.cat([one.values for one in parts], 1), torch.stack([one.targets for one in parts], 1)
        return Multisets(values, len(block), ptr=parts[0].ptr, targets=targets)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Returns the result of each multiset, of any size: :math:`(R)` if ``y`` was, else :math:`(R, d)`.

        Elements outside the domain of a law raise an error. Results outside the range of the examples are extrapolated,
        with an :class:`~abelnet.ExtrapolationWarning`; so are results that the law does not have, which are NaN.

        Arguments:
            X: The multisets, as in :meth:`fit`.
            return_std: Whether to return the standard deviation of each result as well: how uncertain the value of the
                law is, without the noise of a new observation, which is :attr:`LearnedLaw.rmse`.

        Example:
            >>> generator = np.random.default_rng(0)
            >>> X = generator.uniform(1, 2, (100, 2))
            >>> model = LawRegressor().fit(X, np.hypot(*X.T) + 0.01 * generator.normal(size=100))
            >>> result, std = model.predict([[1.5, 2.0]], return_std=True)
            >>> bool(abs(result[0] - 2.5) < 3 * std[0] < 0.01)
            True
        """
        sets, results = self._results(X)
        self._warn("predict", sets, results)
        found = self._shaped(results.numpy())
        return (found, self._shaped(self._std(sets, results).numpy())) if return_std else found

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Returns the low and the high end of an interval for each result of :meth:`predict`, in its shape.

        It is meant to contain the value of the law, without the noise of a new observation. That of an extrapolated
        result says how far laws that fit the examples disagree there, and is not to be trusted.

        Arguments:
            X: The multisets, as in :meth:`fit`.
            level: Probability of the intervals.

        Example:
            >>> generator = np.random.default_rng(0)
            >>> X = generator.uniform(1, 2, (100, 2))
            >>> model = LawRegressor().fit(X, np.hypot(*X.T) + 0.01 * generator.normal(size=100))
            >>> low, high = model.predict_interval([[1.5, 2.0]])
            >>> bool(low[0] < 2.5 < high[0])
            True
        """
        sets, results = self._results(X)
        self._warn("predict_interval", sets, results)
        std = self._std(sets, results)
        low, high = torch.empty_like(results), torch.empty_like(results)
        for block, law in self._by_block.items():
            i = places(block)
            low[:, i], high[:, i] = law.interval(results[:, i], std[:, i], level)
        return self._shaped(low.numpy()), self._shaped(high.numpy())

    def _std(self, sets: Multisets, results: Tensor) -> Tensor:
        std = torch.empty_like(results)
        for block, law in self._by_block.items():
            std[:, places(block)] = law.std(sets.columns(block), results[:, places(block)])
        return std

    def _warn(self, name: str, sets: Multisets, results: Tensor) -> None:
        """Warns if results are extrapolated."""
        far = self._extrapolated(sets, results).any(1)
        if far.any():
            ranges = [seen for law in self.laws_ for seen in law.ranges]
            known = "; ".join(f"{low:.6g} to {high:.6g}" for low, high in (seen.numbers for seen in ranges))
            warnings.warn(
                f"{name}: {int(far.sum())} of {len(far)} sets have elements or results outside the range of the "
                f"examples ({known}), or no result; these results are extrapolated or NaN",
                ExtrapolationWarning,
                stacklevel=3,
            )

    def extrapolated(self, X: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Returns which results of :meth:`predict`, in its shape, need a law outside the range of its examples.

        Example:
            >>> model = LawRegressor().fit([[1, 2], [2, 2], [3, 1], [2, 3], [4, 1]], [3, 4, 4, 5, 5])
            >>> model.extrapolated([[1, 2], [5, 6], [1, 1, 1]])
            array([False,  True, False])
        """
        sets, results = self._results(X)
        return self._shaped(self._extrapolated(sets, results).numpy())

    def _results(self, X: Any) -> tuple[Multisets, Tensor]:
        """Returns the multisets and the results of all laws, :math:`(R, d)`."""
        sets = Multisets.from_arrays(X)
        if sets.dim != self._dim:
            raise AbelnetError(f"X: expected elements of {self._dim} dimensions, got {sets.dim}")
        empty = (sets.sizes.reshape(-1) == 0).nonzero()[:, 0].tolist()
        if empty:
            for law in self.laws_:
                law.check_identity(f"X, set {empty[0]}")
        results = torch.empty(len(sets), sets.dim, dtype=torch.float64)
        for block, law in self._by_block.items():
            law.check_domain(sets.values[:, places(block)], lambda row: f"X, set {int(sets.index[row])}")
            with torch.no_grad():
                results[:, list(block)] = law.operation.reduce(sets.columns(block))
        return sets, results

    def _extrapolated(self, sets: Multisets, results: Tensor) -> Tensor:
        far = ~results.isfinite()
        for block, law in self._by_block.items():
            i = places(block)
            far[:, i] = far[:, i] | law.extrapolated(sets.columns(block), results[:, i])
        return far

    def sql(
        self,
        *,
        table: str | Sequence[str],
        set: str | Sequence[str] | None,
        value: str | Sequence[str],
        dialect: str = "duckdb",
    ) -> str:
        """Returns the SQL query that aggregates the sets of a table as :meth:`predict` does, with native aggregates.

        A row whose values are all NULL is no element. The result is NULL where :meth:`predict` raises or is NaN: if an
        element is outside the domain, or if the law has no result.

        Arguments:
            table: Name of the table, or names of schema and table.
            set: Column with the set of each row, or several; None for one set of all rows.
            value: Column of numbers, or one column for each coordinate.
            dialect: Engine that is to run it: duckdb, postgres, sqlite, datafusion, polars, clickhouse or spark.

        Example:
            >>> model = LawRegressor().fit([[1, 2], [2, 2], [3, 1], [2, 3], [4, 1]], [3, 4, 4, 5, 5])
            >>> print(model.sql(table="parts", set="order", value="price"))
            SELECT "order", SUM(CAST("price" AS DOUBLE)) AS "result" FROM "parts" GROUP BY "order"
        """
        laws = [(law.operation, block) for block, law in self._by_block.items()]
        return select(laws, table=table, set=set, value=value, dialect=dialect)

    def _shaped(self, table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return table[:, 0] if self._flat and table.shape[1] == 1 else table

    def config(self) -> dict[str, Any]:
        found = {"flat": self._flat, "laws": self.laws_, "blocks": self.blocks_, "names": list(self._given_names)}
        return self.get_params() | found

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> LawRegressor:
        arguments = dict(config)
        flat, laws = arguments.pop("flat"), arguments.pop("laws")
        # Files of version 0.1.0 have a law for each dimension, and no blocks.
        blocks = arguments.pop("blocks", [[i] for i in range(len(laws))])
        names = arguments.pop("names", [])
        if not isinstance(flat, bool) or not laws or not all(isinstance(law, AnyLaw) for law in laws):
            got = " ".join(f"{flat!r} and {laws!r}".split())  # modules are shown in many lines
            raise AbelnetError(f"flat, laws: expected a boolean and learned laws, got {got:.80}")
        dims = [law.operation.dim for law in laws]
        if [len(block) for block in blocks] != dims or sorted(i for block in blocks for i in block) != list(
            range(sum(dims))
        ):
            raise AbelnetError(f"blocks: expected the coordinates of each law, {dims} of them, got {blocks!s:.80}")
        if (
            not isinstance(names, list)
            or len(names) not in (0, sum(dims))
            or not all(isinstance(n, str) for n in names)
        ):
            raise AbelnetError(f"names: expected {sum(dims)} names or none, got {names!s:.80}")
        model = cls(**arguments)
        model._given_names = names
        model._flat, model._laws = flat, {tuple(block): law for block, law in zip(blocks, laws, strict=True)}
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
            raise not_fitted("predict")
        if self.only not in (None, "folds", "means"):
            raise AbelnetError(f'only: expected None, "folds" or "means", got {self.only!r}')
        say = on_step or (lambda _: None)
        dim, laws, reason = len(self._streams), dict[Block, AnyLaw](), ""
        if self._joint is not None and self.only != "means":
            everything = self._sample(tuple(range(dim)))
            seen = [stream.seen for stream in self._streams]
            found, reason = learn_vector_laws(everything, self._names, seen, seed=self.seed, say=say)
            for block, law in found.items():
                law.eigenvalues = self._joint.distances(dim + 1) if len(block) == dim else ()
                laws[block] = law
        mixed = {i for block in laws for i in block}
        for i in sorted(set(range(dim)) - mixed):
            try:
                laws[i,] = self._own_law(i, say)
            except NoLawError as error:
                joint = (f"law of all coordinates: {reason}",) if reason else ()
                raise NoLawError(str(error), (*error.details, *joint)) from None
        self._laws = dict(sorted(laws.items()))

    def _own_law(self, i: int, say: Callable[[str], None]) -> LearnedLaw:
        """Returns the law of one coordinate, which does not depend on the others."""
        everything = self._sample(tuple(range(len(self._streams))))
        if self.refuse and len(self._streams) > 1 and depends_on_others(everything, i):
            raise NoLawError(
                f"no law: the results of {self._names[i]} depend on the other coordinates, and no functions of all of "
                "them add up; look for a coordinate that is missing, such as a weight, or learn fewer of them"
            )
        how: dict[str, Any] = {"refuse": self.refuse, "polish": self.polish, "only": self.only}
        law = learn_robust_law(self._streams[i], seed=self.seed, say=say, **how)
        if self.refuse and len(self._streams) > 1:
            check_own_law(law, i, everything, self._names[i])
        return law


def _weighted(examples: Multisets, sample_weight: Any) -> Multisets:
    """Returns the examples with their weights, without those of weight 0."""
    weights = check_sample_weight(sample_weight, len(examples))
    if weights is None:
        return examples
    if examples.dim > 1 and np.ptp(weights[weights > 0]) > 0:
        raise AbelnetError(
            f"sample_weight: expected equal weights for elements of {examples.dim} coordinates, got different ones; "
            "laws on vectors are found without weights"
        )
    ordered = examples.ordered()
    weighted = Multisets(
        ordered.values, ordered.dim, ptr=ordered.ptr, targets=ordered.targets, weights=torch.from_numpy(weights)
    )
    return weighted.take(torch.from_numpy(weights > 0))


def places(block: Block) -> int | list[int]:
    """Returns the index that selects the coordinates of a law: one column of a law of its own, as a vector.

    Example:
        >>> torch.eye(3)[:, places((1,))].shape, torch.eye(3)[:, places((0, 2))].shape
        (torch.Size([3]), torch.Size([3, 2]))
    """
    return block[0] if len(block) == 1 else list(block)
