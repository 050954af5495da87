"""Splines by compiled kernels: the same values, inverses and gradients as torch, to rounding."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from abelnet import Affine, RationalQuadraticSpline
from abelnet.bijections import Chain
from abelnet.multisets import Multisets
from abelnet.segments import has_kernels, set_kernels_enabled

pytest.importorskip("numba")

DIM = 20


def spline_and_values(size: float) -> tuple[RationalQuadraticSpline, Tensor]:
    generator = torch.Generator().manual_seed(0)
    spline = RationalQuadraticSpline(DIM, bins=6)
    with torch.no_grad():
        for parameter in spline.parameters():
            parameter += torch.randn(parameter.shape, generator=generator)
    x = size * torch.randn(4000, DIM, generator=generator)
    x[0], x[1] = 5, -5  # the outermost knots
    return spline, x


def run(spline: RationalQuadraticSpline, name: str, x: Tensor, enabled: bool) -> list[Tensor]:
    """Returns results and all gradients."""
    x = x.detach().clone().requires_grad_()
    spline.zero_grad()
    with set_kernels_enabled(enabled):
        y = getattr(spline, name)(x)
        y.backward(torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).to(x.dtype))
    return [one for one in (y.detach(), x.grad, *(p.grad for p in spline.parameters())) if one is not None]


@pytest.mark.parametrize("name", ["forward", "inverse"])
@pytest.mark.parametrize("size", [3.0, 1e-3, 1e30])
def test_splines_are_those_of_torch(name: str, size: float) -> None:
    spline, x = spline_and_values(size)
    assert has_kernels(x, spline.raw_slopes)
    found, plain = (run(spline, name, x, enabled) for enabled in (True, False))
    exact = run(copy.deepcopy(spline).double(), name, x.double(), False)
    assert len(found) == len(exact) == 5
    for one, other, right in zip(found, plain, exact, strict=True):
        assert bool(one.isfinite().all())
        error = float((other - right).norm())
        # Gradients by knots are differences of sums over all values, of size 1 each.
        assert float((one - right).norm()) <= 1e-6 * float(right.norm()) + 2 * error + 1e-4


@pytest.mark.parametrize("name", ["forward", "inverse"])
def test_gradients_of_higher_order(name: str) -> None:
    spline, x = spline_and_values(3.0)

    def curvature(enabled: bool) -> Tensor:
        u = x.detach().clone().requires_grad_()
        with set_kernels_enabled(enabled):
            (first,) = torch.autograd.grad(getattr(spline, name)(u).sin().sum(), u, create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), u)
        return second

    found, expected = curvature(True), curvature(False)
    assert float((found - expected).norm()) < 1e-3 * float(expected.norm())


def test_other_layouts() -> None:
    spline, x = spline_and_values(3.0)
    with torch.no_grad():
        assert torch.equal(spline(x.reshape(40, 100, DIM)), spline(x).reshape(40, 100, DIM))
        wide = torch.cat((x, x), -1)[:, :DIM]  # not contiguous
        assert torch.equal(spline(wide), spline(x))


@pytest.mark.parametrize("sets", [6, 900])  # of more values than a block has, and of few; the first is empty
def test_sums_over_sets_need_no_values(sets: int) -> None:
    spline, x = spline_and_values(3.0)
    chain = Chain(Affine(DIM, shift=0.5), spline)
    with torch.no_grad():
        chain.bijections[0].log_scale += 0.3  # type: ignore[operator]
    index = torch.randint(1, sets, (len(x),), generator=torch.Generator().manual_seed(2))
    line = torch.full((DIM,), 0.5), torch.full((DIM,), 0.1)

    def summed(chain: Chain, x: Tensor, enabled: bool) -> list[Tensor]:
        u = x.detach().clone().requires_grad_()
        chain.zero_grad()
        with set_kernels_enabled(enabled):
            y = chain.summed(u, Multisets(u, DIM, index=index, dim_size=sets), tuple(one.to(u.dtype) for one in line))
            (first,) = torch.autograd.grad(y.square().sum(), u, create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), u, retain_graph=True)
            y.square().sum().backward()
        gradients = [p.grad for p in chain.parameters() if p.grad is not None]
        return [y.detach(), u.grad, second, *gradients] if u.grad is not None else []

    found, plain = (summed(chain, x, enabled) for enabled in (True, False))
    exact = summed(copy.deepcopy(chain).double(), x.double(), False)
    assert len(found) == len(exact) == 8
    for one, other, right in zip(found, plain, exact, strict=True):
        error = float((other - right).norm())
        assert float((one - right).norm()) <= 1e-6 * float(right.norm()) + 4 * error
