"""3CosMul beside gensim's."""

from __future__ import annotations

import pytest
import torch
from gensim.models import KeyedVectors

from abelnet.words import WordVectors
from abelnet.words.methods import Task, ThreeCosMul


@pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")
def test_gensim_gives_the_same_answers() -> None:
    vectors = WordVectors.default(4000)
    theirs = KeyedVectors(vectors.dim)
    theirs.add_vectors(vectors.index_to_key, vectors.vectors.numpy())
    a, b, c = (vectors.index(word) for word in ("man", "king", "woman"))
    found = ThreeCosMul().answers(vectors, Task.of(torch.tensor([[a, b]]), torch.tensor([c])), 8)
    ours = [
        (vectors.index_to_key[row], score)
        for row, score in zip(found.indices[0].tolist(), found.scores[0].tolist(), strict=True)
        if row not in (a, b, c)
    ]
    expected = theirs.most_similar_cosmul(positive=["king", "woman"], negative=["man"], topn=len(ours))
    assert [word for word, _ in ours] == [word for word, _ in expected]
    # gensim's epsilon is 1e-6 of the sum, ours 0.001 of the mean, as in the paper.
    assert [score for _, score in ours] == pytest.approx([score for _, score in expected], rel=5e-3)


def test_opposite_words_have_a_score() -> None:
    vectors = WordVectors(["a", "b", "c"], torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]))
    found = ThreeCosMul().answers(vectors, Task.of(torch.tensor([[0, 1]]), torch.tensor([2])), 3)
    assert bool(found.scores.isfinite().all())
    assert found.indices[0, 0] == 1
