"""The curve of a bank: once it is kept, it trains in coordinates that change results equally."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from cases import chosen
from torch import Tensor

import abelnet
from abelnet.nn import GatedBank

PTR = torch.tensor([0, 3, 3, 5, 9])


def curve_on(channels: int, x: Tensor) -> tuple[GatedBank, Tensor]:
    """Returns a bank that has kept its curves, away from the identity, and its results before it trains alone."""
    bank = GatedBank(channels, seed=0)
    with torch.no_grad():
        for parameter in bank.members[-1].bijection.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    bank(x, ptr=PTR)
    chosen(bank, *["curve", "mean over a curve"][:channels]).eval()
    return bank, bank(x, ptr=PTR).detach()


def test_a_curve_that_is_kept_trains_in_coordinates_that_change_results_equally(tmp_path: Path) -> None:
    x = torch.rand(9, 2) * 5
    bank, before = curve_on(2, x)
    curve = bank.members[-1]
    bank.train()
    torch.testing.assert_close(bank(x, ptr=PTR), before)  # the coordinates are new, the curve is not
    results = lambda steps: torch.func.functional_call(
        bank, {f"members.{len(bank.members) - 1}.steps": steps}, x, {"ptr": PTR}
    )
    jacobian = torch.autograd.functional.jacobian(results, curve.steps.detach())
    for c in range(2):
        # Of sums and of means together a unit step changes the results by at most one unit.
        assert 0.3 < jacobian[:, c, c].div(bank.unit[c]).norm() / 2 / math.sqrt(3) < 2
    bank(x, ptr=PTR).square().sum().backward()
    assert curve.steps.grad is not None
    assert all(p.grad is None for p in curve.bijection.parameters())
    with torch.no_grad():
        curve.steps -= 0.01 * curve.steps.grad
    bank.eval()
    after = bank(x, ptr=PTR)
    assert not torch.allclose(after, before, rtol=1e-4)
    torch.testing.assert_close(bank.harden()(x, ptr=PTR)[[0, 2, 3]], after[[0, 2, 3]])
    abelnet.save(bank, tmp_path / "bank")
    other = GatedBank(2).eval()
    other.load_state_dict(bank.state_dict())
    for twin in (abelnet.load(tmp_path / "bank").eval(), other):
        assert torch.equal(twin(x, ptr=PTR), after)
    bank.reset_parameters()
    assert not curve.basis.any()


def test_a_curve_that_is_kept_is_learned_precisely() -> None:
    generator = torch.Generator().manual_seed(0)
    grid = torch.linspace(-30, 30, 200001, dtype=torch.float64)
    phi = lambda x: x + 1.5 * (1.5 * (x - 0.7)).tanh()
    x = 4 * torch.rand(400, 3, 1, generator=generator) - 2
    y = grid[torch.searchsorted(phi(grid), phi(x.double()).sum(1))].float()
    bank = chosen(GatedBank(1, seed=0), "curve").eval()  # in evaluation it keeps its coordinates
    optimizer = torch.optim.Adam(bank.parameters(), lr=0.01)
    for step in range(240):
        bank.train(step >= 40)
        optimizer.param_groups[0]["lr"] = 0.01 if step < 40 else 0.005 * (1 + math.cos(math.pi * (step - 40) / 200))
        optimizer.zero_grad()
        loss = (bank(x) - y).square().mean() / y.var()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3**2  # 2e-2**2 by the parameters of the spline
