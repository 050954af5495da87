"""Functions of one coordinate: inverses, slopes, ranges and formulas, at extremes."""

from __future__ import annotations

import math

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abelnet import AbelnetError
from abelnet.bijections.intervals import Interval
from abelnet.bijections.terms import FACTORS, Exponential, Factor, Logarithm, Power

F64 = torch.float64
# Each factor, with a range of the numbers that it takes.
CASES: dict[str, tuple[Factor, float, float]] = {
    "itself": (Power(0), -1e6, 1e6),
    "square": (Power(0, 2.0), 0.0, 1e6),
    "cube": (Power(0, 3.0), -1e6, 1e6),
    "reciprocal": (Power(0, -1.0), 1e-30, 1e6),
    "negative_reciprocal": (Power(0, -3.0), -1e6, -1e-6),
    "inverse_square": (Power(0, -2.0), 1e-6, 1e6),
    "root": (Power(0, 0.5), 0.0, 1e6),
    "real": (Power(0, -1.7), 1e-6, 1e6),
    "logarithm": (Logarithm(0), 1e-30, 1e6),
    "exponential": (Exponential(0, 0.5), -9.0, 9.0),
    "acid": (Exponential(0, -1.0, 10.0), -3.0, 14.0),
    "octave": (Exponential(0, 1.0, 2.0), -9.0, 9.0),
}


@pytest.mark.parametrize("name", CASES)
def test_inverses_and_slopes(name: str) -> None:
    factor, low, high = CASES[name]
    x = torch.linspace(low, high, 101, dtype=F64)
    x = torch.cat((x, x[[0, -1]], (x[0] + 1e-3 * (x[-1] - x[0])).reshape(1)))
    u = factor.forward(x)
    torch.testing.assert_close(factor.inverse(u), x, rtol=1e-13, atol=1e-14 if factor.is_defined_at_zero else 0)
    inner = x[1:-3].requires_grad_()
    (slope,) = torch.autograd.grad(factor.forward(inner).sum(), inner)
    torch.testing.assert_close(factor.slope(inner).detach(), slope, rtol=1e-13, atol=0)
    assert isinstance(factor, FACTORS)
    assert factor.is_defined_at_zero == math.isfinite(factor.forward(torch.zeros(())).item())


@pytest.mark.parametrize("name", CASES)
def test_expressions(name: str) -> None:
    factor, low, high = CASES[name]
    x = sympy.Symbol("x", real=True)
    for place in (0.7 * low + 0.3 * high, 0.999 * low + 0.001 * high):
        value = factor.forward(torch.tensor(place, dtype=F64)).item()
        assert float(factor.expression(x).subs(x, place)) == pytest.approx(value, rel=1e-12)
        assert float(factor.inverse_expression(x).subs(x, value)) == pytest.approx(place, rel=1e-11, abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(name=st.sampled_from(sorted(CASES)), parts=st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted))
def test_ranges_hold_all_values(name: str, parts: list[float]) -> None:
    factor, low, high = CASES[name]
    ends = [max(low, -50) + (min(high, 50) - max(low, -50)) * part for part in parts]
    x = Interval(*(torch.tensor([end], dtype=F64) for end in ends))
    places = torch.linspace(*ends, 51, dtype=F64)
    values, slopes = factor.enclose(x)
    for found, numbers in ((values, factor.forward(places)), (slopes, factor.slope(places))):
        room = 1e-12 * numbers.abs()
        assert ((numbers >= found.low - room) & (numbers <= found.high + room)).all()
    roots, steepness = factor.enclose_inverse(values, 1)
    room = 1e-9 * places.abs() + 1e-12
    assert ((places >= roots.low - room) & (places <= roots.high + room)).all()
    inverse = 1 / factor.slope(places)
    inverse = inverse[inverse.isfinite()]
    assert (
        (inverse >= steepness.low - 1e-6 * inverse.abs()) & (inverse <= steepness.high + 1e-6 * inverse.abs())
    ).all()


def test_powers_of_ten_are_exact() -> None:
    acid = Exponential(0, -1.0, 10.0)
    ph = torch.arange(15, dtype=F64)
    expected = torch.tensor([float(f"1e-{k}") for k in range(15)], dtype=F64)
    torch.testing.assert_close(acid.forward(ph), expected, rtol=3e-16, atol=0)
    torch.testing.assert_close(acid.inverse(expected), ph, rtol=1e-15, atol=0)


def test_what_has_no_root_is_nan() -> None:
    for factor, values in (
        (Power(0, 2.0), [-1.0]),
        (Power(0, 0.5), [-1.0]),
        (Power(0, -2.0), [-1.0]),
        (Power(0, -3.0), [0.0]),
        (Exponential(0), [-1.0]),
    ):
        assert factor.inverse(torch.tensor(values, dtype=F64)).isnan().all(), factor


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Power(-1), "coordinate: expected at least 0, got -1"),
        (lambda: Power(0, 0.0), "exponent: expected a number other than 0, got 0"),
        (lambda: Power(0, math.nan), "exponent: expected a number"),
        (lambda: Exponential(0, 0.0), "rate: expected a number other than 0, got 0"),
        (lambda: Exponential(0, math.inf), "rate: expected a number"),
        (lambda: Exponential(0, 1.0, 3.0), r"base: expected one of 2\.71828, 10, 2, got 3"),
    ],
)
def test_bad_arguments(make: object, message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        make()  # type: ignore[operator]
