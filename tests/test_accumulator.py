"""Streams: one at a time, in parts, with removal."""

from __future__ import annotations

import copy

import pytest
import torch
from cases import BIJECTIONS, GROUPS, LAWS, relative_error

from abelnet import AbelianGroup, AbelnetError, Affine, Maximum, Operation, Product


@pytest.mark.parametrize("bijection", sorted(BIJECTIONS))
@pytest.mark.parametrize("law", sorted(LAWS))
@torch.no_grad()
def test_any_way_to_fold_gives_reduce(law: str, bijection: str) -> None:
    operation = Operation(BIJECTIONS[bijection](torch.float64), LAWS[law]())
    x = torch.randn(7, 3, dtype=torch.float64)
    expected = operation.reduce(x)

    one = operation.accumulator()
    for element in x:
        one.add(element)
    many, rest = operation.accumulator(), operation.accumulator()
    many.add_many(x[:4])
    many.add_many(x[:0])
    rest.add_many(x[4:])
    many.merge(rest)
    for accumulator in (one, many):
        assert accumulator.count == 7
        assert relative_error(accumulator.value(), expected) <= 1e-10

    restored = operation.accumulator()
    restored.load_state_dict(one.state_dict())
    assert torch.equal(restored.value().double(), one.value().to(restored.value().dtype).double())
    assert restored.count == 7
    if law in GROUPS:
        one.remove(x[2])
        assert one.count == 6
        assert relative_error(one.value(), operation.reduce(x[[0, 1, 3, 4, 5, 6]])) <= 1e-9
    else:
        with pytest.raises(AbelnetError, match="remove: expected the law of a group"):
            one.remove(x[2])


def test_a_long_window_does_not_drift() -> None:
    group = AbelianGroup(Affine(1))
    x = torch.rand(20_000, 1)
    accumulator = group.accumulator()
    with torch.no_grad():
        accumulator.add_many(x[:100])
        for i in range(100, len(x)):
            accumulator.add(x[i])
            accumulator.remove(x[i - 100])
    torch.testing.assert_close(accumulator.value(), x[-100:].sum(0), rtol=1e-6, atol=0)


def test_many_side_by_side() -> None:
    operation = Operation(Affine(2), Product())
    accumulator = operation.accumulator((3,))
    x, y = torch.randn(3, 2), torch.randn(3, 5, 2)
    accumulator.add(x)
    accumulator.add_many(y)
    torch.testing.assert_close(accumulator.value(), x * y.prod(1))
    assert "shape=(3,), count=6" in repr(accumulator)


def test_empty() -> None:
    group = AbelianGroup(Affine(2))
    assert torch.equal(group.accumulator().value(), group.identity())
    with pytest.raises(AbelnetError, match="expected at least one element, since Maximum has no identity"):
        Operation(Affine(2), Maximum()).accumulator().value()


def test_a_stream_keeps_no_graph() -> None:
    accumulator = AbelianGroup(Affine(1)).accumulator()
    accumulator.add(torch.tensor([2.0], requires_grad=True))
    assert not accumulator.value().requires_grad
    assert copy.deepcopy(accumulator).value().item() == 2.0


def test_bad_input() -> None:
    accumulator = AbelianGroup(Affine(2)).accumulator()
    with pytest.raises(AbelnetError, match=r"expected shape \(\*, 2\), got \(3,\)"):
        accumulator.add(torch.randn(3))
    with pytest.raises(AbelnetError, match="expected finite values"):
        accumulator.add(torch.tensor([1.0, float("nan")]))
    with pytest.raises(AbelnetError, match=r"x: expected shape \(n, 2\), got \(2,\)"):
        accumulator.add_many(torch.randn(2))
    with pytest.raises(AbelnetError, match=r"x: expected shape \(2,\), got \(5, 2\)"):
        accumulator.add(torch.randn(5, 2))
    with pytest.raises(AbelnetError, match=r"x: expected torch\.float32 as the parameters are"):
        accumulator.add(torch.randn(2, dtype=torch.float64))
    for other in (AbelianGroup(Affine(3)), Operation(Affine(2), Maximum())):
        with pytest.raises(AbelnetError, match="other: expected an accumulator like"):
            accumulator.merge(other.accumulator())
    with pytest.raises(AbelnetError, match="state_dict: expected the keys state and count"):
        accumulator.load_state_dict({})
    with pytest.raises(AbelnetError, match="state: expected shape"):
        accumulator.load_state_dict(AbelianGroup(Affine(3)).accumulator().state_dict())
    assert accumulator.count == 0
