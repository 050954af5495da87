"""The synthetic experiment: its data are the paper's, and an operation is learned from them."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelnetError
from abelnet.experiments.synthetic.data import OPERATIONS, learn, make_dataset

BINARY = {
    "sum": lambda x, y: x + y,
    "sum_plus_one": lambda x, y: x + y + 1,
    "cbrt": lambda x, y: torch.sign(x**3 + y**3) * (x**3 + y**3).abs() ** (1 / 3),
    "product": lambda x, y: x * y,
    "shifted_product": lambda x, y: x + y + x * y / 2,
}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_folds_are_the_binary_operations_repeated(name: str) -> None:
    x = 10 * torch.rand(5, dtype=torch.float64) - 5
    fold = x[0]
    for element in x[1:]:
        fold = BINARY[name](fold, element)
    torch.testing.assert_close(OPERATIONS[name].fold(x), fold)


def test_data_have_the_papers_sizes_and_ranges() -> None:
    data = make_dataset("product", seed=1)
    for part, count, sizes in (
        (data.train, 500, {2, 3, 4}),
        (data.validation, 100, {2, 3, 4}),
        (data.small, 100, {2, 3, 4}),
        (data.large, 100, {10, 11, 12}),
    ):
        assert part.targets.shape == (count,)
        assert set(part.sizes.tolist()) == sizes
        assert part.values.abs().max() <= 5
    assert data.train.values.min() < -4.9
    assert data.train.values.max() > 4.9
    again, other = make_dataset("product", seed=1), make_dataset("product", seed=2)
    assert torch.equal(again.large.values, data.large.values)
    assert not torch.equal(other.train.values[:50], data.train.values[:50])


@pytest.mark.parametrize("name", ["sum_plus_one", "shifted_product"])
def test_learns_and_generalises_to_larger_sets(name: str) -> None:
    learned = learn(name, seed=3)
    assert learned.small < 1e-8
    assert learned.large < 1e-6
    assert learned.law.is_group is OPERATIONS[name].is_group
    assert learned.defects.associativity.relative < 1e-10


def test_unknown_name() -> None:
    with pytest.raises(AbelnetError, match="expected one of sum, sum_plus_one"):
        make_dataset("minus", seed=0)
