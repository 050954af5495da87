"""Kernels of the networks of a bank: their results and gradients are those of PyTorch in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("numba")
from abelnet.nn.bending import bend, bend_gradient


def bent(features: Tensor, weights: Tensor) -> Tensor:
    """The same by PyTorch: features (B, f, c), weights (h, f + 2, c)."""
    hidden = torch.einsum("bfc,hfc->bhc", features, weights[:, :-2]) + weights[:, -2]
    return features[:, 0] + (torch.nn.functional.silu(hidden) * weights[:, -1]).sum(1)


@pytest.mark.parametrize("channels", [1, 8, 32, 37])
def test_results_and_gradients(channels: int) -> None:
    generator = torch.Generator().manual_seed(channels)
    features = torch.randn(131, 9, channels, generator=generator)
    weights = torch.randn(32, 11, channels, generator=generator)
    gradient = torch.randn(131, channels, generator=generator)
    result = torch.empty(131, channels)
    bend(features.numpy(), weights.numpy(), result.numpy())
    of_features, of_weights = torch.empty_like(features), torch.zeros_like(weights, dtype=torch.float64)
    bend_gradient(*(one.numpy() for one in (features, weights, gradient, of_features, of_weights)))
    inputs = [one.double().requires_grad_() for one in (features, weights)]
    expected = bent(inputs[0], inputs[1])
    expected.backward(gradient.double())
    for found, known in ((result, expected.detach()), (of_features, inputs[0].grad), (of_weights, inputs[1].grad)):
        assert known is not None
        assert (found - known).abs().max() < 2e-6 * known.abs().max()
