"""A learned law: everything about it is asked of its operation, and it saves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy
import torch

import abelnet
from abelnet import AbelianGroup, AbelianSemigroup, Constant, Even, Generator, Maximum, Operation, Polynomial
from abelnet.bijections.spline import spline_through
from abelnet.discovery import LearnedLaw
from abelnet.discovery.report import Tried
from abelnet.discovery.seen import Seen
from abelnet.multisets import Multisets


def law(operation: Operation) -> LearnedLaw:
    return LearnedLaw(operation, "title", 0.5, 0.75, [Tried("title", 3, 0.5)], {"group, x": 0.1})


def generator(kind: str, *parameters: float) -> Generator:
    return Generator(1, kind, parameters, dtype=torch.float64)


@pytest.mark.parametrize(
    ("operation", "identity", "absorbing", "inverses"),
    [
        (AbelianGroup(generator("affine")), 0.0, None, "of every element"),
        (AbelianSemigroup(generator("affine")), 1.0, 0.0, "of every element but the absorbing one"),
        (Operation(generator("affine"), Polynomial(0.5)), 0.0, -2.0, "of every element but the absorbing one"),
        (AbelianGroup(generator("exponential", 1.0)), None, None, "none"),
        (AbelianGroup(generator("positive power", -1.0)), None, None, "none"),
        (AbelianGroup(generator("positive power", 2.0)), 0.0, None, "of the identity only"),
        (Operation(generator("positive power", 1.0), Polynomial(0.0, -3.0)), 3.0, None, "of some elements only"),
        (AbelianGroup(Even(generator("positive power", 2.0))), None, None, "none"),
        (AbelianGroup(generator("logarithm", 0.25)), 0.75, None, "of every element"),
        (Operation(generator("affine"), Maximum()), None, None, "none"),
        (Operation(generator("affine"), Constant(7.0)), None, 7.0, "none"),
    ],
)
def test_landmarks(operation: Operation, identity: float | None, absorbing: float | None, inverses: str) -> None:
    learned = law(operation)
    assert learned.identity == (None if identity is None else pytest.approx(identity))
    assert learned.absorbing == (None if absorbing is None else pytest.approx(absorbing))
    lines = learned.summary().splitlines()
    assert lines[0] == learned.formula
    assert f"inverses: {inverses}" in lines
    assert lines[-1] == "held-out error: 0.5 (explains 75 % of the variance)"


def test_elements_that_no_example_came_near_are_marked() -> None:
    seen = Seen((1.0, 2.0), (2.0, 9.0), (2, 4))
    product = LearnedLaw(AbelianSemigroup(generator("affine")), "product", 0.0, 1.0, seen=seen)
    assert "absorbing element: 0, outside the range of the examples" in product.summary().splitlines()
    assert "identity: 1" in product.summary().splitlines()
    assert "learned from: elements from 1 to 2, results from 2 to 9, sizes from 2 to 4" in product.summary()
    places = np.linspace(-2, 2, 60)
    spline = spline_through(places, places + places**3)
    for low, absorbing, kind in ((-1.0, 0.0, "monoid"), (0.5, None, "group or semigroup: no example came near")):
        ranges = Seen((low, 2.0), (low, 2.0), (2, 4))
        curve = LearnedLaw(AbelianSemigroup(spline), "curve", 0.0, 1.0, seen=ranges)
        assert curve.absorbing == (None if absorbing is None else pytest.approx(absorbing, abs=1e-6))
        assert curve.kind.startswith(kind)


def test_what_is_extrapolated() -> None:
    learned = LearnedLaw(AbelianGroup(generator("affine")), "sum", 0.0, 1.0, seen=Seen((1.0, 2.0), (2.0, 9.0), (2, 4)))
    sets = Multisets.from_arrays([[1.0, 2.0], [9.5], [5.0, 5.0], [0.5, 2.0]])
    assert learned.extrapolated(sets, learned.operation.reduce(sets)[:, 0]).tolist() == [False, True, True, True]


def test_sympy_is_the_operation() -> None:
    learned = law(AbelianGroup(generator("power", 3.0)))
    function = sympy.lambdify(sympy.symbols("x y", real=True), learned.sympy, "math")
    for x, y in ((0.5, 2.0), (-1.5, 0.3), (-1.0, -2.0)):
        expected = learned.operation(*torch.tensor([[x], [y]], dtype=torch.float64)).item()
        assert function(x, y) == pytest.approx(expected, rel=1e-12)
    assert learned.latex.startswith(r"x \circ y = ")


def test_curves_stand_for_themselves_in_sympy() -> None:
    places = np.linspace(-2, 2, 60)
    learned = law(AbelianGroup(spline_through(places, places + places**3)))
    assert learned.formula == "x∘y = φ⁻¹(φ(x) + φ(y)), φ a curve"
    assert str(learned.sympy) == "φ⁻¹(φ(x) + φ(y))"
    x = sympy.Symbol("x", real=True)
    curve = sympy.lambdify(x, learned.operation.bijection.expression(x), "math")
    expected = learned.operation.bijection(torch.tensor([0.4], dtype=torch.float64)).item()
    assert curve(0.4) == pytest.approx(expected, rel=1e-12)


def test_saved(tmp_path: Path) -> None:
    learned = law(AbelianGroup(generator("power", 3.0)))
    abelnet.save(learned, tmp_path)
    again = abelnet.load(tmp_path)
    assert (again.summary(), again.tried, again.eigenvalues) == (
        learned.summary(),
        learned.tried,
        learned.eigenvalues,
    )
    assert again.tried[0].parameters == 3
