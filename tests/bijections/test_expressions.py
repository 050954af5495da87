"""What a bijection says of itself: closed forms for sympy, domains, and certified slopes, for all of them alike."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import sympy
import torch
from cases import BIJECTIONS, COUPLED, ELEMENTWISE, FAMILY_CASES

from abelnet import AbelnetError, Affine, Bijection, Chain, Generator, Monotonic, SinhArcsinh

X = sympy.Symbol("x", real=True)
CURVES: dict[str, tuple[Callable[[], Bijection], float, float]] = {
    name: (lambda make=make: make(torch.float64), -9.0, 9.0) for name, make in ELEMENTWISE.items()
} | {
    name: (lambda case=case: Generator(3, case[0], case[1], dtype=torch.float64), case[2], case[3])
    for name, case in FAMILY_CASES.items()
}


def evaluated(expression: sympy.Expr, values: torch.Tensor) -> torch.Tensor:
    with np.errstate(all="ignore"):  # all pieces are evaluated, and the right one taken
        found = sympy.lambdify(X, expression, "numpy")(values.numpy())
    return torch.from_numpy(np.broadcast_to(np.asarray(found, dtype=np.float64), values.shape).copy())


@pytest.mark.parametrize("name", CURVES)
def test_expressions_are_the_curves(name: str) -> None:
    make, low, high = CURVES[name]
    bijection = make()
    x = torch.linspace(low, high, 301, dtype=torch.float64)[1:-1, None].expand(-1, 3)
    with torch.no_grad():
        y = bijection(x)
        back = bijection.inverse(y)
        slopes = torch.autograd.functional.jacobian(lambda x: bijection(x).sum(0), x).diagonal(0, 0, 2).abs().log()
    for i in range(3):
        expected, inverse = y[:, i], back[:, i]
        got = evaluated(bijection.expression(X, i), x[:, i])
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
        # Where the curve is nearly flat its inverse magnifies the last bit of y: what counts is what f makes of it.
        got = evaluated(bijection.inverse_expression(X, i), y[:, i])
        conditioned = y[:, i].abs() / x[:, i].abs().clamp(min=1e-3) * (-slopes[:, i]).exp()
        error = (got - inverse).abs() / (inverse.abs().clamp(min=1) * conditioned.clamp(min=1))
        assert error.max() <= 1e-12


@pytest.mark.parametrize("name", COUPLED)
def test_couplings_have_no_closed_form(name: str) -> None:
    bijection = BIJECTIONS[name](torch.float64)
    for method in (bijection.expression, bijection.inverse_expression):
        with pytest.raises(AbelnetError, match="expected a bijection with a closed form, got"):
            method(X)


@pytest.mark.parametrize("name", CURVES)
def test_domain_and_codomain_hold_all_places_and_values(name: str) -> None:
    make, low, high = CURVES[name]
    bijection = make()
    x = torch.linspace(low, high, 301, dtype=torch.float64)[1:-1, None].expand(-1, 3)
    for region, values in ((bijection.domain, x), (bijection.codomain, bijection(x))):
        assert bool(((values > region[0]) & (values < region[1])).all())


def test_domain_of_a_chain() -> None:
    exponential, logarithm = Generator(1, "exponential", [-1.0]), Generator(1, "logarithm", [-2.0])
    chain = Chain(exponential, logarithm)  # log(exp(-x) - 2), below -log 2
    low, high = chain.domain
    assert (float(low), float(high)) == (-math.inf, pytest.approx(-math.log(2)))
    assert chain.codomain == (-math.inf, math.inf)
    low, high = Chain(Generator(1, "logit"), exponential, Affine(1)).codomain
    assert (float(low), float(high)) == (0.0, math.inf)
    low, high = Chain(Affine(1), Generator(1, "logit"), SinhArcsinh(1)).domain
    assert (float(low), float(high)) == (0.0, 1.0)


@pytest.mark.parametrize("name", BIJECTIONS)
def test_slope_bounds_enclose_what_is_sampled(name: str) -> None:
    bijection = BIJECTIONS[name](torch.float64).double().snapshot()
    corners = torch.full((3,), -2.0, dtype=torch.float64), torch.full((3,), 3.0, dtype=torch.float64)
    x = corners[0] + 5 * torch.rand(200, 3, dtype=torch.float64)
    forward = bijection.slope_bounds(corners)
    y = bijection(x)
    assert bool(((y >= forward.low - 1e-9) & (y <= forward.high + 1e-9)).all())
    jacobians = torch.stack([torch.autograd.functional.jacobian(bijection, row) for row in x])
    assert torch.linalg.svdvals(jacobians).max() <= forward.norm * (1 + 1e-9)
    inverse = bijection.inverse_slope_bounds((forward.low, forward.high))
    assert 1 / torch.linalg.svdvals(jacobians).min() <= inverse.norm * (1 + 1e-9)
    assert bool(((x >= inverse.low - 1e-9) & (x <= inverse.high + 1e-9)).all())


def test_start_near_a_line() -> None:
    network = Monotonic(2, 4, 4, near=(0.1, 1.0), seed=0)
    x = torch.linspace(-5, 5, 20)[:, None].expand(-1, 2)
    assert (network(x) - (1 + x / 10)).abs().max() < 0.1
    with pytest.raises(AbelnetError, match="near: expected a slope above 0 and a finite offset, got"):
        Monotonic(1, near=(0.0, 1.0))
