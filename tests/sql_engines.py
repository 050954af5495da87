"""Engines that run queries over a table in memory: each is a context that yields a function."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

Rows = list[tuple[Any, ...]]


def arrow(rows: Rows, names: Sequence[str] = ()) -> pa.Table:
    """Returns rows as a table with the columns ``set``, ``v1``, ``v2``, …, or others."""
    columns = list(zip(*rows, strict=True))
    names = names or ["set", *(f"v{i}" for i in range(1, len(columns)))]
    return pa.table(dict(zip(names, map(pa.array, columns), strict=True)))


@contextmanager
def in_duckdb() -> Iterator[Any]:
    connection = duckdb.connect()

    def run(query: str, rows: Rows, names: Sequence[str] = (), table: str = "t") -> list[Any]:
        connection.register(table, arrow(rows, names))
        return connection.sql(query).fetchall()

    try:
        yield run
    finally:
        connection.close()


@contextmanager
def in_sqlite() -> Iterator[Any]:
    connection = sqlite3.connect(":memory:")

    def run(query: str, rows: Rows, names: Sequence[str] = (), table: str = "t") -> list[Any]:
        names = names or ["set", *(f"v{i}" for i in range(1, len(rows[0])))]
        quoted = ['"' + name.replace('"', '""') + '"' for name in (table, *names)]
        connection.execute(f"DROP TABLE IF EXISTS {quoted[0]}")
        connection.execute(f"CREATE TABLE {quoted[0]} ({', '.join(quoted[1:])})")
        connection.executemany(f"INSERT INTO {quoted[0]} VALUES ({', '.join('?' * len(names))})", rows)
        return connection.execute(query).fetchall()

    try:
        yield run
    finally:
        connection.close()
