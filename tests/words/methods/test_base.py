"""All methods: one interface, the same answers as a loop over words, and what they have in common."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from abelnet import AbelnetError
from abelnet.words import GroupAnalogy, WordVectors
from abelnet.words.methods import METHODS, Joined, Method, Task, ThreeCosAdd, named_method


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    table = torch.randn(300, 8, generator=torch.Generator().manual_seed(0))
    return WordVectors([f"word{i}" for i in range(300)], table)


def build(name: str) -> Method:
    return named_method(name, GroupAnalogy(8, 2, 8, seed=0).eval())


@pytest.mark.parametrize("name", sorted(METHODS))
def test_answers_are_the_best_of_all_scores(name: str, vectors: WordVectors) -> None:
    used = torch.tensor([[True] * 5, [True, False, True, False, False]])
    task = Task.of(torch.arange(10).reshape(5, 2), torch.tensor([20, 21]), used)
    method = build(name)
    with torch.no_grad():
        directions, combine, prior, bonus = method.scores(vectors, task)
        if combine is None:
            scores = F.normalize(directions, dim=-1) @ vectors.units(torch.arange(300)).t()
        else:
            scores = combine(vectors.units(torch.arange(300)) @ directions.t()).t()
            scores = scores if prior is None else scores + prior
            scores = scores if bonus is None else scores + bonus.to_dense()
    found = method.answers(vectors, task, 4)
    torch.testing.assert_close(found.scores, scores.topk(4, 1).values, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(scores.gather(1, found.indices), found.scores, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_queries_do_not_depend_on_each_other(name: str, vectors: WordVectors) -> None:
    """Nor on pairs that they do not use, for methods without random words."""
    pairs, queries = torch.arange(10).reshape(5, 2), torch.tensor([20, 21, 22])
    method = build(name)
    together = method.answers(vectors, Task.of(pairs, queries), 3)
    for i in range(3):
        alone = method.answers(vectors, Task.of(pairs, queries[i : i + 1]), 3)
        assert torch.equal(alone.indices[0], together.indices[i])
    if name == "lrcos":
        return
    used = torch.tensor([[True, True, True, False, False]])
    fewer = method.answers(vectors, Task.of(pairs, queries[:1], used), 3)
    alone = method.answers(vectors, Task.of(pairs[:3], queries[:1]), 3)
    assert torch.equal(fewer.indices, alone.indices)
    torch.testing.assert_close(fewer.scores, alone.scores, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["3cosavg", "ridge", "weighted"])
def test_one_pair_is_an_analogy(name: str, vectors: WordVectors) -> None:
    task = Task.of(torch.tensor([[0, 1]]), torch.tensor([2]))
    model = GroupAnalogy(8, 2, 8, seed=0).eval()
    found, expected = (method.answers(vectors, task, 5) for method in (named_method(name, model), ThreeCosAdd(model)))
    assert torch.equal(found.indices, expected.indices)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_many_pairs(name: str, vectors: WordVectors) -> None:
    rows = torch.randint(300, (2000, 2), generator=torch.Generator().manual_seed(0))
    found = build(name).answers(vectors, Task.of(rows, torch.tensor([5])), 2)
    assert bool(found.scores.isfinite().all())


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match="pairs: expected at least one example pair for each query, got none"):
        Task.of(torch.empty(0, 2, dtype=torch.long), torch.tensor([1]))
    with pytest.raises(AbelnetError, match="pairs: expected at least one example pair for each query, got none"):
        Task.of(torch.tensor([[0, 1]]), torch.tensor([1]), torch.tensor([[False]]))
    with pytest.raises(AbelnetError, match=r"expected shapes \(p, 2\) and \(n\), got \(2,\) and \(1,\)"):
        Task.of(torch.tensor([0, 1]), torch.tensor([1]))
    with pytest.raises(AbelnetError, match=r"method: expected one of similarity, .* got 'magic'"):
        named_method("magic")
    with pytest.raises(AbelnetError, match="share: expected a number at least 0, got -1"):
        Joined(share=-1.0)
