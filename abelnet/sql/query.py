"""Queries that aggregate the multisets of a table by laws: one SELECT, with native aggregates."""

from __future__ import annotations

__all__ = ["aggregate_query", "quote", "select"]

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from abelnet.errors import AbelnetError
from abelnet.operation import Operation
from abelnet.sql.dialects import DIALECTS, Dialect
from abelnet.sql.folds import Fold, Total, symbolic_fold, unsigned

if TYPE_CHECKING:
    from sympy import Expr

    from abelnet.sql.printing import SQLPrinter

Laws = Sequence[tuple[Operation, Sequence[int]]]
Names = str | Sequence[str]

# An expression that is used several times is written out if that adds at most so many characters; otherwise it is
# computed in a subquery.
_MOST_CHARACTERS = 100
# Names of columns within a query.
_INNER = r"[a-z]\d*(_\d+)*"
_COUNT, _LARGEST = "k", "m"  # columns that pass through all stages


def quote(name: str) -> str:
    """Returns a name as an SQL identifier, whatever characters it has.

    Example:
        >>> print(quote('a "b"; DROP TABLE c'))
        "a ""b""; DROP TABLE c"
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise AbelnetError(f"name: expected the name of a table or a column, got {name!r}")
    return '"' + name.replace('"', '""') + '"'


def select(
    laws: Laws,
    *,
    table: Names,
    set: Names | None,
    value: Names,
    dialect: str = "duckdb",
    results: Sequence[str] = (),
) -> str:
    """Returns the query that aggregates each set of a table: one row for each set, with its result.

    Rows may be in any order, values of any numeric type. A row whose values are all NULL is no element. The result is
    NULL if an element is outside the domain of the law, or a vector lacks some of its coordinates; if the law has no
    result; and of a set without elements.

    Arguments:
        laws: Operations, each with its coordinates among the values.
        table: Name of the table, or names of schema and table.
        set: Column with the set of each row, or several that tell sets apart; None for one set of all rows.
        value: Column of numbers, or one column for each coordinate.
        dialect: Engine that is to run the query, a key of :data:`DIALECTS`.
        results: Names of the columns of results: ``result``, or ``result_`` and the value if there are several.

    Example:
        >>> from abelnet import AbelianGroup, Even, Generator
        >>> norm = AbelianGroup(Even(Generator(1, "positive power", [2.0])))
        >>> print(select([(norm, [0])], table="parts", set="id", value="size"))
        SELECT "id", SQRT(SUM(CAST("size" AS DOUBLE) * CAST("size" AS DOUBLE))) AS "result" FROM "parts" GROUP BY "id"
    """
    parts = [table] if isinstance(table, str) else list(table)
    sets = [] if set is None else [set] if isinstance(set, str) else list(set)
    values = [value] if isinstance(value, str) else list(value)
    return aggregate_query(laws, ".".join(map(quote, parts)), sets, values, results=results, dialect=dialect)


def aggregate_query(
    laws: Laws,
    source: str,
    sets: Sequence[str],
    values: Sequence[str],
    *,
    results: Sequence[str] = (),
    dialect: str = "duckdb",
    compensated: bool = False,
    is_signed: bool = True,
    count: str | None = None,
    largest: str | None = None,
) -> str:
    """Returns the query of :func:`select` over any source.

    Arguments:
        laws: Operations, each with its coordinates among the values.
        source: Trusted SQL that stands after FROM, in the dialect of DuckDB.
        sets: Columns that tell sets apart.
        values: Columns of the coordinates.
        results: Names of the columns of results.
        dialect: Engine that is to run the query.
        compensated: Whether sums are compensated for rounding, as DuckDB can.
        is_signed: Whether factors may be negative or 0; if not, states of such elements are NULL.
        count: Name of a last column with the number of rows of each set, if any.
        largest: Name of a column of the source, if any, whose largest value in each set is a last column of that name.
            It keeps its type, and with it the size of a running state.
    """
    if dialect not in DIALECTS:
        raise AbelnetError(f"dialect: expected one of {', '.join(DIALECTS)}, got {dialect!r}")
    places = sorted(i for _, block in laws for i in block)
    if places != list(range(len(values))):
        raise AbelnetError(f"value: expected {len(places)} columns, one for each coordinate, got {len(values)}")
    results = list(results) or (["result"] if len(values) == 1 else [f"result_{name}" for name in values])
    if len(results) != len(values) or len({*results, *sets}) < len(results) + len(sets):
        raise AbelnetError(f"results: expected {len(values)} names other than {list(sets)}, got {results}")
    has_lists = DIALECTS[dialect].has_lists
    folds = [symbolic_fold(operation, block, has_lists=has_lists) for operation, block in laws]
    if not is_signed:
        folds = [unsigned(fold) for fold in folds]
    query = _Query(source, sets, values, results, DIALECTS[dialect])
    return query.aggregate(folds, "fsum" if compensated else "SUM", count, largest)


class _Column(NamedTuple):
    """SQL of a column, and whether it needs parentheses within an expression."""

    text: str
    is_compound: bool = False

    @property
    def factor(self) -> str:
        return f"({self.text})" if self.is_compound else self.text


Columns = dict[str, _Column]


class _Query:
    """Query that grows stage by stage; a stage becomes a subquery if the next one needs its columns more than once.

    Columns have the names of a :class:`Fold`; in addition, ``g`` are those that tell sets apart, and ``o`` marks
    elements outside the domain.
    """

    def __init__(
        self, source: str, sets: Sequence[str], values: Sequence[str], results: Sequence[str], dialect: Dialect
    ) -> None:
        self._source, self._dialect, self._sets, self._result_names = source, dialect, list(sets), list(results)
        # Names within the query are none of those that it is given: some engines would mix them up.
        self._prefix = ""
        while any(re.fullmatch(self._prefix + _INNER, name, re.IGNORECASE) for name in (*sets, *values, *results)):
            self._prefix += "_"
        self._keys = [quote(name) for name in sets]
        self._columns = {f"x{i + 1}": _Column(f"CAST({quote(name)} AS DOUBLE)") for i, name in enumerate(values)}
        self._is_grouped = False

    def aggregate(self, folds: Sequence[Fold], sum_function: str, count: str | None, largest: str | None) -> str:
        """Returns the query of all stages."""
        self._columns |= {} if largest is None else {_LARGEST: _Column(quote(largest))}
        if self._dialect.mixes_aliases:
            self._nest()
        for k in range(max(len(fold.prepared) for fold in folds)):
            self._stage(folds, partial(self._prepared, k))
        self._stage(folds, self._encoded)
        if any(fold.peaks for fold in folds):
            self._stage(folds, self._with_peaks)
            self._nest()  # no window function within an aggregate
        self._stage(folds, self._lifted)
        if sum_function != "SUM":
            self._nest()  # such a sum may use its column more than once
        self._stage(folds, partial(self._totals, sum_function))
        ends = {_COUNT: count and "COUNT(*)", _LARGEST: largest and f"MAX({self._columns[_LARGEST].text})"}
        self._columns |= {name: _Column(text) for name, text in ends.items() if text}
        self._is_grouped = True
        self._stage(folds, self._latent)
        for k in range(max(len(fold.followed) for fold in folds)):
            self._stage(folds, partial(self._followed, k))
        self._stage(folds, self._results, is_last=True)
        shown = {name: self._columns[f"y{i + 1}"].text for i, name in enumerate(self._result_names)}
        shown |= {name: self._columns[key].text for key, name in ((_LARGEST, largest), (_COUNT, count)) if name}
        return self._dialect.translate(self._select([*zip(self._sets, self._keys, strict=True), *shown.items()]))

    def _stage(
        self, folds: Sequence[Fold], write: Callable[[Fold, SQLPrinter], Columns], *, is_last: bool = False
    ) -> None:
        columns, used = self._written(folds, write, is_last)
        growth = sum((times - 1) * len(self._columns[name].text) for name, times in used.items() if times > 1)
        if growth > _MOST_CHARACTERS:
            self._nest()
            columns, _ = self._written(folds, write, is_last)
        self._columns = columns | {name: one for name, one in self._columns.items() if name in (_COUNT, _LARGEST)}

    def _written(
        self, folds: Sequence[Fold], write: Callable[[Fold, SQLPrinter], Columns], is_last: bool
    ) -> tuple[Columns, Counter[str]]:
        from abelnet.sql.printing import SQLPrinter

        columns: Columns = {}
        used: Counter[str] = Counter()
        texts = {name: column.factor for name, column in self._columns.items()}
        for fold in folds:
            printer = SQLPrinter(texts, self._dialect, is_exact=fold.is_exact or not is_last)
            columns |= write(fold, printer)
            used += printer.used
        return columns, used

    def _nest(self) -> None:
        """Makes the query so far a subquery."""
        keys = [self._prefix + f"g{i + 1}" for i in range(len(self._keys))]
        names = {name: self._prefix + name for name in self._columns}
        texts = [*self._keys, *(column.text for column in self._columns.values())]
        inner = self._select(zip([*keys, *names.values()], texts, strict=True))
        self._source, self._is_grouped = f"({inner}) AS {quote(self._prefix + 'q')}", False
        self._keys = [quote(name) for name in keys]
        self._columns = {name: _Column(quote(inner)) for name, inner in names.items()}

    def _select(self, columns: Iterable[tuple[str, str]]) -> str:
        shown = (text if text == quote(name) else f"{text} AS {quote(name)}" for name, text in columns)
        grouped = f" GROUP BY {', '.join(self._keys)}" if self._is_grouped and self._keys else ""
        return f"SELECT {', '.join(shown)} FROM {self._source}{grouped}"

    def _column(self, printer: SQLPrinter, expression: Expr) -> _Column:
        if expression.is_Symbol:
            return next(iter(self._kept([expression.name], printer).values()))
        return _Column(*printer.column(expression))

    def _kept(self, names: Iterable[str], printer: SQLPrinter) -> Columns:
        """Returns columns that a later stage needs, as they are."""
        kept = {name: self._columns[name] for name in names if name in self._columns}
        printer.used.update(kept.keys())
        return kept

    def _prepared(self, k: int, fold: Fold, printer: SQLPrinter) -> Columns:
        columns = self._kept([*fold.elements, *(name for stage in fold.prepared[:k] for name in stage)], printer)
        stage = fold.prepared[k] if k < len(fold.prepared) else {}
        return columns | {name: self._column(printer, one) for name, one in stage.items()}

    def _followed(self, k: int, fold: Fold, printer: SQLPrinter) -> Columns:
        columns = self._kept([*fold.latent, *(name for stage in fold.followed[:k] for name in stage)], printer)
        stage = fold.followed[k] if k < len(fold.followed) else {}
        return columns | {name: self._column(printer, one) for name, one in stage.items()}

    def _encoded(self, fold: Fold, printer: SQLPrinter) -> Columns:
        from sympy import Not, to_nnf, true

        conditions = [] if fold.is_defined == true else [printer.condition(fold.is_defined)]
        elements = [self._columns[name].factor for name in fold.elements]
        if len(elements) > 1:
            conditions += [f"{one} IS NOT NULL" for one in elements]
        columns = {name: self._column(printer, one) for name, one in fold.encoded.items()}
        counted = self._kept([total.of for total in fold.totals.values() if total.of in fold.elements], printer)
        if not conditions:
            return columns | counted
        guard = " AND ".join(conditions)
        columns = {name: _Column(f"CASE WHEN {guard} THEN {one.text} END") for name, one in columns.items()}
        if len(elements) > 1:  # a vector without some of its coordinates is outside as well
            outside = f"CASE WHEN {guard} THEN NULL WHEN COALESCE({', '.join(elements)}) IS NOT NULL THEN 1 END"
        else:
            outside = f"CASE WHEN {printer.condition(to_nnf(Not(fold.is_defined), simplify=False))} THEN 1 END"
        return columns | counted | {_name("o", fold): _Column(outside)}

    def _with_peaks(self, fold: Fold, printer: SQLPrinter) -> Columns:
        sets = f"PARTITION BY {', '.join(self._keys)}" if self._keys else ""
        columns = self._kept([*fold.encoded, *fold.elements, _name("o", fold)], printer)
        for name, total in fold.peaks.items():
            printer.used[total.of] += 1
            columns[name] = _Column(f"{total.kind.upper()}({self._columns[total.of].text}) OVER ({sets})")
        return columns

    def _lifted(self, fold: Fold, printer: SQLPrinter) -> Columns:
        columns = {name: self._column(printer, one) for name, one in fold.lifted.items()}
        counted = [total.of for total in fold.totals.values() if total.of not in columns]
        return columns | self._kept([*counted, _name("o", fold)], printer)

    def _totals(self, sum_function: str, fold: Fold, printer: SQLPrinter) -> Columns:
        totals, outside, columns = dict(fold.totals), _name("o", fold), Columns()
        if outside in self._columns:
            totals[outside] = Total("count", outside)
        for name, total in totals.items():
            function = sum_function if total.kind == "sum" else total.kind.upper()
            printer.used[total.of] += 1
            columns[name] = _Column(f"{function}({self._columns[total.of].text})")
        return columns

    def _latent(self, fold: Fold, printer: SQLPrinter) -> Columns:
        columns = {name: self._column(printer, one) for name, one in fold.latent.items()}
        outside = self._columns.get(_name("o", fold))
        if outside is None:
            return columns
        printer.used[_name("o", fold)] += len(columns)
        return {name: _Column(f"CASE WHEN {outside.text} = 0 THEN {one.text} END") for name, one in columns.items()}

    def _results(self, fold: Fold, printer: SQLPrinter) -> Columns:
        from sympy import true

        columns = {name: self._column(printer, one) for name, one in fold.results.items()}
        if fold.is_reached == true:
            return columns
        guard = printer.condition(fold.is_reached)
        return {name: _Column(f"CASE WHEN {guard} THEN {one.text} END") for name, one in columns.items()}


def _name(kind: str, fold: Fold) -> str:
    return kind + fold.elements[0][1:]
