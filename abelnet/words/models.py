r"""Analogy models for :math:`a : b = c : ?`, and their training losses."""

from __future__ import annotations

__all__ = [
    "AnalogyModel",
    "AnchoredLoss",
    "CosineLoss",
    "GroupAnalogy",
    "OffsetMLP",
    "default_model",
    "named_model",
]

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from abelnet.bijections import glow
from abelnet.checks import check_count, check_number
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.nn.baselines import MLP
from abelnet.operation import AbelianGroup
from abelnet.saving import load
from abelnet.training.settings import Data
from abelnet.words.evaluation import Model, offset
from abelnet.words.questions import Questions
from abelnet.words.retrieval import nearest
from abelnet.words.vectors import WordVectors

EMBEDDED = "agn.glove.6B.100d.safetensors"


class AnalogyModel(Configurable, nn.Module, ABC):
    r"""A network that answers :math:`a : b = c : ?`.

    Arguments:
        dim: Number of dimensions :math:`d`.
        layers: Number of layers, of whatever kind the network has.
        hidden: Width of the hidden layers.
    """

    def __init__(self, dim: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.dim, self.layers, self.hidden = dim, check_count("layers", layers), check_count("hidden", hidden)

    @abstractmethod
    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """Maps three tensors :math:`(*, d)` to a prediction :math:`(*, d)`."""

    def analogies(self, elements: Tensor, index: Tensor) -> Tensor:
        """Answers many analogies between few elements :math:`(m, d)`: places :math:`(*, 3)` to :math:`(*, d)`."""
        prediction: Tensor = self(*elements[index].unbind(-2))
        return prediction

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim, "layers": self.layers, "hidden": self.hidden}


class OffsetMLP(AnalogyModel):
    r"""Model WV+MLP: :math:`\operatorname{MLP}(b - a + c)`.

    Arguments:
        dim: Number of dimensions :math:`d`.
        layers: Number of linear layers.
        hidden: Width of the hidden layers.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> OffsetMLP(100, seed=0)(*torch.randn(3, 7, 100)).shape
        torch.Size([7, 100])
    """

    def __init__(self, dim: int, layers: int = 4, hidden: int = 223, *, seed: int | None = None) -> None:
        super().__init__(dim, layers, hidden)
        self.mlp = MLP([dim, *[hidden] * (layers - 1), dim], seed=seed)

    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return self.mlp(offset(a, b, c))  # type: ignore[no-any-return]


class GroupAnalogy(AnalogyModel):
    r"""Model WV+AGN: :math:`b \circ a^{-1} \circ c = \varphi^{-1}(\varphi(b) - \varphi(a) + \varphi(c))`.

    With a gain of 0, :math:`\varphi` is initialized to a permutation and the model to exactly :math:`b - a + c`.

    Arguments:
        dim: Number of dimensions :math:`d`, at least 2.
        layers: Number of couplings of :func:`~abelnet.bijections.glow`.
        hidden: Width of the hidden layers of their networks.
        gain: Initial scale of their last layers; 1 in the paper.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> a, b, c = torch.randn(3, 7, 100)
        >>> torch.allclose(GroupAnalogy(100, gain=0)(a, b, c), b - a + c, atol=1e-5)
        True
    """

    def __init__(
        self, dim: int, layers: int = 5, hidden: int = 151, *, gain: float = 1.0, seed: int | None = None
    ) -> None:
        super().__init__(dim, layers, hidden)
        self.group = AbelianGroup(glow(dim, layers, hidden, gain=gain, seed=seed))

    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return self.group.analogy(a, b, c)

    def analogies(self, elements: Tensor, index: Tensor) -> Tensor:
        # Words repeat in a batch, and a group encodes each of them once.
        return self.group.analogies(elements, index)


def default_model() -> GroupAnalogy:
    """Returns the pretrained model WV+AGN that ships with the package, for 100-d GloVe vectors like the bundled ones.

    Example:
        >>> default_model().dim
        100
    """
    with resources.as_file(resources.files("abelnet.words") / "data" / EMBEDDED) as path:
        model: GroupAnalogy = load(path)
    return model.eval()


def named_model(name: str, dim: int) -> Model:
    """Returns a model by name.

    Arguments:
        name: ``"wv"`` for :math:`b - a + c`, ``"agn"`` for the pretrained model, or a folder written by
            :func:`abelnet.save`.
        dim: Number of dimensions of the vectors, which the model must match.
    """
    if name == "wv":
        return offset
    model = default_model() if name == "agn" else load(name)
    if not isinstance(model, AnalogyModel):
        raise AbelnetError(f"model: expected an analogy model, got {type(model).__name__}: {name}")
    if model.dim != dim:
        raise AbelnetError(f"model: expected a model for {dim}-d vectors, got {model.dim}-d: {name}")
    return model.eval()


@dataclass(frozen=True)
class CosineLoss:
    r"""Loss of the paper: :math:`-\cos(f(a, b, c), d)`, averaged over a batch.

    Attributes:
        vectors: The vocabulary. Batches are its rows: those of :math:`a, b, c`, with shape :math:`(n, 3)`, and those of
            :math:`d`, with shape :math:`(n)`.

    Example:
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
    neighbor or any word. Random draws depend on the batch alone, so interrupted training resumes bit for bit.

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

    Example:
        >>> from abelnet.words.questions import google_pairs
        >>> vectors = WordVectors.default()
        >>> loss = AnchoredLoss(vectors, google_pairs(vectors).train, frequent=2000)
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
    ) -> None:
        check_number("temperature", temperature, above=0)
        check_number("anchor", anchor, least=0)
        check_number("mixed", mixed, least=0, most=1)
        check_number("backwards", backwards, least=0, most=1)
        self.vectors, self.questions = vectors, questions
        self.temperature, self.candidates, self.anchor, self.triples = temperature, candidates, anchor, triples
        self.mixed, self.backwards = mixed, backwards
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
        units = vectors.units(torch.arange(min(30_000, self.frequent)))
        self.near = nearest(units, units, min(neighbours + 1, len(units))).indices[:, 1:]

    def __call__(self, model: nn.Module, batch: Data) -> Tensor:
        (numbers,) = batch
        generator = torch.Generator().manual_seed(_fingerprint(numbers))
        examples = self._examples(numbers, generator)
        triples = self.vectors.units(self._triples(generator))
        given = F.normalize(model(*torch.cat((examples.questions, triples), 1)), dim=-1)
        given, anchored = torch.split(given, [len(numbers), self.triples])
        drawn = torch.randint(self.frequent, (self.candidates,), generator=generator)
        right = torch.einsum("nd,nmd->nm", given, examples.answers).masked_fill(~examples.accepted, -torch.inf)
        wrong = (
            (given * examples.questions).sum(-1).t(),
            (given @ self.word_units.t()).masked_fill(examples.allowed, -1.0),
            given @ self.vectors.units(drawn).t(),
        )
        log_weights = (torch.logsumexp(cosines / self.temperature, 1) for cosines in (torch.cat(wrong, 1), right))
        contrast = F.softplus(torch.sub(*log_weights)).mean()
        pull = 1 - F.cosine_similarity(anchored, offset(*triples)).mean()
        return contrast + self.anchor * pull

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

    def _triples(self, generator: torch.Generator) -> Tensor:
        """Draws rows of a, b and c, with shape :math:`(3, n)`."""
        a, c = torch.randint(len(self.near), (2, self.triples), generator=generator)
        b_near, c_near = self.near[a, torch.randint(self.near.shape[1], (2, self.triples), generator=generator)]
        half = self.triples // 2
        return torch.stack((a, b_near, torch.cat((c_near[:half], c[half:]))))


def _fingerprint(numbers: Tensor) -> int:
    """Returns a seed that depends on each index of a batch and its position."""
    places = torch.arange(1, len(numbers) + 1)
    return int((numbers * places * 0x9E3779B1).sum().item()) % 2**63
