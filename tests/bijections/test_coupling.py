"""Couplings beside FrEIA's."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from abelnet import Glow, GlowCoupling, Permutation, glow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import FrEIA.framework
    import FrEIA.modules


def subnet(width_in: int, width_out: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width_in, 151), nn.ReLU(), nn.Linear(151, 151), nn.ReLU(), nn.Linear(151, width_out))


@pytest.mark.parametrize("dim", [5, 300])
def test_coupling_equals_freia(dim: int) -> None:
    theirs = FrEIA.modules.GLOWCouplingBlock([(dim,)], subnet_constructor=subnet, clamp=1.5)
    ours = GlowCoupling(dim, hidden=151, clamp=1.5)
    copy_weights(theirs, ours)
    x = torch.randn(40, dim)
    (y,), log_det = theirs([x])
    torch.testing.assert_close(ours(x), y, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.log_abs_det(x), log_det, rtol=1e-5, atol=1e-5)
    (back,), _ = theirs([y], rev=True)
    torch.testing.assert_close(ours.inverse(y), back, rtol=1e-5, atol=1e-5)


def test_glow_equals_freia() -> None:
    theirs = FrEIA.framework.SequenceINN(300)
    ours = glow(300, layers=5, hidden=151, seed=0)
    layers = list(ours)
    for coupling, permutation in zip(layers[::2], layers[1::2], strict=True):
        theirs.append(FrEIA.modules.GLOWCouplingBlock, subnet_constructor=subnet, clamp=2.0)
        assert isinstance(coupling, GlowCoupling)
        copy_weights(theirs.module_list[-1], coupling)
        theirs.append(FrEIA.modules.PermuteRandom)
        assert isinstance(permutation, Permutation)
        theirs.module_list[-1].perm.data = permutation.order
        theirs.module_list[-1].perm_inv.data = permutation.order.argsort()
    x = torch.randn(40, 300)
    y, log_det = theirs(x)
    torch.testing.assert_close(ours(x), y, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.log_abs_det(x), log_det, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(ours.inverse(y), theirs(y, rev=True)[0], rtol=1e-5, atol=1e-5)
    assert isinstance(ours, Glow)


def copy_weights(theirs: nn.Module, ours: GlowCoupling) -> None:
    with torch.no_grad():
        for name in ("subnet1", "subnet2"):
            layers = [layer for layer in getattr(theirs, name) if isinstance(layer, nn.Linear)]
            for (weight, bias), layer in zip(getattr(ours, name).layers(), layers, strict=True):
                weight.copy_(layer.weight)
                bias.copy_(layer.bias[:, None])
