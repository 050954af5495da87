"""Models of analogies: their laws, their losses, and their files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import abelnet
from abelnet import AbelnetError
from abelnet.words import (
    AnchoredLoss,
    CosineLoss,
    GroupAnalogy,
    OffsetMLP,
    WordVectors,
    offset,
)
from abelnet.words.models import default_model, named_model
from abelnet.words.questions import Questions, Section


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    table = torch.randn(60, 12, generator=torch.Generator().manual_seed(0))
    return WordVectors([f"word{i}" for i in range(60)], table)


def batch(count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.randint(60, (count, 4), generator=torch.Generator().manual_seed(seed))
    return rows[:, :3], rows[:, 3]


@given(seed=st.integers(0, 2**40), layers=st.integers(1, 4), gain=st.sampled_from([0.0, 0.1, 1.0]))
@settings(max_examples=25, deadline=None)
def test_laws_of_an_analogy(seed: int, layers: int, gain: float) -> None:
    model = GroupAnalogy(6, layers, 8, gain=gain, seed=seed).double()
    a, b, c, e = F.normalize(torch.randn(4, 5, 6, dtype=torch.float64), dim=-1)
    d = model(a, b, c)
    assert torch.allclose(model(a, c, b), d, rtol=1e-9, atol=1e-9)
    assert torch.allclose(model(a, a, c), c, rtol=1e-9, atol=1e-9)
    assert torch.allclose(model(b, a, d), c, rtol=1e-7, atol=1e-7)  # the way back
    assert torch.allclose(model(c, d, e), model(a, b, e), rtol=1e-7, atol=1e-7)  # b is to a what d is to c
    if gain == 0:
        assert torch.allclose(d, offset(a, b, c), rtol=1e-12, atol=1e-12)


def test_mlp_is_one_of_the_offset() -> None:
    model = OffsetMLP(5, layers=3, hidden=7, seed=0)
    a, b, c = torch.randn(3, 4, 5)
    assert model.mlp.widths == [5, 7, 7, 5]
    assert torch.equal(model(a, b, c), model(torch.zeros_like(a), b - a + c, torch.zeros_like(a)))


@pytest.mark.parametrize("model", [OffsetMLP(12, layers=2, hidden=5, seed=0), GroupAnalogy(12, 2, 8, seed=0)])
@pytest.mark.parametrize("count", [1, 7, 90])  # 270 words of 60
def test_cosine_loss_is_that_of_the_paper(vectors: WordVectors, model: nn.Module, count: int) -> None:
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
    near = lambda x, y: (loss.near[x] == y[:, None]).any(1)
    assert bool(near(a, b).all())
    assert bool(near(a, c)[:20].all())
    assert not bool(near(a, c)[20:].all())


@pytest.mark.parametrize("model", [GroupAnalogy(12, 2, 9, seed=0), OffsetMLP(12, 3, 50, seed=0)], ids=["agn", "mlp"])
def test_files(model: GroupAnalogy | OffsetMLP, tmp_path: Path) -> None:
    a, b, c = F.normalize(torch.randn(3, 4, 12), dim=-1)
    saved = abelnet.save(model, tmp_path / "whole"), abelnet.save(model, tmp_path / "half", half=True)
    whole, half = (abelnet.load(path) for path in saved)
    assert torch.equal(whole(a, b, c), model(a, b, c))
    assert torch.allclose(half(a, b, c), model(a, b, c), atol=1e-2)
    assert saved[1].stat().st_size < 0.8 * saved[0].stat().st_size
    assert not named_model(str(tmp_path / "whole"), 12).training
    with pytest.raises(AbelnetError, match="model: expected a model for 100-d vectors, got 12-d"):
        named_model(str(tmp_path / "whole"), 100)
    with pytest.raises(AbelnetError, match="no such file"):
        named_model(str(tmp_path / "none"), 100)
    abelnet.save(abelnet.Sum(), tmp_path / "law")
    with pytest.raises(AbelnetError, match="model: expected an analogy model, got Sum"):
        named_model(str(tmp_path / "law"), 100)


def test_embedded_model() -> None:
    assert isinstance(default_model(), nn.Module)
