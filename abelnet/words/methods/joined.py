r"""The mean offset joined with a regressed offset, a classifier of answers, similarity and frequency."""

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

# Added to the rank of a word: the frequencies of the first few words are exceptional.
_FIRST_WORDS = 10


class Joined(Method):
    r"""Joins what the examples say about an answer: where it is, what kind of word it is, and how frequent words are.

    .. math::
        (1 - \rho_k) \cos(t \circ c, x) + \rho_k \cos(c + r_c, x) + \gamma \cos(c, x)
        + \alpha_k \log \sigma(w \cdot x + \beta) - \nu \log(\operatorname{rank} x + 10)

    Here :math:`t` is the mean offset of the :math:`k` examples, in the coordinates of the model, and :math:`r_c` their
    offset in those of the vectors, regressed on the query as in :class:`Ridge`. The logistic regression separates the
    words :math:`b_i` from the :math:`a_i` and random frequent words, with half of the weight on each side. A regression
    of few examples knows little: :math:`\rho_k = \rho k / (k + \kappa)` and :math:`\alpha_k = \alpha k / (k + \lambda)`
    let it count less. Ranks are those of the vocabulary, most frequent words first.

    All settings were chosen on validation pairs of BATS with its training pairs as examples; see docs/analogies.md.

    Arguments:
        model: The model in whose coordinates the mean is taken; those of the vectors if None.
        share: The weight :math:`\alpha` of the class score.
        shrinkage: The number of examples :math:`\lambda` at which half of it counts.
        regressed: The share :math:`\rho` of the regressed offset; if None, 0.6, and 1 for a model without parameters,
            whose mean knows nothing that the regression does not.
        regressed_shrinkage: The number of examples :math:`\kappa` at which half of it counts.
        similarity: The weight :math:`\gamma` of the similarity to the query.
        frequency: The weight :math:`\nu` of the frequency; 0 for a vocabulary in another order.
        penalty: Penalty of the regression of the offsets.
        strength: Inverse of the L2 penalty of the classifier.
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
        share: float = 0.16,
        shrinkage: float = 5.0,
        regressed: float | None = None,
        regressed_shrinkage: float = 10.0,
        similarity: float = 0.1,
        frequency: float = 0.01,
        penalty: float = 0.3,
        strength: float = 100.0,
        contrasts: int = 1000,
        frequent: int = 50_000,
        seed: int = 0,
    ) -> None:
        super().__init__(model)
        if regressed is None:
            regressed = 0.6 if any(True for _ in self.model.parameters()) else 1.0
        check_number("share", share, least=0)
        check_number("shrinkage", shrinkage, least=0)
        check_number("regressed", regressed, least=0, most=1)
        check_number("regressed_shrinkage", regressed_shrinkage, least=0)
        check_number("similarity", similarity, least=0)
        check_number("frequency", frequency, least=0)
        check_number("penalty", penalty, above=0)
        check_number("strength", strength, above=0)
        self.share, self.shrinkage, self.penalty, self.strength = share, shrinkage, penalty, strength
        self.regressed, self.regressed_shrinkage = regressed, regressed_shrinkage
        self.similarity, self.frequency = similarity, frequency
        self.contrasts, self.frequent = check_count("contrasts", contrasts), check_count("frequent", frequent)
        self.seed = check_count("seed", seed, 0)

    def scores(self, vectors: WordVectors, task: Task) -> Scores:
        classes = self.classes(vectors, task)
        counts = task.counts
        rho = (self.regressed * counts / (counts + self.regressed_shrinkage))[:, None]
        mean = F.normalize(self.completions(vectors, task), dim=-1)
        plain = F.normalize(Ridge(penalty=self.penalty).predict(vectors, task), dim=-1)
        # The sum of the cosines is the product with one direction.
        directions = torch.lerp(mean, plain, rho) + self.similarity * vectors.units(task.queries)
        share = self.share * counts / (counts + self.shrinkage)

        def combine(products: Tensor) -> Tensor:
            cosines, logits = torch.split(products, len(directions), 1)
            return cosines + share * F.logsigmoid(logits + classes.bias)

        prior = -self.frequency * torch.log(torch.arange(len(vectors)) + _FIRST_WORDS)
        return Scores(torch.cat((directions, classes.weight)), combine, prior)

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
