"""Laws: the algebra, gradients at zeros and ties, and products that would overflow."""

from __future__ import annotations

import math

import pytest
import sympy
import torch
from cases import LAWS
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from abelnet import AbelnetError, Constant, Maximum, Minimum, Multisets, Polynomial, Product, Sum

numbers = st.floats(-100, 100, allow_subnormal=False)


def column(*values: float, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor(values, dtype=dtype)[:, None]


def reduce(law: torch.nn.Module, u: Tensor) -> Tensor:
    result: Tensor = law.reduce(u, Multisets(u, u.shape[-1]))  # type: ignore[operator]
    return result


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(LAWS)), st.lists(numbers, min_size=9, max_size=9))
def test_every_law_is_commutative_and_associative(name: str, values: list[float]) -> None:
    law = LAWS[name]()
    u, v, w = torch.tensor(values, dtype=torch.float64).reshape(3, 3)
    assert torch.equal(law.combine(u, v), law.combine(v, u))
    left, right = law.combine(law.combine(u, v), w), law.combine(u, law.combine(v, w))
    scale = (1 + u.abs()) * (1 + v.abs()) * (1 + w.abs())
    assert ((left - right).abs() <= 1e-13 * scale * 8).all()


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(LAWS)), st.lists(st.floats(-3, 3, allow_subnormal=False), min_size=1, max_size=8))
def test_reduce_and_cumulative_are_folds_of_combine(name: str, values: list[float]) -> None:
    law = LAWS[name]()
    u = torch.tensor(values, dtype=torch.float64)[:, None] * torch.tensor([1.0, 0.5, -0.7], dtype=torch.float64)
    folds = [u[0]]
    for element in u[1:]:
        folds.append(law.combine(folds[-1], element))
    scale = max(1, (1 + 2 * u.abs()).prod(0).max().item())
    torch.testing.assert_close(reduce(law, u), folds[-1], rtol=1e-10, atol=1e-13 * scale)
    torch.testing.assert_close(law.cumulative(u), torch.stack(folds), rtol=1e-10, atol=1e-13 * scale)
    torch.testing.assert_close(
        law.power(u[0], 3), law.combine(u[0], law.combine(u[0], u[0])), rtol=1e-10, atol=1e-13 * scale
    )


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(sorted(LAWS)), st.lists(numbers, min_size=3, max_size=3))
def test_identity_and_inverse(name: str, values: list[float]) -> None:
    law, u = LAWS[name](), torch.tensor(values, dtype=torch.float64)
    identity = law.identity(3)
    if identity is None:
        assert isinstance(law, (Maximum, Constant))
        return
    torch.testing.assert_close(law.combine(u, identity.double()), u, rtol=1e-7, atol=1e-7)
    if law.is_group:
        torch.testing.assert_close(law.combine(u, law.inverse(u)), identity.double(), rtol=1e-12, atol=1e-12)
        assert law.inverse(u.float()).dtype == torch.float32
    else:
        with pytest.raises(AbelnetError, match="expected a group"):
            law.inverse(u)


def test_theorem_2_gives_all_three_forms() -> None:
    u, v = torch.randn(2, 50, 1, dtype=torch.float64)
    for alpha, beta, gamma in [(7.0, 0.0, 0.0), (3.0, 1.0, 0.0), (0.0, 1.0, 0.5), (0.0, 0.0, 2.0), (6.0, 3.0, 1.0)]:
        law = Polynomial.from_coefficients(alpha, beta, gamma).double()
        expected = alpha + beta * (u + v) + gamma * u * v
        torch.testing.assert_close(law.combine(u, v), expected)
        torch.testing.assert_close(reduce(law, torch.stack((u[0], v[0]))), expected[0])
    with pytest.raises(AbelnetError, match=r"alpha \* gamma = beta \* \(beta - 1\)"):
        Polynomial.from_coefficients(1.0, 1.0, 1.0)


def test_polynomial_becomes_the_product() -> None:
    law = Polynomial.from_coefficients(0.0, 0.0, 1.0).double()
    u = torch.randn(9, 2, dtype=torch.float64)
    torch.testing.assert_close(reduce(law, u), u.prod(0))
    for factors in ((1e-30, 1e30), (1e-9, 3e-9), (1e-17, 1e17, -1.0), (1e-6, 2e-6, 1e6)):
        u = column(*factors)
        torch.testing.assert_close(reduce(law, u), u.prod(0), rtol=1e-12, atol=0)
        torch.testing.assert_close(law.combine(u[0], u[1]), u[0] * u[1], rtol=1e-12, atol=0)


def test_combine_overflows_only_where_the_result_does() -> None:
    large = torch.tensor([1e20])
    assert Polynomial(0.0).combine(large, large).item() == pytest.approx(2e20)
    assert Polynomial(1e-30).combine(large, large).item() == pytest.approx(2e20 + 1e10)
    assert Constant(7.0).combine(large * 1e18, large * 1e18).item() == 7.0


@pytest.mark.parametrize("gamma", [0.0, 1e-300, -1e-30, 1e-12, -1e-5, 1e-2, 0.3])
def test_polynomial_is_exact_and_differentiable_through_gamma_zero(gamma: float) -> None:
    # A short polynomial in gamma is the reference: e1 + gamma e2 + gamma^2 e3 over the elementary symmetric sums.
    u = torch.tensor([0.7, -1.3, 2.1], dtype=torch.float64)
    e1, e2, e3 = u.sum(), u[0] * u[1] + u[0] * u[2] + u[1] * u[2], u.prod()
    law = Polynomial(gamma=gamma, trainable="gamma", dtype=torch.float64)
    result = reduce(law, u[:, None])
    torch.testing.assert_close(result, (e1 + gamma * e2 + gamma**2 * e3)[None], rtol=4e-16, atol=4e-16)
    (slope,) = torch.autograd.grad(result, law.gamma, create_graph=True)
    torch.testing.assert_close(slope, (e2 + 2 * gamma * e3)[None], rtol=1e-12, atol=1e-12)


def test_polynomial_gradcheck_on_both_signs_and_at_its_pole() -> None:
    gamma = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    u = column(-2.0, 1.3, -7.0, 0.2).requires_grad_()  # the first is the absorbing element, the third gives sign -1

    def call(u: Tensor, gamma: Tensor) -> Tensor:
        law = Polynomial(0.5, trainable="gamma", dtype=torch.float64)
        return torch.func.functional_call(Reduce(law), {"law.gamma": gamma}, (u,))

    (gradient,) = torch.autograd.grad(call(u, gamma).sum(), u)
    others = (1 + 0.5 * u[1:]).prod()
    torch.testing.assert_close(gradient.flatten(), torch.stack([others, *[others * 0] * 3]))
    assert call(u, gamma).item() == -2.0
    away = column(-1.7, 1.3, -7.0, 0.2).requires_grad_()
    assert torch.autograd.gradcheck(call, (away, gamma))


class Reduce(torch.nn.Module):
    def __init__(self, law: torch.nn.Module) -> None:
        super().__init__()
        self.law = law

    def forward(self, u: Tensor) -> Tensor:
        return reduce(self.law, u)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((2.0, 3.0, -4.0), (-12.0, -8.0, 6.0)),
        ((2.0, 0.0, -4.0), (0.0, -8.0, 0.0)),
        ((0.0, 0.0, -4.0), (0.0, 0.0, 0.0)),
        ((1e-310, 3.0, 5.0), (15.0, 5e-310, 3e-310)),
    ],
)
def test_product_gradient_is_that_of_the_others(values: tuple[float, ...], expected: tuple[float, ...]) -> None:
    u = column(*values).requires_grad_()
    (gradient,) = torch.autograd.grad(reduce(Product(), u).sum(), u)
    torch.testing.assert_close(gradient.flatten(), torch.tensor(expected, dtype=torch.float64))


def test_maximum_shares_the_gradient_between_ties() -> None:
    for law in (Maximum(), Minimum()):
        u = column(2.0, 2.0, 2.0).requires_grad_()
        (gradient,) = torch.autograd.grad(reduce(law, u).sum(), u)
        torch.testing.assert_close(gradient, torch.full_like(u, 1 / 3))
        (gradient,) = torch.autograd.grad(law.combine(u[0], u[1]).sum(), u)
        torch.testing.assert_close(gradient, column(0.5, 0.5, 0.0))


class TestMillionElements:
    def elements(self) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        magnitudes = torch.exp2(2 * torch.rand(1_000_000, 1, generator=generator) - 1)
        signs = torch.randint(2, (1_000_000, 1), generator=generator) * 2 - 1
        return magnitudes * signs

    def test_product_log_magnitude(self) -> None:
        u = self.elements()
        assert u.dtype == torch.float32
        sign, log = Product().log_reduce(u, Multisets(u, 1))
        reference = u.double().abs().log().sum()
        assert sign.item() == u.sign().prod().item()
        assert log.isfinite()
        assert abs(log - reference) <= 1e-4 * abs(reference)

    def test_product_that_fits_is_finite(self) -> None:
        # The product of the first n overflows float32 many times over, with and without a later way back.
        u = self.elements()
        u = torch.cat((u, 1 / u[:-3])).requires_grad_()
        result = reduce(Product(), u)
        reference = u.double().abs().log().sum()
        assert result.isfinite()
        assert abs(result.double().abs().log() - reference) <= 1e-4 * abs(reference)
        (gradient,) = torch.autograd.grad(result, u)
        torch.testing.assert_close(gradient, result / u, rtol=1e-4, atol=0)

    def test_one_zero_absorbs(self) -> None:
        u = self.elements()
        u[1234] = 0
        u.requires_grad_()
        for law in (Product(), Polynomial.from_coefficients(0.0, 0.0, 1.0)):
            result = reduce(law, u)
            assert result.item() == 0
            (gradient,) = torch.autograd.grad(result, u)
            assert gradient.isfinite().all()
            assert (gradient != 0).sum() <= 1

    def test_sum_keeps_its_precision(self) -> None:
        u = self.elements().abs()
        assert abs(reduce(Sum(), u) - u.double().sum()) <= 1e-6 * u.double().sum()

    def test_polynomial_keeps_its_precision(self) -> None:
        u = 1e-6 * self.elements()
        reference = (0.5 * u.double()).log1p().sum().expm1() / 0.5
        torch.testing.assert_close(reduce(Polynomial(gamma=0.5), u).double(), reference[None], rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", sorted(LAWS))
def test_extremes_stay_finite(name: str, dtype: torch.dtype) -> None:
    law = LAWS[name]()
    u = torch.tensor([0.0, 1e-30, -1e-30, 1e6, -1e6], dtype=dtype)[:, None].expand(-1, 3).clone().requires_grad_()
    for result in (law.combine(u, u.flip(0)), law.cumulative(u), reduce(law, u)):
        assert result.isfinite().all()
        assert result.dtype == dtype
        if result.requires_grad:  # a constant has none
            (gradient,) = torch.autograd.grad(result.sum(), u)
            assert gradient.isfinite().all()


def test_polynomial_arguments() -> None:
    with pytest.raises(AbelnetError, match="trainable"):
        Polynomial(trainable="beta")
    assert [name for name, _ in Polynomial(trainable="gamma").named_parameters()] == ["gamma"]
    assert set(Polynomial(0.5).state_dict()) == {"gamma", "shift"}
    assert math.isclose(Polynomial(0.5, 2.0).identity(1).item(), -2.0)


@pytest.mark.parametrize("name", LAWS)
def test_expressions_are_the_law(name: str) -> None:
    law = LAWS[name]()
    u, v = sympy.symbols("u v", real=True)
    x = torch.tensor([[-1.5, 0.0, 2.0], [0.5, -3.0, 1.0], [0.0, 2.0, 0.0]], dtype=torch.float64)
    for i in range(3):
        pair = sympy.lambdify((u, v), law.expression(u, v, i), "numpy")
        for first in x[:, i].tolist():
            for second in x[:, i].tolist():
                expected = law.combine(*(torch.tensor([value] * 3, dtype=torch.float64) for value in (first, second)))
                assert pair(first, second) == pytest.approx(expected[i].item(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_states_for_other_engines_fold_as_the_law_does(name: str) -> None:
    law = LAWS[name]()
    u = sympy.Symbol("u", real=True)
    rows = torch.tensor([[-1.5, 0.5, 2.0], [0.5, -3.0, 1.0], [0.7, 2.0, 0.0], [2.5, -0.5, 0.1]], dtype=torch.float64)
    expected = law.reduce(rows, Multisets(rows, 3))
    join = {"sum": sum, "max": max}[law.aggregate]
    for i in range(3):
        lift = sympy.lambdify(u, law.lift_expression(u, i), "math")
        states = [lift(value) for value in rows[:, i].tolist()]
        columns = sympy.symbols(f"s:{len(states[0])}", real=True)
        lower = sympy.lambdify(columns, law.lower_expression(*columns, dimension=i), "math")
        folded = lower(*(join(float(state[k]) for state in states) for k in range(len(columns))))
        assert float(folded) == pytest.approx(expected[i].item(), rel=1e-6 if name == "polynomial_small" else 1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_absorbing_elements_absorb(name: str) -> None:
    law = LAWS[name]()
    absorbing = law.absorbing(3)
    if absorbing is not None:
        u = torch.randn(5, 3, dtype=torch.float64)
        torch.testing.assert_close(law.combine(u, absorbing.double()), absorbing.double().expand(5, 3))
    assert (absorbing is None) == (law.is_group or name in ("maximum", "minimum", "polynomial_mixed"))


@pytest.mark.parametrize("name", LAWS)
def test_plain_forms_are_sums_and_products(name: str) -> None:
    law = LAWS[name]()
    form = law.plain_form()
    if form is None:
        assert name in ("constant", "maximum", "minimum", "polynomial_mixed")
        return
    u, v = torch.randn(2, 5, 3, dtype=torch.float64)
    first, second, both = (form.factor * part + form.offset for part in (u, v, law.combine(u, v)))
    torch.testing.assert_close(both, first + second if form.kind == "sum" else first * second)
