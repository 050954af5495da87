"""Layouts as other libraries pass them, and one clear error for each that is wrong."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelianGroup, AbelnetError, Affine, Monotonic


def test_layouts_as_graph_libraries_pass_them() -> None:
    operation, x = AbelianGroup(Monotonic(3, seed=0)), torch.randn(6, 3)
    ptr, index = torch.tensor([0, 2, 2, 6]), torch.tensor([0, 0, 2, 2, 2, 2])
    expected = operation.reduce(x, ptr=ptr)
    for layout in (
        {"ptr": ptr, "dim_size": 3},
        {"ptr": ptr, "index": index},
        {"ptr": ptr.int(), "index": index.int(), "dim_size": 3},
    ):
        assert torch.equal(operation.reduce(x, **layout), expected)
    more = operation.reduce(x, index=index, dim_size=5)
    assert torch.equal(more, torch.cat((expected, operation.identity().expand(2, 3))))


X = torch.randn(6, 2)
BAD = {
    "NaN": (lambda: {"values": X * float("nan")}, r"expected finite values, got 12 of 12 that are NaN"),
    "infinity": (lambda: {"values": X / 0}, r"expected finite values, got 12 of 12 that are infinity"),
    "last dimension": (lambda: {"values": torch.randn(6, 3)}, r"expected shape \(\*, 2\), got \(6, 3\)"),
    "integers": (lambda: {"values": torch.ones(6, 2, dtype=torch.int)}, r"floating-point tensor, got torch\.int32"),
    "no tensor": (lambda: {"values": 3.0}, r"expected a tensor or a list of tensors, got float"),
    "one element": (lambda: {"values": X[0]}, r"expected shape \(\*, n, 2\), got \(2,\)"),
    "dtype": (lambda: {"values": X.double()}, r"expected torch\.float32 as the parameters are, got torch\.float64"),
    "negative ptr": (lambda: {"values": X, "ptr": torch.tensor([-1, 6])}, r"ptr: expected to run from 0 to 6, got -1"),
    "short ptr": (lambda: {"values": X, "ptr": torch.tensor([0, 5])}, r"ptr: expected to run from 0 to 6, got 0 to 5"),
    "unsorted ptr": (lambda: {"values": X, "ptr": torch.tensor([0, 4, 2, 6])}, r"ptr: expected ascending entries"),
    "no ptr": (lambda: {"values": X, "ptr": torch.empty(0, dtype=torch.long)}, r"ptr: expected at least one entry"),
    "float ptr": (lambda: {"values": X, "ptr": torch.tensor([0.0, 6.0])}, r"ptr: expected a tensor of integers"),
    "ptr of batch": (lambda: {"values": X[None], "ptr": torch.tensor([0, 6])}, r"expected shape \(N, d\) with index"),
    "index too large": (
        lambda: {"values": X, "index": torch.arange(6), "dim_size": 5},
        r"index: expected entries from 0 to 4, got 0 to 5",
    ),
    "index negative": (lambda: {"values": X, "index": torch.arange(6) - 1}, r"index: expected entries from 0 to 4"),
    "index short": (lambda: {"values": X, "index": torch.arange(5)}, r"index: expected 6 entries, one per element"),
    "index 2-D": (lambda: {"values": X, "index": torch.zeros(6, 1, dtype=torch.int)}, r"index: expected one dimension"),
    "empty list": (lambda: {"values": []}, r"expected at least one set of shape \(n, 2\), got an empty list"),
    "list member": (lambda: {"values": [X, X[0]]}, r"values\[1\]: expected shape \(n, 2\), got \(2,\)"),
    "mask shape": (lambda: {"values": X, "mask": torch.ones(5, dtype=torch.bool)}, r"mask: expected shape \(6,\)"),
    "mask dtype": (
        lambda: {"values": X, "mask": torch.ones(6)},
        r"mask: expected a boolean tensor, got torch\.float32",
    ),
    "two layouts": (
        lambda: {"values": X, "mask": torch.ones(6, dtype=torch.bool), "ptr": torch.tensor([0, 6])},
        r"mask: expected None with index or ptr",
    ),
    "index and another ptr": (
        lambda: {"values": X, "index": torch.tensor([0, 1, 0, 1, 1, 1]), "ptr": torch.tensor([0, 2, 6])},
        r"index, ptr: expected the same sets, got different ones",
    ),
    "short index and ptr": (
        lambda: {"values": X, "index": torch.zeros(5, dtype=torch.long), "ptr": torch.tensor([0, 6])},
        r"index: expected 6 entries, one per element",
    ),
    "dim_size of ptr": (
        lambda: {"values": X, "ptr": torch.tensor([0, 6]), "dim_size": 2},
        r"dim_size: expected 1, the number of sets of ptr, got 2",
    ),
    "list and mask": (
        lambda: {"values": [X], "mask": torch.ones(6, dtype=torch.bool)},
        r"expected one tensor with mask",
    ),
    "dim_size alone": (lambda: {"values": X, "dim_size": 3}, r"dim_size: expected only with index or ptr"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_one_clear_error(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(AbelnetError, match=message):
        AbelianGroup(Affine(2)).reduce(**make())
    assert issubclass(AbelnetError, ValueError)
