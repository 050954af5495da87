"""Every layout is the same batch, and a set is never touched by what stands beside it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cases import BIJECTIONS, LAWS
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from abelnet import (
    AbelianGroup,
    AbelnetError,
    Affine,
    Bijection,
    Chain,
    Law,
    Maximum,
    Monotonic,
    Multisets,
    Operation,
    Polynomial,
    Product,
    Sum,
)


def ragged() -> list[Tensor]:
    return [torch.randn(n, 3, dtype=torch.float64) for n in (4, 1, 7, 2)]


def padded(sets: list[Tensor], filling: float) -> tuple[Tensor, Tensor]:
    longest = max(len(one) for one in sets)
    values = torch.full((len(sets), longest, sets[0].shape[-1]), filling, dtype=sets[0].dtype)
    mask = torch.zeros(len(sets), longest, dtype=torch.bool)
    for i, one in enumerate(sets):
        values[i, : len(one)] = one
        mask[i, : len(one)] = True
    return values, mask


@pytest.mark.parametrize("bijection", sorted(BIJECTIONS))
@pytest.mark.parametrize("law", sorted(LAWS))
def test_all_layouts_agree_to_the_last_bit(law: str, bijection: str) -> None:
    operation = Operation(BIJECTIONS[bijection](torch.float64), LAWS[law]())
    sets = ragged()
    rows, sizes = torch.cat(sets), torch.tensor([len(one) for one in sets])
    ptr = torch.cat((torch.zeros(1, dtype=torch.long), sizes.cumsum(0)))
    index = torch.repeat_interleave(torch.arange(4), sizes)
    values, mask = padded(sets, float("nan"))
    mixed = torch.argsort(torch.arange(len(rows)) % 3, stable=True)

    expected = torch.cat([operation.reduce(one[None]) for one in sets])
    results = {
        "list": operation.reduce(sets),
        "ptr": operation.reduce(rows, ptr=ptr),
        "index": operation.reduce(rows, index=index, dim_size=4),
        "mask": operation.reduce(values, mask=mask),
        "alone": torch.stack([operation.reduce(one) for one in sets]),
    }
    for layout, result in results.items():
        if bijection in ("coupling", "glow", "sinh_arcsinh", "chain"):  # torch rounds these by place in the tensor
            torch.testing.assert_close(result, expected, rtol=1e-13, atol=1e-13, msg=layout)
        else:
            assert torch.equal(result, expected), layout
    torch.testing.assert_close(operation.reduce(rows[mixed], index=index[mixed]), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("law", sorted(LAWS))
def test_a_large_neighbour_changes_nothing(law: str, dtype: torch.dtype) -> None:
    operation = Operation(Monotonic(3, seed=0, dtype=dtype), LAWS[law]().to(dtype))
    small, large = torch.randn(5, 3, dtype=dtype), torch.randn(10_000, 3, dtype=dtype) / 100
    alone = operation.reduce(small)
    values, mask = padded([large, small], float("inf"))
    assert torch.equal(operation.reduce([small, large])[0], alone)
    assert torch.equal(operation.reduce(values, mask=mask)[1], alone)
    assert torch.equal(operation.reduce([large, small])[0], operation.reduce(large))


def test_padding_has_no_gradient() -> None:
    operation = AbelianGroup(Monotonic(3, seed=0, dtype=torch.float64))
    values, mask = padded(ragged(), float("nan"))
    values.requires_grad_()
    gradients = torch.autograd.grad(operation.reduce(values, mask=mask).sum(), [values, *operation.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (gradients[0][~mask] == 0).all()
    assert (gradients[0][mask] != 0).any()


def test_padding_is_not_even_looked_at() -> None:
    class CubeRoot(Bijection):
        """Its slope at 0, where padding might be moved to, is infinite."""

        def forward(self, x: Tensor) -> Tensor:
            return x.sign() * x.abs() ** (1 / 3)

        def inverse(self, y: Tensor) -> Tensor:
            return y**3

        def log_abs_det(self, x: Tensor) -> Tensor:
            return (x.abs().log() * (-2 / 3) - math.log(3)).sum(-1)

    operation = AbelianGroup(Chain(Affine(1), CubeRoot(1)))
    values, mask = padded([torch.ones(2, 1), 2 * torch.ones(3, 1)], float("nan"))
    gradients = torch.autograd.grad(operation.reduce(values, mask=mask).sum(), list(operation.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_empty_sets_are_the_identity() -> None:
    for operation in (AbelianGroup(Monotonic(1, seed=0)), Operation(Monotonic(1, seed=0), Product())):
        identity = operation.identity()
        x = torch.randn(3, 1)
        assert torch.equal(operation.reduce(x, ptr=torch.tensor([0, 0, 3, 3]))[[0, 2]], identity.expand(2, 1))
        assert torch.equal(operation.reduce(x, index=torch.tensor([1, 1, 1]), dim_size=3)[2], identity)
        assert torch.equal(operation.reduce([x[:0], x])[0], identity)
        assert torch.equal(operation.reduce(torch.empty(2, 0, 1)), identity.expand(2, 1))
        assert torch.equal(operation.reduce(x, mask=torch.zeros(3, dtype=torch.bool)), identity)
        assert torch.equal(operation.reduce(x[:0], index=torch.empty(0, dtype=torch.long), dim_size=1)[0], identity)
    with pytest.raises(AbelnetError, match="expected no empty set, since Maximum has no identity"):
        Operation(Affine(1), Maximum()).reduce(x, ptr=torch.tensor([0, 0, 3]))


def test_leading_dimensions() -> None:
    operation, x = AbelianGroup(Affine(2)), torch.randn(3, 4, 5, 2)
    torch.testing.assert_close(operation.reduce(x), x.sum(-2))
    mask = torch.rand(3, 4, 5) > 0.5
    torch.testing.assert_close(operation.reduce(x, mask=mask), (x * mask[..., None]).sum(-2))


def test_under_vmap_and_compile() -> None:
    operation = AbelianGroup(Monotonic(2, seed=0))
    x, mask = torch.randn(6, 3, 5, 2), torch.rand(6, 3, 5) > 0.3
    expected = operation.reduce(x, mask=mask)
    together = torch.func.vmap(lambda x, mask: operation.reduce(x, mask=mask))(x, mask)
    torch.testing.assert_close(together, expected)
    torch.compiler.reset()
    compiled = torch.compile(lambda x, mask: operation.reduce(x, mask=mask), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, mask), expected)


@pytest.mark.parametrize("law", sorted(LAWS))
def test_no_sets_have_no_results(law: str) -> None:
    operation, none = Operation(Monotonic(3, seed=0), LAWS[law]()), torch.empty(0, dtype=torch.long)
    x = torch.empty(0, 3, requires_grad=True)
    for values, layout in (
        (x, {"index": none}),
        (x, {"index": none, "dim_size": 0}),
        (x, {"ptr": torch.tensor([0])}),
        (x, {"ptr": torch.tensor([0]), "dim_size": 0}),
        (x[None][:0], {}),
        (x.reshape(0, 4, 3), {"mask": torch.empty(0, 4, dtype=torch.bool)}),
    ):
        result = operation.reduce(values, **layout)
        assert (result.shape, result.dtype) == ((0, 3), torch.float32)
        result.sum().backward()


@pytest.mark.parametrize("law", [Sum(), Polynomial(0.5), Maximum()])
def test_compiled_in_one_graph(law: Law) -> None:
    operation, x = Operation(Affine(3), law), torch.randn(6, 3)
    ptr, index = torch.tensor([0, 2, 6]), torch.tensor([0, 0, 1, 1, 1, 1])
    torch.compiler.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for layout in ({"index": index}, {"index": index, "dim_size": 2}, {"ptr": ptr, "dim_size": 2}, {"ptr": ptr}):
            compiled = torch.compile(operation.reduce, fullgraph=True, backend="eager")
            torch.testing.assert_close(compiled(x, **layout), operation.reduce(x, **layout))


def test_finite_values_whose_sum_overflows_pass() -> None:
    x = torch.full((4, 1), 3e38)
    assert Multisets(x, 1).values is not None


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Tensor], Multisets]:
    """Sets with results, as a list and as a batch whose rows stand anywhere."""
    dim = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(0, 4), min_size=2, max_size=6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    sets = [torch.randn(size, dim, generator=generator) for size in sizes]
    targets = torch.randn(len(sizes), dim, generator=generator)
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    # Any order of the rows that keeps the order within each set.
    order = torch.randperm(len(index), generator=generator)
    places = torch.empty_like(order)
    for i in range(len(sizes)):
        places[order[index == i].sort().values] = (index == i).nonzero()[:, 0]
    rows = torch.cat(sets)
    batch = Multisets(rows[places], dim, index=index[places], dim_size=len(sizes), targets=targets)
    return sets, batch


def as_list(batch: Multisets) -> list[Tensor]:
    return list(batch.values.split(batch.sizes.tolist()))


def assert_sets(batch: Multisets, sets: list[Tensor], targets: Tensor) -> None:
    assert len(batch) == len(sets)
    assert all(torch.equal(one, other) for one, other in zip(as_list(batch.ordered()), sets, strict=True))
    assert torch.equal(batch.targets, targets)


@given(batches())
def test_ordered_rows(case: tuple[list[Tensor], Multisets]) -> None:
    sets, batch = case
    ordered = batch.ordered()
    assert_sets(ordered, sets, batch.targets)
    assert ordered.ptr.tolist() == [0, *torch.tensor([len(one) for one in sets]).cumsum(0).tolist()]
    assert ordered.ordered() is ordered


@given(batches(), st.data())
def test_take_split_and_join(case: tuple[list[Tensor], Multisets], data: st.DataObject) -> None:
    sets, batch = case
    picked = data.draw(st.lists(st.integers(0, len(sets) - 1), min_size=1, max_size=8))
    taken = batch.take(torch.tensor(picked))
    assert_sets(taken, [sets[i] for i in picked], batch.targets[picked])
    mask = torch.zeros(len(sets), dtype=torch.bool)
    mask[picked] = True
    assert_sets(batch.take(mask), [sets[i] for i in sorted({*picked})], batch.targets[mask])
    first, second = batch.split(0.4, seed=3)
    joined = Multisets.join([first, second])
    order = torch.randperm(len(sets), generator=torch.Generator().manual_seed(3))
    assert_sets(joined, [sets[i] for i in order.tolist()], batch.targets[order])
    assert min(len(first), len(second)) >= 1


@given(batches(), st.integers(0, 3))
def test_padded_and_back(case: tuple[list[Tensor], Multisets], more: int) -> None:
    sets, batch = case
    width = max(map(len, sets)) + more
    values, mask = batch.padded(width)
    assert values.shape == (len(sets), width, batch.dim)
    assert (values[~mask] == 0).all()
    assert_sets(Multisets(values, batch.dim, mask=mask, targets=batch.targets), sets, batch.targets)


@given(batches())
def test_columns(case: tuple[list[Tensor], Multisets]) -> None:
    sets, batch = case
    for i in range(batch.dim):
        assert_sets(batch.column(i), [one[:, i : i + 1] for one in sets], batch.targets[:, i])


def test_an_operation_folds_multisets() -> None:
    operation, sets = AbelianGroup(Affine(3, dtype=torch.float64)), ragged()
    assert torch.equal(operation.reduce(Multisets(sets, 3)), operation.reduce(sets))
    with pytest.raises(AbelnetError, match="expected multisets of 3 dimensions, got 1"):
        operation.reduce(Multisets(sets, 3).column(0))
    with pytest.raises(AbelnetError, match="mask: expected None with Multisets"):
        operation.reduce(Multisets(sets, 3), mask=torch.ones(4, 7, dtype=torch.bool))


def test_from_arrays_of_every_form() -> None:
    lists = Multisets.from_arrays([[1.0, 2.0], np.array([3]), (), torch.tensor([4.0])], [3, 3, 0, 4])
    assert_sets(lists, [torch.tensor(one).double()[:, None] for one in ([1, 2], [3], [], [4])], lists.targets)
    assert lists.targets.tolist() == [3, 3, 0, 4]
    table = np.array([[1.0, 2.0], [3.0, np.nan], [np.nan, np.nan], [np.nan, 4.0]])
    frame = SimpleNamespace(to_numpy=lambda: table)
    for X in (table, torch.from_numpy(table), frame, lists):
        assert_sets(Multisets.from_arrays(X, lists.targets), as_list(lists), lists.targets)
    vectors = Multisets.from_arrays([np.ones((2, 3)), [], np.zeros((1, 3))])
    assert (vectors.dim, vectors.sizes.tolist()) == (3, [2, 0, 1])


def test_what_multisets_refuse() -> None:
    x = torch.randn(6, 2)
    batch = Multisets(x, 2, index=torch.tensor([1, 0, 1, 0, 1, 0]))
    for message, act in {
        "expected multisets with targets": lambda: batch.targets,
        r"adjacent and in order; call ordered\(\) first": lambda: batch.ptr,
        "sets: expected entries from 0 to 1, got 2 to 2": lambda: batch.take(torch.tensor([2])),
        r"targets: expected shape \(2,\) or \(2, 2\)": lambda: Multisets([x, x], 2, targets=torch.ones(3)),
        "targets: expected finite values": lambda: Multisets([x, x], 2, targets=torch.ones(2) / 0),
        "targets: expected a floating-point tensor": lambda: Multisets([x, x], 2, targets=torch.ones(2).int()),
        "dimension: expected from 0 to 1, got 2": lambda: batch.column(2),
        "width: expected at least 3, got 2": lambda: batch.padded(2),
        r"part: expected a fraction in \(0, 1\)": lambda: batch.split(1.5, 0),
        "parts: expected at least one batch": lambda: Multisets.join([]),
        r"X: expected shape \(n\) or \(n, d\) for set 1": lambda: Multisets.from_arrays([[1.0], [[[1.0]]]]),
        r"X: expected shape \(R, n\)": lambda: Multisets.from_arrays(np.ones(3)),
        r"equal dimension, got \[1, 2\]": lambda: Multisets.from_arrays([[1.0], [[1.0, 2.0]]]),
    }.items():
        with pytest.raises(AbelnetError, match=message):
            act()


def test_weights_follow_their_sets() -> None:
    weights = torch.tensor([0.5, 2.0, 0.0])
    weighted = Multisets(torch.arange(6.0).reshape(3, 2, 1), 1, weights=weights)
    plain = Multisets(torch.ones(1, 2, 1), 1)
    assert torch.equal(weighted.take(torch.tensor([1, 0])).weights, torch.tensor([2.0, 0.5]))
    assert torch.equal(Multisets.join([weighted, plain]).weights, torch.tensor([0.5, 2.0, 0.0, 1.0]))
    assert not plain.has_weights
    assert torch.equal(plain.weights, torch.ones(1))
    assert weighted.column(0).has_weights


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0, 1.0], [1.0, float("nan"), 1.0]])
def test_weights_are_checked(weights: list[float]) -> None:
    with pytest.raises(AbelnetError, match="weights"):
        Multisets(torch.ones(3, 2, 1), 1, weights=torch.tensor(weights))
