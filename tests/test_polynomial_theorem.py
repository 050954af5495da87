"""Theorem 2 as a proof that runs: which polynomials are associative and symmetric."""

from __future__ import annotations

import pytest
import sympy
from sympy import Poly, expand, simplify, symbols

x, y, z = symbols("x y z")
alpha, beta, gamma = symbols("alpha beta gamma")


def of(p: sympy.Expr, first: sympy.Expr, second: sympy.Expr) -> sympy.Expr:
    return p.subs({x: first, y: second}, simultaneous=True)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4])
def test_only_degrees_zero_and_one_can_be_associative(degree: int) -> None:
    # In x alone, p(x, y) = Σ c_i(y) x^i: with y and z fixed the coefficients are any numbers, c_n(y) and c_n(z) not 0.
    # p(p(x, y), z) has the degree n² in x, with the leading coefficient c_n(z) c_n(y)^n; p(x, p(y, z)) has at most n.
    at_y, at_z = ([symbols(f"{name}{i}") for i in range(degree + 1)] for name in ("c", "e"))
    inner, outer = (Poly(coefficients[::-1], x) for coefficients in (at_y, at_z))
    left = outer.compose(inner)
    assert left.degree() == degree**2
    assert expand(left.LC() - at_z[-1] * at_y[-1] ** degree) == 0
    assert (degree**2 <= degree) == (degree <= 1)


def test_associativity_of_the_bilinear_form_is_one_equation() -> None:
    p = alpha + beta * (x + y) + gamma * x * y
    defect = of(p, p, z) - of(p, x, of(p, y, z))
    assert expand(defect - (x - z) * (beta * (beta - 1) - alpha * gamma)) == 0


def test_its_solutions_are_the_three_forms() -> None:
    equation = alpha * gamma - beta * (beta - 1)
    assert set(sympy.solve(equation.subs(gamma, 0), beta)) == {0, 1}
    assert sympy.solve(equation, alpha) == [beta * (beta - 1) / gamma]
    form = beta * (beta - 1) / gamma + beta * (x + y) + gamma * x * y
    for p in (alpha, alpha + x + y, form):
        p = sympy.sympify(p)
        assert simplify(of(p, p, z) - of(p, x, of(p, y, z))) == 0
        assert simplify(p - of(p, y, x)) == 0


def test_each_form_is_a_sum_or_a_product_in_other_coordinates() -> None:
    group = alpha + x + y
    assert expand((group + alpha) - ((x + alpha) + (y + alpha))) == 0
    semigroup = beta * (beta - 1) / gamma + beta * (x + y) + gamma * x * y
    assert expand((gamma * semigroup + beta) - (gamma * x + beta) * (gamma * y + beta)) == 0


def test_the_group_has_the_identity_and_inverses_of_the_paper() -> None:
    group = alpha + x + y
    assert expand(group.subs(y, -alpha) - x) == 0
    assert expand(group.subs(y, -x - 2 * alpha) - -alpha) == 0
    # With β = 1 one coefficient spans both: the sum at γ = 0.
    both = (beta * (beta - 1) / gamma + beta * (x + y) + gamma * x * y).subs(beta, 1)
    assert expand(both - (x + y + gamma * x * y)) == 0
