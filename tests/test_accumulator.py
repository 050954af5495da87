"""Streams: one at a time, in parts, with removal."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from cases import BIJECTIONS, GROUPS, LAWS, relative_error

from abelnet import (
    AbelianGroup,
    AbelianNet,
    AbelnetError,
    Affine,
    Bijection,
    Chain,
    Generator,
    Law,
    Maximum,
    Mean,
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
        with pytest.raises(AbelnetError, match="remove: expected a law whose states can be subtracted"):
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


def test_exponentials_do_not_overflow_in_a_stream() -> None:
    x = torch.tensor([[3000.0], [-4000.0], [3999.0], [4000.0]], dtype=torch.float64)
    for law in (Sum(), Mean()):
        operation = Operation(Generator(1, "exponential", [2.5], dtype=torch.float64), law)
        one, many, groups = operation.accumulator(), operation.accumulator(), operation.accumulator((2,))
        for element in x:
            one.add(element)
        many.add_many(x[:2])
        rest = operation.accumulator()
        rest.add_many(x[2:])
        many.merge(rest)
        groups.add_at(torch.tensor([1, 0, 1, 1]), x)
        for found, elements in ((one, x), (many, x), (groups, None)):
            sets = [x[[1]], x[[0, 2, 3]]] if elements is None else elements
            torch.testing.assert_close(found.value(), operation.reduce(sets), rtol=1e-15, atol=0)
        one.remove(x[1])
        torch.testing.assert_close(one.value(), operation.reduce(x[[0, 2, 3]]), rtol=1e-15, atol=0)


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


def test_states_of_equal_generators_merge() -> None:
    operation = AbelianGroup(Generator(1, "power", [2.0]))
    one, other = operation.accumulator(), copy.deepcopy(operation).accumulator()
    one.add(torch.tensor([3.0]))
    other.add(torch.tensor([4.0]))
    one.merge(other)
    assert one.value().item() == 5.0


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
    with pytest.raises(AbelnetError, match="remove: expected an element that was added before, got none"):
        accumulator.remove(torch.randn(2))
    assert accumulator.count == 0


THREADS, ADDS = 8, 2000


@pytest.fixture
def together() -> Iterator[Callable[[Callable[[int], None]], None]]:
    """Runs a function in eight threads at once, which take turns as often as they can."""
    start = Barrier(THREADS)
    interval = sys.getswitchinterval()

    def run(function: Callable[[int], None]) -> None:
        def wait_and_call(thread: int) -> None:
            start.wait(timeout=60)
            function(thread)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(wait_and_call, range(THREADS), timeout=120))

    sys.setswitchinterval(1e-6)
    yield run
    sys.setswitchinterval(interval)


def test_no_update_of_eight_threads_is_lost(together: Callable[[Callable[[int], None]], None]) -> None:
    accumulator = AbelianGroup(Affine(1)).accumulator()
    one = torch.ones(1)

    def add(thread: int) -> None:
        for _ in range(ADDS):
            accumulator.add(one)

    together(add)
    assert accumulator.count == THREADS * ADDS
    assert accumulator.value().item() == THREADS * ADDS


def test_threads_may_mix_all_methods(together: Callable[[Callable[[int], None]], None]) -> None:
    group = AbelianGroup(Affine(1))
    row = group.accumulator((2,))
    ones, index = torch.ones(2, 1), torch.tensor([0, 1])

    def use(thread: int) -> None:
        for _ in range(100):
            row.add_at(index, ones)
            row.add(torch.ones(2, 1))
            row.add_many(torch.ones(2, 3, 1))
            row.remove(ones)
            state = row.state_dict()["state"]
            assert torch.equal(state[0], state[1])  # never between the rows of an update
            assert row.value().shape == (2, 1)

    together(use)
    assert row.count == THREADS * 100 * (2 + 1 + 3 - 1)
    assert row.value().tolist() == [[THREADS * 100 * 4.0]] * 2


def test_merging_both_ways_at_once_neither_waits_for_ever_nor_loses(
    together: Callable[[Callable[[int], None]], None],
) -> None:
    group = AbelianGroup(Affine(1))
    pair = [group.accumulator(), group.accumulator()]
    added = group.accumulator()
    added.add(torch.ones(1))

    together(lambda thread: [pair[thread % 2].merge(pair[1 - thread % 2]) for _ in range(200)] and None)  # all empty
    together(lambda thread: [pair[thread % 2].merge(added) for _ in range(100)] and None)
    assert [one.count for one in pair] == [THREADS // 2 * 100] * 2
    assert [one.value().item() for one in pair] == [THREADS // 2 * 100.0] * 2
    pair[0].merge(pair[0])
    assert pair[0].count == THREADS * 100


@pytest.mark.parametrize("bijection", sorted(BIJECTIONS))
@torch.no_grad()
def test_threads_may_share_an_operation(bijection: str, together: Callable[[Callable[[int], None]], None]) -> None:
    operation = AbelianGroup(BIJECTIONS[bijection](torch.float64))
    sets = torch.randn(THREADS, 5, 3, dtype=torch.float64)
    expected = [operation.reduce(x) for x in sets]
    results: dict[int, list[torch.Tensor]] = {}

    def fold(thread: int) -> None:
        with torch.no_grad():
            results[thread] = [operation.reduce(sets[thread]) for _ in range(20)]

    together(fold)
    assert all(torch.equal(x, expected[thread]) for thread in range(THREADS) for x in results[thread])


@pytest.mark.parametrize(
    ("bijection", "law", "message"),
    [
        (moved(Affine(2)), Sum(), "the same bijection, Affine with its parameters, got that of another"),
        (SinhArcsinh(2), Sum(), "the same bijection"),
        (Affine(2), Maximum(), "the same law, Sum"),
        (Affine(3), Sum(), "the same bijection"),
        (Affine(2, dtype=torch.float64), Sum(), "the same bijection"),
    ],
)
def test_a_state_of_another_operation_does_not_load(bijection: Bijection, law: Law, message: str) -> None:
    state = Operation(bijection, law).accumulator().state_dict()
    accumulator = AbelianGroup(Affine(2)).accumulator()
    with pytest.raises(AbelnetError, match=f"state_dict: expected the state of {message}"):
        accumulator.load_state_dict(state)


def test_a_state_knows_settings_and_families() -> None:
    for one, other in (
        (RationalQuadraticSpline(1, bound=3.0), RationalQuadraticSpline(1, bound=5.0)),
        (Generator(1, "arctanh", [1.0]), Generator(1, "arcsinh", [1.0])),
    ):
        state = AbelianGroup(one).accumulator().state_dict()
        with pytest.raises(AbelnetError, match="expected the state of the same bijection"):
            AbelianGroup(other).accumulator().load_state_dict(state)


def test_a_state_loads_in_another_process() -> None:
    script = (
        "import torch; from abelnet import *;"
        "op = Operation(Chain(Generator(2, 'power', [2.0]), RationalQuadraticSpline(2)), Polynomial(0.5));"
        "print([x.tolist() for x in op.accumulator().state_dict().values()])"
    )
    operation = Operation(Chain(Generator(2, "power", [2.0]), RationalQuadraticSpline(2)), Polynomial(0.5))
    here = [x.tolist() for x in operation.accumulator().state_dict().values()]
    there = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert there.strip() == str(here)


def state_of(operation: Operation, shape: tuple[int, ...] = (), **changes: object) -> dict[str, torch.Tensor]:
    return operation.accumulator(shape).state_dict() | changes  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": torch.tensor(-1)}, "count: expected one integer of at least 0, got -1"),
        ({"count": torch.tensor(1.0)}, r"count: expected a tensor of integers, got torch\.float32"),
        ({"count": torch.tensor([1, 2])}, "count: expected one integer of at least 0, got"),
        ({"count": 1}, r"count: expected a torch\.Tensor, got int"),
        ({"count": torch.tensor(True)}, "count: expected a tensor of integers"),
        ({"state": torch.zeros(3, dtype=torch.float64)}, r"state: expected shape \(2,\) and torch.float64, got \(3,\)"),
        ({"state": torch.zeros(2)}, r"state: expected .* got \(2,\) and torch.float32"),
        ({"state": torch.tensor([0.0, math.nan], dtype=torch.float64)}, "state: expected finite numbers"),
        ({"state": torch.tensor([0.0, math.inf], dtype=torch.float64)}, "state: expected finite numbers"),
        ({"law": torch.zeros(32, dtype=torch.uint8)}, "the same law"),
        ({"law": torch.zeros(1)}, "the same law"),
        ({"other": torch.zeros(1)}, "state_dict: expected the keys state, count, law, bijection, got"),
    ],
)
def test_bad_states(changes: dict[str, object], message: str) -> None:
    group = AbelianGroup(Affine(2))
    accumulator = group.accumulator()
    accumulator.add(torch.ones(2))
    with pytest.raises(AbelnetError, match=message):
        accumulator.load_state_dict(state_of(group, **changes))
    assert accumulator.count == 1
    assert accumulator.value().tolist() == [1.0, 1.0]


def test_only_an_empty_maximum_may_be_infinite() -> None:
    operation = Operation(Affine(1), Maximum())
    operation.accumulator().load_state_dict(state_of(operation))
    with pytest.raises(AbelnetError, match="state: expected finite numbers for a count of 1"):
        operation.accumulator().load_state_dict(state_of(operation, count=torch.tensor(1)))
    with pytest.raises(AbelnetError, match="state: expected the empty state, since the count is 0"):
        operation.accumulator().load_state_dict(state_of(operation, state=torch.zeros(1, dtype=torch.float64)))
    with pytest.raises(AbelnetError, match="state_dict: expected the keys"):
        operation.accumulator().load_state_dict(3)  # type: ignore[arg-type]
    row = operation.accumulator((2,))
    row.add_at(torch.tensor([1]), torch.ones(1, 1))
    restored = operation.accumulator((2,))
    restored.load_state_dict(row.state_dict())  # one of a batch may still be empty
    assert restored.count == 1
