"""Numbers and piecewise functions in sympy, which is imported on first use since importing it is slow."""

from __future__ import annotations

__all__ = ["check_expressions", "entry", "is_between", "named_function", "piecewise", "symbolic_number", "unfolded"]

import math
import sys
from collections.abc import Callable, Sequence
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


def entry(numbers: Sequence[Any], place: Expr) -> Expr:
    """Returns the number at a place of a list, from 1; only SQL has it."""
    import sympy

    return sympy.Function("entry")(sympy.Tuple(*numbers), place)


def is_between(x: Expr, low: float, high: float) -> Any:
    """Returns the condition that a number is in an open interval, as a sympy expression.

    Numbers within the smallest normal number of 0 are taken for 0: this is how regions that contain 0 end.

    Example:
        >>> from sympy.abc import x
        >>> is_between(x, 0.0, math.inf), is_between(x, -sys.float_info.min, 1.0)
        (x > 0, (x >= 0) & (x < 1))
    """
    import sympy

    conditions = []
    if low > -math.inf:
        conditions.append(x > symbolic_number(low) if _is_plain(low) else x >= symbolic_number(_rounded(low, math.inf)))
    if high < math.inf:
        plain = _is_plain(high)
        conditions.append(x < symbolic_number(high) if plain else x <= symbolic_number(_rounded(high, -math.inf)))
    return sympy.And(*conditions)


def _is_plain(end: float) -> bool:
    return len(repr(end)) <= len(repr(_rounded(end, math.inf))) and len(repr(end)) <= len(
        repr(_rounded(end, -math.inf))
    )


def _rounded(end: float, toward: float) -> float:
    return 0.0 if 0 < abs(end) <= sys.float_info.min else math.nextafter(end, toward)


def named_function(name: str, definition: Callable[..., Any]) -> Any:
    """Returns a sympy function that formulas show by its name; :func:`unfolded` replaces it by its definition.

    Example:
        >>> from sympy.abc import x
        >>> square = named_function("f", lambda x: x**2)
        >>> square(x) + 1, unfolded(square(x) + 1)
        (f(x) + 1, x**2 + 1)
    """
    from sympy.core.function import UndefinedFunction

    return UndefinedFunction(name, __dict__={"definition": staticmethod(definition)})


def unfolded(expression: Expr) -> Expr:
    """Replaces functions made by :func:`named_function` by their definitions."""
    return expression.replace(
        lambda part: hasattr(part.func, "definition"), lambda part: part.func.definition(*part.args)
    )


def check_expressions(name: str, x: Any, dim: int) -> Sequence[Any]:
    """Raises unless an argument is a sequence of expressions, one for each coordinate."""
    if not isinstance(x, Sequence) or len(x) != dim:
        got = f"{len(x)}" if isinstance(x, Sequence) else type(x).__name__
        raise AbelnetError(f"{name}: expected a sequence of {dim} expressions, one for each coordinate, got {got}")
    return x
