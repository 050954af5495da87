"""Spelling on top of the joined method: what it adds, to which words, and that other relations are left alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from abelnet import AbelnetError
from abelnet.words import WordVectors, evaluate_methods, named_pairs
from abelnet.words.methods import Joined, Spelled, Task

WORDS = ["walk", "walked", "jump", "jumped", "hope", "hoped", "paris", "france", "rome", "italy", "sheep", "café"]


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    return WordVectors(WORDS, torch.randn(len(WORDS), 6, generator=torch.Generator().manual_seed(0)))


def task(vectors: WordVectors, pairs: list[tuple[str, str]], *queries: str, used: Tensor | None = None) -> Task:
    rows = torch.tensor([[vectors.index(word) for word in pair] for pair in pairs])
    return Task.of(rows, torch.tensor([vectors.index(word) for word in queries]), used)


def test_formula(vectors: WordVectors) -> None:
    method = Spelled(spelling=0.5, floor=0.1, trust=0.4, distinct=2.0)
    pairs = [("walk", "walked"), ("jump", "jumped"), ("france", "paris")]
    used = torch.tensor([[True, True, True], [True, False, False]])
    expected = 0.5 * math.log1p((0.4 + 2) / (1 + 3) * (2 / 3) / 0.1)
    added = method.bonus(vectors, task(vectors, pairs, "hope", "hope", used=used)).to_dense()
    assert added[0, vectors.index("hoped")].item() == pytest.approx(expected)
    assert added[1, vectors.index("hoped")].item() == pytest.approx(0.5 * math.log1p(0.4 / 0.1))
    assert added[:, vectors.index("hope")].tolist() == [-2.0, -2.0]
    assert int((added != 0).sum()) == 4


def test_pairs_of_a_word_with_itself(vectors: WordVectors) -> None:
    """They say that the query may be the answer."""
    different = task(vectors, [("walk", "walked"), ("jump", "jumped")], "sheep")
    same = task(vectors, [("walk", "walk"), ("jump", "jump")], "sheep")
    sheep = vectors.index("sheep")
    assert Spelled().bonus(vectors, different).to_dense()[0, sheep] == -1
    assert Spelled().bonus(vectors, same).to_dense()[0, sheep] > 0.5


def test_without_spelling_it_is_joined(vectors: WordVectors) -> None:
    asked = task(vectors, [("walk", "walked"), ("jump", "jumped")], "hope", "café")
    plain, found = (method.answers(vectors, asked, 12) for method in (Joined(), Spelled(spelling=0, distinct=0)))
    assert torch.equal(plain.indices, found.indices)
    torch.testing.assert_close(plain.scores, found.scores)


def test_relations_that_are_not_spelled_are_left_alone() -> None:
    """Each test word of the semantic relations that Joined completes without the query, it completes with it.

    Google's syntactic relations gain.
    """
    vectors = WordVectors.default()
    queries, examples = named_pairs(vectors, "google")
    methods = {"joined": Joined(), "spelled": Spelled()}
    for shots in (1, 5, None):
        result = evaluate_methods(vectors, queries, examples, methods, shots=shots)
        semantic, syntactic = (
            torch.tensor([section.category == category for section in queries.sections])[queries.section]
            for category in ("Semantic", "Syntactic")
        )
        (_, all_spelled), (joined, spelled) = result.correct
        assert bool((spelled >= joined)[semantic].all())
        assert torch.equal(all_spelled[semantic], spelled[semantic])
        assert int(spelled[syntactic].sum()) > int(joined[syntactic].sum())


def test_capitals_get_nothing_but_the_query() -> None:
    vectors = WordVectors.default()
    words = ["france", "paris", "italy", "rome", "japan", "tokyo", "spain", "madrid", "greece", "athens"]
    asked = task(vectors, list(zip(words[::2], words[1::2], strict=True)), "germany", "poland", "egypt")
    added = Spelled().bonus(vectors, asked).to_dense()
    assert torch.equal(added.nonzero()[:, 1], asked.queries)


def test_bad_settings() -> None:
    for name in ("spelling", "trust", "distinct"):
        with pytest.raises(AbelnetError, match=f"{name}: expected a number .*, got -1"):
            Spelled(**{name: -1.0})
    with pytest.raises(AbelnetError, match="floor: expected a number above 0, got 0"):
        Spelled(floor=0.0)
    with pytest.raises(AbelnetError, match="share: expected a number at least 0, got -1"):
        Spelled(share=-1.0)
