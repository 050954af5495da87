"""Mixtures of laws by compiled kernels: the same results and gradients as torch, to rounding."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from abelnet.nn import GatedBank
from abelnet.segments import set_kernels_enabled

pytest.importorskip("numba")

N, B, DIM = 8192, 700, 8


def bank_and_sets(scale: float, low: float, sets: int = B) -> tuple[GatedBank, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = scale * (low + torch.rand(N, DIM, generator=generator))
    index = torch.randint(1, sets, (N,), generator=generator)
    bank = GatedBank(DIM, curves=False, seed=0)
    with torch.no_grad():
        for parameter in (*bank.members.parameters(), bank.logits, *bank.network.location.parameters()):
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return bank, x, index


def run(bank: GatedBank, x: Tensor, index: Tensor, enabled: bool) -> dict[str, Tensor]:
    x = x.detach().requires_grad_()
    bank.zero_grad()
    with set_kernels_enabled(enabled):
        y = bank(x, index=index, dim_size=B)
        y.backward(torch.randn(y.shape, generator=torch.Generator().manual_seed(1)))
    assert x.grad is not None
    gradients = {name: p.grad for name, p in bank.named_parameters() if p.grad is not None}
    return {"y": y.detach(), "x": x.grad, **gradients}


# In the last case sets have some 200 elements, more than are added in single precision.
@pytest.mark.parametrize(
    ("scale", "low", "sets"), [(1.0, 0.5, B), (1e3, -0.5, B), (1e-6, -0.1, B), (1.0, -30.0, B), (1.0, 0.5, 40)]
)
@pytest.mark.parametrize("turns", [0, 1, 3])  # all laws, log-sum-exp alone, the network
def test_a_bank_computes_what_torch_does(scale: float, low: float, sets: int, turns: int) -> None:
    bank, x, index = bank_and_sets(scale, low, sets)
    for _ in range(turns):
        bank.anneal(0.1, 1.0)
    found, plain = (run(bank, x, index, enabled) for enabled in (True, False))
    exact = run(copy.deepcopy(bank).double(), x.double(), index, False)
    # A member that is not used has no gradient, or one of 0.
    assert exact.keys() <= found.keys()
    for name, value in found.items():
        other = exact.get(name, torch.zeros(()))
        error = float((plain.get(name, torch.zeros(())) - other).norm())
        assert bool(value.isfinite().all()), name
        assert float((value - other).norm()) <= 1e-5 * float(other.norm()) + 4 * error + 1e-12, name


def test_the_law_that_is_kept() -> None:
    bank, x, index = bank_and_sets(1.0, 0.5)
    bank.anneal(0.6)
    for name, value in run(bank, x, index, True).items():
        torch.testing.assert_close(
            value, run(bank, x, index, False).get(name, torch.zeros_like(value)), rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize("turns", [0, 3])  # all laws, the network
def test_gradients_of_higher_order(turns: int) -> None:
    bank, x, index = bank_and_sets(1.0, 0.5)
    for _ in range(turns):
        bank.anneal(0.1, 1.0)

    def curvature(enabled: bool) -> Tensor:
        u = x.detach().requires_grad_()
        with set_kernels_enabled(enabled):
            (first,) = torch.autograd.grad(bank(u, index=index, dim_size=B).square().sum(), u, create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), u)
        return second

    found, expected = curvature(True), curvature(False)
    assert float((found - expected).norm()) < 1e-3 * float(expected.norm())


def test_curves_are_mixed_rarely_in_large_batches() -> None:
    x, index = torch.rand(4002, 1), torch.arange(4002) // 2
    bank = GatedBank(1, seed=0)
    with_curve = []
    for _ in range(16):
        bank.anneal(0.1, 1.0)
        bank.zero_grad()
        bank(x, index=index).sum().backward()
        spline = [p.grad for p in bank.members[-1].parameters() if p.grad is not None]
        with_curve.append(any(bool(gradient.any()) for gradient in spline))
    assert with_curve == [False] * 15 + [True]


def test_networks_have_few_turns_in_large_batches() -> None:
    x, index = torch.rand(4002, 1), torch.arange(4002) // 2
    bank = GatedBank(1, seed=0)
    ways = []
    for progress in (0.1, 0.3):
        for _ in range(72):
            bank.anneal(progress, 1.0)
            ways.append(int(bank.way))
            bank(x, index=index)
    # Of 8 cycles of 9 steps in the trial, every other one has a turn of the network, before it none.
    assert 6 not in ways[:72]
    assert ways[72:].count(6) == 4
    assert ways[72:].count(4) == 16
    assert set(ways[72:]) == {1, 2, 3, 4, 6, 7, 8, 9}
