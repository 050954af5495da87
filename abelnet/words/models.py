r"""What answers :math:`a : b = c : ?`: networks over :func:`~abelnet.words.evaluation.offset`, and what trains them."""

from __future__ import annotations

__all__ = [
    "AnchoredLoss",
    "CosineLoss",
    "GroupAnalogy",
    "OffsetMLP",
    "default_model",
    "named_model",
]

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


class OffsetMLP(Configurable, nn.Module):
    r"""The model WV+MLP: :math:`\operatorname{MLP}(b - a + c)`.

    Arguments:
        dim: Number of dimensions :math:`d`.
        layers: Number of linear layers.
        hidden: Width of the hidden ones.
        seed: Fixes the start; otherwise torch's own random state does.

    Example:
        >>> OffsetMLP(100, seed=0)(*torch.randn(3, 7, 100)).shape
        torch.Size([7, 100])
    """

    def __init__(self, dim: int, layers: int = 4, hidden: int = 223, *, seed: int | None = None) -> None:
        super().__init__()
        layers, hidden = check_count("layers", layers), check_count("hidden", hidden)
        self.dim, self.layers, self.hidden = dim, layers, hidden
        self.mlp = MLP([dim, *[hidden] * (layers - 1), dim], seed=seed)

    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """Maps three times :math:`(*, d)` to :math:`(*, d)`."""
        return self.mlp(offset(a, b, c))  # type: ignore[no-any-return]

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim, "layers": self.layers, "hidden": self.hidden}


class GroupAnalogy(Configurable, nn.Module):
    r"""The model WV+AGN: :math:`b \circ a^{-1} \circ c = \varphi^{-1}(\varphi(b) - \varphi(a) + \varphi(c))`.

    With a gain of 0, :math:`\varphi` starts as a permutation and the model as :math:`b - a + c`, exactly.

    Arguments:
        dim: Number of dimensions :math:`d`, at least 2.
        layers: Number of couplings of :func:`~abelnet.bijections.glow`.
        hidden: Width of their networks.
        gain: Scale of their last layers at the start; 1 is that of the paper.
        seed: Fixes permutations and start; otherwise torch's own random state does.

    Example:
        >>> a, b, c = torch.randn(3, 7, 100)
        >>> torch.allclose(GroupAnalogy(100, gain=0)(a, b, c), b - a + c, atol=1e-5)
        True
    """

    def __init__(
        self, dim: int, layers: int = 5, hidden: int = 151, *, gain: float = 1.0, seed: int | None = None
    ) -> None:
        super().__init__()
        self.dim, self.layers, self.hidden = dim, layers, hidden
        self.group = AbelianGroup(glow(dim, layers, hidden, gain=gain, seed=seed))

    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """Maps three times :math:`(*, d)` to :math:`(*, d)`."""
        return self.group.analogy(a, b, c)

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim, "layers": self.layers, "hidden": self.hidden}


def default_model() -> GroupAnalogy:
    """The model WV+AGN that comes with the package, for 100-d GloVe vectors such as the embedded ones.

    Example:
        >>> default_model().dim
        100
    """
    with resources.as_file(resources.files("abelnet.words") / "data" / EMBEDDED) as path:
        model: GroupAnalogy = load(path)
    return model.eval()


def named_model(name: str, dim: int) -> Model:
    """The model that a command names.

    Arguments:
        name: ``"wv"`` for :math:`b - a + c`, ``"agn"`` for the embedded model, or a folder that :func:`abelnet.save`
            has written a model to.
        dim: Number of dimensions of the vectors that it must be for.
    """
    if name == "wv":
        return offset
    model = default_model() if name == "agn" else load(name)
    if not isinstance(model, OffsetMLP | GroupAnalogy):
        raise AbelnetError(f"model: expected a model of analogies, got {type(model).__name__}: {name}")
    if model.dim != dim:
        raise AbelnetError(f"model: expected one for vectors of {dim} dimensions, got {model.dim}: {name}")
    return model.eval()


@dataclass(frozen=True)
class CosineLoss:
    r"""The loss of the paper: :math:`-\cos(f(a, b, c), d)`, the mean over a batch.

    Attributes:
        vectors: The vocabulary, of which batches hold rows: those of :math:`a, b, c`, with shape :math:`(n, 3)`, and
            those of :math:`d`, with shape :math:`(n)`.

    Example:
        >>> vectors = WordVectors(["man", "king", "woman", "queen"], torch.randn(4, 6))
        >>> loss = CosineLoss(vectors)(GroupAnalogy(6), (torch.tensor([[0, 1, 2]]), torch.tensor([3])))
        >>> loss.shape
        torch.Size([])
    """

    vectors: WordVectors

    def __call__(self, model: nn.Module, batch: Data) -> Tensor:
        words, answers = batch
        distinct, index = torch.unique(words, return_inverse=True)
        units = self.vectors.units(distinct)
        if isinstance(model, GroupAnalogy):  # words come again in a batch, and a group encodes each of them once
            given = model.group.analogies(units, index)
        else:
            given = model(*units[index].unbind(1))
        return -F.cosine_similarity(given, self.vectors.units(answers)).mean()


class _Examples(NamedTuple):
    """What a batch of an :class:`AnchoredLoss` is trained on."""

    questions: Tensor  # the vectors of a, b and c, (3, n, d)
    answers: Tensor  # lists of answers, (n, m, d)
    accepted: Tensor  # which of these there are, (n, m)
    allowed: Tensor  # which words of the training questions are answers too, and no candidates


class AnchoredLoss:
    r"""A loss for a model that stays at :math:`b - a + c` wherever the examples do not say otherwise.

    .. math::
        -\log \frac{\sum_{w \in D} e^{\cos(f(a, b, c), w) / \tau}}{\sum_{w \in C \cup D} e^{\cos(f(a, b, c), w) / \tau}}
        + \lambda \, (1 - \cos(f(a', b', c'), b' - a' + c'))

    The first part is contrastive: some word of :math:`D`, the accepted answers, is to be nearer than the candidates
    :math:`C`. These are :math:`a, b, c`, which plain cosines would often prefer; all words of the training questions
    but accepted answers; and frequent words drawn at random. There are few examples, so some are made of others: two
    questions of a relation are mixed, :math:`a` with :math:`a`, the answer with the answer; and some are asked
    backwards, :math:`b : a = d : c`, as in a group they may be.

    The second part is an anchor: on triples that look like questions the model is pulled to WV, lest it bend the space
    where no example lives. In these :math:`b'` is a neighbour of :math:`a'`, and :math:`c'` is one too, or any word.
    What is drawn depends on the batch alone, so that a training that is taken up again comes to the same numbers.

    Arguments:
        vectors: The vocabulary.
        questions: The training questions. Batches hold their numbers, with shape :math:`(n)`.
        temperature: The temperature :math:`\tau`.
        candidates: Number of words drawn for each batch.
        anchor: Weight :math:`\lambda`.
        triples: Number of triples drawn for each batch.
        mixed: Share of the questions that are mixed with another.
        backwards: Share of the questions that are asked backwards.
        frequent: Draw candidates among the first so many words; triples are of the first 30,000.
        neighbours: How many neighbours of a word there are to choose from.

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
        # Each question and its answer, with shape (2, questions, 4): forwards, then backwards.
        a, b, c, d = *questions.words.unbind(1), questions.targets
        self.rows = torch.stack((torch.stack((a, b, c, d), 1), torch.stack((b, a, d, c), 1)))
        self.words: Tensor
        self.words, places = torch.unique(self.rows, return_inverse=True)
        self.word_units = vectors.units(self.words)
        # What is accepted is no candidate: forwards by the list of the question, backwards whatever has its d.
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
        """Questions by their numbers, some of them mixed, some backwards."""
        count = len(numbers)
        backwards = torch.rand(count, generator=generator) < self.backwards
        section = self.questions.section[numbers]
        size = self.counts[section]
        places = (torch.rand(count, generator=generator) * size).long().minimum(size - 1)  # a product may be rounded up
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
        """Rows of a, b and c, with shape :math:`(3, n)`."""
        a, c = torch.randint(len(self.near), (2, self.triples), generator=generator)
        b_near, c_near = self.near[a, torch.randint(self.near.shape[1], (2, self.triples), generator=generator)]
        half = self.triples // 2
        return torch.stack((a, b_near, torch.cat((c_near[:half], c[half:]))))


def _fingerprint(numbers: Tensor) -> int:
    """A seed that depends on each number of a batch and its place."""
    places = torch.arange(1, len(numbers) + 1)
    return int((numbers * places * 0x9E3779B1).sum().item()) % 2**63
