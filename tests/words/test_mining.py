"""Parallelograms: found where they are, alike as asked for, and the same for the same seed."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from abelnet import AbelnetError
from abelnet.words import WordVectors
from abelnet.words.mining import parallelograms


def lattice() -> WordVectors:
    """Pairs of words, each a little apart by the same step, among noise."""
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(40, 30, generator=generator)
    step = 2 * torch.randn(30, generator=generator)
    names = [f"{kind}{i}" for kind in ("one", "many") for i in range(40)]
    return WordVectors(names, F.normalize(torch.cat((first, first + step)), dim=-1))


def test_finds_the_pairs_of_a_lattice() -> None:
    vectors = lattice()
    found = parallelograms(vectors, 20_000, likeness=0.8, neighbours=40)
    words = vectors.index_to_key
    # One side of each parallelogram goes from one to many, or the words of one side are of one kind.
    right = [
        words[a].removeprefix("one") == words[b].removeprefix("many")
        or words[a].removeprefix("one") == words[c].removeprefix("many")
        or words[b].removeprefix("one") == words[a].removeprefix("many")
        or words[c].removeprefix("one") == words[a].removeprefix("many")
        for a, b, c, _ in found.tolist()
    ]
    assert len(found) > 50
    assert sum(right) > 0.9 * len(found)


def test_words_are_distinct_sides_alike_and_the_seed_fixes_all() -> None:
    vectors = WordVectors.default(3000)
    found = parallelograms(vectors, 5000, likeness=0.5, seed=1)
    assert len(found) > 100
    assert all(len(set(row)) == 4 for row in found.tolist())
    a, b, c, d = vectors.units(found).unbind(1)
    assert bool((F.cosine_similarity(b - a, d - c) > 0.499).all())
    assert len(found) == len(found.unique(dim=0))
    assert torch.equal(found, parallelograms(vectors, 5000, likeness=0.5, seed=1))
    assert not torch.equal(found, parallelograms(vectors, 5000, likeness=0.5, seed=2))


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match="vectors: expected more than 23 words to draw from, got 3"):
        parallelograms(WordVectors(["a", "b", "c"], torch.eye(3)))
    with pytest.raises(AbelnetError, match="draws: expected"):
        parallelograms(lattice(), 0)
