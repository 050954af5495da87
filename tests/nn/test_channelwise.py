"""Operations side by side: each on its own channels, saved, and refused if channels do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import abelnet
from abelnet import AbelianGroup, AbelnetError, Generator, Maximum, Operation, Sum
from abelnet.nn import Channelwise

PTR = torch.tensor([0, 1, 1, 4, 9])


def layer(fill: float = 0.0) -> Channelwise:
    largest = Operation(Generator(2, "affine"), Maximum())
    parallel = AbelianGroup(Generator(1, "positive power", [-1.0]))
    return Channelwise([largest, parallel], [[2, 0], [1]], fill=fill)


def test_each_operation_has_its_channels() -> None:
    x = 0.5 + torch.rand(9, 3, generator=torch.Generator().manual_seed(0))
    result = layer(fill=7.0)(x, ptr=PTR)
    assert torch.equal(result[3, [0, 2]], x[4:, [0, 2]].amax(0))
    torch.testing.assert_close(result[3, 1], 1 / (1 / x[4:, 1]).sum())
    assert result[1].tolist() == [7.0, 7.0, 7.0]


def test_saved_and_loaded(tmp_path: Path) -> None:
    x, hard = torch.rand(9, 3), layer()
    abelnet.save(hard, tmp_path / "hard")
    assert torch.equal(abelnet.load(tmp_path / "hard")(x, ptr=PTR), hard(x, ptr=PTR))


def test_channels_that_do_not_fit_are_refused() -> None:
    operation = Operation(Generator(2, "affine"), Sum())
    with pytest.raises(AbelnetError, match=r"channels: expected \[2\] channels, each from 0 on once, got \[\[0, 2\]\]"):
        Channelwise([operation], [[0, 2]])
