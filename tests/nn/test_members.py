"""Members of the bank: derivatives by hand are those of formulas."""

from __future__ import annotations

import pytest
import torch

from abelnet import Multisets
from abelnet.nn.members import Polynomials, Scene


@pytest.mark.parametrize("gamma", [0.0, 1e-6, 0.3, -0.9, 2.0])
def test_polynomials_have_the_derivatives_of_their_formula(gamma: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x = 0.1 + torch.rand(12, 2, generator=generator, dtype=torch.float64)
    sets = Multisets(x, 2, index=torch.arange(12) % 4)
    member = Polynomials(2).double()

    def fold(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
        member.gamma.data.zero_()
        return torch.func.functional_call(_Fold(member), {"member.gamma": gamma}, (x, sets))

    slope = torch.full((2,), gamma, dtype=torch.float64, requires_grad=True)
    inputs = (x.requires_grad_(), slope)
    assert torch.autograd.gradcheck(fold, inputs, eps=1e-7, atol=1e-4, rtol=1e-3)


class _Fold(torch.nn.Module):
    def __init__(self, member: Polynomials) -> None:
        super().__init__()
        self.member = member

    def forward(self, x: torch.Tensor, sets: Multisets) -> torch.Tensor:
        scene = Scene(sets, x, torch.ones(2, dtype=x.dtype))
        return self.member.lower(sets.sum(self.member.lift(scene)), scene)[0]
