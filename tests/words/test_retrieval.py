"""Retrieval: exact beside brute force, whatever the sizes, and in bounded memory."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from abelnet import AbelnetError
from abelnet.words import Nearest, nearest, retrieval
from abelnet.words.retrieval import best


def brute_force(vectors: Tensor, queries: Tensor) -> Tensor:
    """Cosines in float64, 0 for zero vectors."""
    rows, others = vectors.double(), queries.double()
    rows = rows / rows.norm(dim=1, keepdim=True).where(rows.norm(dim=1, keepdim=True) != 0, torch.ones(()).double())
    norms = others.norm(dim=-1, keepdim=True)
    return others / norms.where(norms != 0, torch.ones(()).double()) @ rows.t()


def check(vectors: Tensor, queries: Tensor, k: int) -> None:
    found = nearest(vectors, queries, k)
    cosines = brute_force(vectors, queries)
    expected = cosines.topk(k, -1).values
    torch.testing.assert_close(found.scores.double(), expected, atol=2e-6, rtol=0)
    torch.testing.assert_close(cosines.gather(-1, found.indices), expected, atol=2e-6, rtol=0)
    assert (found.scores.diff(dim=-1) <= 0).all()
    assert (found.indices.sort(-1).values.diff(dim=-1) > 0).all()


@given(
    rows=st.integers(1, 300),
    queries=st.integers(0, 7),
    dim=st.integers(1, 9),
    k=st.integers(1, 50),
    seed=st.integers(0, 1000),
    ties=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_exact(rows: int, queries: int, dim: int, k: int, seed: int, ties: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    vectors, asked = (torch.randn(n, dim, generator=generator) for n in (rows, queries))
    if ties:
        vectors, asked = vectors.round(), asked.round()
    check(vectors, asked, min(k, rows))


@pytest.mark.parametrize("rows", [1023, 1024, 1025, 65536 + 7, 3 * 65536])
def test_exact_across_chunks_and_spans(rows: int) -> None:
    check(torch.randn(rows, 4), torch.randn(5, 4), 9)


def test_exact_across_tiles_of_queries_and_parts_of_rescoring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "_QUERIES", 7)
    monkeypatch.setattr(retrieval, "_RESCORED", 500)
    monkeypatch.setattr(retrieval, "_SPAN", 2048)
    parts: list[float] = []
    vectors, queries = torch.randn(5000, 6), torch.randn(2, 15, 6)
    found = nearest(vectors, queries, 3, on_progress=parts.append)
    assert torch.equal(found.indices, brute_force(vectors, queries).topk(3, -1).indices)
    assert parts == sorted(parts)
    assert parts[-1] == 1


def test_known_norms_and_several_models_change_nothing() -> None:
    vectors, queries = torch.randn(2000, 8), torch.randn(3, 10, 8)
    together = nearest(vectors, queries, 4)
    for model in range(3):
        alone = nearest(vectors, queries[model], 4, norms=retrieval.row_norms(vectors))
        assert torch.equal(together.indices[model], alone.indices)


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1.0, 1e15, 1e30])
def test_extreme_norms(scale: float) -> None:
    check(torch.randn(500, 8) * scale, torch.randn(20, 8) / scale, 5)


def test_norms_of_all_sizes_side_by_side() -> None:
    check(torch.randn(500, 8) * torch.logspace(-30, 30, 500)[:, None], torch.randn(20, 8), 5)


def test_float64() -> None:
    vectors, queries = torch.randn(500, 8, dtype=torch.float64), torch.randn(20, 8)
    found = nearest(vectors, queries, 5)
    assert found.scores.dtype == torch.float64
    torch.testing.assert_close(found.scores, brute_force(vectors, queries).topk(5).values)


@given(st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_excluding(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    vectors, queries = torch.randn(60, 3, generator=generator), torch.randn(8, 3, generator=generator)
    excluded = torch.randint(60, (8, 3), generator=generator)
    found = nearest(vectors, queries, 5).excluding(excluded, 2)
    cosines = brute_force(vectors, queries).scatter(1, excluded, -2.0)
    assert torch.equal(found.indices, cosines.topk(2).indices)


def test_excluding_all_there_is() -> None:
    found = Nearest(torch.tensor([[0.5, 0.1]]), torch.tensor([[0, 1]])).excluding(torch.tensor([[1, 0]]))
    assert found.indices.tolist() == [[-1]]
    assert found.scores.tolist() == [[-torch.inf]]


def test_bad_input() -> None:
    vectors = torch.randn(4, 3)
    for call, message in [
        (lambda: nearest(vectors[0], vectors), r"vectors: expected shape \(V, d\)"),
        (lambda: nearest(vectors[:0], vectors), "at least one row"),
        (lambda: nearest(vectors, vectors[:, :2]), r"queries: expected shape \(\*, 3\)"),
        (lambda: nearest(vectors.long(), vectors), "expected a floating-point tensor"),
        (lambda: nearest(vectors, vectors, 5), "k: expected at most 4"),
        (lambda: nearest(vectors, vectors, 0), "k: expected at least 1"),
        (lambda: nearest(vectors, vectors, norms=torch.ones(3)), r"norms: expected shape \(4,\)"),
        (lambda: nearest(vectors / 0, vectors), "expected finite values"),
        (lambda: nearest(vectors, vectors * torch.nan), "expected finite values"),
    ]:
        with pytest.raises(AbelnetError, match=message):
            call()


def test_no_queries() -> None:
    found = nearest(torch.randn(4, 3), torch.empty(2, 0, 3), 2)
    assert found.indices.shape == found.scores.shape == (2, 0, 2)


@pytest.mark.parametrize("step", [7, 64, 1 << 20])
def test_any_score_is_exact(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "_SCORED", step)
    vectors, directions = torch.randn(90, 5), torch.randn(3, 5)
    score = lambda products: torch.stack((products.prod(1), products.exp().sum(1)), 1)
    expected = score(F.normalize(vectors, dim=1) @ directions.t()).t().topk(6, 1)
    found = best(vectors, directions, score, 6)
    torch.testing.assert_close(found.scores, expected.values)
    assert torch.equal(found.indices, expected.indices)
    prior = torch.randn(90)
    expected = (score(F.normalize(vectors, dim=1) @ directions.t()).t() + prior).topk(6, 1)
    found = best(vectors, directions, score, 6, prior=prior)
    torch.testing.assert_close(found.scores, expected.values)
    assert torch.equal(found.indices, expected.indices)
    entries = torch.tensor([[0, 0, 1, 0, 0], [89, 3, 3, 50, 3]])  # one of them twice: they add up
    bonus = torch.sparse_coo_tensor(entries, torch.tensor([9.0, -2.0, 5.0, 7.0, 4.0]), (2, 90), check_invariants=True)
    expected = (score(F.normalize(vectors, dim=1) @ directions.t()).t() + prior + bonus.to_dense()).topk(6, 1)
    found = best(vectors, directions, score, 6, prior=prior, bonus=bonus)
    torch.testing.assert_close(found.scores, expected.values)
    assert torch.equal(found.indices, expected.indices)


def test_bad_scores() -> None:
    with pytest.raises(AbelnetError, match="k: expected at most 3, the number of rows, got 4"):
        best(torch.eye(3), torch.eye(3), lambda products: products, 4)
    with pytest.raises(AbelnetError, match="expected finite values, got NaN"):
        best(torch.eye(3), torch.eye(3), lambda products: products.log() - products.log(), 1)
