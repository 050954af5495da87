"""The checks can fail: they see a law that is broken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from cases import BIJECTIONS, LAWS, randomise

from abelnet import AbelianGroup, AbelianSemigroup, AbelnetError, Affine, Law, Maximum, Operation, law_defects
from abelnet.verify.defects import find_counterexample


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


@pytest.mark.parametrize(
    ("function", "law"),
    [
        (lambda x, y: x - y, "commutativity"),
        (lambda x, y: x + 2 * y, "commutativity"),
        (lambda x, y: (x + y) / 2, "associativity"),
        (lambda x, y: x * y + 1, "associativity"),
    ],
)
def test_counterexamples_are_found_and_are_true(
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], law: str
) -> None:
    found = find_counterexample(function, torch.randn(20, 2, dtype=torch.float64))
    assert found is not None
    assert found.law == law
    x, y, z = (*found.elements, found.elements[0])[:3]
    sides = (function(x, y), function(y, x))
    if law == "associativity":
        sides = (function(function(x, y), z), function(x, function(y, z)))
    torch.testing.assert_close(found.values, sides)
    assert str(found).startswith(f"no {law}: ")


def test_untrained_lcm_aggregation_depends_on_the_order() -> None:
    aggr = pytest.importorskip("torch_geometric.nn.aggr")
    aggregation = aggr.LCMAggregation(4, 4)

    def fold(elements: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = aggregation(elements, index=torch.zeros(len(elements), dtype=torch.long), dim_size=1)
        return result[0]

    found = find_counterexample(fold, torch.randn(10, 4), form="multiset")
    assert found is not None
    assert len(found.elements) >= 3  # it is commutative, hence no smaller one


def random_operations() -> Iterator[Operation]:
    """200 of ours: every bijection and law of the table, with other parameters each."""
    kinds = [(bijection, law) for bijection in BIJECTIONS for law in LAWS]
    for i in range(200):
        bijection, law = kinds[(37 * i) % len(kinds)]
        yield Operation(randomise(BIJECTIONS[bijection](torch.float64), seed=i), LAWS[law]())


def test_no_counterexample_for_ours() -> None:
    samples = torch.randn(30, 3, dtype=torch.float64)
    for operation in random_operations():
        assert find_counterexample(operation, samples, trials=300) is None
        found = find_counterexample(operation.reduce, samples, form="multiset", trials=10)
        assert found is None, str(found)


def test_what_cannot_be_checked() -> None:
    samples = torch.randn(5, 1)
    for bad in (torch.randn(2, 1), torch.randn(5), torch.ones(5, 1, dtype=torch.long)):
        with pytest.raises(AbelnetError, match="samples: expected a floating-point tensor"):
            find_counterexample(torch.add, bad)
    with pytest.raises(AbelnetError, match="form: expected"):
        find_counterexample(torch.add, samples, form="ternary")  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match="function: expected results of shape"):
        find_counterexample(lambda x, y: (x + y).sum(), samples)
    with pytest.raises(AbelnetError, match="function: expected finite results"):
        find_counterexample(lambda x, y: (x + y) * math.nan, samples)
    # What overflows is left out, what is finite is compared.
    wide = torch.logspace(-3, 200, 9, dtype=torch.float64)[:, None]
    assert find_counterexample(lambda x, y: x * y, wide) is None
