"""Expressions as SQL."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pytest
import sympy
from sympy import Piecewise, Rational, Symbol, exp, log, sqrt

from abelnet import AbelnetError
from abelnet.sql import DIALECTS
from abelnet.sql.printing import SQLPrinter, literal

x, y = Symbol("x", real=True), Symbol("y", real=True)
EXPRESSIONS = [
    Rational(3, 2) / log(x),
    1 / (2 * log(x)),
    5 * x / 2 - y / 3,
    -1 / x + 2,
    1 / (x**2 * y),
    x / y**2 * (x + y),
    -(x**2) * (1 - (x - y) ** 2),
    1 / (sqrt(x) + 1) ** 2,
    2 * x**-3 - (x - (y - 1)),
    x - (-y) * -3,
    sympy.Mod(x, 2) + sympy.sign(-y) * sympy.Abs(y - 9) ** Rational(1, 3),
    Piecewise((x, x < y), (exp(-x / y), sympy.Eq(x, 2) | (x > 9)), (y, True)),
    sympy.Max(x - 1, y) * sympy.Min(x, 2 * y),
    sympy.Float(2**70) * x + 2**70,
]


def printed(expression: Any, dialect: str = "duckdb", **options: Any) -> str:
    return SQLPrinter({"x": '"x"', "y": '"y"'}, DIALECTS[dialect], **options).doprint(expression)


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_values_are_those_of_sympy(expression: Any) -> None:
    with duckdb.connect() as connection:
        for a, b in ((2.0, 7.0), (3.7, 0.4), (11.0, 5.0)):
            query = f"SELECT {printed(expression)} FROM (SELECT {literal(a)} AS x, {literal(b)} AS y)"
            ((found,),) = connection.sql(query).fetchall()
            assert found == pytest.approx(float(expression.subs({x: a, y: b})), rel=1e-14)


def test_roots_and_quotients_without_a_value_are_null() -> None:
    with duckdb.connect() as connection:
        for expression in (sqrt(x), log(x), y / (x + 1), x ** Rational(1, 3)):
            query = f"SELECT {printed(expression, is_exact=False)} FROM (SELECT -1e0 AS x, 1e0 AS y)"
            assert connection.sql(query).fetchall() == [(None,)]


def test_numbers_have_all_their_digits() -> None:
    numbers = [0.1, 1 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -0.0, math.inf, -math.inf]
    with duckdb.connect() as connection:
        (found,) = connection.sql(f"SELECT {', '.join(map(literal, numbers))}").fetchall()
        assert list(found) == numbers
        assert math.isnan(connection.sql(f"SELECT {literal(math.nan)}").fetchall()[0][0])


def test_functions_that_engines_lack_are_named() -> None:
    with pytest.raises(AbelnetError, match="law: expected functions that duckdb has, got erf"):
        printed(sympy.erf(x))
    assert "ATANH" not in printed(sympy.atanh(x), "polars").upper()


@pytest.mark.parametrize("falls", [False, True])
def test_many_cases_are_bisected(falls: bool) -> None:
    limits = range(20, 0, -1) if falls else range(1, 21)
    pieces = [(k * x, x >= k if falls else x <= k if k % 2 else x < k) for k in limits]
    expression = Piecewise(*pieces, (-x, True), evaluate=False)
    text = printed(expression)
    assert text.count("CASE") > 5
    assert printed(Piecewise(*pieces[::-1], (-x, True), evaluate=False)).count("CASE") == 1
    with duckdb.connect() as connection:
        for k in range(45):
            query = f"SELECT {text} FROM (SELECT {literal(k / 2)} AS x)"
            assert connection.sql(query).fetchall() == [(float(expression.subs(x, k / 2)),)]
        assert connection.sql(f"SELECT {text} FROM (SELECT CAST(NULL AS DOUBLE) AS x)").fetchall() == [(None,)]
