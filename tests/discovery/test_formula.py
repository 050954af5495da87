"""Formulas: text and LaTeX of operations, from the symbolic forms that their parts own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from torch import Tensor

from abelnet import (
    AbelianGroup,
    AbelianNet,
    AbelnetError,
    Affine,
    Chain,
    Constant,
    Even,
    Generator,
    Law,
    Maximum,
    Minimum,
    Operation,
    Polynomial,
    Product,
    RationalQuadraticSpline,
    SinhArcsinh,
    Sum,
)
from abelnet.bijections import Elementwise
from abelnet.discovery.formula import formula, latex, number


def generated(kind: str, *parameters: float, law: Law | None = None) -> Operation:
    return Operation(Generator(1, kind, parameters, dtype=torch.float64), law or Sum())


def product(absorbing: float, gamma: float) -> Polynomial:
    return Polynomial(gamma, -1 / gamma - absorbing)


FORMULAS: dict[str, Operation] = {
    "x + y": generated("affine"),
    "x + y + 1": generated("affine", law=Polynomial(0.0, 1.0)),
    "x + y − 0.123456789": generated("affine", law=Polynomial(0.0, -0.123456789)),
    "x + y + 1e−29": generated("affine", law=Polynomial(0.0, 1e-29)),
    "x·y": generated("affine", law=product(0.0, 1.0)),
    "2·x·y": generated("affine", law=product(0.0, 2.0)),
    "x + y − x·y": generated("affine", law=product(1.0, -1.0)),
    "x + y + 0.5·x·y": generated("affine", law=product(-2.0, 0.5)),
    "x + y + 0.3·x·y": generated("affine", law=product(-1 / 0.3, 0.3)),
    "−2.1·x − 2.1·y + 0.7·x·y + 9.3": generated("affine", law=product(3.0, 0.7)),
    "max(x, y)": generated("affine", law=Maximum()),
    "min(x, y)": generated("affine", law=Minimum()),
    "7": generated("affine", law=Constant(7.0)),
    "1e−20": generated("affine", law=Constant(1e-20)),
    "x + y + 1e−20·x·y": generated("affine", law=Polynomial(1e-20)),
    "cbrt(x^3 + y^3)": generated("power", 3.0),
    "cbrt(x^3 + y^3 − 0.5)": generated("power", 3.0, law=Polynomial(0.0, -0.5)),
    "(cbrt(x) + cbrt(y))^3": generated("power", 1 / 3),
    "g⁻¹(g(x) + g(y)), g(x) = x^5": generated("power", 5.0),
    "g⁻¹(g(x) + g(y)), g(x) = sign(x)·|x|^2": generated("power", 2.0),
    "(x^2 + y^2)^(1/2)": generated("positive power", 2.0),
    "(x^(1/3) + y^(1/3))^3": generated("positive power", 1 / 3),
    "(x^0.5 + y^0.5)^2": generated("positive power", 0.5),
    "(x^(−1) + y^(−1))^(−1)": generated("positive power", -1.0),
    "(x^2.7183 + y^2.7183)^(0.367876981937)": generated("positive power", 2.7183),
    "(|x|^3 + |y|^3)^(1/3)": AbelianGroup(Even(Generator(1, "positive power", [3.0], dtype=torch.float64))),
    "(x^2 + y^2 + 1)^(1/2)": Operation(
        Even(Generator(1, "positive power", [2.0], dtype=torch.float64)), Polynomial(0.0, 1.0)
    ),
    "max(|x|, |y|)": Operation(Even(Generator(1, "positive power", [1.0], dtype=torch.float64)), Maximum()),
    "log(exp(x) + exp(y))": generated("exponential", 1.0),
    "log(exp(2·x) + exp(2·y)) / 2": generated("exponential", 2.0),
    "log(exp(−0.3·x) + exp(−0.3·y)) / (−0.3)": generated("exponential", -0.3),
    "log(exp(2·x) + exp(2·y) + 0.5) / 2": generated("exponential", 2.0, law=Polynomial(0.0, 0.5)),
    "(x + 2.5)·(y + 2.5) − 2.5": generated("logarithm", 2.5),
    "2.71828182846·x·y": generated("logarithm", 0.0, law=Polynomial(0.0, 1.0)),
    "(x + y) / (1 + x·y)": generated("arctanh", 1.0),
    "(x + y) / (1 + 0.25·x·y)": generated("arctanh", 2.0),
    "g⁻¹(g(x) + g(y) + 1), g(x) = arctanh(x / 2)": generated("arctanh", 2.0, law=Polynomial(0.0, 1.0)),
    "g⁻¹(g(x) + g(y)), g(x) = log(x / (1 − x))": generated("logit"),
    "g⁻¹(g(x) + g(y)), g(x) = arcsinh(x / 0.3)": generated("arcsinh", 0.3),
    "g⁻¹(g(x) + g(y) − 2·g(x)·g(y)), g(x) = x^3": generated("power", 3.0, law=product(0.5, -2.0)),
    "g⁻¹(g(x) + g(y) + 0.5·g(x)·g(y)), g(x) = exp(2·x)": generated("exponential", 2.0, law=product(-2.0, 0.5)),
    "φ⁻¹(φ(x) + φ(y)), φ a curve": AbelianGroup(RationalQuadraticSpline(1)),
    "φ⁻¹(φ(x)·φ(y)), φ a curve": Operation(RationalQuadraticSpline(1), Product()),
    "φ⁻¹(φ(x) + φ(y) + 0.3·φ(x)·φ(y)), φ a curve": AbelianNet(Chain(Affine(1), SinhArcsinh(1), Affine(1)), 0.3),
}


@pytest.mark.parametrize("text", FORMULAS)
def test_text(text: str) -> None:
    assert formula(FORMULAS[text]) == f"x∘y = {text}"


def read(text: str) -> Callable[..., Any]:
    """The function of x and y, or of g, that a formula prints."""
    text = re.sub(r"\|(\w)\|", r"abs(\1)", text).replace("^", "**").replace("·", "*").replace("−", "-")
    names = ["abs", "cbrt", "exp", "log", "sign", "arcsinh", "arctanh"]
    known = {name: getattr(np, name) for name in names} | {"max": np.maximum, "min": np.minimum}
    return lambda **elements: eval(text, {"__builtins__": {}}, known | elements)


@pytest.mark.parametrize("text", [text for text in FORMULAS if "φ" not in text])
def test_the_printed_formula_is_computed(text: str) -> None:
    """At random points of the stated domain, of either sign where it has both; where one has no result, neither has."""
    operation = FORMULAS[text]
    low, high = (float(torch.as_tensor(end).detach()) for end in operation.bijection.domain)
    points = np.random.default_rng(0).uniform(max(low, -3.0), min(high, 3.0), (2, 1000))
    x, y = (torch.from_numpy(one)[:, None] for one in points)
    expected = operation(x, y)[:, 0].detach().numpy()
    law, _, curve = text.partition(", g(x) = ")
    with np.errstate(all="ignore"):
        if curve:
            g = read(curve)
            combine = read(law.removeprefix("g⁻¹(").removesuffix(")"))
            wanted = combine(x=points[0], y=points[1], g=lambda x: g(x=x))
            found = g(x=expected)
            wanted = np.where(np.isnan(expected), np.nan, wanted)
        else:
            found, wanted = expected, np.broadcast_to(read(law)(x=points[0], y=points[1]), expected.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    assert np.isfinite(expected).sum() > 300


def test_outside_the_domain_is_an_error() -> None:
    for text in ("(x^2 + y^2)^(1/2)", "(x + 2.5)·(y + 2.5) − 2.5", "(x + y) / (1 + x·y)"):
        with pytest.raises(AbelnetError, match=r"x: expected .*x"):
            FORMULAS[text](torch.tensor([0.5], dtype=torch.float64), torch.tensor([-4.0], dtype=torch.float64))


def test_latex() -> None:
    assert latex(generated("power", 3.0)) == r"x \circ y = \sqrt[3]{x^{3} + y^{3}}"
    assert latex(generated("affine", law=Polynomial(0.0, 0.123456789))) == r"x \circ y = x + y + 0.123456789"
    by_generator = latex(generated("logit"))
    assert by_generator.startswith(r"x \circ y = g^{-1}\left(g{\left(x \right)}")
    assert r"g(x) = \log" in by_generator
    assert r"\varphi^{-1}\left(\varphi{\left(x \right)}" in latex(AbelianGroup(RationalQuadraticSpline(1)))


class Cubic(Elementwise):
    """A curve of a user's own, with a formula, and one without a closed inverse."""

    def forward(self, x: Tensor) -> Tensor:
        return x**3 + x

    def inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_slope(self, x: Tensor) -> Tensor:
        return (3 * x**2 + 1).log()

    def expression(self, x: Any, dimension: int = 0) -> Any:
        return x**3 + 3 * x / 2

    def inverse_expression(self, y: Any, dimension: int = 0) -> Any:
        return sympy.sinh(sympy.asinh(y) / 3)


class Unknown(Cubic):
    expression = Elementwise.expression


def test_a_curve_of_ones_own() -> None:
    assert formula(AbelianGroup(Cubic(1))) == "x∘y = g⁻¹(g(x) + g(y)), g(x) = x^3 + 1.5·x"
    assert formula(AbelianGroup(Unknown(1))) == "x∘y = φ⁻¹(φ(x) + φ(y)), φ a curve"


def test_numbers() -> None:
    values = [1.0, -2.5, 1 / 3, -2 / 3, 1e-7, 1.23456789e12, 0.0]
    assert [number(value) for value in values] == ["1", "−2.5", "1/3", "−2/3", "1e−7", "1.23457e12", "0"]


def test_importing_discovery_does_not_import_sympy() -> None:
    script = "import sys, abelnet.discovery; print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("kind", "theta", "alpha", "text"),
    [
        ("exponential", [1.0], -5.0, "g⁻¹(−5), g(x) = exp(x)"),
        ("positive power", [2.0], -5.0, "g⁻¹(−5), g(x) = x^2"),
        ("power of odds", [-1.0], -1.0, "g⁻¹(−1), g(x) = (x^(−1) − 1)^(−1)"),
        ("power", [3.0], -8.0, "cbrt(−8)"),
        ("exponential", [1.0], 2.0, "0.69314718056"),
    ],
)
def test_a_constant_that_the_bijection_does_not_reach(kind: str, theta: list[float], alpha: float, text: str) -> None:
    operation = generated(kind, *theta, law=Constant(alpha))
    assert formula(operation) == f"x∘y = {text}"
    assert latex(operation)
