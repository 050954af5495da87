"""Training of networks on graphs."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from abelnet.experiments.graphs.data import Graphs, make_batches
from abelnet.experiments.graphs.fitting import GATE_RATE, fit, relative_error

BATCHES = make_batches("parallel", 3, 4, seed=0)


class Constant(nn.Module):
    """A constant, and a gate that the loss pulls on as well."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(1))
        self.logits = nn.Parameter(torch.zeros(1))
        self.scale = scale
        self.seen: list[float] = []

    def forward(self, graphs: Graphs) -> Tensor:
        return (self.value + self.logits).expand(len(graphs), 1) * self.scale

    def anneal(self, progress: float, loss: float | None) -> None:
        self.seen.append(progress)


def test_a_constant_becomes_the_mean_and_gates_have_their_own_rate() -> None:
    model = Constant()
    steps: list[int] = []
    assert fit(model, BATCHES, steps=400, lr=0.01, robust=False, anneal=model.anneal, tell=steps.append) == 0
    mean = torch.cat([graphs.results for graphs in BATCHES]).mean().item()
    assert (model.value + model.logits).item() == pytest.approx(mean, abs=0.05)
    assert model.logits.item() / model.value.item() == pytest.approx(GATE_RATE / 0.01, rel=0.05)
    assert model.seen[0] == 0
    assert model.seen[200] == 0.5
    assert model.seen[-1] == 1
    assert sum(steps) == 300


def test_a_robust_loss_is_robust_in_the_first_half_alone() -> None:
    ends = []
    for robust in (False, True):
        torch.manual_seed(0)
        model = Constant()
        fit(model, BATCHES, steps=10, lr=0.01, robust=robust)
        ends.append(model.value.item())
    assert ends[0] != ends[1]


def test_steps_without_finite_gradients_are_skipped() -> None:
    model = Constant(math.nan)
    assert fit(model, BATCHES, steps=5, lr=0.01, robust=False) == 5
    assert model.value.item() == 0
    assert relative_error(model, BATCHES[0], 1.0) is None


def test_models_without_parameters_need_no_training() -> None:
    class Given(nn.Module):
        def forward(self, graphs: Graphs) -> Tensor:
            return graphs.results + 0.5

    assert fit(Given(), BATCHES, steps=5, lr=0.01, robust=False) == 0
    assert relative_error(Given(), BATCHES[0], 2.0) == pytest.approx(0.25)
