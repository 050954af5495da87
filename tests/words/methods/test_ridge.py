"""Ridge regression of offsets beside scikit-learn's, and its limits."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import Ridge as Rival

from abelnet.words import GroupAnalogy, WordVectors
from abelnet.words.methods import Ridge, Task


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    table = torch.randn(300, 8, generator=torch.Generator().manual_seed(0))
    return WordVectors([f"word{i}" for i in range(300)], table)


@pytest.mark.parametrize("count", [2, 5, 60])  # less and more than there are dimensions
def test_scikit_learn_finds_the_same(count: int, vectors: WordVectors) -> None:
    pairs, queries = torch.arange(2 * count).reshape(count, 2), torch.arange(200, 204)
    a, b = vectors.units(pairs).unbind(1)
    c = vectors.units(queries)
    theirs = Rival(alpha=0.3).fit(a.numpy(), (b - a).numpy())
    expected = c + torch.from_numpy(theirs.predict(c.numpy()))
    torch.testing.assert_close(
        Ridge().predict(vectors, Task.of(pairs, queries)), expected.float(), atol=1e-4, rtol=1e-4
    )


def test_in_the_coordinates_of_a_group(vectors: WordVectors) -> None:
    group = GroupAnalogy(8, 2, 8, seed=0).eval()
    pairs, queries = torch.arange(20).reshape(10, 2), torch.arange(200, 204)
    a, b = vectors.units(pairs).unbind(1)
    c = vectors.units(queries)
    with torch.no_grad():
        theirs = Rival(alpha=0.3).fit(a.numpy(), (group.encode(b) - group.encode(a)).numpy())
        expected = group.decode(group.encode(c) + torch.from_numpy(theirs.predict(c.numpy())).float())
        found = Ridge(group).predict(vectors, Task.of(pairs, queries))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_weights(vectors: WordVectors) -> None:
    pairs = torch.arange(20).reshape(10, 2)
    used = torch.rand(4, 10, generator=torch.Generator().manual_seed(0)) < 0.6
    task = Task.of(pairs, torch.arange(200, 204), used)
    weights = Ridge.regressed(vectors, task, 0.3).weights
    assert torch.allclose(weights.sum(1), torch.ones(4), atol=1e-5)
    assert not bool(weights[~used].any())
    assert torch.allclose(Ridge.regressed(vectors, task, 1e9).weights, task.weights, atol=1e-6)
