"""What is exported in place of functions that ONNX lacks is equal to them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from abelnet.portable import exact, hypot, next_above


class Functions(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return hypot(a, b), next_above(a), (a.double().abs() < exact(1e-150, a.double())).to(a)


def test_exported_as_evaluated() -> None:
    a = torch.tensor([3e30, 0.0, -3.0, 1e-30, 0.0])
    b = torch.tensor([4e30, 0.0, 4.0, 1e-30, -7.0])
    expected = Functions()(a, b)
    got = torch.export.export(Functions(), (a, b)).module()(a, b)
    for k in (0, 2):
        torch.testing.assert_close(got[k], expected[k], rtol=1e-6, atol=0)
    torch.testing.assert_close(got[1], expected[1], rtol=1e-15, atol=1e-300)
    assert (got[1] > a.double()).all()
