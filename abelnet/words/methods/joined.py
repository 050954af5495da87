r"""The mean offset joined with a classifier of answers."""

from __future__ import annotations

__all__ = ["Joined"]

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.checks import check_count, check_number
from abelnet.words.methods.base import Method, Scores, Task
from abelnet.words.methods.logistic import Classes, fit_logistic
from abelnet.words.methods.ridge import Ridge
from abelnet.words.models import AnalogyModel
from abelnet.words.vectors import WordVectors


class Joined(Method):
    r"""The mean offset joined with a classifier of answers, which counts more the more examples there are.

    .. math:: \cos(t_c \circ c, x) + \alpha \frac{k}{k + \kappa} \log \sigma(w \cdot x + \beta)

    Here :math:`t_c` is the offset of the :math:`k` examples, in the coordinates of the model, regressed on the query as
    in :class:`Ridge`. The logistic regression separates the words :math:`b_i` from the :math:`a_i` and random frequent
    words, with half of the weight on each side. A classifier of few examples knows little: the shrinkage
    :math:`k / (k + \kappa)` lets it count less.

    The defaults were chosen for plain vectors, on the validation pairs of BATS with the training pairs as examples.

    Arguments:
        model: The model in whose coordinates offsets are taken; those of the vectors if None.
        share: The weight :math:`\alpha` of the class score.
        shrinkage: The number of examples :math:`\kappa` at which half of it counts.
        penalty: Penalty of the regression of the offsets.
        strength: Inverse of the L2 penalty of the regression.
        contrasts: Number of random words outside the class.
        frequent: Number of most frequent words to draw them from.
        seed: Random seed of the random words.

    Example:
        >>> vectors = WordVectors.default()
        >>> words = "france paris italy rome japan tokyo spain madrid germany".split()
        >>> rows = torch.tensor([vectors.index(word) for word in words])
        >>> found = Joined().answers(vectors, Task.of(rows[:8].reshape(4, 2), rows[8:]), k=1)
        >>> [vectors.index_to_key[row] for row in found.indices[0]]
        ['berlin']
    """

    name = "joined"

    def __init__(
        self,
        model: AnalogyModel | None = None,
        *,
        share: float = 0.08,
        shrinkage: float = 2.0,
        penalty: float = 0.3,
        strength: float = 100.0,
        contrasts: int = 200,
        frequent: int = 50_000,
        seed: int = 0,
    ) -> None:
        super().__init__(model)
        check_number("share", share, least=0)
        check_number("shrinkage", shrinkage, least=0)
        check_number("penalty", penalty, above=0)
        check_number("strength", strength, above=0)
        self.share, self.shrinkage, self.penalty, self.strength = share, shrinkage, penalty, strength
        self.contrasts, self.frequent = check_count("contrasts", contrasts), check_count("frequent", frequent)
        self.seed = check_count("seed", seed, 0)

    def scores(self, vectors: WordVectors, task: Task) -> Scores:
        classes = self.classes(vectors, task)
        regressed = Ridge.regressed(vectors, task, self.penalty)
        predicted = F.normalize(self.completions(vectors, regressed), dim=-1)
        share = self.share * task.counts / (task.counts + self.shrinkage)

        def combine(products: Tensor) -> Tensor:
            cosines, logits = torch.split(products, len(predicted), 1)
            return cosines + share * F.logsigmoid(logits + classes.bias)

        return Scores(torch.cat((predicted, classes.weight)), combine)

    def classes(self, vectors: WordVectors, task: Task) -> Classes:
        """Returns the classifier of answers of each query."""
        count = len(task.pairs)
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randint(min(self.frequent, len(vectors)), (self.contrasts,), generator=generator)
        used = (task.weights > 0).to(vectors.vectors.dtype)
        a, b = task.pairs.unbind(1)
        labels = torch.arange(2 * count + self.contrasts) < count
        # The examples' own first words are as many outside the class as there are in it, and the random words as much.
        size = used.sum(1, keepdim=True)
        weights = torch.cat((used, used / 2, (size / 2 / self.contrasts).expand(-1, self.contrasts)), 1)
        return fit_logistic(vectors.units(torch.cat((b, a, noise))), labels, weights, self.strength)
