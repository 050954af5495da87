"""Rows grouped by set: the same bits as index_add, and the gradients of plain torch."""

from __future__ import annotations

import pytest
import torch

from abelnet.segments import Segments, is_plain

INDEX = torch.tensor([3, 0, 3, 1, 0, 3, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("index", [INDEX, INDEX.sort().values])
def test_sums_have_the_bits_of_index_add(index: torch.Tensor, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    index = index.repeat(50)
    u = torch.randn(len(index), 33, generator=generator, dtype=dtype) * 1e3
    expected = torch.zeros(5, 33, dtype=dtype).index_add(0, index, u)
    assert torch.equal(Segments(index, 5).sum(u), expected)


@pytest.mark.parametrize("index", [INDEX, INDEX.sort().values])
def test_gradients(index: torch.Tensor) -> None:
    u = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    segments = Segments(index, 4)
    for fold in (segments.sum, segments.ordered):
        assert torch.autograd.gradcheck(fold, u)
        assert torch.autograd.gradgradcheck(fold, u)
    for fold in (segments.amax, segments.amin):
        assert torch.autograd.gradcheck(lambda u, fold=fold: fold(u)[[0, 1, 3]], u)


def test_ties_share_the_gradient_and_empty_sets_have_none() -> None:
    u = torch.tensor([[1.0], [2.0], [2.0], [-3.0]], requires_grad=True)
    largest = Segments(torch.tensor([0, 0, 0, 2]), 3).amax(u)
    assert largest[:, 0].tolist() == [2.0, -torch.inf, -3.0]
    (gradient,) = torch.autograd.grad(largest[[0, 2]].sum(), u)
    assert gradient[:, 0].tolist() == [0.0, 0.5, 0.5, 1.0]


def test_no_rows() -> None:
    segments = Segments(torch.empty(0, dtype=torch.long), 2)
    assert segments.sum(torch.empty(0, 3)).tolist() == [[0.0] * 3] * 2
    assert segments.sizes.tolist() == [0, 0]


def test_transformed_values_cannot_be_read() -> None:
    assert is_plain(torch.ones(1))
    seen = []
    torch.func.vmap(lambda x: (seen.append(is_plain(x)), x)[1])(torch.ones(2))
    assert seen == [False]
