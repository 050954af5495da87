r"""The joined method, with what the examples say about the spelling of an answer."""

from __future__ import annotations

__all__ = ["Spelled"]

import math
from typing import Any

import torch
from torch import Tensor

from abelnet.checks import check_number
from abelnet.words.methods.base import Scores, Task
from abelnet.words.methods.joined import Joined
from abelnet.words.models import AnalogyModel
from abelnet.words.spelling import Spelling
from abelnet.words.vectors import WordVectors


class Spelled(Joined):
    r"""Adds to :class:`Joined` how an answer is spelled, as the examples say: *quick : quickly*, *easy : easily*.

    .. math::
        \eta \log\Bigl(1 + \frac{R\, P(x \mid c)}{\varepsilon}\Bigr) - \pi D\, [x = c], \quad
        R = \frac{\tau + \sum_i r_i}{1 + k} \text{, or } \tau \text{ if } k = 1

    :math:`P(x \mid c)` is the share of the examples by whose edits :math:`x` is spelled from the query :math:`c`; see
    :class:`~abelnet.words.spelling.Spelling`. It counts as much as the edits explain the examples themselves:
    :math:`r_i` is 1 if another example spells :math:`b_i` from :math:`a_i`, and 0 otherwise. One example says nothing
    about itself, so that :math:`R = \tau`. Where answers are not spelled from the query, as with capitals, hardly any
    edit applies, :math:`R` is near 0, and next to nothing is added.

    :math:`D` is the share of the examples whose words differ. If all do, the query is hardly an answer to itself,
    although it is often the word nearest to the predicted vector. So this method has almost the same accuracy with all
    candidates as without the query, by what it knows from the examples.

    Settings were chosen on validation pairs of BATS with its training pairs as examples; see docs/analogies.md.

    Arguments:
        model: The model in whose coordinates the mean is taken; those of the vectors if None.
        spelling: The weight :math:`\eta` of the spelling; 0 leaves it out.
        floor: The share :math:`\varepsilon` of examples that begins to count.
        trust: The weight :math:`\tau` of an edit known from one example, from 0 to 1.
        distinct: The penalty :math:`\pi` of the query itself.
        settings: Settings of :class:`Joined`.

    Example:
        >>> vectors = WordVectors.default()
        >>> words = "quick quickly happy happily usual usually easy".split()
        >>> rows = torch.tensor([vectors.index(word) for word in words])
        >>> found = Spelled().answers(vectors, Task.of(rows[:6].reshape(3, 2), rows[6:]), k=1)
        >>> [vectors.index_to_key[row] for row in found.indices[0]]
        ['easily']
    """

    name = "spelled"

    def __init__(
        self,
        model: AnalogyModel | None = None,
        *,
        spelling: float = 0.5,
        floor: float = 0.1,
        trust: float = 0.3,
        distinct: float = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(model, **settings)
        check_number("spelling", spelling, least=0)
        check_number("floor", floor, above=0)
        check_number("trust", trust, least=0, most=1)
        check_number("distinct", distinct, least=0)
        self.spelling, self.floor, self.trust, self.distinct = spelling, floor, trust, distinct

    def scores(self, vectors: WordVectors, task: Task) -> Scores:
        directions, combine, prior, _ = super().scores(vectors, task)
        return Scores(directions, combine, prior, self.bonus(vectors, task))

    def bonus(self, vectors: WordVectors, task: Task) -> Tensor:
        """Returns what is added to the scores, with shape :math:`(n, V)`, sparse."""
        words, rows = vectors.index_to_key, vectors.key_to_index
        spelling = Spelling([(words[a], words[b]) for a, b in task.pairs.tolist()])
        differs = (task.pairs[:, 0] != task.pairs[:, 1]).tolist()
        entries: list[tuple[int, int]] = []
        values: list[float] = []
        for j, (query, weights) in enumerate(zip(task.queries.tolist(), task.weights, strict=True)):
            used = weights.nonzero()[:, 0].tolist()
            explained, known = spelling.explained(used)
            trust = (explained + self.trust) / (known + 1)
            added = {
                rows[word]: self.spelling * math.log1p(trust * share / self.floor)
                for word, share in spelling.shares(words[query], used).items()
                if word in rows
            }
            added[query] = added.get(query, 0.0) - self.distinct * sum(differs[i] for i in used) / len(used)
            entries += [(j, row) for row in added]
            values += added.values()
        shape = (len(task.queries), len(vectors))
        places = torch.tensor(entries, dtype=torch.long).reshape(-1, 2).t()
        numbers = torch.tensor(values, dtype=vectors.vectors.dtype)
        return torch.sparse_coo_tensor(places, numbers, shape, check_invariants=True)
