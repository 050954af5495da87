"""The parts that are joined, and how they grow with the number of examples."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from abelnet import AbelnetError
from abelnet.words.methods import Joined, Ridge, Similarity, Task, ThreeCosAvg
from abelnet.words.models import GroupAnalogy
from abelnet.words.vectors import WordVectors

USED = torch.tensor([[True] * 6, [True] + [False] * 5])
TASK = Task.of(torch.arange(12).reshape(6, 2), torch.tensor([20, 21]), USED)
NOTHING = {"share": 0.0, "regressed": 0.0, "similarity": 0.0, "frequency": 0.0}


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    table = torch.randn(300, 8, generator=torch.Generator().manual_seed(0))
    return WordVectors([f"word{i}" for i in range(300)], table)


def scores(method: Joined, vectors: WordVectors) -> torch.Tensor:
    """Scores of all words for both queries."""
    directions, combine, prior, _ = method.scores(vectors, TASK)
    assert combine is not None
    assert prior is not None
    return combine(vectors.units(torch.arange(300)) @ directions.t()).t() + prior


def cosines(predicted: torch.Tensor, vectors: WordVectors) -> torch.Tensor:
    return F.normalize(predicted, dim=-1) @ vectors.units(torch.arange(300)).t()


def test_parts(vectors: WordVectors) -> None:
    model = GroupAnalogy(8, 2, 8, seed=0).eval()
    with torch.no_grad():
        mean = cosines(ThreeCosAvg(model).predict(vectors, TASK), vectors)
        plain = cosines(Ridge().predict(vectors, TASK), vectors)
        near = cosines(Similarity().predict(vectors, TASK), vectors)
        torch.testing.assert_close(scores(Joined(model, **NOTHING), vectors), mean, atol=1e-5, rtol=1e-5)
        joined = Joined(model, **NOTHING | {"regressed": 0.5, "regressed_shrinkage": 2.0})
        rho = torch.tensor([[0.5 * 6 / 8], [0.5 * 1 / 3]])
        torch.testing.assert_close(scores(joined, vectors), torch.lerp(mean, plain, rho), atol=1e-5, rtol=1e-5)
        joined = Joined(model, **NOTHING | {"similarity": 0.1})
        torch.testing.assert_close(scores(joined, vectors), mean + 0.1 * near, atol=1e-5, rtol=1e-5)
        joined = Joined(model, **NOTHING | {"frequency": 0.1})
        ranks = torch.log(torch.arange(300) + 10.0)
        torch.testing.assert_close(scores(joined, vectors), mean - 0.1 * ranks, atol=1e-5, rtol=1e-5)


def test_the_class_score_knows_the_answers_of_the_examples(vectors: WordVectors) -> None:
    with torch.no_grad():
        base = scores(Joined(**NOTHING), vectors)
        classes = scores(Joined(**NOTHING | {"share": 1.0}), vectors) - base
    a, b = TASK.pairs.unbind(1)
    assert bool((classes <= 0).all())
    assert classes[0, b].mean() > classes[0, a].mean() + 0.5
    # Of one example it counts a third, and says nothing about the others.
    assert classes[1, 1] > classes[1, 0]


def test_bad_settings() -> None:
    for name in ("share", "shrinkage", "regressed", "regressed_shrinkage", "similarity", "frequency"):
        with pytest.raises(AbelnetError, match=f"{name}: expected a number .*, got -1"):
            Joined(**{name: -1.0})
