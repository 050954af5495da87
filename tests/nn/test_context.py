"""Aggregation in context: its formula, what it depends on, and how it starts."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelianGroup, AbelnetError, Affine
from abelnet.nn import ContextAggregation, make_aggregation

PTR = torch.tensor([0, 4, 9])


def layer() -> ContextAggregation:
    made = ContextAggregation(make_aggregation("weighted-mean", 8), make_aggregation("mean", 3), seed=0)
    torch.nn.init.normal_(made.shift, generator=torch.Generator().manual_seed(1))
    return made


def points(count: int = 9) -> torch.Tensor:
    return torch.randn(count, 8, generator=torch.Generator().manual_seed(0))


def test_it_is_what_its_formula_says() -> None:
    made, x = layer(), points()
    for one, found in zip(x.split([4, 5]), made(x, ptr=PTR), strict=True):
        summary = made.summarized(one.relu()).mean(0)
        shifted = made.mixed((one + made.shift @ summary).relu())
        torch.testing.assert_close(made.aggregation(shifted), found)


def test_a_set_depends_on_its_own_elements_alone_in_any_order() -> None:
    made, x = layer(), points()
    found = made(x, ptr=PTR)
    torch.testing.assert_close(made(x[:4]), found[0])
    torch.testing.assert_close(made(x[:4].flip(0)), found[0])
    order = torch.randperm(9, generator=torch.Generator().manual_seed(2))
    index = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 1])[order]
    torch.testing.assert_close(made(x[order], index=index, dim_size=2), found)
    assert not torch.allclose(made(x[:5]), found[0])


def test_at_first_elements_do_not_depend_on_their_set() -> None:
    made, x = layer(), points()
    made.reset_parameters(seed=4)
    assert made.shift.count_nonzero() == 0
    torch.testing.assert_close(made(x, ptr=PTR), made.aggregation(made.mixed(x.relu()), ptr=PTR))
    made(x, ptr=PTR).square().sum().backward()
    assert made.shift.grad is not None
    assert made.shift.grad.count_nonzero() > 0  # but they learn to


def test_operations_are_taken_and_others_refused() -> None:
    group = AbelianGroup(Affine(2))
    assert ContextAggregation(group, group)(torch.randn(5, 2)).shape == (2,)
    with pytest.raises(AbelnetError, match="context: expected a Pooling or an Operation, got str"):
        ContextAggregation(group, "mean")  # type: ignore[arg-type]
