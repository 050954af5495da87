"""Text of formulas: a sympy printer with typographic minus signs, dots for products, and short numbers.

Importing this module imports sympy.
"""

from __future__ import annotations

__all__ = ["FormulaPrinter", "place_of"]

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sympy import Add, Expr, Indexed, Mul, Pow, Sum, log
from sympy.printing.str import StrPrinter

from abelnet.discovery.formula import count_symbol, number

# Names that differ from sympy's.
_NAMES = {"asinh": "arcsinh", "atanh": "arctanh", "Max": "max", "Min": "min"}
_LARGEST_ROOT = 12


class FormulaPrinter(StrPrinter):  # type: ignore[misc]
    """Prints an expression of two elements x and y in common notation.

    Arguments:
        digits: Most significant digits of a number.
        order: Names in the order in which they are written in sums and products; that of the alphabet if empty.

    Example:
        >>> from sympy.abc import x, y
        >>> FormulaPrinter().doprint(x + y - x * y / 2)
        'x + y − 0.5·x·y'
        >>> FormulaPrinter().doprint((x + y) / (1 + x * y))
        '(x + y) / (1 + x·y)'
    """

    def __init__(self, digits: int = 6, order: Sequence[str] = ()) -> None:
        super().__init__()
        self._digits = digits
        self._order = {name: f"{place:06d}" for place, name in enumerate(order)}

    def _number(self, value: float) -> str:
        return number(value, self._digits)

    def _print(self, expr: Any, **kwargs: Any) -> str:
        if isinstance(expr, Expr) and expr.is_number:
            return self._number(float(expr))
        if isinstance(expr, Indexed):  # it prints itself, with its index
            return str(expr.base)
        return str(super()._print(expr, **kwargs))

    def _print_Add(self, expr: Expr, order: Any = None) -> str:
        return self._sum(expr.args)

    def _print_Mul(self, expr: Expr) -> str:
        factor, rest = _split(expr)
        if isinstance(rest, log):
            divisor = self._number(1 / factor)
            return f"{self._print(rest)} / {_in_parentheses(divisor) if factor < 0 else divisor}"
        sign, product = self._product(factor, rest)
        return sign + product

    def _print_Pow(self, expr: Expr, rational: bool = False) -> str:
        if self._order and self._is_divisor(expr):
            return "".join(self._product(1.0, expr))
        base, exponent = self._factor(expr.base), self._print(expr.exp)
        if exponent == "1":
            return base
        if not isinstance(expr.base, Add | Mul):
            plain = exponent.replace(".", "").isalnum()
            return f"{base}^{exponent if plain else _in_parentheses(exponent)}"
        if expr.exp.is_number and math.isfinite(float(expr.exp)):
            root = Fraction(float(expr.exp)).limit_denominator(_LARGEST_ROOT)
            exponent = str(root).replace("-", "−") if abs(root - float(expr.exp)) < 1e-12 else exponent
        return f"{base}^{exponent if exponent.isdigit() else _in_parentheses(exponent)}"

    def _print_Function(self, expr: Expr) -> str:
        name = expr.func.__name__
        arguments = [
            self._print(one) for one in (sorted(expr.args, key=self._elements) if name in _NAMES else expr.args)
        ]
        if name in ("asinh", "atanh"):
            arguments = [self._quotient(expr.args[0])]
        return f"{_NAMES.get(name, name)}({', '.join(arguments)})"

    _print_Max = _print_Min = _print_Function

    def _print_Sum(self, expr: Expr) -> str:
        return f"Σ {self._factor(expr.function)}"

    def _print_Abs(self, expr: Expr) -> str:
        return f"|{self._print(expr.args[0])}|"

    def _sum(self, terms: tuple[Expr, ...], numbers_first: bool = False) -> str:
        def place(term: Expr) -> tuple[Any, ...]:
            return (
                not (numbers_first and term.is_number),
                *self._elements(term),
                -_split(term)[1].count_ops(),
                str(term),
            )

        parts = [self._signed(term) for term in sorted(terms, key=place)]
        if len(parts) == 2 and parts[0][0] and not parts[1][0]:
            parts.reverse()  # 1 − x, not −x + 1
        text = ""
        for sign, piece in parts:
            text += f" {sign or '+'} {piece}" if text else sign + piece
        return text

    def _signed(self, term: Expr) -> tuple[str, str]:
        """Returns the sign of a term, empty if positive, and the rest."""
        factor, rest = _split(term)
        if isinstance(rest, log):
            return "", self._print(term)
        return self._product(factor, rest)

    def _product(self, factor: float, rest: Expr) -> tuple[str, str]:
        sign, size = "−" if factor < 0 else "", self._number(abs(factor))
        if rest == 1:
            return sign, size
        parts = Mul.make_args(rest)
        below = [part for part in parts if isinstance(part, Pow) and self._is_divisor(part)]
        above = [part for part in parts if part not in below]
        above.sort(key=lambda part: (*self._elements(part), part.count_ops(), str(part)))
        many = len(above) + len(below) > 1 or size != "1"
        alone = len(above) == 1 and size == "1" and isinstance(above[0], Sum)  # Σ x / n reads as it should
        pieces = [self._factor(part) if many and not alone else self._print(part) for part in above]
        if size != "1" or not pieces:
            pieces.insert(0, size)
        text = "·".join(pieces)
        for part in below:
            if isinstance(part.base, Add) and part.exp == -1:
                text += f" / ({self._sum(part.base.args, numbers_first=True)})"
            else:
                text += f" / {self._print(1 / part)}"
        return sign, text

    def _elements(self, term: Expr) -> tuple[int, list[str]]:
        """Returns the sort key of a term: terms of the first element, the second, both, then numbers."""
        return place_of(term, self._order)

    def _is_divisor(self, power: Expr) -> bool:
        """Returns whether a power is written below a bar: of a compound, of the number of elements, or of a name."""
        if isinstance(power.base, Add | Sum):
            return bool(power.exp == -1) or (bool(self._order) and bool(power.exp.is_negative))
        return bool(power.exp.is_negative) and (power.base == count_symbol() or str(power.base) in self._order)

    def _factor(self, part: Expr) -> str:
        text = self._print(part)
        is_compound = isinstance(part, Add | Mul | Sum) or (part.is_number and float(part) < 0)
        return _in_parentheses(text) if is_compound else text

    def _quotient(self, expr: Expr) -> str:
        """Returns a scaled element as a quotient, such as ``x / 2``."""
        factor, rest = _split(expr)
        unit = self._number(1 / factor)
        return self._print(rest) if unit == "1" else f"{self._factor(rest)} / {unit}"


def place_of(term: Expr, order: Mapping[str, str] | None = None) -> tuple[int, list[str]]:
    """Returns the sort key of a term: terms of the first element, the second, both, then numbers.

    Arguments:
        term: The term.
        order: Sort keys of names; a name is its own otherwise.

    Example:
        >>> from sympy.abc import x, y
        >>> sorted([x * y, y, x], key=place_of)
        [x, y, x*y]
    """
    names = sorted((order or {}).get(str(symbol), str(symbol)) for symbol in term.free_symbols)
    return (0 if len(names) == 1 else 1 if names else 2), names


def _split(term: Expr) -> tuple[float, Expr]:
    """Returns the numeric coefficient of a term, and the rest."""
    numbers = [part for part in Mul.make_args(term) if part.is_number]
    rest = [part for part in Mul.make_args(term) if not part.is_number]
    return float(Mul(*numbers)), Mul(*rest)


def _in_parentheses(text: str) -> str:
    return f"({text})"
