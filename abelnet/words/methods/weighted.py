r"""3CosAvg in which examples that resemble the query count more."""

from __future__ import annotations

__all__ = ["Weighted"]

from torch import Tensor

from abelnet.checks import check_number
from abelnet.words.methods.base import CosineMethod, Task
from abelnet.words.models import AnalogyModel
from abelnet.words.vectors import WordVectors


class Weighted(CosineMethod):
    r"""3CosAvg with weights :math:`w_i \propto e^{\cos(a_i, c) / \tau}`: examples that resemble the query count more.

    Arguments:
        model: The model in whose coordinates offsets are taken; those of the vectors if None.
        temperature: The :math:`\tau`: the larger, the closer to 3CosAvg.

    Example:
        >>> import torch
        >>> vectors = WordVectors.default()
        >>> rows = [vectors.index(word) for word in ("france", "paris", "good", "better", "spain")]
        >>> task = Task.of(torch.tensor(rows[:4]).reshape(2, 2), torch.tensor(rows[4:]))
        >>> Weighted.similar(vectors, task, 0.25).weights[0].tolist()
        [0.865..., 0.134...]
    """

    name = "weighted"

    def __init__(self, model: AnalogyModel | None = None, *, temperature: float = 0.25) -> None:
        super().__init__(model)
        check_number("temperature", temperature, above=0)
        self.temperature = temperature

    @staticmethod
    def similar(vectors: WordVectors, task: Task, temperature: float) -> Task:
        """Returns a task with weights by the similarity of examples to the query."""
        cosines = vectors.units(task.queries) @ vectors.units(task.pairs[:, 0]).t()
        weights = (cosines / temperature + task.weights.log()).softmax(1)
        return task.weighted(weights)

    def predict(self, vectors: WordVectors, task: Task) -> Tensor:
        return self.completions(vectors, self.similar(vectors, task, self.temperature))
