"""Streams: one at a time, in parts, with removal."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from cases import BIJECTIONS, GROUPS, LAWS, relative_error

from abelnet import (
    AbelianGroup,
    AbelianNet,
    AbelnetError,
    Affine,
    Bijection,
    Law,
    Maximum,
    Operation,
    Polynomial,
    Product,
    RationalQuadraticSpline,
    SinhArcsinh,
    Sum,
)
from abelnet.training import Settings, train


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


def moved(bijection: Bijection) -> Bijection:
    with torch.no_grad():
        next(bijection.parameters()).add_(1e-6)
    return bijection


@pytest.mark.parametrize(
    ("bijection", "law", "message"),
    [
        (moved(Affine(2)), Sum(), r"different one: Affine\.log_scale differs"),
        (SinhArcsinh(2), Sum(), "different one: SinhArcsinh instead of Affine"),
        (Affine(2), Maximum(), "different one: Maximum instead of Sum"),
        (Affine(3), Sum(), "different one: .*3.* instead of .*2"),
        (Affine(2, dtype=torch.float64), Sum(), r"different one: Affine\.log_scale differs"),
    ],
)
def test_states_of_another_operation_do_not_merge(bijection: Bijection, law: Law, message: str) -> None:
    accumulator = AbelianGroup(Affine(2)).accumulator()
    with pytest.raises(AbelnetError, match=f"other: expected the same .*, got a {message}"):
        accumulator.merge(Operation(bijection, law).accumulator())
    assert accumulator.count == 0


def test_laws_and_settings_are_compared_too() -> None:
    one, other = (Operation(Affine(1), Polynomial(gamma)).accumulator() for gamma in (0.5, 0.6))
    with pytest.raises(AbelnetError, match=r"the same law, got a different one: Polynomial\.gamma differs"):
        one.merge(other)
    narrow, wide = (AbelianGroup(RationalQuadraticSpline(1, bound=bound)).accumulator() for bound in (3.0, 5.0))
    with pytest.raises(AbelnetError, match=r"the same bijection, got a different one: .*5\.0.* instead of"):
        narrow.merge(wide)


@pytest.mark.parametrize("bijection", sorted(BIJECTIONS))
def test_states_of_equal_copies_merge(bijection: str) -> None:
    operation = AbelianGroup(BIJECTIONS[bijection](torch.float64))
    x = torch.randn(6, 3, dtype=torch.float64)
    one, other = operation.accumulator(), copy.deepcopy(operation).accumulator()
    one.add_many(x[:4])
    other.add_many(x[4:])
    one.merge(pickle.loads(pickle.dumps(other)))
    assert relative_error(one.value(), operation.reduce(x).detach()) <= 1e-10


def test_a_state_belongs_to_the_parameters_it_was_started_with() -> None:
    x = torch.randn(8, 1)
    for change in ("in place", "training", "replaced", "law"):
        operation = AbelianNet(Affine(1))
        accumulator = operation.accumulator()
        accumulator.add(x[0])
        if change == "in place":
            moved(operation.bijection)
        elif change == "training":
            loss = lambda model, batch: (model.reduce(batch[0]) - batch[1]).square().mean()
            train(operation, (x.reshape(4, 2, 1), torch.ones(4, 1)), loss, settings=Settings(epochs=1))
        elif change == "replaced":
            operation.bijection.shift = torch.nn.Parameter(torch.ones(1))
        else:
            operation.law.load_state_dict(Polynomial(shift=0.5).state_dict())
        for use in (
            lambda a=accumulator: a.add(x[0]),
            lambda a=accumulator: a.add_many(x),
            lambda a=accumulator: a.remove(x[0]),
            lambda a=accumulator, o=operation: a.merge(o.accumulator()),
            lambda a=accumulator, o=operation: o.accumulator().merge(a),
            accumulator.value,
            accumulator.state_dict,
        ):
            with pytest.raises(AbelnetError, match=r"expected the parameters it was created with, got a different"):
                use()
        assert accumulator.count == 1
    moved(operation.bijection)
    operation.accumulator().add(x[0])  # a new one is sound


def test_parameters_may_move_without_changing() -> None:
    operation = AbelianGroup(Affine(1))
    accumulator = operation.accumulator()
    accumulator.add(torch.ones(1))
    for parameter in operation.parameters():
        parameter.data = parameter.data.clone()
    accumulator.add(torch.ones(1))
    assert accumulator.value().item() == 2.0


def test_growing_stays_on_the_device() -> None:
    # No other device computes everywhere, but meta tensors refuse to be joined with others just as a GPU's do.
    row = AbelianGroup(Affine(2, device=torch.device("meta"))).accumulator((1,))
    row.grow(3)
    assert row.state_dict()["state"].shape == (3, 2)
    assert row.state_dict()["state"].is_meta


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
    with pytest.raises(AbelnetError, match="other: expected an Accumulator, got int"):
        accumulator.merge(3)  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match=r"other: expected shape \(\), got \(4,\)"):
        accumulator.merge(AbelianGroup(Affine(2)).accumulator((4,)))
    with pytest.raises(AbelnetError, match=r"add_at: expected accumulators of shape \(G,\), got \(\)"):
        accumulator.add_at(torch.tensor([0]), torch.randn(1, 2))
    row = AbelianGroup(Affine(2)).accumulator((3,))
    with pytest.raises(
        AbelnetError, match=r"index, values: expected shapes \(N\) and \(N, 2\), got \(2,\) and \(1, 2\)"
    ):
        row.add_at(torch.tensor([0, 1]), torch.randn(1, 2))
    with pytest.raises(AbelnetError, match="index: expected entries from 0 to 2, got -1 to 3"):
        row.add_at(torch.tensor([3, -1]), torch.randn(2, 2))
    with pytest.raises(AbelnetError, match=r"index: expected a tensor of integers, got torch\.float32"):
        row.add_at(torch.zeros(1), torch.randn(1, 2))
    with pytest.raises(AbelnetError, match="count: expected at least 3, got 2"):
        row.grow(2)
    with pytest.raises(AbelnetError, match=r"grow: expected accumulators of shape \(G,\), got \(\)"):
        accumulator.grow(2)
    with pytest.raises(AbelnetError, match="state_dict: expected the keys state and count"):
        accumulator.load_state_dict({})
    with pytest.raises(AbelnetError, match="state: expected shape"):
        accumulator.load_state_dict(AbelianGroup(Affine(3)).accumulator().state_dict())
    assert accumulator.count == 0
