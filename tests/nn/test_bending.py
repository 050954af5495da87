"""The network of a bank by compiled kernels: the same results and gradients as torch, to rounding."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from abelnet.nn import GatedBank
from abelnet.segments import set_kernels_enabled

pytest.importorskip("numba")

N, B, DIM = 8000, 4100, 17


def run(bank: GatedBank, x: Tensor, index: Tensor, enabled: bool) -> dict[str, Tensor]:
    x = x.detach().clone().requires_grad_()
    bank.zero_grad()
    with set_kernels_enabled(enabled):
        y = bank(x, index=index, dim_size=B)
        y.backward(torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y.dtype))
    assert x.grad is not None
    return {"y": y.detach(), "x": x.grad, **{n: p.grad for n, p in bank.named_parameters() if p.grad is not None}}


def network_of(scale: float) -> tuple[GatedBank, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    bank = GatedBank(DIM, curves=False, seed=0)
    for _ in range(3):
        bank.anneal(0.1, 1.0)
    x = scale * (torch.rand(N, DIM, generator=generator) - 0.2)
    return bank, x, torch.randint(1, B, (N,), generator=generator)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_a_network_computes_what_torch_does(scale: float) -> None:
    bank, x, index = network_of(scale)
    found, plain = (run(bank, x, index, enabled) for enabled in (True, False))
    exact = run(copy.deepcopy(bank).double(), x.double(), index, False)
    assert {"network.weight1", "network.bias1", "network.weight2", "network.bias2"} <= found.keys() == exact.keys()
    for name, value in found.items():
        assert bool(value.isfinite().all()), name
        error = float((plain[name] - exact[name]).norm())
        assert float((value - exact[name]).norm()) <= 1e-5 * float(exact[name].norm()) + 2 * error, name


def test_gradients_of_higher_order() -> None:
    bank, x, _ = network_of(1.0)
    index = torch.arange(N) % B  # no set is empty

    def curvature(enabled: bool) -> Tensor:
        bank.zero_grad()
        with set_kernels_enabled(enabled):
            y = bank(x, index=index, dim_size=B).square().sum()
            (first,) = torch.autograd.grad(y, bank.network.weight1, create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), bank.network.weight1)
        return second

    found, expected = curvature(True), curvature(False)
    assert float((found - expected).norm()) < 1e-3 * float(expected.norm())
