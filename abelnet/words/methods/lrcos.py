r"""LRCos: a classifier of answers, times the similarity to the query."""

from __future__ import annotations

__all__ = ["LRCos"]

import torch
from torch import Tensor

from abelnet.checks import check_count, check_number
from abelnet.words.methods.base import Method, Scores, Task
from abelnet.words.methods.logistic import Classes, fit_logistic
from abelnet.words.vectors import WordVectors

# Each first word of an example counts as so many vectors outside the class, as in vecto.
_REPEATED = 4


class LRCos(Method):
    r"""LRCos: the probability that a word is an answer at all, times its similarity to the query.

    .. math:: \sigma(w \cdot x + \beta) \cos(c, x)

    The logistic regression separates the :math:`k` words :math:`b_i` from four copies of the :math:`a_i` and
    :math:`k` random words of the vocabulary; both classes have the same total weight. This is what the library *vecto*
    computes.

    References:
        Drozd, Gladkova & Matsuoka, Word embeddings, analogies, and machine learning: beyond king − man + woman = queen,
        2016.

    Arguments:
        strength: Inverse of the L2 penalty of the regression.
        seed: Random seed of the random words.

    Example:
        >>> vectors = WordVectors.default()
        >>> words = "france paris italy rome japan tokyo spain madrid germany".split()
        >>> rows = torch.tensor([vectors.index(word) for word in words])
        >>> found = LRCos().answers(vectors, Task.of(rows[:8].reshape(4, 2), rows[8:]), k=2)
        >>> [vectors.index_to_key[row] for row in found.indices[0]]
        ['berlin', 'munich']
    """

    name = "lrcos"
    takes_model = False

    def __init__(self, *, strength: float = 1.0, seed: int = 0) -> None:
        super().__init__()
        check_number("strength", strength, above=0)
        self.strength, self.seed = strength, check_count("seed", seed, 0)

    def scores(self, vectors: WordVectors, task: Task) -> Scores:
        classes = self.classes(vectors, task)
        queries = vectors.units(task.queries)

        def combine(products: Tensor) -> Tensor:
            cosines, logits = torch.split(products, len(queries), 1)
            return cosines * torch.sigmoid(logits + classes.bias)

        return Scores(torch.cat((queries, classes.weight)), combine)

    def classes(self, vectors: WordVectors, task: Task) -> Classes:
        """Returns the classifier of answers of each query."""
        count = len(task.pairs)
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randint(len(vectors), (count,), generator=generator)
        used = (task.weights > 0).to(vectors.vectors.dtype)
        a, b = task.pairs.unbind(1)
        labels = torch.arange(3 * count) < count
        weights = torch.cat((used, _REPEATED * used, used), 1)
        # Balanced: the weights of each class sum to half the number of vectors.
        total = weights.sum(1, keepdim=True) / 2
        weights = weights * torch.where(
            labels, total / used.sum(1, True), total / ((_REPEATED + 1) * used.sum(1, True))
        )
        return fit_logistic(vectors.units(torch.cat((b, a, noise))), labels, weights, self.strength)
