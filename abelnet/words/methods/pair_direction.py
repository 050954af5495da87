r"""PairDirection: the direction of the offset from the query."""

from __future__ import annotations

__all__ = ["PairDirection"]

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.words.methods.base import Method, Scores, Task
from abelnet.words.vectors import WordVectors


class PairDirection(Method):
    r"""PairDirection: the cosine between the offset of a candidate from the query and that of the examples.

    .. math:: \cos\Bigl(x - c, \sum_i w_i (b_i - a_i)\Bigr), \quad 0 \text{ at } x = c

    How far a candidate is from the query does not matter, so that answers are often rare words far away.

    References:
        Levy & Goldberg, Linguistic regularities in sparse and explicit word representations, 2014.

    Example:
        >>> vectors = WordVectors(["a", "b", "c", "d"], torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 3.0]]))
        >>> PairDirection().answers(vectors, Task.of(torch.tensor([[0, 1]]), torch.tensor([2]))).indices
        tensor([[3]])
    """

    name = "pairdirection"
    takes_model = False

    def scores(self, vectors: WordVectors, task: Task) -> Scores:
        a, b = vectors.units(task.pairs).unbind(1)
        c = vectors.units(task.queries)
        offsets = F.normalize(task.weights @ (b - a), dim=-1)
        base = (c * offsets).sum(-1)
        lengths = (c * c).sum(-1)

        def combine(products: Tensor) -> Tensor:
            to_c, along = torch.split(products, len(c), 1)
            # Words that are the query up to rounding have no direction.
            distances = (1 + lengths - 2 * to_c).clamp(min=0)
            near = distances < 1e-6
            return ((along - base) / distances.masked_fill(near, 1).sqrt()).masked_fill(near, 0)

        return Scores(torch.cat((c, offsets)), combine)
