"""Rivals that experiments share: what is mended, what is missing."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from abelnet import AbelnetError
from abelnet.experiments.rivals import Monoid, QuasiArithmeticMean, check_packages, make_pna, make_pyg

pytest.importorskip("torch_geometric")


def test_lcm_does_not_depend_on_other_sets() -> None:
    torch.manual_seed(0)
    layer, values = Monoid(4), torch.randn(9, 4)
    both = layer(values, index=torch.tensor([0] * 3 + [1] * 6), dim_size=2)
    torch.testing.assert_close(layer(values[:3], index=torch.zeros(3, dtype=torch.long), dim_size=1), both[:1])


def test_shapes() -> None:
    values, index = torch.rand(9, 4), torch.tensor([0] * 3 + [1] * 6)
    pna, outputs = make_pna(4, torch.tensor([0, 0, 0, 1, 0, 0, 1]))
    assert pna(values, index=index, dim_size=2).shape == (2, outputs)
    assert outputs == 48
    mean = make_pyg("MeanAggregation")(values, index=index, dim_size=2)
    torch.testing.assert_close(QuasiArithmeticMean(4)(values, index=index, dim_size=2), mean)  # it starts as the mean


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        AbelnetError, match=r"the package genagg for 'genagg', got none; pip install \"abelnet\[sets\]\""
    ):
        check_packages({"genagg": ("genagg",)}, "sets")
