"""PairDirection beside its definition."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from abelnet.words import WordVectors
from abelnet.words.methods import PairDirection, Task


def test_it_is_the_cosine_of_offsets() -> None:
    vectors = WordVectors.default(2000)
    pairs, queries = torch.tensor([[10, 20], [30, 45]]), torch.tensor([100, 101])
    units = vectors.units(torch.arange(2000)).double()
    mean = (units[pairs[:, 1]] - units[pairs[:, 0]]).mean(0)
    found = PairDirection().answers(vectors, Task.of(pairs, queries), 5)
    for i, query in enumerate(queries):
        scores = F.cosine_similarity(units - units[query], mean[None])
        scores[query] = 0
        expected = scores.topk(5)
        assert torch.equal(found.indices[i], expected.indices)
        torch.testing.assert_close(found.scores[i].double(), expected.values, atol=1e-4, rtol=0)
