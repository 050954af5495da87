"""What is exported in place of functions that ONNX lacks is equal to them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from abelnet.portable import (
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    exact,
    expm1,
    hypot,
    log1p,
    logaddexp,
    next_above,
    sinh,
)


class Functions(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return hypot(a, b), next_above(a), (a.double().abs() < exact(1e-150, a.double())).to(a)


def test_exported_as_evaluated() -> None:
    a = torch.tensor([3e30, 0.0, -3.0, 1e-30, 0.0, -math.inf])
    b = torch.tensor([4e30, 0.0, 4.0, 1e-30, -7.0, 2.0])
    expected = Functions()(a, b)
    got = torch.export.export(Functions(), (a, b)).module()(a, b)
    for k in (0, 2):
        torch.testing.assert_close(got[k], expected[k], rtol=1e-6, atol=0)
    torch.testing.assert_close(got[1][:-1], expected[1][:-1], rtol=1e-15, atol=1e-300)
    assert (got[1][:-1] > a[:-1].double()).all()


class Composed(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        part = x.tanh()
        return arcsin(part), arcsinh(x), arctan(x), arctan2(y, x), arctanh(part), sinh(part)


def test_functions_of_float64_are_composed_of_those_that_onnx_runtime_has() -> None:
    x = torch.tensor([0.0, 1e-9, 0.3, -0.7, 2.0, -5.0, 1e5, -1.0, 0.0, -2.0], dtype=torch.float64)
    y = torch.tensor([0.0, 1.0, -1.0, 1.0, 1e-3, -1.0, 1.0, 0.0, -3.0, 1e-12], dtype=torch.float64)
    program = torch.export.export(Composed(), (x, y))
    assert not {"asin", "asinh", "atan2", "atanh", "sinh"} & {
        str(node.target).split(".")[-2:][0] for node in program.graph.nodes
    }
    for got, expected in zip(program.module()(x, y), Composed()(x, y), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-15)


class Added(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return logaddexp(a, b)


def test_sums_of_exponentials_that_underflow() -> None:
    a = torch.tensor([-1e5, 1e5, 0.0, -math.inf, -math.inf, math.inf, 3.0])
    b = torch.tensor([-1e5, 2.0, 0.5, -math.inf, 1.0, 1.0, -90.0])
    torch.testing.assert_close(torch.export.export(Added(), (a, b)).module()(a, b), torch.logaddexp(a, b))


class Near(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return expm1(x), log1p(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_digits_are_lost_near_0(dtype: torch.dtype) -> None:
    x = torch.cat((torch.logspace(-30, 2, 400, dtype=dtype), torch.tensor([0.0, math.inf], dtype=dtype)))
    x = torch.cat((x, -x[x < 1], torch.tensor([-1.0, -2.0, -math.inf, math.nan], dtype=dtype)))
    program = torch.export.export(Near(), (x,))
    assert not {"expm1", "log1p"} & {str(node.target).split(".")[-2:][0] for node in program.graph.nodes}
    rounding = 8 * torch.finfo(dtype).eps
    for got, expected in zip(program.module()(x), (torch.expm1(x), torch.log1p(x)), strict=True):
        torch.testing.assert_close(got, expected, rtol=rounding, atol=0, equal_nan=True)
