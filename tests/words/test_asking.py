"""One analogy, or the neighbors of one word."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelnetError
from abelnet.words.asking import ask
from abelnet.words.vectors import UnknownWordError, WordVectors


def test_an_analogy_is_that_of_most_similar() -> None:
    vectors = WordVectors.default()
    found = ask(vectors, ["King", "man", "woman"], topn=5)
    expected = vectors.most_similar(["king", "woman"], ["man"], topn=5)
    assert [word for word, _ in found] == [word for word, _ in expected]
    assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected], abs=1e-5)


def test_neighbors_of_a_word() -> None:
    vectors = WordVectors.default()
    assert ask(vectors, ["frog"], topn=3) == vectors.most_similar(["frog"], topn=3)


def test_embedded_model_answers() -> None:
    found = [word for word, _ in ask(WordVectors.default(), ["king", "man", "woman"], "agn", topn=3)]
    assert "queen" in found
    assert not {"king", "man", "woman"} & set(found)


def test_case_is_kept_where_the_vocabulary_has_it() -> None:
    vectors = WordVectors(["Paris", "paris", "Rome"], torch.eye(3))
    assert {word for word, _ in ask(vectors, ["Paris"])} == {"paris", "Rome"}


def test_bad_input() -> None:
    vectors = WordVectors(["up", "down", "left"], torch.eye(3))
    with pytest.raises(AbelnetError, match="words: expected one word or three, got 2"):
        ask(vectors, ["up", "down"])
    with pytest.raises(AbelnetError, match="model: expected wv for the neighbors of one word, got 'agn'"):
        ask(vectors, ["up"], "agn")
    with pytest.raises(UnknownWordError, match="expected a vocabulary word, got 'xyzzy'"):
        ask(vectors, ["up", "xyzzy", "down"])
