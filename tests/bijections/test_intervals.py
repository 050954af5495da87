"""Interval arithmetic: no value lies outside its range."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from abelnet.bijections.intervals import Enclosed, Interval, cells, largest_norm

F64 = torch.float64
FUNCTIONS: dict[str, tuple[Callable[[Interval], Interval], Callable[[Tensor], Tensor]]] = {
    "square": (Interval.square, torch.square),
    "exp": (Interval.exp, torch.exp),
    "log": (Interval.log, torch.log),
    "sqrt": (Interval.sqrt, torch.sqrt),
    "cos": (Interval.cos, torch.cos),
    "sin": (Interval.sin, torch.sin),
    "reciprocal": (Interval.reciprocal, torch.reciprocal),
    "minus": (Interval.__neg__, torch.neg),
    "scaled": (lambda x: x.scaled(-2.0).plus(1.0), lambda x: 1 - 2 * x),
}
ends = st.lists(st.floats(-9, 9), min_size=2, max_size=2).map(sorted)


def interval(low: float, high: float) -> Interval:
    return Interval(torch.tensor([low], dtype=F64), torch.tensor([high], dtype=F64))


def holds(found: Interval, values: Tensor) -> bool:
    values = values[values.isfinite()]
    rounding = 1e-12 + 1e-12 * values.abs()
    return bool(((values >= found.low - rounding) & (values <= found.high + rounding)).all())


@settings(deadline=None, max_examples=200)
@given(name=st.sampled_from(sorted(FUNCTIONS)), x=ends)
def test_functions(name: str, x: list[float]) -> None:
    of_ranges, of_numbers = FUNCTIONS[name]
    found = of_ranges(interval(*x))
    assert holds(found, of_numbers(torch.linspace(*x, 101, dtype=F64)))
    assert not (found.low.isnan() | found.high.isnan()).any()


@settings(deadline=None, max_examples=200)
@given(x=ends, y=ends)
def test_pairs(x: list[float], y: list[float]) -> None:
    a, b = torch.cartesian_prod(*(torch.linspace(*one, 21, dtype=F64) for one in (x, y))).unbind(-1)
    first, second = interval(*x), interval(*y)
    assert holds(first + second, a + b)
    assert holds(first - second, a - b)
    assert holds(first * second, a * b)
    assert holds(first / second, a / b)


def test_the_whole_line_where_nothing_is_known() -> None:
    for found in (interval(-1, 1).reciprocal(), interval(-1, 1).log(), interval(0, 1) * interval(-math.inf, math.inf)):
        assert (found.low.item(), found.high.item()) == (-math.inf, math.inf)
    both = interval(-math.inf, 0) + interval(0, math.inf)
    assert (both.low.item(), both.high.item()) == (-math.inf, math.inf)


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 13])
def test_cells_cover_the_box(dim: int) -> None:
    low, high = torch.full((dim,), -1.1, dtype=F64), torch.full((dim,), 0.7, dtype=F64)
    box = cells(low, high)
    assert len(box) == dim
    assert len(box[0].low) <= 4096
    volume = torch.stack([one.high - one.low for one in box]).prod(0).sum()
    assert volume.item() == pytest.approx(1.8**dim)
    assert all(float(one.low.min()) == -1.1 and float(one.high.max()) == 0.7 for one in box)


def test_derivatives_of_quotients() -> None:
    zero, one = interval(0, 0), interval(1, 1)
    x, y = Enclosed(interval(1, 2), (one, zero)), Enclosed(interval(2, 4), (zero, one))
    quotient = x / y
    assert (quotient.value.low.item(), quotient.value.high.item()) == (0.25, 1.0)
    assert (quotient.gradient[0].low.item(), quotient.gradient[0].high.item()) == (0.25, 0.5)
    assert (quotient.gradient[1].low.item(), quotient.gradient[1].high.item()) == (-0.5, -0.0625)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 1000))
def test_norms_are_upper_bounds(seed: int) -> None:
    matrix = torch.randn(3, 3, generator=torch.Generator().manual_seed(seed), dtype=F64)
    bound = largest_norm([[interval(float(x), float(x)) for x in row] for row in matrix])
    assert torch.linalg.matrix_norm(matrix, 2) <= bound * (1 + 1e-12)
