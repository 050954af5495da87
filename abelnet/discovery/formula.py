r"""Formulas of operations, as text and as LaTeX, from the symbolic forms of laws and bijections.

An operation with few parameters is written directly if that is short, such as ``cbrt(x^3 + y^3)``, and otherwise in
terms of its generator, ``g⁻¹(g(x) + g(y)), g(x) = …``. An operation with many parameters has no readable formula:
``φ⁻¹(φ(x) + φ(y)), φ a curve``. A formula holds on the domain of the bijection, for numbers of either sign if that has
both; ``cbrt`` is the real cube root. A mean, which is no operation of two elements, is written over all elements of a
multiset, such as ``(Σ x^2 / n)^(1/2)``.
"""

from __future__ import annotations

__all__ = ["count_symbol", "expression", "formula", "latex", "mathml", "number"]

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import torch

from abelnet.bijections.slopes import FROM_ZERO
from abelnet.errors import AbelnetError
from abelnet.operation import Operation

if TYPE_CHECKING:
    from sympy import Expr

# A rational function with more terms is harder to read than its generator.
_MOST_TERMS = 4
# Printed digits of a coefficient: enough to compute with.
_DIGITS = 12
# A constant term below this, beside a product, is the rounding error of a cancellation.
_LEFTOVER = 1e-15


def expression(operation: Operation, dimension: int = 0) -> Expr:
    r"""Returns the operation on two real elements ``x`` and ``y`` as a sympy expression.

    A bijection with many parameters is not expanded, which would take pages: it appears as the functions ``φ`` and
    ``φ⁻¹``, which ``operation.bijection.expression`` and ``inverse_expression`` return in full.

    Arguments:
        operation: The operation.
        dimension: Dimension of the operation.

    Example:
        >>> from abelnet import AbelianGroup, Generator, RationalQuadraticSpline
        >>> expression(AbelianGroup(Generator(1, "logarithm", [1.0])))
        (x + 1)*(y + 1) - 1
        >>> expression(AbelianGroup(RationalQuadraticSpline(1)))
        φ⁻¹(φ(x) + φ(y))

        Means are expressions of the elements ``x[i]`` and their number ``n``:

        >>> from abelnet import Mean, Operation
        >>> expression(Operation(Generator(1, "affine"), Mean()))
        Sum(x[i], (i, 1, n))/n
    """
    import sympy

    if not operation.law.is_associative:
        curve, inverse = sympy.Function("φ"), sympy.Function("φ⁻¹")
        if not operation.bijection.is_short:
            return inverse(_aggregate(operation, [curve(_element())], dimension))
        bijection = operation.bijection
        latent = _aggregate(operation, [bijection.expression(_element(), dimension)], dimension)
        return bijection.inverse_expression(latent, dimension)
    x, y = sympy.symbols("x y", real=True)
    if operation.bijection.is_short:
        return operation.expression(x, y, dimension)
    curve, inverse = sympy.Function("φ"), sympy.Function("φ⁻¹")
    return inverse(_law(operation, [curve(x), curve(y)], dimension))


def formula(operation: Operation, dimension: int = 0) -> str:
    """Returns the operation on two elements as text.

    Arguments:
        operation: The operation.
        dimension: Dimension of the operation.

    Example:
        >>> from abelnet import AbelianGroup, Generator, Operation, Polynomial, RationalQuadraticSpline
        >>> formula(AbelianGroup(Generator(1, "power", [3.0])))
        'x∘y = cbrt(x^3 + y^3)'
        >>> formula(Operation(Generator(1, "affine"), Polynomial(-1.0)))
        'x∘y = x + y − x·y'
        >>> formula(AbelianGroup(RationalQuadraticSpline(1)))
        'x∘y = φ⁻¹(φ(x) + φ(y)), φ a curve'
        >>> from abelnet import Mean
        >>> formula(Operation(Generator(1, "positive power", [2.0]), Mean()))
        'M(x₁, …, xₙ) = (Σ x^2 / n)^(1/2)'
    """
    from abelnet.discovery.printing import FormulaPrinter

    reading, text = _read(operation, dimension, "φ"), FormulaPrinter(digits=_DIGITS).doprint
    result = "x∘y" if operation.law.is_associative else "M(x₁, …, xₙ)"
    if reading.generator is None:
        return f"{result} = {text(reading.law)}"
    what = f"{reading.generator} a curve" if reading.curve is None else f"g(x) = {text(reading.curve)}"
    return f"{result} = {reading.generator}⁻¹({text(reading.law)}), {what}"


def latex(operation: Operation, dimension: int = 0) -> str:
    r"""Returns the operation on two elements as LaTeX.

    Arguments:
        operation: The operation.
        dimension: Dimension of the operation.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> print(latex(AbelianGroup(Generator(1, "power", [3.0]))))
        x \circ y = \sqrt[3]{x^{3} + y^{3}}
    """
    import sympy

    def text(expression: Expr) -> str:
        rounded = {value: sympy.Float(f"{float(value):.{_DIGITS}g}") for value in expression.atoms(sympy.Float)}
        # The real cube root is written as a root.
        return str(sympy.latex(expression.xreplace(rounded).replace(sympy.Function("cbrt"), sympy.cbrt)))

    reading = _read(operation, dimension, "varphi")
    result = r"x \circ y" if operation.law.is_associative else r"M(x_1, \dots, x_n)"
    if reading.generator is None:
        return f"{result} = {text(reading.law)}"
    name = "g" if reading.curve is not None else r"\varphi"
    what = "" if reading.curve is None else rf", \; g(x) = {text(reading.curve)}"
    return rf"{result} = {name}^{{-1}}\left({text(reading.law)}\right){what}"


def mathml(operation: Operation, dimension: int = 0) -> str:
    r"""Returns the operation on two elements as MathML, which browsers typeset.

    Arguments:
        operation: The operation.
        dimension: Dimension of the operation.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> print(mathml(AbelianGroup(Generator(1, "affine"))))
        <math ...><mi>x</mi><mo>∘</mo><mi>y</mi><mo>=</mo><mrow><mi>x</mi><mo>+</mo><mi>y</mi></mrow></math>
    """
    import sympy

    from abelnet.discovery import typesetting

    reading = _read(operation, dimension, "φ")
    result = "x ∘ y" if operation.law.is_associative else "M(x₁, …, xₙ)".replace(" ", "\u00a0")
    law = reading.law if reading.generator is None else sympy.Function(f"{reading.generator}⁻¹")(reading.law)
    curve = [] if reading.curve is None else [("g(x)", reading.curve)]
    return typesetting.mathml([(result, law), *curve], formula(operation, dimension))


def number(value: float, digits: int = 6) -> str:
    """Formats a number with at most this many significant digits, as short as possible; thirds as fractions.

    Example:
        >>> number(2.0), number(-1 / 3), number(1.5e9), number(math.inf)
        ('2', '−1/3', '1.5e9', '∞')
    """
    if not math.isfinite(value):  # the reciprocal of a tiny exponent
        return str(value).replace("-", "−").replace("inf", "∞")
    fraction = Fraction(value).limit_denominator(3)
    if fraction.denominator == 3 and abs(value - fraction) < 1e-12:
        return str(fraction).replace("-", "−")
    return f"{value:.{digits}g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-").replace("-", "−")


class _Reading(NamedTuple):
    """Formula, direct or in terms of a generator; a curve with many parameters is not written out."""

    law: Expr
    generator: str | None = None
    curve: Expr | None = None


def _read(operation: Operation, dimension: int, curve_name: str) -> _Reading:
    import sympy

    bijection = operation.bijection
    positive = bool(torch.as_tensor(bijection.domain[0]).reshape(-1)[0] >= FROM_ZERO)
    kind = {"positive" if positive or not bijection.is_injective else "real": True}
    # A bijection that loses signs is that of magnitudes.
    names = ("x", "y") if bijection.is_injective else ("|x|", "|y|")
    if operation.law.is_associative:
        elements, direct = sympy.symbols(names, **kind), _direct
        plain = sympy.symbols("x y")
    else:
        elements, direct = (_element(names[0], **kind),), _direct_mean
        plain = (_element(),)
    try:
        curve = bijection.expression(sympy.Symbol("x"), dimension) if bijection.is_short else None
        law = direct(operation, elements, dimension) if curve is not None else None
    except AbelnetError:  # no closed form
        curve = law = None
    if law is not None:
        return _Reading(law.xreplace({one**2: other**2 for one, other in zip(elements, plain, strict=True)}))
    name = "g" if curve is not None else curve_name
    latent = [sympy.Function(name)(one) for one in plain]
    combine = _law if operation.law.is_associative else _aggregate
    return _Reading(combine(operation, latent, dimension), name, curve)


def count_symbol() -> Expr:
    """Returns the symbol of the number of elements of a multiset."""
    import sympy

    # Not declared positive: sympy would move it out of roots.
    return sympy.Symbol("n", integer=True)


def _element(name: str = "x", **kind: bool) -> Expr:
    """Returns the element of a multiset with a symbolic index."""
    import sympy

    return sympy.IndexedBase(name, **(kind or {"real": True}))[sympy.Symbol("i", integer=True)]


def _aggregate(operation: Operation, latent: Sequence[Expr], dimension: int) -> Expr:
    """Returns the latent result of a multiset, from that of one of its elements."""
    import sympy

    (u,) = latent
    n, i = count_symbol(), sympy.Symbol("i", integer=True)
    states = operation.law.lift_expression(u, dimension)
    totals = (state * n if state.is_number else sympy.Sum(state, (i, 1, n)) for state in states)
    return operation.law.lower_expression(*totals, dimension=dimension)


def _direct_mean(operation: Operation, elements: Sequence[Expr], dimension: int) -> Expr | None:
    """Returns the mean in terms of its elements, or None if that is hard to read."""
    import sympy

    (x,) = elements
    bijection, latent = operation.bijection, sympy.Dummy(real=True)
    u = _with_cube_roots(bijection.expression(x, dimension), x)
    inverse = _with_cube_roots(bijection.inverse_expression(latent, dimension), latent)
    result = inverse.xreplace({latent: _aggregate(operation, [u], dimension)})
    return result if sum(node == x for node in sympy.preorder_traversal(result)) <= 1 else None


def _law(operation: Operation, latent: Sequence[Expr], dimension: int) -> Expr:
    """Returns the law on latent elements, without the rounding error of a constant that cancels."""
    import sympy

    a, b = sympy.symbols("a b")
    law = operation.law.expression(a, b, dimension)
    rest, constant = law.as_independent(a, b, as_Add=True)[::-1]
    if not operation.is_group and rest != 0 and abs(constant) < _LEFTOVER:
        law = rest
    return law.xreplace(dict(zip((a, b), latent, strict=True)))


def _direct(operation: Operation, elements: Sequence[Expr], dimension: int) -> Expr | None:
    """Returns the operation in terms of its elements, or None if that is hard to read."""
    import sympy

    bijection = operation.bijection
    u, v = (_with_cube_roots(bijection.expression(element, dimension), element) for element in elements)
    latent = sympy.Dummy(real=True)
    inverse = _with_cube_roots(bijection.inverse_expression(latent, dimension), latent)
    result = sympy.expand_trig(inverse.xreplace({latent: _law(operation, [u, v], dimension)}))
    if not result.free_symbols and result.evalf().has(sympy.I, sympy.nan, sympy.zoo):
        return None  # a constant that the bijection does not reach
    if max(sum(node == element for node in sympy.preorder_traversal(result)) for element in elements) <= 1:
        return result
    numerator, denominator = sympy.fraction(result)
    if not numerator.is_polynomial(*elements) or not denominator.is_polynomial(*elements):
        return None
    unit = denominator.subs(dict.fromkeys(elements, 0))
    if unit == 0:
        return None
    numerator, denominator = sympy.expand(numerator / unit), sympy.expand(denominator / unit)
    terms = [len(sympy.Add.make_args(part)) for part in (numerator, denominator) if part != 1]
    return numerator / denominator if sum(terms) <= _MOST_TERMS else None


def _with_cube_roots(expression: Expr, x: Expr) -> Expr:
    """Writes ``sign(x) |x|^(1/3)`` as the real cube root; of positive numbers, it is a power."""
    import sympy

    if x.is_positive:
        return expression
    return expression.xreplace({sympy.sign(x) * sympy.Abs(x) ** sympy.Rational(1, 3): sympy.Function("cbrt")(x)})
