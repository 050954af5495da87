"""Numbers and piecewise functions in sympy, which is imported on first use since importing it is slow."""

from __future__ import annotations

__all__ = ["check_expressions", "piecewise", "symbolic_number"]

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from sympy import Expr

# A double is read as a fraction with at most this denominator if it is the double nearest to that fraction.
_LARGEST_DENOMINATOR = 12


def symbolic_number(value: Any) -> Expr:
    """Converts a number to sympy: integers and simple fractions exactly, others with all their bits.

    Example:
        >>> symbolic_number(2.0), symbolic_number(1 / 3), symbolic_number(0.1)
        (2, 1/3, 1/10)
        >>> symbolic_number(0.123)
        0.123000000000000
    """
    import sympy

    number = float(value)
    simple = Fraction(number).limit_denominator(_LARGEST_DENOMINATOR) if abs(number) < 2**53 else None
    if simple is not None and float(simple) == number:
        return sympy.Rational(simple.numerator, simple.denominator)
    return sympy.Float(number)


def piecewise(pieces: Sequence[Expr], conditions: Sequence[Expr]) -> Expr:
    """Returns the first piece whose condition holds; the last one if none does."""
    import sympy

    # Unevaluated: sympy would compare all pieces with each other.
    return sympy.Piecewise(*zip(pieces, [*conditions, sympy.true], strict=True), evaluate=False)


def check_expressions(name: str, x: Any, dim: int) -> Sequence[Any]:
    """Raises unless an argument is a sequence of expressions, one for each coordinate."""
    if not isinstance(x, Sequence) or len(x) != dim:
        got = f"{len(x)}" if isinstance(x, Sequence) else type(x).__name__
        raise AbelnetError(f"{name}: expected a sequence of {dim} expressions, one for each coordinate, got {got}")
    return x
