r"""3CosAvg with an offset that depends on the query, by ridge regression on the examples."""

from __future__ import annotations

__all__ = ["Ridge"]

import torch
from torch import Tensor

from abelnet.checks import check_number
from abelnet.words.methods.base import CosineMethod, Task
from abelnet.words.models import AnalogyModel
from abelnet.words.vectors import WordVectors


class Ridge(CosineMethod):
    r"""3CosAvg with an offset that depends on the query: the ridge regression of the offsets on the :math:`a_i`.

    .. math:: \varphi(b) - \varphi(a) \approx t + W (a - \bar a), \quad
        \min_{t, W} \sum_i \|\varphi(b_i) - \varphi(a_i) - t - W (a_i - \bar a)\|^2 + \lambda \|W\|^2

    The prediction at :math:`c` is a weighted mean of the offsets, with weights of examples that grow with their
    similarity to the query, sum to 1, and may be negative. The penalty shrinks them to :math:`1 / k`: from one pair it
    is 3CosAdd, from few it is close to 3CosAvg, and from many it follows examples that resemble the query.

    Arguments:
        model: The model in whose coordinates offsets are taken; those of the vectors if None.
        penalty: The penalty :math:`\lambda`, for normalized vectors.

    Example:
        >>> vectors = WordVectors.default()
        >>> words = "france paris italy rome good better bad worse spain".split()
        >>> rows = torch.tensor([vectors.index(word) for word in words])
        >>> task = Task.of(rows[:8].reshape(4, 2), rows[8:])
        >>> [round(weight, 2) for weight in Ridge.regressed(vectors, task, 0.3).weights[0].tolist()]
        [0.41, 0.45, 0.07, 0.08]
    """

    name = "ridge"

    def __init__(self, model: AnalogyModel | None = None, *, penalty: float = 0.3) -> None:
        super().__init__(model)
        check_number("penalty", penalty, above=0)
        self.penalty = penalty

    @staticmethod
    def regressed(vectors: WordVectors, task: Task, penalty: float) -> Task:
        """Returns a task with the weights of the regression."""
        # Float64: the weights of many similar examples are small differences of large numbers.
        a, c = vectors.units(task.pairs[:, 0]).double(), vectors.units(task.queries).double()
        # Queries that use the same pairs, often all of them, share one regression.
        distinct, index = torch.unique(task.weights.double(), dim=0, return_inverse=True)
        means = distinct @ a
        weights = torch.empty(len(c), len(a), dtype=torch.float64)
        for number, mean in enumerate(distinct):
            own = (index == number).nonzero()[:, 0]
            used = mean.nonzero()[:, 0]
            centered, moved = a[used] - means[number], c[own] - means[number]
            # The same weights by whichever matrix is smaller: products of examples, or of coordinates.
            if len(used) <= vectors.dim:
                kernel = centered @ centered.t() + penalty * torch.eye(len(used), dtype=torch.float64)
                slopes = torch.linalg.solve(kernel, (moved @ centered.t()).t()).t()
            else:
                moments = centered.t() @ centered + penalty * torch.eye(vectors.dim, dtype=torch.float64)
                slopes = torch.linalg.solve(moments, moved.t()).t() @ centered.t()
            # The offsets are centered too, so that the weights of the slopes sum to 0.
            rows = torch.zeros(len(own), len(a), dtype=torch.float64)
            rows[:, used] = mean[used] + slopes - slopes.sum(1, keepdim=True) * mean[used]
            weights[own] = rows
        return task.weighted(weights.to(task.weights.dtype))

    def predict(self, vectors: WordVectors, task: Task) -> Tensor:
        return self.completions(vectors, self.regressed(vectors, task, self.penalty))
