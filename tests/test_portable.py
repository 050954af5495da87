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
    searchsorted,
    sigmoid,
    sinh,
    solve,
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
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return expm1(x), log1p(x), sigmoid(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_digits_are_lost_near_0(dtype: torch.dtype) -> None:
    x = torch.cat((torch.logspace(-30, 2, 400, dtype=dtype), torch.tensor([0.0, math.inf], dtype=dtype)))
    x = torch.cat((x, -x[x < 1], torch.tensor([-1.0, -2.0, -math.inf, math.nan], dtype=dtype)))
    program = torch.export.export(Near(), (x,))
    assert not {"expm1", "log1p", "sigmoid"} & {str(node.target).split(".")[-2:][0] for node in program.graph.nodes}
    rounding = 8 * torch.finfo(dtype).eps
    for got, expected in zip(program.module()(x), (torch.expm1(x), torch.log1p(x), torch.sigmoid(x)), strict=True):
        torch.testing.assert_close(got, expected, rtol=rounding, atol=0, equal_nan=True)


class Solved(nn.Module):
    def forward(self, matrices: Tensor, values: Tensor) -> Tensor:
        return solve(matrices, values)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_linear_systems(dim: int) -> None:
    generator = torch.Generator().manual_seed(dim)
    matrices = torch.randn(50, dim, dim, generator=generator, dtype=torch.float64)
    matrices[0] = torch.eye(dim).flip(0)  # no pivot in its place
    matrices[1] *= 1e-200
    matrices[2, 0] = 0
    values = torch.randn(50, dim, generator=generator, dtype=torch.float64)
    got = torch.export.export(Solved(), (matrices, values)).module()(matrices, values)
    assert not got[2].isfinite().all()
    assert not solve(matrices, values)[2].isfinite().all()
    regular = [k for k in range(50) if k != 2]
    residual = (matrices @ got[..., None])[..., 0] - values
    size = matrices.abs().amax((-2, -1)) * got.abs().amax(-1)
    assert (residual.abs().amax(-1) / size)[regular].max() <= 1e-14
    torch.testing.assert_close(got[regular], solve(matrices, values)[regular], rtol=1e-9, atol=0)


class Counted(nn.Module):
    def forward(self, edges: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return searchsorted(edges, x), searchsorted(edges, x, right=True)


def test_edges_below_numbers() -> None:
    edges = torch.tensor([-1.0, 0.0, 0.0, 2.5])
    x = torch.tensor([[-math.inf, -1.0], [-0.5, 0.0], [2.5, math.inf]])
    got = torch.export.export(Counted(), (edges, x)).module()(edges, x)
    for one, is_right in zip(got, (False, True), strict=True):
        assert torch.equal(one, torch.searchsorted(edges, x, right=is_right))
        assert torch.equal(one, searchsorted(edges, x, right=is_right))
