r"""Similarity to the query."""

from __future__ import annotations

__all__ = ["Similarity"]

from torch import Tensor

from abelnet.words.methods.base import CosineMethod, Task
from abelnet.words.vectors import WordVectors


class Similarity(CosineMethod):
    r"""Similarity to the query: :math:`\cos(c, x)`. It ignores the examples; what it answers is no analogy.

    References:
        Linzen, Issues in evaluating semantic spaces using word analogies, 2016 (*Only-b*).

    Example:
        >>> import torch
        >>> vectors = WordVectors(["up", "upward", "down"], torch.tensor([[0.0, 1.0], [0.1, 1.0], [0.0, -1.0]]))
        >>> Similarity().answers(vectors, Task.of(torch.tensor([[2, 2]]), torch.tensor([0])), k=2).indices
        tensor([[0, 1]])
    """

    name = "similarity"
    takes_model = False

    def predict(self, vectors: WordVectors, task: Task) -> Tensor:
        return vectors.units(task.queries)
