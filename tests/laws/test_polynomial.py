"""Theorem 2 as a proof that runs, of the classes themselves: which polynomials are associative and symmetric."""

from __future__ import annotations

import math
from itertools import combinations, product

import pytest
import sympy
import torch
from sympy import Poly, Rational, expand, lambdify, symbols

from abelnet import AbelnetError, Constant, Law, Multisets, Polynomial

u, v, w = symbols("u v w")
alpha, beta, gamma = symbols("alpha beta gamma")
BILINEAR = alpha + beta * (u + v) + gamma * u * v
NUMBERS = [Rational(k, 2) for k in (-4, -2, -1, 0, 1, 2, 3)]
LAWS = {
    "constant": Constant(0.75),
    "sum": Polynomial(),
    "shifted sum": Polynomial(shift=-1.25),
    "product": Polynomial(gamma=0.3),
    "shifted product": Polynomial(gamma=-2.0, shift=0.7),
    "plain product": Polynomial.from_coefficients(0.0, 0.0, 1.0),
}


def of(p: sympy.Expr, first: sympy.Expr, second: sympy.Expr) -> sympy.Expr:
    return sympy.sympify(p).subs({u: first, v: second}, simultaneous=True)


def defect(p: sympy.Expr) -> sympy.Expr:
    return expand(of(p, of(p, u, v), w) - of(p, u, of(p, v, w)))


def is_zero(p: sympy.Expr) -> bool:
    """Whether all coefficients are 0, up to what is left of rounding."""
    return all(abs(coefficient) < 1e-12 for coefficient in Poly(expand(p), u, v, w).coeffs())


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4])
def test_only_degrees_zero_and_one_can_be_associative(degree: int) -> None:
    # In u alone, p(u, v) = Σ c_i(v) u^i: with v and w fixed the coefficients are any numbers, c_n(v) and c_n(w) not 0.
    # p(p(u, v), w) has the degree n² in u, with the leading coefficient c_n(w) c_n(v)^n; p(u, p(v, w)) has at most n.
    at_v, at_w = ([symbols(f"{name}{i}") for i in range(degree + 1)] for name in ("c", "e"))
    inner, outer = (Poly(coefficients[::-1], u) for coefficients in (at_v, at_w))
    left = outer.compose(inner)
    assert left.degree() == degree**2
    assert expand(left.LC() - at_w[-1] * at_v[-1] ** degree) == 0
    assert (degree**2 <= degree) == (degree <= 1)


def test_from_coefficients_takes_the_associative_polynomials_and_no_others() -> None:
    # Symmetric and of degree 1 in each argument: the bilinear form, whose defect is one equation.
    assert expand(defect(BILINEAR) - (u - w) * (beta * (beta - 1) - alpha * gamma)) == 0
    kinds = set()
    for values in product(NUMBERS, repeat=3):
        p = BILINEAR.subs(dict(zip((alpha, beta, gamma), values, strict=True)))
        coefficients = [float(value) for value in values]
        if defect(p) == 0:
            law = Polynomial.from_coefficients(*coefficients)
            assert is_zero(law.expression(u, v) - p)
            kinds.add((type(law), law.is_group))
        else:
            with pytest.raises(AbelnetError, match="is not associative"):
                Polynomial.from_coefficients(*coefficients)
    assert kinds == {(Constant, False), (Polynomial, True), (Polynomial, False)}  # the three forms of the theorem


@pytest.mark.parametrize("name", sorted(LAWS))
def test_the_laws_are_associative_and_symmetric_and_combine_as_they_say(name: str) -> None:
    law: Law = LAWS[name]
    p = law.expression(u, v)
    assert is_zero(defect(p))
    assert is_zero(p - of(p, v, u))
    x, y = 5 * torch.randn(2, 100, 1, dtype=torch.float64)
    expected = torch.as_tensor(lambdify((u, v), p)(x, y), dtype=torch.float64).expand_as(x)
    torch.testing.assert_close(law.combine(x, y), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(LAWS.keys() - {"constant"}))
def test_each_is_a_sum_or_a_product_in_other_coordinates(name: str) -> None:
    law = LAWS[name]
    form = law.plain_form()
    assert form is not None
    inside = [float(form.factor) * x + float(form.offset) for x in (u, v, law.expression(u, v))]
    assert form.kind == ("sum" if law.is_group else "product")
    joined = inside[0] + inside[1] if law.is_group else inside[0] * inside[1]
    assert is_zero(inside[2] - joined)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_identity_inverses_and_absorbing_elements_are_those_of_the_paper(name: str) -> None:
    law = LAWS[name]
    identity, absorbing = law.identity(1), law.absorbing(1)
    if identity is not None:
        assert is_zero(law.expression(u, sympy.Float(identity.item())) - u)
    if absorbing is not None:
        assert is_zero(law.expression(u, sympy.Float(absorbing.item())) - absorbing.item())
    if law.is_group:
        # The inverse is affine, -u - 2α, so two points fix it.
        low, high = law.inverse(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()
        assert identity is not None
        assert is_zero(law.expression(u, low + (high - low) * u) - identity.item())
    assert (identity is None, absorbing is None) == (name == "constant", law.is_group)


def test_with_beta_one_a_single_coefficient_spans_sums_and_products() -> None:
    for value in (0.0, 1e-9, 0.5, -2.0):
        assert is_zero(Polynomial(gamma=value).expression(u, v) - (u + v + value * u * v))


@pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e-9, -1e-4, 0.3, -0.9, 40.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sets_of_positive_factors_have_the_same_bits_beside_others(gamma: float, dtype: torch.dtype) -> None:
    # Alone they are folded with one state per element, beside a zero or negative factor with four.
    law = Polynomial([gamma, gamma, 0.5], trainable="gamma")
    u = torch.rand(40, 3, dtype=dtype) * torch.tensor([1.0, 1e-6, 3.0], dtype=dtype)
    index = torch.arange(40) % 7
    pole = -1 / gamma if abs(gamma) > 1e-6 else -2.0
    bad = torch.tensor([[pole] * 3, [2 * pole] * 3], dtype=dtype)
    bad[:, 2] = torch.tensor([-2.0, -4.0], dtype=dtype)
    more, places = torch.cat((u, bad)), torch.cat((index, torch.tensor([7, 7])))
    results = []
    for values, of in ((u, index), (more, places)):
        values = values.clone().requires_grad_()
        result = law.reduce(values, Multisets(values, 3, index=of))[:7]
        (slope,) = torch.autograd.grad(result.sum(), values)
        results.append((result, slope[:40]))
    assert torch.equal(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-6 if dtype == torch.float32 else 1e-13, atol=0)


@pytest.mark.parametrize("gamma", [0.0, 1e-9, 1e-5, 1e-4, 1e-3, -0.02, 0.5, -0.4])
@pytest.mark.parametrize("spread", [1.0, 1e-4])
def test_gradients_are_those_of_the_product(gamma: float, spread: float) -> None:
    # The reference is the exact polynomial in gamma, sums of products of distinct elements.
    u = (spread * torch.tensor([[0.7], [-1.3], [2.1], [0.4]], dtype=torch.float64)).requires_grad_()
    law = Polynomial([gamma], trainable="gamma")
    result = law.reduce(u, Multisets(u, 1)).sum()
    of_u, of_gamma = torch.autograd.grad(result, (u, law.gamma), create_graph=True)
    (twice,) = torch.autograd.grad(of_gamma.sum(), law.gamma, retain_graph=True)
    x = u.detach()[:, 0].tolist()
    sums = [sum(math.prod(chosen) for chosen in combinations(x, k)) for k in range(1, 5)]
    assert of_gamma.item() == pytest.approx(sum(k * gamma ** (k - 1) * sums[k] for k in range(1, 4)), rel=1e-10)
    assert twice.item() == pytest.approx(
        2 * sums[2] + 6 * gamma * sums[3], rel=1e-4 if abs(gamma) * spread < 1e-3 else 1e-6
    )
    for i in range(4):
        others = math.prod(1 + gamma * one for j, one in enumerate(x) if j != i)
        assert of_u[i].item() == pytest.approx(others, rel=1e-13)


def test_a_shared_gamma_gets_the_sum_of_gradients() -> None:
    u = torch.rand(5, 3, dtype=torch.float64)
    shared, own = Polynomial([0.2], trainable="gamma"), Polynomial([0.2] * 3, trainable="gamma")
    slopes = [torch.autograd.grad(law.reduce(u, Multisets(u, 3)).sum(), law.gamma)[0] for law in (shared, own)]
    torch.testing.assert_close(slopes[0], slopes[1].sum(0, keepdim=True))


def test_derivatives_beside_the_absorbing_element() -> None:
    law = Polynomial.from_coefficients(0.0, 0.0, 1.0)
    u = torch.tensor([[1e-30], [2e-30], [1e20], [3.0]], dtype=torch.float64, requires_grad=True)
    result = law.reduce(u, Multisets(u, 1))
    for create_graph in (False, True):
        (slopes,) = torch.autograd.grad(result.sum(), u, create_graph=create_graph, retain_graph=True)
        assert slopes[:, 0].tolist() == pytest.approx([6e-10, 3e-10, 6e-60, 2e-40], rel=1e-13)
    (twice,) = torch.autograd.grad(slopes[0, 0], u)
    assert twice[:, 0].tolist() == pytest.approx([0, 3e20, 6e-30, 2e-10], rel=1e-12, abs=1e5)
