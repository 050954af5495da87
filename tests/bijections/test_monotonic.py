"""Min-max networks: where they start."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelnetError, Monotonic


def test_start_near_a_line() -> None:
    network = Monotonic(2, 4, 4, near=(0.1, 1.0), seed=0)
    x = torch.linspace(-5, 5, 20)[:, None].expand(-1, 2)
    assert (network(x) - (1 + x / 10)).abs().max() < 0.1
    with pytest.raises(AbelnetError, match="near: expected a slope above 0 and a finite offset, got"):
        Monotonic(1, near=(0.0, 1.0))
