r"""3CosAvg: the mean offset of the examples."""

from __future__ import annotations

__all__ = ["ThreeCosAvg"]

from torch import Tensor

from abelnet.words.methods.base import CosineMethod, Task
from abelnet.words.vectors import WordVectors


class ThreeCosAvg(CosineMethod):
    r"""3CosAvg: the cosine to the query moved by the mean offset of the examples.

    .. math:: \cos\Bigl(\varphi^{-1}\Bigl(\varphi(c) + \sum_i w_i (\varphi(b_i) - \varphi(a_i))\Bigr), x\Bigr)

    In a group this is :math:`t \circ c`, where :math:`t` is the :meth:`~abelnet.Operation.translation` of the pairs.

    References:
        Drozd, Gladkova & Matsuoka, Word embeddings, analogies, and machine learning: beyond king − man + woman = queen,
        2016.

    Arguments:
        model: The model in whose coordinates offsets are taken; those of the vectors if None.

    Example:
        >>> import torch
        >>> vectors = WordVectors.default()
        >>> rows = [vectors.index(word) for word in ("man", "king", "boy", "prince", "woman")]
        >>> task = Task.of(torch.tensor(rows[:4]).reshape(2, 2), torch.tensor(rows[4:]))
        >>> found = ThreeCosAvg().answers(vectors, task, k=3)
        >>> [vectors.index_to_key[row] for row in found.indices[0]]
        ['prince', 'king', 'queen']
    """

    name = "3cosavg"

    def predict(self, vectors: WordVectors, task: Task) -> Tensor:
        return self.completions(vectors, task)
