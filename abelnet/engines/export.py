"""Learned laws as text for other programs: SQL, source code, LaTeX."""

from __future__ import annotations

__all__ = ["FORMATS", "export_law"]

from collections.abc import Sequence

from abelnet.discovery.estimator import LawRegressor
from abelnet.engines.code import LANGUAGES, function_of
from abelnet.errors import AbelnetError

FORMATS = ("sql", "latex", *LANGUAGES)
"""Formats of :func:`export_law`."""


def export_law(
    model: LawRegressor,
    to: str,
    *,
    table: str = "elements",
    set: Sequence[str] = (),
    value: Sequence[str] = (),
    dialect: str = "duckdb",
) -> str:
    """Returns a learned law as text.

    Arguments:
        model: The fitted model.
        to: ``"sql"``: the query that aggregates the sets of a table. ``"python"`` or ``"javascript"``: a function that
            aggregates one set. ``"latex"``: the formula.
        table: Name of the table, for SQL.
        set: Columns that tell its sets apart; one set of all rows if empty.
        value: Column of each coordinate; by default ``value``, or the names of the coordinates.
        dialect: Dialect of SQL, a key of :data:`~abelnet.sql.DIALECTS`.

    Example:
        >>> model = LawRegressor().fit([[1, 2], [2, 2], [3, 1], [2, 3], [4, 1]], [3, 4, 4, 5, 5])
        >>> print(export_law(model, "sql", table="parts", set=["order"], value=["price"]))
        SELECT "order", SUM(CAST("price" AS DOUBLE)) AS "result" FROM "parts" GROUP BY "order"
        >>> print(export_law(model, "latex"))
        x \\circ y = x + y
    """
    if to not in FORMATS:
        raise AbelnetError(f"to: expected one of {', '.join(FORMATS)}, got {to!r}")
    laws, dim = model.laws_, sum(map(len, model.blocks_))
    if to == "latex":
        return "\n".join(law.latex for law in laws)
    if to in LANGUAGES:
        formula = "; ".join(law.formula for law in laws)
        operations = [law.operation for law in laws]
        return function_of(list(zip(operations, model.blocks_, strict=True)), to, formula).rstrip("\n")
    names = list(value) or (["value"] if dim == 1 else [name for law in laws for name in getattr(law, "names", ())])
    return model.sql(table=table, set=set, value=names, dialect=dialect)
