"""Curves of one coordinate: inverses, slopes, ranges, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from abelnet import AbelianGroup, AbelnetError, Triangular, load, save
from abelnet.bijections.intervals import Interval
from abelnet.bijections.terms import Curve, Monomial, Power

F64 = torch.float64
steps = st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=6)


def curve(parts: list[tuple[float, float]], sign: int) -> Curve:
    x, y = [0.0], [1.0]
    for a, b in parts:
        x.append(x[-1] + a)
        y.append(y[-1] + sign * b)
    return Curve(0, x, y)


@given(steps, st.sampled_from([-1, 1]))
def test_round_trips_and_slopes(parts: list[tuple[float, float]], sign: int) -> None:
    one = curve(parts, sign)
    x = torch.linspace(one.knots[0] - 5, one.knots[-1] + 5, 57, dtype=F64).requires_grad_()
    u = one.forward(x)
    torch.testing.assert_close(one.inverse(u), x, rtol=1e-9, atol=1e-8)
    (slope,) = torch.autograd.grad(u.sum(), x)
    torch.testing.assert_close(one.slope(x).detach(), slope)
    knots = torch.tensor(one.knots, dtype=F64)
    torch.testing.assert_close(one.forward(knots), torch.tensor(one.heights, dtype=F64), rtol=1e-12, atol=1e-9)


@given(steps, st.sampled_from([-1, 1]), st.floats(-10, 10), st.floats(0, 100))
def test_ranges(parts: list[tuple[float, float]], sign: int, low: float, width: float) -> None:
    one = curve(parts, sign)
    box = Interval(torch.tensor([low], dtype=F64), torch.tensor([low + width], dtype=F64))
    x = torch.linspace(low, low + width, 33, dtype=F64)
    values, slopes = one.enclose(box)
    for found, ends in ((one.forward(x), values), (one.slope(x), slopes)):
        assert bool((found >= ends.low - 1e-9).all())
        assert bool((found <= ends.high + 1e-9).all())


def test_a_weighted_mean_by_a_curve_is_saved(tmp_path: Path) -> None:
    phi = Curve(1, [-1.0, 0.0, 2.0], [-3.0, 0.0, 1.0])
    law = AbelianGroup(Triangular(2, [[Monomial((Power(0),))], [Monomial((Power(0), phi))]], [[1.0]] * 2, dtype=F64))
    x = torch.tensor([[1.0, -0.5], [2.0, 1.0]], dtype=F64)
    result = law.reduce(x).detach()
    torch.testing.assert_close(result, torch.tensor([3.0, -1 / 18], dtype=F64))
    save(law, tmp_path)
    assert torch.equal(load(tmp_path).reduce(x), result)


@pytest.mark.parametrize(
    ("knots", "heights", "message"),
    [
        ([0.0], [1.0], "two or more"),
        ([0.0, 1.0], [1.0], "two or more"),
        ([1.0, 0.0], [0.0, 1.0], "ascending"),
        ([0.0, 1.0, 2.0], [0.0, 1.0, 0.5], "rising or all falling"),
        ([0.0, float("inf")], [0.0, 1.0], "finite"),
    ],
)
def test_bad_input(knots: list[float], heights: list[float], message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        Curve(0, knots, heights)
