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


# Sets of more values than a block has, and of few; the first is empty. Values in many bins, in few, and beyond all.
@pytest.mark.parametrize(("sets", "size"), [(6, 3.0), (900, 3.0), (900, 0.1), (6, 0.1), (900, 1e4)])
def test_sums_over_sets_need_no_values(sets: int, size: float) -> None:
    spline, x = spline_and_values(size)
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


@pytest.mark.parametrize("size", [3.0, 0.1, 1e4])
def test_inverses_of_chains_need_one_pass(size: float) -> None:
    spline, y = spline_and_values(size)
    chain = Chain(Affine(DIM, shift=0.5), spline)
    with torch.no_grad():
        chain.bijections[0].log_scale += 0.3  # type: ignore[operator]

    def inverse(chain: Chain, y: Tensor, enabled: bool) -> list[Tensor]:
        u = y.detach().clone().requires_grad_()
        chain.zero_grad()
        with set_kernels_enabled(enabled):
            x = chain.inverse(u)
            (first,) = torch.autograd.grad(x.sin().sum(), u, create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), u, retain_graph=True)
            x.sin().sum().backward()
        gradients = [p.grad for p in chain.parameters() if p.grad is not None]
        return [x.detach(), second, *gradients, u.grad] if u.grad is not None else []

    found, plain = (inverse(chain, y, enabled) for enabled in (True, False))
    exact = inverse(copy.deepcopy(chain).double(), y.double(), False)
    assert len(found) == len(exact) == 8
    for one, other, right in zip(found, plain, exact, strict=True):
        error = float((other - right).norm())
        assert float((one - right).norm()) <= 1e-6 * float(right.norm()) + 4 * error


def test_steep_bins_are_as_precise_as_others() -> None:
    generator = torch.Generator().manual_seed(4)
    spline = RationalQuadraticSpline(DIM, bins=16)
    with torch.no_grad():
        for parameter in spline.parameters():
            parameter += 30 * torch.randn(parameter.shape, generator=generator)
    x = 3 * torch.randn(4000, DIM, generator=generator)
    precise = copy.deepcopy(spline).double()
    with torch.no_grad():
        exact = precise(x.double())
        assert float((spline(x) - exact).norm()) < 1e-6 * float(exact.norm())
    # Just beyond the last bin, where rounding of its own curve would be seen in the slope.
    x = 5 + torch.rand(4000, DIM, generator=generator)
    found, right = run(spline, "forward", x, True)[1], run(precise, "forward", x.double(), False)[1]
    assert float((found - right).norm()) < 1e-6 * float(right.norm())


def test_nan_stays() -> None:
    spline, x = spline_and_values(3.0)
    x[3, 5] = float("nan")
    with torch.no_grad():
        for y in (spline(x), spline.inverse(x)):
            assert y.isnan().nonzero().tolist() == [[3, 5]]


def test_results_do_not_depend_on_the_rest_of_a_batch() -> None:
    spline, x = spline_and_values(0.3)
    index, others = torch.arange(400).repeat_interleave(10), x.clone()
    others[::40] *= 100  # an element of every fourth set is in another bin, or beyond all
    alone = (torch.arange(400) % 4 != 0).repeat_interleave(10)

    def results(x: Tensor) -> list[Tensor]:
        u = x.clone().requires_grad_()
        sums = spline.summed(u, Multisets(u, DIM, index=index, dim_size=400))
        sums.square().sum().backward()
        assert u.grad is not None
        return [u.grad, sums.detach().repeat_interleave(10, 0), *run(spline, "forward", x, True)[:2]]

    for one, other in zip(results(x), results(others), strict=True):
        assert torch.equal(one[alone], other[alone])
        assert not torch.equal(one, other)
