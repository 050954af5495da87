r"""3CosAdd: the answers from each example alone, whose cosines are averaged."""

from __future__ import annotations

__all__ = ["ThreeCosAdd"]

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.words.methods.base import CosineMethod, Task
from abelnet.words.vectors import WordVectors


class ThreeCosAdd(CosineMethod):
    r"""3CosAdd: the mean of the cosines to the answers from each example alone.

    .. math:: \sum_i w_i \cos(\varphi^{-1}(\varphi(b_i) - \varphi(a_i) + \varphi(c)), x)

    Words are ranked by it as by the cosine to the mean of the normalized answers, which is the reported score. From one
    pair it is :math:`\cos(b - a + c, x)`.

    References:
        Mikolov et al., Linguistic regularities in continuous space word representations, 2013.

    Arguments:
        model: The model in whose coordinates offsets are taken; those of the vectors if None.

    Example:
        >>> vectors = WordVectors.default()
        >>> rows = [vectors.index(word) for word in ("man", "king", "woman")]
        >>> found = ThreeCosAdd().answers(vectors, Task.of(torch.tensor([rows[:2]]), torch.tensor(rows[2:])), k=3)
        >>> [vectors.index_to_key[row] for row in found.indices[0]]
        ['king', 'queen', 'monarch']
    """

    name = "3cosadd"

    def predict(self, vectors: WordVectors, task: Task) -> Tensor:
        places = task.weights.nonzero()
        rows = torch.cat((task.pairs[places[:, 1]], task.queries[places[:, 0], None]), 1)
        distinct, index = torch.unique(rows, return_inverse=True)
        answers = F.normalize(self.model.analogies(vectors.units(distinct), index), dim=-1)
        weights = task.weights[places[:, 0], places[:, 1], None]
        return answers.new_zeros(len(task.queries), vectors.dim).index_add(0, places[:, 0], weights * answers)
