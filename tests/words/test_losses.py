"""Losses of analogy models."""

from __future__ import annotations

import time

import pytest
import torch
import torch.nn.functional as F

from abelnet import AbelnetError
from abelnet.words import AnchoredLoss, CosineLoss, GroupAnalogy, OffsetMLP, WordVectors, google_pairs, offset
from abelnet.words.models import AnalogyModel
from abelnet.words.questions import Questions, Section


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    table = torch.randn(60, 12, generator=torch.Generator().manual_seed(0))
    return WordVectors([f"word{i}" for i in range(60)], table)


def batch(count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.randint(60, (count, 4), generator=torch.Generator().manual_seed(seed))
    return rows[:, :3], rows[:, 3]


@pytest.mark.parametrize("model", [OffsetMLP(12, layers=2, hidden=5, seed=0), GroupAnalogy(12, 2, 8, seed=0)])
@pytest.mark.parametrize("count", [1, 7, 90])  # 270 words of 60
def test_cosine_loss_is_that_of_the_paper(vectors: WordVectors, model: AnalogyModel, count: int) -> None:
    words, answers = batch(count)
    a, b, c = vectors.units(words).unbind(1)
    expected = [
        -torch.dot(x, y) / (x.norm() * y.norm()) for x, y in zip(model(a, b, c), vectors.units(answers), strict=True)
    ]
    assert torch.allclose(CosineLoss(vectors)(model, (words, answers)), torch.stack(expected).mean())


def asked(count: int, seed: int = 0) -> Questions:
    """Questions of two relations with two accepted answers each, the words of all of them different."""
    rows = torch.randperm(60, generator=torch.Generator().manual_seed(seed))[: 5 * count].reshape(count, 5)
    sections = (Section("one", "all", count, count, count), Section("two", "all", count, count, count))
    section = torch.arange(count) % 2
    return Questions("some", sections, section, rows[:, :3], rows[:, 3:], torch.arange(count))


def test_anchored_loss(vectors: WordVectors) -> None:
    questions = asked(6)
    model = GroupAnalogy(12, 2, 8, gain=0.0, seed=0)
    whole, free = (
        AnchoredLoss(vectors, questions, candidates=16, triples=8, neighbours=5, anchor=weight)
        for weight in (20.0, 0.0)
    )
    batch, part = (torch.arange(6),), (torch.arange(3),)
    assert torch.equal(whole(model, batch), whole(model, batch))
    assert not torch.equal(whole(model, batch), whole(model, part))
    assert torch.allclose(whole(model, batch), free(model, batch), atol=1e-4)  # at the start the anchor is still
    other = GroupAnalogy(12, 2, 8, seed=0)
    assert whole(other, batch) > free(other, batch) + 1e-3
    whole(model, batch).backward()  # type: ignore[no-untyped-call]
    last = [p.grad for name, p in model.named_parameters() if name.endswith("weight3")]
    assert all(gradient is not None and bool(gradient.isfinite().all() & gradient.any()) for gradient in last)


@pytest.mark.parametrize("backwards", [0.0, 1.0])
def test_candidates_of_the_anchored_loss(vectors: WordVectors, backwards: float) -> None:
    questions = asked(6)
    options = {"temperature": 0.5, "mixed": 0.0, "backwards": backwards, "anchor": 0.0}
    loss = AnchoredLoss(vectors, questions, candidates=0, triples=8, neighbours=5, **options)
    taught = torch.unique(torch.cat((questions.words.flatten(), questions.targets))).tolist()
    expected = []
    for (a, b, c), answers in zip(questions.words.tolist(), questions.answers.tolist(), strict=True):
        given, accepted = ((a, b, c), answers) if backwards == 0 else ((b, a, answers[0]), [c])
        query = F.normalize(offset(*vectors.units(torch.tensor(given))), dim=-1)
        weights = torch.exp(vectors.units(torch.arange(60)) @ query / 0.5)
        right = weights[accepted].sum()
        weights[accepted] = torch.exp(torch.tensor(-1 / 0.5))  # left out by a cosine of -1
        wrong = weights[list(given)].sum() + weights[taught].sum()
        expected.append(-torch.log(right / (right + wrong)))
    found = loss(GroupAnalogy(12, 1, 8, gain=0.0, seed=0), (torch.arange(6),))
    assert torch.allclose(found, torch.stack(expected).mean(), atol=1e-5)


def test_anchored_loss_says_what_it_expects(vectors: WordVectors) -> None:
    for option, value, limits in (
        ("temperature", 0.0, "above 0"),
        ("anchor", -1.0, "at least 0"),
        ("mixed", 1.5, "at least 0 and at most 1"),
        ("backwards", float("nan"), "at least 0 and at most 1"),
    ):
        with pytest.raises(AbelnetError, match=f"^{option}: expected a number {limits}, got {value}$"):
            AnchoredLoss(vectors, asked(6), neighbours=5, **{option: value})  # type: ignore[arg-type]


def test_mixed_questions_stay_in_their_relation(vectors: WordVectors) -> None:
    questions = asked(12)
    loss = AnchoredLoss(vectors, questions, triples=8, neighbours=5, mixed=1.0, backwards=0.5)
    numbers = torch.arange(12)
    examples = loss._examples(numbers, torch.Generator().manual_seed(0))
    found = torch.cat((examples.questions.transpose(0, 1), examples.answers[:, :1]), 1)
    whole = torch.cat((questions.words, questions.targets[:, None]), 1)
    orders = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    seen = set()
    for i, section in enumerate(questions.section.tolist()):
        # Each mixture lies between its question and one more of the relation: least squares leave nothing.
        misses = {}
        for way, order in enumerate(orders):
            for j in (questions.section == section).nonzero()[:, 0].tolist():
                own, other = (vectors.units(whole[row][order]) for row in (i, j))
                pairs = torch.stack((own, other), -1)
                fit = torch.linalg.lstsq(pairs, found[i, :, :, None], driver="gelsd").solution
                misses[way, j] = (pairs @ fit - found[i, :, :, None]).norm().item()
        (way, j), miss = min(misses.items(), key=lambda item: item[1])
        assert miss < 1e-4
        seen.add((way, i == j))
        assert bool(examples.accepted[i, 1]) == (way == 0)
    assert {way for way, _ in seen} == {0, 1}
    assert (0, False) in seen


def test_triples_look_like_questions(vectors: WordVectors) -> None:
    loss = AnchoredLoss(vectors, asked(6), triples=40, neighbours=5)
    a, b, c = loss._triples(torch.Generator().manual_seed(0))
    (near_words,) = loss.near.values()  # one search: of all 60 words
    near = lambda x, y: (near_words[x] == y[:, None]).any(1)
    assert bool(near(a, b).all())
    assert bool(near(a, c)[:20].all())
    assert not bool(near(a, c)[20:].all())


def test_neighbors_are_searched_when_they_are_drawn() -> None:
    vectors = WordVectors.default()
    questions = google_pairs(vectors).train
    start = time.process_time()
    loss = AnchoredLoss(vectors, questions)
    assert time.process_time() - start < 2
    assert not loss.near
    a, b, _ = loss._triples(torch.Generator().manual_seed(0))
    (near,) = loss.near.values()
    assert len(near) <= 512
    cosines = (vectors.units(a) * vectors.units(b)).sum(-1)
    others = vectors.units(a) @ vectors.units(torch.arange(30_000)).t()
    assert bool(((others > cosines[:, None] + 1e-5).sum(1) <= 20).all())  # b is among the 20 nearest, a itself apart
    again = AnchoredLoss(vectors, questions)
    assert torch.equal(again._triples(torch.Generator().manual_seed(0))[1], b)


def pairs_asked() -> Questions:
    """All questions between the pairs of two relations of 5 pairs, the words of all of them different."""
    rows = torch.randperm(60, generator=torch.Generator().manual_seed(0))[:20].reshape(10, 2)
    numbers = [(i, j) for i in range(10) for j in range(10) if i // 5 == j // 5 and i != j]
    first, second = torch.tensor(numbers).t()
    sections = (Section("one", "all", 5, 5, 20), Section("two", "all", 5, 5, 20))
    words = torch.cat((rows[first], rows[second, :1]), 1)
    return Questions("some", sections, second // 5, words, rows[:, 1:], second)


def test_several_pairs_of_a_relation(vectors: WordVectors) -> None:
    questions = pairs_asked()
    loss = AnchoredLoss(vectors, questions, candidates=0, triples=8, neighbours=5, several=64, shots=3)
    assert len(loss.pairs) == 10
    chosen, weights = loss._several(torch.Generator().manual_seed(0))
    used = weights > 0
    assert {int(count) for count in used.sum(1)} == {1, 2, 3}
    assert torch.allclose(weights.sum(1), torch.ones(64))
    assert not bool(used[torch.arange(64), chosen].any())  # never the pair that is asked for
    assert bool((loss.pairs.section[None] == loss.pairs.section[chosen, None])[used].all())
    given, examples = loss._completions(GroupAnalogy(12, 1, 8, gain=0.0, seed=0), torch.Generator().manual_seed(0))
    a, b = vectors.units(loss.pairs.rows).unbind(1)
    expected = vectors.units(loss.pairs.words[chosen]) + weights @ (b - a)
    torch.testing.assert_close(given, F.normalize(expected, dim=-1), atol=1e-5, rtol=0)
    assert torch.equal(examples.answers[:, 0], vectors.units(loss.pairs.targets[chosen]))


def test_training_for_several_pairs_bends_the_space(vectors: WordVectors) -> None:
    model = GroupAnalogy(12, 2, 16, gain=0.0, seed=0)
    loss = AnchoredLoss(vectors, pairs_asked(), candidates=8, triples=8, neighbours=5, several=32, anchor=0.0)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    values = []
    for _ in range(30):
        value = loss(model, (torch.arange(20),))
        optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        values.append(value.item())
    assert values[-1] < 0.8 * values[0]
