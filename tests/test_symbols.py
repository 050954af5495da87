"""Closed forms for sympy: those of every bijection are what it computes."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
import torch
from cases import BIJECTIONS, COUPLED, CURVES

from abelnet import AbelnetError

X = sympy.Symbol("x", real=True)


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
