"""MathML: well-formed, with every name as text."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import pytest
from sympy import Float, Function, IndexedBase, Sum, Symbol, cbrt, exp, log, symbols

from abelnet import AbelianGroup, Generator, Mean, Operation, RationalQuadraticSpline
from abelnet.discovery import formula
from abelnet.discovery.typesetting import mathml

x, y = symbols("x y", real=True)


def read(text: str) -> str:
    """Returns the text of MathML, without its layout."""
    return "".join(fromstring(text).itertext()).replace("\u2062", "·")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (x * y + x + y, "x+y+x·y"),
        (1 - x, "1−x"),
        (Float(0.123456789) * x, "0.123457·x"),
        (Function("cbrt")(x), "x3"),
        (cbrt(x), "x3"),
    ],
)
def test_terms_are_in_the_order_of_elements_and_numbers_are_short(expression: object, expected: str) -> None:
    assert read(mathml([("", expression)], "")) == expected


def test_a_mean_is_written_with_a_sum() -> None:
    i, n = symbols("i n", integer=True)
    element = IndexedBase("x", real=True)[i]
    assert read(mathml([("", exp(Sum(log(element), (i, 1, n)) / n))], "")) == "exp(∑log(xi)n)"
    assert read(mathml([("", Sum(element + 1, (i, 1, n)))], "")) == "∑(xi+1)"


def test_names_are_escaped_and_entities_are_characters() -> None:
    name = "<b>&lt;-1"
    shown = mathml([(name, Symbol(name) * x)], f'"{name}"')
    assert "<b>" not in shown
    assert read(shown) == f"{name}={name}·x"
    assert fromstring(shown).get("alttext") == f'"{name}"'


def test_products_of_long_names_have_dots() -> None:
    mass, place = symbols("mass place")
    assert "·" in mathml([("", mass * place)], "")
    assert "·" not in mathml([("", x * y)], "")


def test_sums_stand_for_what_is_summed() -> None:
    shown = mathml([("x", Symbol("S") / x)], "", sums={"S": x + y})
    assert read(shown) == "x=∑(x+y)x"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (AbelianGroup(Generator(1, "power", [3.0])), "x∘y=x3+y33"),
        (AbelianGroup(RationalQuadraticSpline(1)), "x∘y=φ⁻¹(φ(x)+φ(y))"),
        (Operation(Generator(1, "affine"), Mean()), "M(x₁,\u00a0…,\u00a0xₙ)=∑xin"),
    ],
)
def test_formulas_of_operations(operation: Operation, expected: str) -> None:
    shown = formula.mathml(operation)
    assert read(shown) == expected
    assert fromstring(shown).get("alttext") == formula.formula(operation)
