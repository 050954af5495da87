"""Capped sums: associative everywhere, caps and floors, the nilpotent t-norms, streams with removal."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy
import torch
from cases import DTYPES
from hypothesis import given, settings
from hypothesis import strategies as st

import abelnet
from abelnet import AbelnetError, CappedSum, Generator, Operation

numbers = st.floats(-1e6, 1e6)
caps = st.floats(1e-6, 1e6).flatmap(lambda c: st.sampled_from([c, -c]))


@settings(max_examples=100, deadline=None)
@given(numbers, numbers, numbers, caps, st.floats(-1e3, 1e3))
def test_commutative_and_associative_for_all_numbers(a: float, b: float, c: float, cap: float, shift: float) -> None:
    law = CappedSum(cap, shift)
    x, y, z = (torch.tensor([v], dtype=torch.float64) for v in (a, b, c))
    assert torch.equal(law.combine(x, y), law.combine(y, x))
    left, right = law.combine(law.combine(x, y), z), law.combine(x, law.combine(y, z))
    assert abs(float(left - right)) <= 1e-12 * (abs(cap) + abs(shift) + 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_lukasiewicz(elements: list[float]) -> None:
    operation = Operation(Generator(1, "affine", dtype=torch.float64), CappedSum(-1.0, shift=-1.0))
    x = torch.tensor(elements, dtype=torch.float64)[:, None]
    wanted = max(0.0, sum(elements) - len(elements) + 1)
    assert operation.reduce(x).item() == pytest.approx(wanted, abs=1e-12)
    assert operation.identity().item() == 1.0
    assert float(operation.law.absorbing(1)) == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_streams_go_past_the_cap_and_back(dtype: torch.dtype) -> None:
    operation = Operation(Generator(1, "affine", dtype=dtype), CappedSum(15.0))
    accumulator = operation.accumulator()
    for value in (9.0, 4.0, 5.0):
        accumulator.add(torch.tensor([value], dtype=dtype))
    assert accumulator.value().item() == 15.0
    accumulator.remove(torch.tensor([9.0], dtype=dtype))
    assert accumulator.value().item() == 9.0
    assert operation.reduce(torch.zeros(1, 0, 1, dtype=dtype)).item() == 0.0
    assert operation.reduce(torch.full((1_000_000, 1), 1e-5, dtype=dtype)).item() == pytest.approx(10.0, rel=1e-6)


def test_what_it_contains() -> None:
    assert CappedSum(5.0).contains(torch.tensor([-1.0, 0.0, 3.0, 9.0])).tolist() == [False, True, True, True]
    assert CappedSum(-1.0, -1.0).contains(torch.tensor([-0.5, 0.5, 1.0, 1.5])).tolist() == [True, True, True, False]


@pytest.mark.parametrize("cap", [2.0, -2.0])
def test_expressions(cap: float) -> None:
    law = CappedSum(cap, 0.25)
    for u, v in ((0.3 * cap, 0.4 * cap), (0.9 * cap, 0.8 * cap)):
        u, v = u - 0.25, v - 0.25
        wanted = float(law.combine(torch.tensor([u], dtype=torch.float64), torch.tensor([v], dtype=torch.float64)))
        assert float(law.expression(sympy.Float(u), sympy.Float(v))) == pytest.approx(wanted, abs=1e-12)
        (a,), (b,) = law.lift_expression(sympy.Float(u)), law.lift_expression(sympy.Float(v))
        assert float(law.lower_expression(a + b)) == pytest.approx(wanted, abs=1e-12)


def test_wrong_caps() -> None:
    with pytest.raises(AbelnetError, match="cap: expected a number other than 0, got"):
        CappedSum(0.0)
    with pytest.raises(AbelnetError, match="cap: expected finite numbers"):
        CappedSum(float("inf"))


def test_it_is_saved(tmp_path: Path) -> None:
    operation = Operation(Generator(1, "positive power", [2.0], dtype=torch.float64), CappedSum(3.0))
    abelnet.save(operation, tmp_path)
    x = torch.rand(9, 1, dtype=torch.float64)
    assert torch.equal(abelnet.load(tmp_path).reduce(x), operation.reduce(x))
