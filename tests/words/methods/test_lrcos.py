"""LRCos and 3CosAvg beside the definitions of vecto, written out with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from abelnet import AbelnetError
from abelnet.words import WordVectors
from abelnet.words.methods import LRCos, Task, ThreeCosAvg
from abelnet.words.questions import google_questions


def test_the_recipe_of_vecto() -> None:
    """The noise is all that a recipe leaves open: both use the same words."""
    vectors = WordVectors.default(6000)
    pairs = google_questions(vectors).pairs()
    rows = pairs.rows[pairs.section == 4]  # family
    task = Task.of(rows[:-3], rows[-3:, 0])
    noise = torch.randint(6000, (len(rows) - 3,), generator=torch.Generator().manual_seed(7))
    found = LRCos(seed=7).answers(vectors, task, 5)
    table = vectors.normalised().vectors.double().numpy()
    a, b = rows[:-3].t().tolist()
    x = table[b + 4 * a + noise.tolist()]
    labels = np.arange(len(x)) < len(b)
    model = LogisticRegression(C=1.0, class_weight="balanced", tol=1e-9, max_iter=1000).fit(x, labels)
    mean = table[b].mean(0) - table[a].mean(0)
    averaged = ThreeCosAvg().answers(vectors, task, 5)
    for i, query in enumerate(rows[-3:, 0].tolist()):
        scores = table @ table[query] * model.predict_proba(table)[:, 1]
        assert found.indices[i].tolist() == np.argsort(-scores)[:5].tolist()
        assert found.scores[i].tolist() == pytest.approx(np.sort(scores)[::-1][:5].tolist(), abs=1e-4)
        assert averaged.indices[i].tolist() == np.argsort(-(table @ (table[query] + mean)))[:5].tolist()


def test_leaving_a_pair_out_is_a_fit_without_it() -> None:
    vectors = WordVectors.default(3000)
    pairs = torch.arange(0, 20).reshape(10, 2) + 500
    used = torch.ones(1, 10, dtype=torch.bool)
    used[0, 9] = False
    # The first words of the noise are the same, since they are drawn in order.
    fewer = LRCos().classes(vectors, Task.of(pairs, torch.tensor([7]), used))
    alone = LRCos().classes(vectors, Task.of(pairs[:9], torch.tensor([7])))
    torch.testing.assert_close(fewer.weight, alone.weight, atol=1e-4, rtol=1e-4)


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match="strength: expected a number above 0, got 0"):
        LRCos(strength=0.0)
    with pytest.raises(AbelnetError, match="seed: expected at least 0, got -1"):
        LRCos(seed=-1)
