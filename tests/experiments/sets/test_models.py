"""Models of the set experiment: equal sizes, invariance."""

from __future__ import annotations

import pytest
import torch

from abelnet.experiments.sets.data import TASKS
from abelnet.experiments.sets.models import AGGREGATIONS, check_installed, count_parameters, make_model

pytest.importorskip("torch_geometric")
pytest.importorskip("genagg")

SIZES = torch.bincount(torch.tensor([5, 5, 6]))


@pytest.mark.parametrize("task", ["digits", "musk1"])
def test_all_models_have_the_same_number_of_parameters(task: str) -> None:
    inputs = 3 if task == "digits" else 166
    counts = [count_parameters(make_model(name, TASKS[task], inputs, SIZES)) for name in AGGREGATIONS]
    assert all(abs(count / TASKS[task].parameters - 1) < 0.02 for count in counts)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_each_model_is_invariant_and_trains(name: str) -> None:
    torch.manual_seed(0)
    model = make_model(name, TASKS["digits"], 3, SIZES).eval()
    x = torch.randn(4, 6, 3)
    mask = torch.arange(6) < torch.tensor([[6], [5], [6], [1]])
    result = model(x, mask=mask)
    assert result.shape == (4, 10)
    alone = model(x[1:2, :5])
    torch.testing.assert_close(alone, result[1:2], atol=1e-4, rtol=1e-4)
    if name != "lcm":  # a tree of gated units depends on the order
        torch.testing.assert_close(
            model(x[:, torch.arange(5, -1, -1)], mask=mask.flip(1)), result, atol=1e-4, rtol=1e-4
        )
    result.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.encoder.parameters())


def test_packages() -> None:
    check_installed(list(AGGREGATIONS))
