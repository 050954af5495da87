"""The checks can fail: they see a law that is broken."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelianGroup, AbelianSemigroup, AbelnetError, Affine, Law, Maximum, Operation, law_defects


class Difference(Law):
    def combine(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return u - v


def test_defects_of_sound_operations_are_rounding() -> None:
    x = torch.randn(50, 2, dtype=torch.float64)
    group = law_defects(AbelianGroup(Affine(2, dtype=torch.float64)), x)
    assert group.associativity.relative < 1e-15
    assert group.inverse is not None
    assert group.inverse.absolute == 0
    semigroup = law_defects(AbelianSemigroup(Affine(2, dtype=torch.float64)), x)
    assert semigroup.identity is not None
    assert semigroup.inverse is None
    lattice = law_defects(Operation(Affine(2, dtype=torch.float64), Maximum()), x)
    assert lattice.identity is None
    assert "commutativity    0.00e+00   0.00e+00" in str(lattice)


def test_defects_of_a_difference_are_seen() -> None:
    x = torch.tensor([[1.0], [2.0], [4.0]])
    defects = law_defects(Operation(Affine(1), Difference()), x)
    assert defects.commutativity.absolute == 6.0
    assert defects.commutativity.relative == 1.5
    assert defects.associativity.absolute == 8.0
    assert defects.round_trip.absolute == 0.0


def test_bad_samples() -> None:
    group = AbelianGroup(Affine(2))
    for samples in (torch.randn(2), torch.randn(0, 2)):
        with pytest.raises(AbelnetError, match="samples: expected shape"):
            law_defects(group, samples)
