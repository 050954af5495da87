"""Logistic regression beside scikit-learn's."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from abelnet.words.methods.logistic import fit_logistic


@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
def test_scikit_learn_finds_the_same(strength: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 6, generator=generator)
    labels = torch.arange(40) < 12
    weights = torch.rand(3, 40, generator=generator)
    weights[1] = weights[0]
    weights[2, 20:] = 0  # these vectors do not matter
    found = fit_logistic(x.double(), labels, weights, strength)
    for i in range(3):
        theirs = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000)
        theirs.fit(x.double().numpy(), labels.numpy(), weights[i].double().numpy())
        torch.testing.assert_close(found.weight[i], torch.from_numpy(theirs.coef_[0]), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(found.bias[i].item(), theirs.intercept_[0], atol=1e-4, rtol=1e-4)


def test_separable_classes_of_any_strength() -> None:
    x = torch.tensor([[-1.0], [1.0]])
    weight, bias = fit_logistic(x, x[:, 0] > 0, torch.ones(1, 2), 1e8)
    assert 10 < weight.item() < 30
    assert abs(bias.item()) < 1e-3
