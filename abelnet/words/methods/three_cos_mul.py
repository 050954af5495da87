r"""3CosMul: products and quotients of cosines."""

from __future__ import annotations

__all__ = ["ThreeCosMul"]

import torch
from torch import Tensor

from abelnet.words.methods.base import Method, Scores, Task
from abelnet.words.vectors import WordVectors

_EPSILON = 0.001  # of the paper


class ThreeCosMul(Method):
    r"""3CosMul: products and quotients of similarities :math:`s(x, y) = (1 + \cos(x, y)) / 2`.

    .. math:: s(c, x) \prod_i \left(\frac{s(b_i, x)}{s(a_i, x) + 0.001}\right)^{w_i}

    With several examples it is the geometric mean of the scores of each.

    References:
        Levy & Goldberg, Linguistic regularities in sparse and explicit word representations, 2014.

    Example:
        >>> vectors = WordVectors.default()
        >>> rows = [vectors.index(word) for word in ("man", "king", "woman")]
        >>> found = ThreeCosMul().answers(vectors, Task.of(torch.tensor([rows[:2]]), torch.tensor(rows[2:])), k=2)
        >>> [vectors.index_to_key[row] for row in found.indices[0]]
        ['king', 'queen']
    """

    name = "3cosmul"
    takes_model = False

    def scores(self, vectors: WordVectors, task: Task) -> Scores:
        a, b = task.pairs.unbind(1)
        sizes = [len(task.queries), len(a), len(b)]
        weights = task.weights.t()

        def combine(products: Tensor) -> Tensor:
            # Rounding may take a cosine below -1. Reading and writing take most of the time: few passes.
            c, a, b = torch.split(products.clamp(min=-1).add_(1).div_(2), sizes, 1)
            # A similarity of 0 has the logarithm of the smallest number instead of minus infinity.
            quotients = (b / (a + _EPSILON)).clamp_(min=torch.finfo(products.dtype).tiny).log_()
            return (quotients @ weights).exp_().mul_(c)

        return Scores(vectors.units(torch.cat((task.queries, a, b))), combine)
