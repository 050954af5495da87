r"""Training losses of analogy models."""

from __future__ import annotations

__all__ = ["AnchoredLoss", "CosineLoss"]

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.checks import check_count, check_number
from abelnet.training.settings import Data
from abelnet.words.evaluation import offset
from abelnet.words.models import AnalogyModel
from abelnet.words.questions import Questions
from abelnet.words.retrieval import nearest
from abelnet.words.vectors import WordVectors

# Words of the triples of an anchor.
_ANCHORED = 30_000
# Words whose neighbors are searched at a time, which takes a fraction of a training step.
_SEARCHED = 512
# Relations that the questions with several pairs of one batch are about. They share examples, so that fewer words are
# encoded.
_RELATIONS = 8


@dataclass(frozen=True)
class CosineLoss:
    r"""Loss of the paper: :math:`-\cos(f(a, b, c), d)`, averaged over a batch.

    Attributes:
        vectors: The vocabulary. Batches are its rows: those of :math:`a, b, c`, with shape :math:`(n, 3)`, and those of
            :math:`d`, with shape :math:`(n)`.

    Example:
        >>> from abelnet.words.models import GroupAnalogy
        >>> vectors = WordVectors(["man", "king", "woman", "queen"], torch.randn(4, 6))
        >>> loss = CosineLoss(vectors)(GroupAnalogy(6), (torch.tensor([[0, 1, 2]]), torch.tensor([3])))
        >>> loss.shape
        torch.Size([])
    """

    vectors: WordVectors

    def __call__(self, model: AnalogyModel, batch: Data) -> Tensor:
        words, answers = batch
        distinct, index = torch.unique(words, return_inverse=True)
        given = model.analogies(self.vectors.units(distinct), index)
        return -F.cosine_similarity(given, self.vectors.units(answers)).mean()


class _Examples(NamedTuple):
    """Training examples of a batch of an :class:`AnchoredLoss`."""

    questions: Tensor  # vectors of a, b and c, (3, n, d)
    answers: Tensor  # padded lists of answers, (n, m, d)
    accepted: Tensor  # mask of the padded lists, (n, m)
    allowed: Tensor  # mask of the words of the training questions that are answers too, hence not candidates


class AnchoredLoss:
    r"""Contrastive loss with an anchor that keeps a model at :math:`b - a + c` away from the training examples.

    .. math::
        -\log \frac{\sum_{w \in D} e^{\cos(f(a, b, c), w) / \tau}}{\sum_{w \in C \cup D} e^{\cos(f(a, b, c), w) / \tau}}
        + \lambda \, (1 - \cos(f(a', b', c'), b' - a' + c'))

    The first term is contrastive: some accepted answer in :math:`D` should be closer than all candidates :math:`C`.
    These are :math:`a, b, c`, which cosine similarity often prefers; all words of the training questions except
    accepted answers; and frequent words drawn at random. As examples are few, they are augmented: two questions of a
    relation are mixed (mixup), :math:`a` with :math:`a` and the answer with the answer; and some are reversed,
    :math:`b : a = d : c`, which is equivalent in a group.

    The second term is an anchor: on triples that resemble questions the model is pulled toward WV, so that it does not
    distort the space away from the examples. There :math:`b'` is a neighbor of :math:`a'`, and :math:`c'` is another
    neighbor or any word.

    With ``several``, each batch also has questions with :math:`k` example pairs of a relation, :math:`k` drawn from 1
    to ``shots`` uniformly in the logarithm, answered by the mean of their offsets in :math:`\varphi`. Their contrastive
    loss, with :math:`c` in place of :math:`a, b, c`, is averaged with that of the others. Random draws depend on the
    batch alone, so interrupted training resumes bit for bit.

    Arguments:
        vectors: The vocabulary.
        questions: The training questions. Batches are their indices, with shape :math:`(n)`.
        temperature: Softmax temperature :math:`\tau`.
        candidates: Number of random candidates per batch.
        anchor: Weight :math:`\lambda` of the anchor.
        triples: Number of random triples per batch.
        mixed: Fraction of questions that are mixed with another.
        backwards: Fraction of questions that are reversed.
        frequent: Number of most frequent words to draw candidates from; triples use the first 30,000.
        neighbours: Number of nearest neighbors of a word to draw from.
        several: Number of questions with several example pairs per batch.
        shots: Largest number of example pairs.

    Example:
        >>> from abelnet.words.models import GroupAnalogy
        >>> from abelnet.words.questions import google_pairs
        >>> vectors = WordVectors.default()
        >>> loss = AnchoredLoss(vectors, google_pairs(vectors).train, frequent=2000, several=8)
        >>> loss(GroupAnalogy(100, layers=1, gain=0.0), (torch.arange(8),)).shape
        torch.Size([])
    """

    def __init__(
        self,
        vectors: WordVectors,
        questions: Questions,
        *,
        temperature: float = 0.1,
        candidates: int = 2048,
        anchor: float = 40.0,
        triples: int = 512,
        mixed: float = 0.5,
        backwards: float = 0.2,
        frequent: int = 50_000,
        neighbours: int = 20,
        several: int = 0,
        shots: int = 20,
    ) -> None:
        check_number("temperature", temperature, above=0)
        check_number("anchor", anchor, least=0)
        check_number("mixed", mixed, least=0, most=1)
        check_number("backwards", backwards, least=0, most=1)
        self.several, self.shots = check_count("several", several, 0), check_count("shots", shots)
        self.vectors, self.questions = vectors, questions
        self.temperature, self.candidates, self.anchor, self.triples = temperature, candidates, anchor, triples
        self.mixed, self.backwards, self.neighbours = mixed, backwards, neighbours
        self.frequent = min(frequent, len(vectors))
        # Each question and its answer, with shape (2, questions, 4): forward, then reversed.
        a, b, c, d = *questions.words.unbind(1), questions.targets
        self.rows = torch.stack((torch.stack((a, b, c, d), 1), torch.stack((b, a, d, c), 1)))
        self.words: Tensor
        self.words, places = torch.unique(self.rows, return_inverse=True)
        self.word_units = vectors.units(self.words)
        # Accepted answers are not candidates: forward those of the question, reversed those of all with the same d.
        found = torch.searchsorted(self.words, questions.answers.contiguous()).clamp(max=len(self.words) - 1)
        lists, columns = (self.words[found] == questions.answers).nonzero(as_tuple=True)
        self.accepted = torch.zeros(len(questions.answers), len(self.words), dtype=torch.bool)
        self.accepted[lists, found[lists, columns]] = True
        self.targets = places[0, :, 3]
        self.sources = torch.zeros(len(self.words), len(self.words), dtype=torch.bool)
        self.sources[self.targets, places[0, :, 2]] = True
        self.order = questions.section.argsort(stable=True)
        self.counts = torch.bincount(questions.section, minlength=len(questions.sections))
        self.pairs = questions.pairs()
        self.near: dict[int, Tensor] = {}

    def __call__(self, model: AnalogyModel, batch: Data) -> Tensor:
        (numbers,) = batch
        generator = torch.Generator().manual_seed(_fingerprint(numbers))
        examples = self._examples(numbers, generator)
        triples = self.vectors.units(self._triples(generator))
        given = F.normalize(model(*torch.cat((examples.questions, triples), 1)), dim=-1)
        given, anchored = torch.split(given, [len(numbers), self.triples])
        drawn = self.vectors.units(torch.randint(self.frequent, (self.candidates,), generator=generator))
        contrast = self._contrast(given, examples, drawn)
        pull = 1 - F.cosine_similarity(anchored, offset(*triples)).mean()
        if self.several:
            given, examples = self._completions(model, generator)
            contrast = torch.cat((contrast, self._contrast(given, examples, drawn)))
        return contrast.mean() + self.anchor * pull

    def _contrast(self, given: Tensor, examples: _Examples, drawn: Tensor) -> Tensor:
        """Returns the contrastive loss of normalized predictions :math:`(n, d)`, with shape :math:`(n)`."""
        right = torch.einsum("nd,nmd->nm", given, examples.answers).masked_fill(~examples.accepted, -torch.inf)
        wrong = (
            (given * examples.questions).sum(-1).t(),
            (given @ self.word_units.t()).masked_fill(examples.allowed, -1.0),
            given @ drawn.t(),
        )
        log_weights = (torch.logsumexp(cosines / self.temperature, 1) for cosines in (torch.cat(wrong, 1), right))
        return F.softplus(torch.sub(*log_weights))

    def _examples(self, numbers: Tensor, generator: torch.Generator) -> _Examples:
        """Returns questions by index, some of them mixed, some reversed."""
        count = len(numbers)
        backwards = torch.rand(count, generator=generator) < self.backwards
        section = self.questions.section[numbers]
        size = self.counts[section]
        places = (torch.rand(count, generator=generator) * size).long().minimum(size - 1)  # the product may round up
        others = self.order[(self.counts.cumsum(0) - self.counts)[section] + places]
        share = 1 - torch.rand(count, generator=generator) / 2
        share[torch.rand(count, generator=generator) >= self.mixed] = 1.0
        own, other = (self.vectors.units(self.rows[backwards.long(), rows]) for rows in (numbers, others))
        mixed = F.normalize(torch.lerp(other, own, share[:, None, None]), dim=-1)
        lists = self.questions.answer[numbers]
        answers = self.questions.answers[lists]
        accepted = (answers >= 0) & ~backwards[:, None]
        accepted[:, 0] = True
        vectors = self.vectors.units(answers.clamp(min=0))
        vectors[:, 0] = mixed[:, 3]
        allowed = torch.where(backwards[:, None], self.sources[self.targets[numbers]], self.accepted[lists])
        return _Examples(mixed[:, :3].transpose(0, 1), vectors, accepted, allowed)

    def _completions(self, model: AnalogyModel, generator: torch.Generator) -> tuple[Tensor, _Examples]:
        """Draws questions with several example pairs, and answers them."""
        chosen, weights = self._several(generator)
        queries, own = self.pairs.words[chosen], self.pairs.rows
        used = weights.any(0)
        distinct, index = torch.unique(torch.cat((own[used].flatten(), queries)), return_inverse=True)
        pairs, asked = index[: -len(queries)].reshape(-1, 2), index[-len(queries) :]
        given = model.completions(self.vectors.units(distinct), pairs, asked, weights[:, used])
        lists = self.pairs.answer[chosen]
        answers = self.pairs.answers[lists]
        vectors = self.vectors.units(answers.clamp(min=0))
        examples = _Examples(self.vectors.units(queries)[None], vectors, answers >= 0, self.accepted[lists])
        return F.normalize(given, dim=-1), examples

    def _several(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        r"""Draws pairs to ask for, :math:`(n)`, and the weight of each pair as an example, :math:`(n, p)`."""
        sections = torch.unique(self.pairs.section)
        some = sections[torch.randperm(len(sections), generator=generator)[:_RELATIONS]]
        among = torch.isin(self.pairs.section, some).nonzero()[:, 0]
        chosen = among[torch.randint(len(among), (self.several,), generator=generator)]
        words = self.pairs.words
        usable = self.pairs.section == self.pairs.section[chosen, None]
        usable &= words != words[chosen, None]  # a pair of the same word would give the answer away
        # Uniform in the logarithm: few pairs are as important as many.
        shots = (self.shots + 1) ** torch.rand(self.several, generator=generator) // 1
        order = torch.rand(usable.shape, generator=generator).masked_fill(~usable, torch.inf)
        used = usable & (order.argsort(1).argsort(1) < shots[:, None])
        return chosen, used / used.sum(1, keepdim=True).clamp(min=1)

    def _triples(self, generator: torch.Generator) -> Tensor:
        """Draws rows of a, b and c, with shape :math:`(3, n)`."""
        words = min(_ANCHORED, self.frequent)
        groups = -(-words // _SEARCHED)
        first = int(torch.randint(groups, (), generator=generator))
        near = self._near(first, groups, words)
        place = torch.randint(len(near), (self.triples,), generator=generator)
        b_near, c_near = near[place, torch.randint(near.shape[1], (2, self.triples), generator=generator)]
        c = torch.randint(words, (self.triples,), generator=generator)
        half = self.triples // 2
        return torch.stack((first + groups * place, b_near, torch.cat((c_near[:half], c[half:]))))

    def _near(self, first: int, step: int, words: int) -> Tensor:
        """Returns neighbors of every ``step``-th word, which are searched once, when they are drawn.

        The words of a search are always the same, so that its rounding is, and an interrupted run resumes bit for bit.
        """
        if first not in self.near:
            units, norms = self.vectors.vectors[:words], self.vectors.norms[:words]
            queries = self.vectors.units(torch.arange(first, words, step))
            found = nearest(units, queries, min(self.neighbours + 1, words), norms=norms)
            self.near[first] = found.indices[:, 1:]
        return self.near[first]


def _fingerprint(numbers: Tensor) -> int:
    """Returns a seed that depends on each index of a batch and its position."""
    places = torch.arange(1, len(numbers) + 1)
    return int((numbers * places * 0x9E3779B1).sum().item()) % 2**63
