r"""Formulas of operations, as text and as LaTeX, from the symbolic forms of laws and bijections.

An operation with few parameters is written directly if that is short, such as ``(x^3 + y^3)^(1/3)``, and otherwise in
terms of its generator, ``g⁻¹(g(x) + g(y)), g(x) = …``. An operation with many parameters has no readable formula:
``φ⁻¹(φ(x) + φ(y)), φ a curve``. Direct formulas assume positive numbers: a power :math:`x^p` extends to negative
numbers as :math:`\operatorname{sign}(x) |x|^p`.
"""

from __future__ import annotations

__all__ = ["expression", "formula", "latex", "number"]

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from abelnet.bijections import Bijection
from abelnet.errors import AbelnetError
from abelnet.operation import Operation

if TYPE_CHECKING:
    from sympy import Expr

# A bijection with more parameters per dimension is a curve, not a formula.
_MOST_NUMBERS = 3
# A rational function with more terms is harder to read than its generator.
_MOST_TERMS = 4
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
    """
    import sympy

    x, y = sympy.symbols("x y", real=True)
    if _is_short(operation.bijection):
        return operation.expression(x, y, dimension)
    curve, inverse = sympy.Function("φ"), sympy.Function("φ⁻¹")
    return inverse(_law(operation, curve(x), curve(y), dimension))


def formula(operation: Operation, dimension: int = 0) -> str:
    """Returns the operation on two elements as text.

    Arguments:
        operation: The operation.
        dimension: Dimension of the operation.

    Example:
        >>> from abelnet import AbelianGroup, Generator, Operation, Polynomial, RationalQuadraticSpline
        >>> formula(AbelianGroup(Generator(1, "power", [3.0])))
        'x∘y = (x^3 + y^3)^(1/3)'
        >>> formula(Operation(Generator(1, "affine"), Polynomial(-1.0)))
        'x∘y = x + y − x·y'
        >>> formula(AbelianGroup(RationalQuadraticSpline(1)))
        'x∘y = φ⁻¹(φ(x) + φ(y)), φ a curve'
    """
    from abelnet.discovery.printing import FormulaPrinter

    reading, text = _read(operation, dimension, "φ"), FormulaPrinter().doprint
    if reading.generator is None:
        return f"x∘y = {text(reading.law)}"
    what = f"{reading.generator} a curve" if reading.curve is None else f"g(x) = {text(reading.curve)}"
    return f"x∘y = {reading.generator}⁻¹({text(reading.law)}), {what}"


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
        rounded = {value: sympy.Float(f"{float(value):.6g}") for value in expression.atoms(sympy.Float)}
        return str(sympy.latex(expression.xreplace(rounded)))

    reading = _read(operation, dimension, "varphi")
    if reading.generator is None:
        return rf"x \circ y = {text(reading.law)}"
    name = "g" if reading.curve is not None else r"\varphi"
    what = "" if reading.curve is None else rf", \; g(x) = {text(reading.curve)}"
    return rf"x \circ y = {name}^{{-1}}\left({text(reading.law)}\right){what}"


def number(value: float) -> str:
    """Formats a number with six significant digits, as short as possible; thirds as fractions.

    Example:
        >>> number(2.0), number(-1 / 3), number(1.5e9)
        ('2', '−1/3', '1.5e9')
    """
    fraction = Fraction(value).limit_denominator(3)
    if fraction.denominator == 3 and abs(value - fraction) < 1e-12:
        return str(fraction).replace("-", "−")
    return f"{value:.6g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-").replace("-", "−")


class _Reading(NamedTuple):
    """Formula, direct or in terms of a generator; a curve with many parameters is not written out."""

    law: Expr
    generator: str | None = None
    curve: Expr | None = None


def _read(operation: Operation, dimension: int, curve_name: str) -> _Reading:
    import sympy

    x, y = sympy.symbols("x y", positive=True)
    bijection = operation.bijection
    try:
        curve = bijection.expression(sympy.Symbol("x"), dimension) if _is_short(bijection) else None
        direct = _direct(operation, x, y, dimension) if curve is not None else None
    except AbelnetError:  # no closed form
        curve = direct = None
    if direct is not None:
        return _Reading(direct)
    name = "g" if curve is not None else curve_name
    g = sympy.Function(name)
    return _Reading(_law(operation, g(x), g(y), dimension), name, curve)


def _is_short(bijection: Bijection) -> bool:
    return sum(parameter.numel() for parameter in bijection.parameters()) <= _MOST_NUMBERS * bijection.dim


def _law(operation: Operation, u: Expr, v: Expr, dimension: int) -> Expr:
    """Returns the law on latent elements, without the rounding error of a constant that cancels."""
    import sympy

    a, b = sympy.symbols("a b")
    law = operation.law.expression(a, b, dimension)
    rest, constant = law.as_independent(a, b, as_Add=True)[::-1]
    if not operation.is_group and rest != 0 and abs(constant) < _LEFTOVER:
        law = rest
    return law.xreplace({a: u, b: v})


def _direct(operation: Operation, x: Expr, y: Expr, dimension: int) -> Expr | None:
    """Returns the operation in terms of its elements, or None if that is hard to read."""
    import sympy

    bijection = operation.bijection
    result = _law(operation, bijection.expression(x, dimension), bijection.expression(y, dimension), dimension)
    # A positive symbol as placeholder, so that sympy does not write out the signs of powers.
    latent = sympy.Dummy(positive=True)
    result = sympy.expand_trig(bijection.inverse_expression(latent, dimension).xreplace({latent: result}))
    if max(sum(node == element for node in sympy.preorder_traversal(result)) for element in (x, y)) <= 1:
        return result
    numerator, denominator = sympy.fraction(result)
    if not numerator.is_polynomial(x, y) or not denominator.is_polynomial(x, y):
        return None
    unit = denominator.subs({x: 0, y: 0})
    if unit == 0:
        return None
    numerator, denominator = sympy.expand(numerator / unit), sympy.expand(denominator / unit)
    terms = [len(sympy.Add.make_args(part)) for part in (numerator, denominator) if part != 1]
    return numerator / denominator if sum(terms) <= _MOST_TERMS else None
