"""Min-max networks: where they start, which line decides, and several as the dimensions of one."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelnetError, Affine, Monotonic


def test_start_near_a_line() -> None:
    network = Monotonic(2, 4, 4, near=(0.1, 1.0), seed=0)
    x = torch.linspace(-5, 5, 20)[:, None].expand(-1, 2)
    assert (network(x) - (1 + x / 10)).abs().max() < 0.1
    with pytest.raises(AbelnetError, match="near: expected a slope above 0 and a finite offset, got"):
        Monotonic(1, near=(0.0, 1.0))


@pytest.mark.parametrize("inverse", [False, True])
def test_lines_of_a_monotonic_network_are_those_that_decide(inverse: bool) -> None:
    bijection, x = Monotonic(3, groups=4, units=5, seed=0), 10 * torch.randn(50, 3)
    found = bijection.lines(x, inverse=inverse)
    slope = (bijection.sign()[:, None, None] * bijection.log_weight.exp()).flatten()[found]
    bias = bijection.bias.flatten()[found]
    assert torch.equal(
        (x - bias) / slope if inverse else slope * x + bias, (bijection.inverse if inverse else bijection)(x)
    )


def test_stacked_networks_are_the_dimensions_of_one() -> None:
    networks = [Monotonic(dim, groups, units, seed=dim) for dim, groups, units in ((1, 2, 6), (2, 5, 3), (1, 4, 4))]
    networks[0].raw_sign.data.neg_()
    stack, x = Monotonic.stacked(networks), 10 * torch.randn(20, 4)
    parts = list(zip(networks, x.split([1, 2, 1], -1), strict=True))
    assert torch.equal(stack(x), torch.cat([one(part) for one, part in parts], -1))
    torch.testing.assert_close(stack.inverse(x), torch.cat([one.inverse(part) for one, part in parts], -1))
    copies = [Monotonic(one.dim, *one.bias.shape[1:], seed=9) for one in networks]
    stack.unstack(copies)
    for one, copied in zip(networks, copies, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(one.parameters(), copied.parameters(), strict=True))
    stack.select(torch.tensor([True, False, False, True]))
    assert torch.equal(stack(x[:, [0, 3]]), torch.cat((networks[0](x[:, :1]), networks[2](x[:, 3:])), -1))
    with pytest.raises(AbelnetError, match=r"bijections: expected a class that can be stacked, .* got Affine"):
        Affine.stacked([Affine(1)])
