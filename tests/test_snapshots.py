from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from abelnet import AbelnetError
from abelnet.snapshots import Snapshot, has_same_bits, named_tensors


def test_changes_are_noticed_and_moves_are_not_changes() -> None:
    layer = nn.Linear(2, 1)
    snapshot = Snapshot(layer)
    assert snapshot.check("window") is None
    layer.weight.data = layer.weight.data.clone()
    assert snapshot.check("window") == torch.device("cpu")  # in other memory
    assert snapshot.check("window") is None
    layer.weight.data = layer.weight.data.double()
    with pytest.raises(AbelnetError, match=r"window: expected the parameters .* got a different Linear.weight"):
        snapshot.check("window")


def test_bits_are_compared_not_numbers() -> None:
    zero = torch.zeros(1)
    assert not has_same_bits(zero, -zero)
    assert has_same_bits(torch.tensor([torch.nan]), torch.tensor([torch.nan]))
    assert not has_same_bits(zero, zero.double())
    layer = nn.Linear(2, 1)
    assert named_tensors(layer).keys() == {"Linear.weight", "Linear.bias"}
    assert all(has_same_bits(x, named_tensors(copy.deepcopy(layer))[name]) for name, x in named_tensors(layer).items())
