"""Certified slopes: what is sampled lies within, for every bijection."""

from __future__ import annotations

import pytest
import torch
from cases import BIJECTIONS


@pytest.mark.parametrize("name", BIJECTIONS)
def test_slope_bounds_enclose_what_is_sampled(name: str) -> None:
    bijection = BIJECTIONS[name](torch.float64).double().snapshot()
    corners = torch.full((3,), -2.0, dtype=torch.float64), torch.full((3,), 3.0, dtype=torch.float64)
    x = corners[0] + 5 * torch.rand(200, 3, dtype=torch.float64)
    forward = bijection.slope_bounds(corners)
    y = bijection(x)
    assert bool(((y >= forward.low - 1e-9) & (y <= forward.high + 1e-9)).all())
    jacobians = torch.stack([torch.autograd.functional.jacobian(bijection, row) for row in x])
    assert torch.linalg.svdvals(jacobians).max() <= forward.norm * (1 + 1e-9)
    inverse = bijection.inverse_slope_bounds((forward.low, forward.high))
    assert 1 / torch.linalg.svdvals(jacobians).min() <= inverse.norm * (1 + 1e-9)
    assert bool(((x >= inverse.low - 1e-9) & (x <= inverse.high + 1e-9)).all())
