"""What tables are read from, in the SQL of DuckDB: CSV, Parquet and JSON lines, folders, glob patterns, data frames."""

from __future__ import annotations

__all__ = ["Part", "Reading", "Row", "column", "copied_part", "files_of", "is_numeric", "literal", "parts_of"]

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from abelnet.engines.columns import Columns
from abelnet.engines.database import Database, DatabaseError
from abelnet.engines.text import LONGEST_LINE, MISSING, Layout, check_header, layout_of, parse_number, records
from abelnet.errors import AbelnetError

_LARGEST_TO_SEARCH = 2**30  # bytes; a larger file may not stay in memory, and would be read twice
_ROWS_TO_SNIFF = 1000  # of JSON lines, for their keys
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", '"NULL"')
_NO_NAMES = ("BLOB", "STRUCT", "MAP", "UNION", "VARIANT")


@dataclass(frozen=True)
class Reading:
    """How a table is read.

    Attributes:
        delimiter: Between the cells of CSV; found in the header if not given.
        decimal: Separator of decimals in CSV, a point or a comma; found in the first rows if not given.
        memory_limit: Memory of DuckDB, such as ``"2GB"``; what does not fit goes to temporary files.
        apart: Whether DuckDB reads files in a process of its own, so that its memory is not added to that of PyTorch.

    Example:
        >>> Reading(decimal="x")
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: decimal: expected a point or a comma, got 'x'
    """

    delimiter: str | None = None
    decimal: str | None = None
    memory_limit: str | None = None
    apart: bool = False

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            raise AbelnetError(f"delimiter: expected one character, got {self.delimiter!r}")
        if self.decimal not in (None, ".", ","):
            raise AbelnetError(f"decimal: expected a point or a comma, got {self.decimal!r}")
        if self.decimal is not None and self.decimal == self.delimiter:
            raise AbelnetError(f"decimal: expected another character than the delimiter, got {self.decimal!r}")


class Row(NamedTuple):
    """A row as it is in the table: its place for messages, its line or number, the name of its set, and its numbers."""

    place: str
    number: int
    name: str | None
    cells: Sequence[str | None]


@dataclass(frozen=True)
class Part:
    """Files of a table that are read alike.

    Attributes:
        paths: The files; none if the table is a data frame.
        relation: What to select from in SQL, with ``$FILES`` for the list of files.
        key: The set of a row in SQL, or None in wide form.
        finite: Numbers in SQL: NULL, NaN or infinite where there is none.
        numbers: The same, but infinite where one is not missing but wrong.
        cells: The same as text, as it is in the table.
        layout: How the files are written, if they are CSV.
        is_counted: Whether the files say how many rows they have, so that none is read to count them.
    """

    paths: tuple[Path, ...]
    relation: str
    key: str | None
    finite: tuple[str, ...]
    numbers: tuple[str, ...]
    cells: tuple[str, ...]
    layout: Layout | None = None
    is_counted: bool = False

    def source(self, paths: Sequence[Path] | None = None) -> str:
        """Returns what to select from: all files, or some."""
        # A name with brackets or asterisks is no pattern.
        names = ", ".join(literal(glob.escape(str(path))) for path in paths or self.paths)
        return self.relation.replace("$FILES", f"[{names}]")

    def rows(self, database: Database, columns: Columns) -> Iterator[Row]:
        """Yields the rows as they are, for messages; slow, and in order."""
        if self.layout is not None:
            header = self.layout.header
            places = [header.index(name) for name in columns.numbers]
            for path in self.paths:
                for line, row in records(path, self.layout):
                    name = str(line) if columns.set is None else row[header.index(columns.set)]
                    yield Row(f"{path}, line {line}", line, name, [row[place] for place in places])
            return
        chosen = ", ".join([f"CAST({self.key or 'NULL'} AS VARCHAR)", *self.cells])
        each: list[tuple[Path, ...]] = [(path,) for path in self.paths]
        for paths in each or [()]:
            number = 0
            for rows in database.batches(f"SELECT {chosen} FROM {self.source(paths)}"):
                for name, *cells in rows:
                    number += 1
                    where = f"{', '.join(map(str, paths)) or 'table'}, row {number}"
                    yield Row(where, number, str(number) if self.key is None else name, cells)

    def number(self, row: Row, place: int, name: str) -> float:
        """Returns a number of a row, NaN if it is missing; raises if there is something else."""
        cell = row.cells[place]
        found = parse_number(cell, "." if self.layout is None else self.layout.decimal)
        if found is None:
            hint = "; if commas separate decimals, use --decimal ," if self.layout and "," in str(cell) else ""
            raise AbelnetError(f"{row.place}: expected a number in column {name}, got {cell!r:.80}{hint}")
        return found


def literal(text: str) -> str:
    """Returns a text as a literal of SQL.

    Example:
        >>> literal("it's")
        "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def column(name: str) -> str:
    """Returns the name of a column in SQL.

    Example:
        >>> column('a"b')
        '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def is_numeric(kind: str) -> bool:
    """Returns whether a type of DuckDB is one of numbers.

    Example:
        >>> is_numeric("UBIGINT"), is_numeric("DECIMAL(18,3)"), is_numeric("DOUBLE[]"), is_numeric("VARCHAR")
        (True, True, False, False)
    """
    return kind.removeprefix("U").startswith(_NUMBERS) and not kind.endswith("]")


def parts_of(source: Any, columns: Columns, database: Database, reading: Reading) -> tuple[str, list[Part]]:
    """Returns the name of a table for messages, and what it is read from.

    Arguments:
        source: A file, a folder, a glob pattern, or a data frame of pandas, Polars or Arrow.
        columns: Columns to read.
        database: The database that will read it.
        reading: How to read it.
    """
    if not isinstance(source, str | Path):
        try:
            database.add("frame", source)
        except DatabaseError:
            got = type(source).__name__
            raise AbelnetError(
                f"table: expected a path or a data frame of pandas, Polars or Arrow, got {got}"
            ) from None
        return "table", [_typed_part("table", (), "frame", columns, database)]
    parts: dict[Any, Part] = {}
    for path in files_of(source):
        part = _KINDS[_suffix(path)](path, columns, database, reading)
        alike = replace(part, paths=())
        parts[alike] = replace(part, paths=(*parts[alike].paths, path)) if alike in parts else part
    return str(source), list(parts.values())


def copied_part(path: Path, columns: Columns) -> Part:
    """Returns what a copy of a table is read from: CSV with the set or the line, then the numbers."""
    layout = Layout(",", ".", ("s", *columns.numbers), 0, 0)
    part = _csv(path, layout, columns.numbers, "s")
    return part if columns.set is not None else replace(part, key=f"CAST({part.key} AS BIGINT)")


def files_of(source: str | Path) -> list[Path]:
    """Returns the files of a table: one, those of a folder, or those that match a pattern; raises if it has none."""
    path = Path(source)
    if path.is_dir():
        found = sorted(one for one in path.rglob("*") if one.is_file() and _suffix(one) in _KINDS)
        if not found:
            raise AbelnetError(f"file: expected tables in the folder {path}, got none")
    elif not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(one) for one in glob.glob(str(path), recursive=True) if Path(one).is_file())
        if not found:
            raise AbelnetError(f"file: no file matches {path}")
    else:
        found = [path]
    for one in found:
        if not one.exists():
            raise AbelnetError(f"file: no such file: {one}")
        if not one.is_file():
            # A pipe could not be read a second time, and a table that is wrong is.
            raise AbelnetError(f"file: expected a regular file, got {one}")
        if _suffix(one) not in _KINDS:
            raise AbelnetError(f"file: expected .csv, .tsv, .txt, .jsonl, .gz of these, or .parquet, got {one.name}")
        if one.name.lower().endswith(".parquet.gz"):
            raise AbelnetError(f"file: expected .parquet without .gz, got {one.name}; decompress it first")
    return found


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _compression(path: Path) -> str:
    return "gzip" if path.suffix.lower() == ".gz" else "none"


def _csv_part(path: Path, columns: Columns, _: Any, reading: Reading) -> Part:
    layout = layout_of(path, columns, reading.delimiter, reading.decimal)
    return _csv(path, layout, columns.numbers, columns.set)


def _csv(path: Path, layout: Layout, numbers: Sequence[str], key: str | None) -> Part:
    types = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(layout.header)))
    relation = (
        f"read_csv($FILES, delim = {literal(layout.delimiter)}, quote = '\"', escape = '\"', header = false, "
        f"skip = {layout.skip}, auto_detect = false, strict_mode = true, compression = '{_compression(path)}', "
        f"max_line_size = {LONGEST_LINE}, columns = {{{types}}})"
    )
    if len(layout.header) == 1:
        relation = f"(FROM {relation} WHERE c0 IS NOT NULL)"  # blank lines
    cells = tuple(f"c{layout.header.index(name)}" for name in numbers)
    has_underscores = _has_underscores(path)
    finite = tuple(_from_text(cell, layout.decimal, has_underscores) for cell in cells)
    # Not by IN, of which DuckDB makes a join.
    missing = "regexp_full_match(trim({0}), '" + "|".join(MISSING) + "', 'i')"
    rest = f"CASE WHEN {{0}} IS NULL OR {missing} THEN NULL ELSE 'inf'::DOUBLE END"
    numbers = tuple(f"coalesce({one}, {rest.format(cell)})" for one, cell in zip(finite, cells, strict=True))
    return Part((path,), relation, key and f"c{layout.header.index(key)}", finite, numbers, cells, layout)


def _has_underscores(path: Path) -> bool:
    """Returns whether a file may have underscores. To find none is much faster than to find none in each cell."""
    if _compression(path) != "none" or path.stat().st_size > _LARGEST_TO_SEARCH:
        return True
    try:
        with path.open("rb") as file:
            return any(b"_" in chunk for chunk in iter(partial(file.read, 2**20), b""))
    except OSError:
        return True


def _from_text(cell: str, decimal: str, has_underscores: bool) -> str:
    """Returns the number in a cell, or NULL. DuckDB would also take underscores."""
    if decimal == ".":
        number = f"TRY_CAST({cell} AS DOUBLE)"
        return f"CASE WHEN NOT contains({cell}, '_') THEN {number} END" if has_underscores else number
    text = f"translate({cell}, {literal(decimal + '._')}, '.__')"
    return f"CASE WHEN NOT contains({text}, '_') THEN TRY_CAST({text} AS DOUBLE) END"


def _parquet_part(path: Path, columns: Columns, database: Database, _: Any) -> Part:
    # Otherwise DuckDB takes the largest number that the file names for a sign that no number is NaN.
    relation = "read_parquet($FILES, hive_partitioning = false, can_have_nan = true)"
    try:
        schema = database.run(f"SELECT name, num_children FROM parquet_schema({literal(glob.escape(str(path)))})")
        part = _typed_part(str(path), (path,), relation, columns, database, _outermost(schema))
        return replace(part, is_counted=True)
    except DatabaseError as error:
        reason = " ".join(str(error).split())
        raise AbelnetError(f"{path}: expected a readable Parquet file, got: {reason:.200}") from None


def _outermost(schema: Sequence[tuple[str, int | None]]) -> list[str]:
    """Returns the names of the columns of a Parquet file; DuckDB renames those that occur twice."""
    names, pending = [], 0
    for name, children in schema[1:]:
        if pending == 0:
            names.append(name)
        else:
            pending -= 1
        pending += children or 0
    return names


def _typed_part(
    name: str,
    paths: tuple[Path, ...],
    relation: str,
    columns: Columns,
    database: Database,
    header: Sequence[str] | None = None,
) -> Part:
    part = Part(paths, relation, None, (), (), ())
    described = database.run(f"DESCRIBE SELECT * FROM {part.source()}")
    header = [row[0] for row in described] if header is None else header
    check_header(name, header, columns)
    for wanted in columns.all:
        kind = str(described[header.index(wanted)][1])
        is_list = kind.endswith("]")
        if wanted != columns.set and not is_numeric(kind):
            raise AbelnetError(f"{name}: expected numbers in column {wanted}, got {kind}")
        if wanted == columns.set and (is_list or kind.startswith(_NO_NAMES)):
            raise AbelnetError(f"{name}: expected names of sets in column {wanted}, got {kind}")
    own = {wanted: column(described[header.index(wanted)][0]) for wanted in columns.all}
    return replace(
        part,
        key=None if columns.set is None else own[columns.set],
        finite=tuple(f"CAST({own[one]} AS DOUBLE)" for one in columns.numbers),
        numbers=tuple(f"CAST({own[one]} AS DOUBLE)" for one in columns.numbers),
        cells=tuple(f"CAST({own[one]} AS VARCHAR)" for one in columns.numbers),
    )


def _json_part(path: Path, columns: Columns, database: Database, _: Any) -> Part:
    relation = f"read_ndjson_objects($FILES, compression = '{_compression(path)}')"
    part = Part((path,), relation, None, (), (), ())
    try:
        sample = f"SELECT unnest(json_keys(json)) AS key FROM (FROM {part.source()} LIMIT {_ROWS_TO_SNIFF})"
        found = database.run(f"SELECT DISTINCT key FROM ({sample}) ORDER BY key")
    except DatabaseError as error:
        reason = " ".join(str(error).split())
        raise AbelnetError(f"{path}: expected a readable file of JSON lines, got: {reason:.200}") from None
    check_header(path, [key for (key,) in found], columns)

    def place(name: str) -> str:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        return literal(f'$."{escaped}"')

    cells = tuple(f"json_extract(json, {place(name)})" for name in columns.numbers)
    numbers = tuple(
        f"CASE WHEN {cell} IS NULL OR json_type({cell}) = 'NULL' THEN NULL WHEN json_type({cell}) IN "
        f"('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE') THEN CAST({cell} AS DOUBLE) ELSE 'inf'::DOUBLE END"
        for cell in cells
    )
    return replace(
        part,
        key=None if columns.set is None else f"json_extract_string(json, {place(columns.set)})",
        finite=numbers,
        numbers=numbers,
        cells=tuple(f"CAST({cell} AS VARCHAR)" for cell in cells),
    )


_Opener = Callable[[Path, Columns, Database, Reading], Part]
_KINDS: dict[str, _Opener] = dict.fromkeys((".csv", ".tsv", ".txt"), _csv_part)
_KINDS |= {".parquet": _parquet_part} | dict.fromkeys((".jsonl", ".ndjson"), _json_part)
