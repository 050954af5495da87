"""Products of functions of one coordinate each."""

from __future__ import annotations

import pytest
import sympy
import torch

from abelnet import AbelnetError
from abelnet.bijections.intervals import Interval
from abelnet.bijections.terms import Exponential, Logarithm, Monomial, Power

F64 = torch.float64
TERM = Monomial((Power(0, 2.0), Logarithm(2), Exponential(0, -0.5)))


def test_values_gradients_and_ranges() -> None:
    x = 0.5 + torch.rand(40, 3, dtype=F64)
    expected = x[:, 0] ** 2 * x[:, 2].log() * (-0.5 * x[:, 0]).exp()
    torch.testing.assert_close(TERM.values(x), expected)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(TERM.values(x).sum(), x)
    torch.testing.assert_close(TERM.gradient(x), gradient)
    value, slopes = TERM.enclose([Interval(torch.full((1,), 0.5).double(), torch.full((1,), 1.5).double())] * 3)
    assert ((expected >= value.low) & (expected <= value.high)).all()
    for i, slope in enumerate(slopes):
        assert ((gradient[:, i] >= slope.low) & (gradient[:, i] <= slope.high)).all()
    assert TERM.coordinates == {0, 2}
    assert TERM.values(x.reshape(2, 4, 5, 3)).shape == (2, 4, 5)


def test_the_constant() -> None:
    one = Monomial()
    x = torch.randn(4, 2)
    assert torch.equal(one.values(x), torch.ones(4))
    assert torch.equal(one.gradient(x), torch.zeros(4, 2))
    assert one.expression(sympy.symbols("a b")) == 1
    assert one.is_defined(x).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_it_is_defined(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0], [-1.0], [1e-30], [2.0]], dtype=dtype)
    assert Monomial((Power(0, 0.5),)).is_defined(x).tolist() == [True, False, True, True]
    assert Monomial((Power(0, -0.5),)).is_defined(x).tolist() == [False, False, True, True]
    assert Monomial((Power(0, -1.0),)).is_defined(x).tolist() == [False, True, True, True]
    assert Monomial((Logarithm(0),)).is_defined(x).tolist() == [False, False, True, True]


def test_expression_and_arguments() -> None:
    a, _, c = sympy.symbols("a b c", positive=True)
    assert TERM.expression([a, None, c]) == a**2 * sympy.log(c) * sympy.exp(-a / 2)
    assert Monomial.from_config({"factors": [Power(1)]}) == Monomial((Power(1),))
    with pytest.raises(AbelnetError, match="factors: expected Factor instances"):
        Monomial((1,))  # type: ignore[arg-type]
