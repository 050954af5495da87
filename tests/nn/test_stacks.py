"""DeepSets side by side: gradients and input checks; training them is tested with the loop."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelnetError
from abelnet.nn.baselines import DeepSets
from abelnet.nn.stacks import DeepSetsStack


@pytest.mark.parametrize("depths", [(3, 3), (5, 3, 3, 2), (2, 2)])
def test_gradients_of_a_stack_are_those_of_autograd(depths: tuple[int, ...]) -> None:
    stack = DeepSetsStack([DeepSets(1, depth, 4, 5, seed=depth, dtype=torch.float64) for depth in depths])
    x = torch.randn(len(depths), 6, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(len(depths), 6, 3) > 0.3
    assert torch.autograd.gradcheck(lambda x, *_: stack(x, mask), (x, *stack.parameters()))


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match=r"models: expected the deeper ones first, .* got depths \[2, 3\]"):
        DeepSetsStack([DeepSets(1, 2), DeepSets(1, 3)])
    with pytest.raises(AbelnetError, match=r"models: expected models on single numbers, got dimensions \[2\]"):
        DeepSetsStack([DeepSets(2, 2)])
