"""Dialects of SQL: what each engine lacks or does otherwise."""

from __future__ import annotations

__all__ = ["DIALECTS", "Dialect"]

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abelnet.errors import needs_extra

if TYPE_CHECKING:
    from sympy import Expr

# Below this size, log1p(z) is 2 artanh(z / (2 + z)) to the last bits; above, that loses digits and log(1 + z) does not.
_NEAR = 0.5


def _log1p(z: Expr) -> Expr:
    import sympy

    near = sympy.Abs(z, evaluate=False) < sympy.Float(_NEAR)
    return sympy.Piecewise((2 * sympy.atanh(z / (2 + z)), near), (sympy.log(1 + z), True), evaluate=False)


def _log_abs_1p(z: Expr) -> Expr:
    import sympy

    near = sympy.Abs(z, evaluate=False) < sympy.Float(_NEAR)
    return sympy.Piecewise((2 * sympy.atanh(z / (2 + z)), near), (sympy.log(sympy.Abs(1 + z)), True), evaluate=False)


def _expm1(z: Expr) -> Expr:
    import sympy

    return (sympy.exp(z) + 1) * sympy.tanh(z / 2)


def _expm1_by_logarithm(z: Expr) -> Expr:
    """Kahan's formula: errors of exp(z), near 1, cancel with those of its logarithm."""
    import sympy

    power = sympy.exp(z)
    rest = sympy.Add(power, -1, evaluate=False)
    quotient = rest * z / sympy.log(power, evaluate=False)
    near = sympy.Abs(z, evaluate=False) < 1
    return sympy.Piecewise((z, sympy.Eq(power, 1)), (quotient, near), (rest, True), evaluate=False)


def _atanh(z: Expr) -> Expr:
    import sympy
    from sympy.codegen.cfunctions import log1p

    size = sympy.Abs(z, evaluate=False)
    return sympy.sign(z, evaluate=False) * log1p(2 * size / (1 - size)) / 2


def _asinh(z: Expr) -> Expr:
    import sympy
    from sympy.codegen.cfunctions import log1p

    size = sympy.Abs(z, evaluate=False)
    return sympy.sign(z, evaluate=False) * log1p(size + z**2 / (1 + sympy.sqrt(1 + z**2)))


def _tanh(z: Expr) -> Expr:
    import sympy

    # Of the size, whose exponential does not overflow.
    rest = _expm1_by_logarithm(-2 * sympy.Abs(z, evaluate=False))
    return -sympy.sign(z, evaluate=False) * rest / (2 + rest)


def _sinh(z: Expr) -> Expr:
    from sympy.codegen.cfunctions import expm1

    return (expm1(z) - expm1(-z)) / 2


def _sign(z: Expr) -> Expr:
    import sympy

    return sympy.Piecewise((1, z > 0), (-1, z < 0), (0, sympy.Eq(z, 0)), evaluate=False)


Rules = dict[str, Callable[[Any], Any]]
# These do not exist in most engines, hyperbolic functions do.
_USUAL: Rules = {"log1p": _log1p, "log_abs_1p": _log_abs_1p, "expm1": _expm1}


@dataclass(frozen=True)
class Dialect:
    """SQL of one engine, as it differs from that of DuckDB.

    Attributes:
        name: Name of the engine.
        written_by: Dialect of sqlglot that the query is translated to; None if the engine reads that of DuckDB.
        rules: Formulas for functions that the engine lacks, by the names of the functions in sympy.
        raises_at_limits: Whether exponentials out of range raise an error; they are then limited to 0 and infinity.
        has_lists: Whether numbers are found in lists, and fast.
        mixes_aliases: Whether an alias hides a column of the same name everywhere in a query.
        needs: What the engine must have, in words; empty if nothing that it may lack.
    """

    name: str
    written_by: str | None
    rules: Rules = field(default_factory=lambda: _USUAL)
    raises_at_limits: bool = False
    has_lists: bool = False
    mixes_aliases: bool = False
    needs: str = ""

    def translate(self, query: str) -> str:
        """Returns a query of DuckDB in this dialect."""
        if self.written_by is None:
            return query
        with needs_extra("sql", f"dialect {self.name}"):
            import sqlglot
        (text,) = sqlglot.transpile(query, read="duckdb", write=self.written_by, normalize_functions=False)
        return str(text)


_ALL = (
    Dialect("duckdb", None, has_lists=True),
    Dialect("postgres", "postgres", raises_at_limits=True),
    Dialect("sqlite", "sqlite", needs="mathematical functions, which SQLite may be built without"),
    Dialect("datafusion", None, _USUAL | {"sign": _sign}),
    Dialect(
        "polars",
        None,
        {"expm1": _expm1_by_logarithm, "atanh": _atanh, "asinh": _asinh, "tanh": _tanh, "sinh": _sinh},
    ),
    Dialect(
        "clickhouse",
        "clickhouse",
        # Its own hyperbolic tangent has an error of 1e-16, whatever its size.
        {"expm1": _expm1_by_logarithm, "atanh": _atanh, "asinh": _asinh, "tanh": _tanh, "sinh": _sinh},
        mixes_aliases=True,
    ),
    Dialect("spark", "spark", {}),
)
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in _ALL}
"""Dialects by name."""
