r"""Formulas of operations, as text and as LaTeX, from the symbolic forms that laws and bijections own.

An operation over a curve of few numbers reads in one of two ways: directly, where that is short, such as
``(x^3 + y^3)^(1/3)``, or by its generator, ``g⁻¹(g(x) + g(y)), g(x) = …``. One over a curve of many numbers is no
formula: ``φ⁻¹(φ(x) + φ(y)), φ a curve``. Direct formulas are those for positive numbers: a power :math:`x^p` goes on to
negative ones as :math:`\operatorname{sign}(x) |x|^p`.
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

# A bijection with more numbers than these for each dimension is a curve, not a formula.
_MOST_NUMBERS = 3
# A quotient of polynomials with more terms than these is harder to read than the generator.
_MOST_TERMS = 4
# A number below this beside the terms of a product is what rounding leaves where it cancels.
_LEFTOVER = 1e-15


def expression(operation: Operation, dimension: int = 0) -> Expr:
    r"""The operation on two real elements ``x`` and ``y``, for sympy.

    A curve of many numbers is not put into itself, which would be a formula of pages: it stands as the functions ``φ``
    and ``φ⁻¹``, which ``operation.bijection.expression`` and ``inverse_expression`` spell out.

    Arguments:
        operation: The operation.
        dimension: Which dimension of it.

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
    """The operation on two elements, as text.

    Arguments:
        operation: The operation.
        dimension: Which dimension of it.

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
    r"""The operation on two elements, as LaTeX.

    Arguments:
        operation: The operation.
        dimension: Which dimension of it.

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
    """A number with six digits, as short as it can be written; thirds as such.

    Example:
        >>> number(2.0), number(-1 / 3), number(1.5e9)
        ('2', '−1/3', '1.5e9')
    """
    fraction = Fraction(value).limit_denominator(3)
    if fraction.denominator == 3 and abs(value - fraction) < 1e-12:
        return str(fraction).replace("-", "−")
    return f"{value:.6g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-").replace("-", "−")


class _Reading(NamedTuple):
    """A formula, directly, or in terms of a generator; a curve of many numbers is not spelled out."""

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
    """The law of latent elements, without what rounding leaves of a number that cancels."""
    import sympy

    a, b = sympy.symbols("a b")
    law = operation.law.expression(a, b, dimension)
    rest, constant = law.as_independent(a, b, as_Add=True)[::-1]
    if not operation.is_group and rest != 0 and abs(constant) < _LEFTOVER:
        law = rest
    return law.xreplace({a: u, b: v})


def _direct(operation: Operation, x: Expr, y: Expr, dimension: int) -> Expr | None:
    """The operation in terms of its elements where that reads at a glance."""
    import sympy

    bijection = operation.bijection
    result = _law(operation, bijection.expression(x, dimension), bijection.expression(y, dimension), dimension)
    # A positive symbol in between, so that the signs of powers are not spelled out.
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
