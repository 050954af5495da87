"""Generators: round trips and slopes where they are defined, and what lies beyond."""

from __future__ import annotations

import math

import pytest
import torch
from cases import FAMILY_CASES

from abelnet import AbelnetError, Generator


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("kind", "parameters", "low", "high"), FAMILY_CASES.values(), ids=FAMILY_CASES)
def test_round_trip_and_slope(kind: str, parameters: list[float], low: float, high: float, dtype: torch.dtype) -> None:
    bijection = Generator(2, kind, parameters, dtype=dtype)
    x = torch.linspace(low, high, 402, dtype=torch.float64).reshape(-1, 2).to(dtype)
    error = ((bijection.inverse(bijection(x)) - x).abs() / x.abs().clamp(min=1)).max().item()
    assert error < (1e-8 if dtype == torch.float64 else 1e-2)
    if dtype == torch.float64:
        x = x[(x.abs() > 1e-6).all(1)].requires_grad_()
        (slope,) = torch.autograd.grad(bijection(x).sum(), x)
        torch.testing.assert_close(bijection.log_slope(x), slope.abs().log(), rtol=1e-6, atol=1e-6)
        assert bijection.log_abs_det(x).shape == (len(x),)


def test_beyond_where_it_is_defined() -> None:
    with pytest.raises(AbelnetError, match=r"x: expected 0 < x < 1, where log\(x / \(1 - x\)\)"):
        Generator(1, "logit")(torch.tensor([[1.5]]))
    with pytest.raises(AbelnetError, match="x: expected x > 0"):
        Generator(1, "power", [-1.0])(torch.tensor([[-1.0]]))
    assert math.isnan(Generator(1, "exponential", [1.0]).inverse(torch.tensor([-1.0])).item())
    with pytest.raises(AbelnetError, match="kind: expected one of affine, power"):
        Generator(1, "cosine")
    with pytest.raises(AbelnetError, match=r"parameters: expected 1 for power \(p\), got 0"):
        Generator(1, "power")
    with pytest.raises(AbelnetError, match="p: expected a finite number other than 0"):
        Generator(1, "power", [0.0])
    for kind in ("arcsinh", "arctanh"):
        for c in (0.0, -1.0, math.inf):
            with pytest.raises(AbelnetError, match="c: expected a finite number above 0"):
                Generator(1, kind, [c])
    assert math.isnan(Generator(1, "power", [-1.0]).inverse(torch.tensor([-2.0])).item())
    assert "kind=power, p=[3.0]" in repr(Generator(1, "power", [3.0]))
