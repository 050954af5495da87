"""Operations side by side: what can be stacked; training them is tested with the loop."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelianGroup, AbelianNet, AbelianSemigroup, AbelnetError, Affine, Maximum, Monotonic, Operation
from abelnet.training.stacks import OperationStack, fold_side_by_side


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match=r"expected elementwise bijections of one dimension, got Affine\(dim=2\)"):
        OperationStack([AbelianGroup(Affine(2))])
    with pytest.raises(AbelnetError, match="operations: expected bijections of one class, got Affine, Monotonic"):
        OperationStack([AbelianGroup(Affine(1)), AbelianGroup(Monotonic(1))])
    with pytest.raises(AbelnetError, match="operations: expected bijections of one class, got none"):
        OperationStack([])
    with pytest.raises(AbelnetError, match=r"bijections: expected a class that can be stacked, .* got Affine"):
        OperationStack([AbelianGroup(Affine(1))])
    with pytest.raises(AbelnetError, match="expected one law without coefficients, got Product, Sum"):
        OperationStack([AbelianGroup(Monotonic(1)), AbelianSemigroup(Monotonic(1))])
    with pytest.raises(AbelnetError, match="expected one law without coefficients, got Polynomial"):
        OperationStack([AbelianNet(Monotonic(1))])
    maximum = Operation(Affine(1), Maximum())
    with pytest.raises(AbelnetError, match="law: expected one with an identity for padding, got Maximum"):
        fold_side_by_side(maximum.bijection, maximum.law, torch.ones(1, 2, 3), torch.ones(1, 2, 3, dtype=torch.bool))
