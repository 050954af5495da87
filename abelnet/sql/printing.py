"""Text of SQL: a sympy printer for the dialect of DuckDB, which others are translated from.

Importing this module imports sympy.
"""

from __future__ import annotations

__all__ = ["SQLPrinter", "literal"]

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from sympy import Add, Expr, Float, Integer, Mul, Or, Pow, Rational, Symbol, true
from sympy.printing.precedence import PRECEDENCE, precedence
from sympy.printing.str import StrPrinter

from abelnet.errors import AbelnetError
from abelnet.sql.dialects import Dialect

# Some engines know hyperbolic functions in lower case only.
_NAMES = {
    "Abs": "ABS",
    "asin": "ASIN",
    "asinh": "asinh",
    "atan2": "ATAN2",
    "atanh": "atanh",
    "cos": "COS",
    "exp": "EXP",
    "expm1": "expm1",
    "log": "LN",
    "log1p": "log1p",
    "sign": "SIGN",
    "sin": "SIN",
    "sinh": "sinh",
    "tanh": "tanh",
}
# Whole powers up to this are products, which are faster and more exact than powers.
_LARGEST_PRODUCT = 4
# So are squares of expressions of at most so many characters.
_SHORT = 40
# More cases than this are bisected.
_MOST_CASES = 4
_LARGEST_INTEGER = 2**31
# Beyond these the exponential is infinity or 0 in double precision.
_LARGEST_EXPONENT, _SMALLEST_EXPONENT = 709.782712893384, -745.0


def literal(value: float) -> str:
    """Returns a number with all its digits, typed as double precision and not as a decimal.

    Example:
        >>> literal(0.1), literal(1e-300)
        ('0.1e0', '1e-300')
    """
    if not math.isfinite(value):
        return f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS DOUBLE)"
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


class SQLPrinter(StrPrinter):  # type: ignore[misc]
    """Prints expressions of columns as SQL.

    Arguments:
        columns: SQL of each symbol, by its name.
        dialect: The dialect.
        is_exact: Whether all roots, logarithms and quotients are defined; otherwise they are NULL where they are not.

    Attributes:
        used: How often each column is written.

    Example:
        >>> from sympy import Symbol, exp
        >>> from abelnet.sql import DIALECTS
        >>> x = Symbol("x", real=True)
        >>> SQLPrinter({"x": '"price"'}, DIALECTS["duckdb"]).doprint(2 * x**2 + exp(-x) / 3)
        '2 * "price" * "price" + EXP(-"price") / 3'
    """

    def __init__(self, columns: Mapping[str, str], dialect: Dialect, *, is_exact: bool = True) -> None:
        super().__init__()
        self._columns, self._dialect, self._is_exact = columns, dialect, is_exact
        self.used: Counter[str] = Counter()

    def column(self, expr: Expr) -> tuple[str, bool]:
        """Returns an expression as SQL, and whether it needs parentheses within another one."""
        return self._print(expr), isinstance(expr, Add | Mul | Pow) or bool(expr.is_number and expr.is_negative)

    def condition(self, expr: Any) -> str:
        """Returns a condition as SQL, one of several that are joined by AND."""
        return f"({self._print(expr)})" if isinstance(expr, Or) else self._print(expr)

    def _print(self, expr: Any, **kwargs: Any) -> str:
        if isinstance(expr, Expr) and expr.is_number and not isinstance(expr, Integer):
            return literal(float(expr))
        return str(super()._print(expr, **kwargs))

    def _print_Symbol(self, expr: Symbol) -> str:
        self.used[expr.name] += 1
        text: str = self._columns[expr.name]
        return text

    def _print_Integer(self, expr: Integer) -> str:
        return str(int(expr)) if abs(int(expr)) < _LARGEST_INTEGER else literal(float(expr))

    def _print_Add(self, expr: Expr, order: Any = None) -> str:
        # Numbers last: 1 + x, where x is a sum of small parts, would lose their digits.
        terms = sorted(expr.args, key=lambda term: bool(term.is_number))
        text = ""
        for term in terms:
            negative = term.could_extract_minus_sign() and (term.is_number or isinstance(term, Mul))
            shown: str = self.parenthesize(-term if negative else term, PRECEDENCE["Add"], strict=not negative)
            text += (" - " if negative else " + ") + shown if text else ("-" if negative else "") + shown
        return text

    def _print_Mul(self, expr: Expr) -> str:
        sign = ""
        if expr.could_extract_minus_sign():
            sign, expr = "-", -expr
            if not isinstance(expr, Mul):
                return f"{sign}{self.parenthesize(expr, PRECEDENCE['Mul'])}"
        above: list[Any] = []
        below: list[Any] = []
        for part in expr.args:
            if isinstance(part, Rational) and part.p == 1 and len(expr.args) > 1:
                below.append(Integer(part.q))  # of a number that is no integer: some engines round quotients of these
            elif isinstance(part, Pow) and part.exp.is_number and part.exp.is_negative:
                below.append(Pow(part.base, -part.exp))
            else:
                above.append(part)
        if all(isinstance(part, Integer) for part in above):
            above = [Float(Mul(*above))]
        text = " * ".join(self._factor(part) for part in above)
        for part in below:
            text += f" / {self._divisor(part)}"
        return sign + text

    def _divisor(self, part: Expr) -> str:
        if self._is_exact or part.is_number:
            return self._factor(part, is_divisor=True)
        return f"NULLIF({self._print(part)}, 0)"

    def _factor(self, part: Expr, is_divisor: bool = False) -> str:
        text = self._print(part)
        is_product = isinstance(part, Pow | Mul) and (" * " in text or " / " in text)
        return f"({text})" if precedence(part) <= PRECEDENCE["Add"] or (is_divisor and is_product) else text

    def _is_product(self, power: Expr) -> bool:
        return bool(power.exp.is_Integer and power.base.is_Symbol and abs(int(power.exp)) <= _LARGEST_PRODUCT)

    def _print_Pow(self, expr: Expr, rational: bool = False) -> str:
        base, exponent = expr.base, expr.exp
        if exponent.is_number and exponent.is_negative:
            return f"1e0 / {self._divisor(Pow(base, -exponent))}"
        if self._is_product(expr):
            return " * ".join(self._print(base) for _ in range(int(exponent)))
        text = self._print(base)
        if exponent == 2 and len(text) <= _SHORT:
            return f"({text}) * ({self._print(base)})"
        power = f"SQRT({text})" if exponent == Rational(1, 2) else f"POWER({text}, {self._print(exponent)})"
        if self._is_exact or exponent.is_integer or base.is_nonnegative:
            return power
        return f"CASE WHEN {self.parenthesize(base, PRECEDENCE['Relational'])} >= 0 THEN {power} END"

    def _print_Function(self, expr: Expr) -> str:
        name = expr.func.__name__
        if name == "entry":
            numbers, place = expr.args
            return f"([{', '.join(literal(float(one)) for one in numbers)}])[{self._print(place)}]"
        rule = self._dialect.rules.get(name, getattr(expr.func, "definition", None))
        if rule is not None:
            return self._in_parentheses(rule(*expr.args))
        if name not in _NAMES:
            raise AbelnetError(f"law: expected functions that {self._dialect.name} has, got {name}")
        text = f"{_NAMES[name]}({', '.join(self._print(one) for one in expr.args)})"
        if name == "exp" and self._dialect.raises_at_limits:
            return (
                f"CASE WHEN {self._print(expr.args[0])} > {literal(_LARGEST_EXPONENT)} THEN {literal(math.inf)} "
                f"WHEN {self._print(expr.args[0])} < {literal(_SMALLEST_EXPONENT)} THEN 0e0 ELSE {text} END"
            )
        if name == "log" and not self._is_exact and not expr.args[0].is_positive:
            return f"CASE WHEN {self._print(expr.args[0])} > 0 THEN {text} END"
        return text

    _print_Abs = _print_sign = _print_log = _print_exp = _print_Function

    def _in_parentheses(self, expr: Expr) -> str:
        text = self._print(expr)
        return f"({text})" if isinstance(expr, Add | Mul | Pow) else text

    def _print_Mod(self, expr: Expr) -> str:
        first, second = (self.parenthesize(one, PRECEDENCE["Mul"]) for one in expr.args)
        return f"{first} % {second}"

    # Where an argument is NULL, engines differ on the greatest and the least.
    def _print_Max(self, expr: Expr) -> str:
        return self._extreme(expr, ">=", "<")

    def _print_Min(self, expr: Expr) -> str:
        return self._extreme(expr, "<=", ">")

    def _extreme(self, expr: Expr, better: str, worse: str) -> str:
        first, second = (partial(self.parenthesize, one, PRECEDENCE["Relational"]) for one in expr.args)
        cases = (f"WHEN {first()} {sign} {second()} THEN {one()}" for sign, one in ((better, first), (worse, second)))
        return f"CASE {' '.join(cases)} END"

    def _print_Piecewise(self, expr: Expr) -> str:
        *pieces, (last, condition) = expr.args
        if len(pieces) > _MOST_CASES and condition == true and _ascends([when for _, when in pieces]):
            return self._bisected([*pieces, (last, condition)])
        return self._cases(expr.args)

    def _cases(self, pieces: Sequence[Any]) -> str:
        *others, (last, condition) = pieces
        texts = [f"WHEN {self._print(when)} THEN {self._print(value)}" for value, when in others]
        end = "ELSE" if condition == true else f"WHEN {self._print(condition)} THEN"
        return f"CASE {' '.join(texts)} {end} {self._print(last)} END"

    def _bisected(self, pieces: Sequence[Any]) -> str:
        """Returns nested cases, of which few are compared, of pieces whose conditions imply those that follow."""
        if len(pieces) <= _MOST_CASES:
            return self._cases([*pieces[:-1], (pieces[-1][0], true)]) if len(pieces) > 1 else self._print(pieces[0][0])
        middle = len(pieces) // 2
        condition = self._print(pieces[middle - 1][1])
        return (
            f"CASE WHEN {condition} THEN {self._bisected(pieces[:middle])} ELSE {self._bisected(pieces[middle:])} END"
        )

    def _print_Relational(self, expr: Any) -> str:
        sign = {"==": "=", "!=": "<>"}.get(expr.rel_op, expr.rel_op)
        first, second = (self.parenthesize(one, PRECEDENCE["Relational"]) for one in expr.args)
        return f"{first} {sign} {second}"

    def _print_And(self, expr: Any) -> str:
        return " AND ".join(self.condition(one) for one in sorted(expr.args, key=str))

    def _print_Or(self, expr: Any) -> str:
        return " OR ".join(self._print(one) for one in sorted(expr.args, key=str))


def _ascends(conditions: Sequence[Any]) -> bool:
    """Returns whether each condition limits the same number, and implies those that follow."""
    if not all(one.is_Relational and one.rhs.is_number and one.lhs == conditions[0].lhs for one in conditions):
        return False
    limits = [float(one.rhs) for one in conditions]
    if all(one.rel_op in ("<", "<=") for one in conditions):
        return all(a < b for a, b in pairwise(limits))
    return all(one.rel_op in (">", ">=") for one in conditions) and all(a > b for a, b in pairwise(limits))
