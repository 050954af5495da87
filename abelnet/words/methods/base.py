r"""Base class of methods, the tasks that they solve, and the scores that they give."""

from __future__ import annotations

__all__ = ["CosineMethod", "Method", "Scores", "Task"]

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from abelnet.errors import AbelnetError
from abelnet.words.models import AnalogyModel, Offset
from abelnet.words.retrieval import Nearest, best, nearest
from abelnet.words.vectors import WordVectors


@dataclass(frozen=True)
class Task:
    r"""Words of one relation that are to be completed, and the example pairs that each of them may use.

    Attributes:
        pairs: Rows of :math:`a_i` and :math:`b_i` in the vocabulary, with shape :math:`(p, 2)`.
        queries: Rows of the words :math:`c`, with shape :math:`(n)`.
        weights: Weight of each pair for each query, with shape :math:`(n, p)`: :math:`1 / k` for the :math:`k` pairs
            that it may use, 0 for the others.
    """

    pairs: Tensor
    queries: Tensor
    weights: Tensor

    @classmethod
    def of(cls, pairs: Tensor, queries: Tensor, used: Tensor | None = None) -> Task:
        r"""Returns a task in which all pairs that a query uses have the same weight.

        Arguments:
            pairs: Rows of the pairs, with shape :math:`(p, 2)`.
            queries: Rows of the queries, with shape :math:`(n)`.
            used: Whether each query uses each pair, with shape :math:`(n, p)`; all pairs if None.

        Example:
            >>> Task.of(torch.tensor([[0, 1], [2, 3]]), torch.tensor([4])).weights
            tensor([[0.5000, 0.5000]])
        """
        if pairs.ndim != 2 or pairs.shape[1] != 2 or queries.ndim != 1:
            got = f"{tuple(pairs.shape)} and {tuple(queries.shape)}"
            raise AbelnetError(f"pairs, queries: expected shapes (p, 2) and (n), got {got}")
        if used is None:
            used = torch.ones(len(queries), len(pairs), dtype=torch.bool)
        counts = used.sum(1, keepdim=True)
        if len(pairs) == 0 or bool((counts == 0).any()):
            raise AbelnetError("pairs: expected at least one example pair for each query, got none")
        return cls(pairs, queries, used / counts)

    @property
    def counts(self) -> Tensor:
        r"""Number of pairs that each query uses, with shape :math:`(n)`."""
        return (self.weights > 0).sum(1)

    def weighted(self, weights: Tensor) -> Task:
        r"""Returns the task with other weights, :math:`(n, p)`."""
        return replace(self, weights=weights)


class Scores(NamedTuple):
    r"""Scores of all words of a vocabulary for the queries of a task, before they are computed.

    Attributes:
        directions: Vectors :math:`q_j`, with shape :math:`(m, d)`.
        combine: Maps products :math:`x \cdot q_j` of normalized words with them, :math:`(r, m)`, to scores
            :math:`(r, n)`. If None, the score of query :math:`j` is the cosine to :math:`q_j`.
        prior: Added to the score of each word for all queries, with shape :math:`(V)`; nothing if None.
        bonus: Added to the scores of some words for each query: sparse, with shape :math:`(n, V)`; nothing if None.
            Like the prior, it takes a ``combine``.
    """

    directions: Tensor
    combine: Callable[[Tensor], Tensor] | None = None
    prior: Tensor | None = None
    bonus: Tensor | None = None

    def best(self, vectors: WordVectors, k: int = 1) -> Nearest:
        r"""Returns the :math:`k` words with the largest scores, best first, with shapes :math:`(n, k)`."""
        if self.combine is None:
            return nearest(vectors.vectors, self.directions, k, norms=vectors.norms)
        return best(
            vectors.vectors,
            self.directions,
            self.combine,
            k,
            norms=vectors.norms,
            prior=self.prior,
            bonus=self.bonus,
        )


class Method(ABC):
    r"""Completes words of a relation from example pairs: every word of the vocabulary gets a score for each query.

    A method is one class in one file, with a ``name``, and an entry in ``abelnet.words.methods``.

    Arguments:
        model: The model in whose coordinates offsets are taken; those of the vectors if None.
    """

    name: str
    """Name in commands and tables."""
    takes_model: bool = True
    """Whether the method depends on the model."""

    def __init__(self, model: AnalogyModel | None = None) -> None:
        self.model = Offset() if model is None else model

    @abstractmethod
    def scores(self, vectors: WordVectors, task: Task) -> Scores:
        """Returns the scores of all words for each query of a task."""

    def answers(self, vectors: WordVectors, task: Task, k: int = 1) -> Nearest:
        r"""Returns the :math:`k` words with the largest scores for each query, best first, with shapes :math:`(n, k)`.

        Candidates are all words, also the query itself; see :meth:`~abelnet.words.Nearest.excluding`.
        """
        with torch.no_grad():
            return self.scores(vectors, task).best(vectors, k)

    def completions(self, vectors: WordVectors, task: Task) -> Tensor:
        r"""Predicts the vector of each answer by the weighted mean of the offsets, with shape :math:`(n, d)`."""
        rows, index = torch.unique(torch.cat((task.pairs.flatten(), task.queries)), return_inverse=True)
        pairs, queries = index[: task.pairs.numel()].reshape(-1, 2), index[task.pairs.numel() :]
        return self.model.completions(vectors.units(rows), pairs, queries, task.weights)


class CosineMethod(Method):
    r"""Method whose scores are the cosines to one predicted vector per query."""

    @abstractmethod
    def predict(self, vectors: WordVectors, task: Task) -> Tensor:
        r"""Predicts the vector of each answer, with shape :math:`(n, d)`."""

    def scores(self, vectors: WordVectors, task: Task) -> Scores:
        return Scores(self.predict(vectors, task))
