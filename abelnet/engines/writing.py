"""Results as a CSV or Parquet file, or as a table of a DuckDB or SQLite database."""

from __future__ import annotations

__all__ = ["check_out", "write_results"]

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from abelnet.engines.database import Database, DatabaseError
from abelnet.engines.sources import column, files_of, literal
from abelnet.errors import AbelnetError
from abelnet.files import replacing
from abelnet.saving import FILE_NAME

# Spreadsheets run a cell that starts like this.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def check_out(out: Path, source: object) -> None:
    """Raises unless a file may be written: it is neither the table that is read, nor a folder, nor a saved model."""
    if isinstance(source, str | Path) and out.is_file() and any(map(out.samefile, files_of(source))):
        raise AbelnetError(f"out: expected another file than the table, got {out}")
    if out.is_dir():
        raise AbelnetError(f"out: expected a file to write, got the folder {out}")
    if out.name == FILE_NAME:
        raise AbelnetError(f"out: expected a CSV file to write, got {out}, the name of a saved model")


def write_results(
    database: Database,
    query: str,
    out: Path,
    table: str = "results",
    *,
    for_spreadsheets: bool = False,
) -> None:
    """Writes the rows of a query, atomically. The first column has names.

    Arguments:
        database: The database.
        query: The query, in SQL.
        out: ``.parquet``, a ``.duckdb`` or ``.sqlite`` database, or else a CSV file, possibly with ``.gz``.
        table: Name of the table in a database; it is replaced if it is there.
        for_spreadsheets: Whether to write an apostrophe before names that a spreadsheet would run as formulas.

    Example:
        >>> import tempfile
        >>> from abelnet.engines.database import open_database
        >>> with tempfile.TemporaryDirectory() as folder, open_database() as database:
        ...     write_results(database, "SELECT 'a' AS s, 1.5 AS result", Path(folder, "r.csv"))
        ...     Path(folder, "r.csv").read_text()
        's,result\\na,1.5\\n'
    """
    if for_spreadsheets:
        query = _without_formulas(database, query)
    write = _WRITERS.get(out.suffix.lower(), _write_csv)
    try:
        write(database, query, out, table)
    except (DatabaseError, sqlite3.Error) as error:
        raise AbelnetError(f"{out}: expected a file that can be written, got: {_reason(error):.200}") from None


def _reason(error: Exception) -> str:
    """Returns what is wrong; DuckDB writes what failed on another thread as JSON after its message.

    Example:
        >>> _reason(DatabaseError('IO Error: Async write failed: {"exception_message":"File too large"}'))
        'File too large'
    """
    text = str(error).splitlines()[0]
    with suppress(ValueError, KeyError):
        return str(json.loads(text[text.index("{") :])["exception_message"])
    return text


def _without_formulas(database: Database, query: str) -> str:
    (name, *_), *_ = database.run(f"DESCRIBE {query}")
    own = column(name)
    starts = " OR ".join(f"starts_with({own}, {literal(one)})" for one in _FORMULAS)
    title = column(f"'{name}" if name.startswith(_FORMULAS) else name)
    return f"SELECT CASE WHEN {starts} THEN '''' || {own} ELSE {own} END AS {title}, * EXCLUDE ({own}) FROM ({query})"


def _write_csv(database: Database, query: str, out: Path, _: str) -> None:
    compression = "gzip" if out.suffix.lower() == ".gz" else "none"
    _copy(database, query, out, f"FORMAT csv, HEADER, COMPRESSION {compression}")


def _write_parquet(database: Database, query: str, out: Path, _: str) -> None:
    _copy(database, query, out, "FORMAT parquet")


def _copy(database: Database, query: str, out: Path, options: str) -> None:
    with replacing(out) as temporary:
        database.run(f"COPY ({query}) TO {literal(str(temporary))} ({options}, USE_TMP_FILE false)")


def _write_duckdb(database: Database, query: str, out: Path, table: str) -> None:
    def write(path: Path) -> None:
        database.run(f"ATTACH {literal(str(path))} AS written (TYPE duckdb)")
        try:
            database.run(f"CREATE OR REPLACE TABLE written.{column(table)} AS {query}")
        finally:
            database.run("DETACH written")

    _in_database(out, write)


def _write_sqlite(database: Database, query: str, out: Path, table: str) -> None:
    def write(path: Path) -> None:
        described = database.run(f"DESCRIBE {query}")
        names = [f"{column(name)} {'TEXT' if kind == 'VARCHAR' else 'REAL'}" for name, kind, *_ in described]
        with closing(sqlite3.connect(path)) as written, written:
            written.execute("BEGIN")
            written.execute(f"DROP TABLE IF EXISTS {column(table)}")
            written.execute(f"CREATE TABLE {column(table)} ({', '.join(names)})")
            places = ", ".join("?" * len(names))
            for rows in database.batches(query):
                written.executemany(f"INSERT INTO {column(table)} VALUES ({places})", rows)

    _in_database(out, write)


def _in_database(out: Path, write: Callable[[Path], None]) -> None:
    """Writes to a database that is there, in a transaction; otherwise to a new one that appears when it is complete."""
    if out.exists():
        write(out)
        return
    with replacing(out) as temporary:
        temporary.unlink()  # an empty file is no database
        write(temporary)


_WRITERS = {
    ".parquet": _write_parquet,
    ".duckdb": _write_duckdb,
    ".sqlite": _write_sqlite,
    ".sqlite3": _write_sqlite,
    ".db": _write_sqlite,
}
