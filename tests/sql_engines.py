"""Engines that run queries over a table in memory: each is a context that yields a function."""

from __future__ import annotations

import os
import secrets
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import parquet

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


@contextmanager
def postgres_server() -> Iterator[tuple[Path, int]]:
    """Starts PostgreSQL, and yields the folder of its socket and its port; as the user postgres if this one is root."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    user: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    port = 54329  # names the socket, which is in a folder of its own
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)

        def call(program: str, *arguments: str) -> None:
            command = [str(programs / program), "-D", str(folder / "data"), *arguments]
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, **user)

        call("initdb", "-U", "tester", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
        settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -p {port}"
        call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", settings, "start")
        try:
            yield folder, port
        finally:
            call("pg_ctl", "-w", "-m", "immediate", "stop")


@contextmanager
def in_postgres() -> Iterator[Any]:
    import psycopg

    with (
        postgres_server() as (folder, port),
        psycopg.connect(host=str(folder), port=port, user="tester", dbname="postgres") as connection,
    ):

        def run(query: str, rows: Rows, names: Sequence[str] = (), table: str = "t") -> list[Any]:
            names = names or ["set", *(f"v{i}" for i in range(1, len(rows[0])))]
            made, *columns = (psycopg.sql.Identifier(one) for one in (table, *names))
            types = psycopg.sql.SQL(", ").join(
                psycopg.sql.SQL("{} {}").format(one, psycopg.sql.SQL("bigint" if i == 0 else "double precision"))
                for i, one in enumerate(columns)
            )
            connection.execute(psycopg.sql.SQL("DROP TABLE IF EXISTS {}").format(made))
            connection.execute(psycopg.sql.SQL("CREATE TEMPORARY TABLE {} ({})").format(made, types))
            cursor = connection.cursor()
            with cursor.copy(psycopg.sql.SQL("COPY {} FROM STDIN").format(made)) as copy:
                for row in rows:
                    copy.write_row(row)
            try:
                return cursor.execute(query.encode()).fetchall()
            except psycopg.Error:
                connection.rollback()
                raise

        yield run


@contextmanager
def in_datafusion() -> Iterator[Any]:
    import datafusion

    def run(query: str, rows: Rows, names: Sequence[str] = (), table: str = "t") -> list[Any]:
        context = datafusion.SessionContext()
        context.register_record_batches(f'"{table.replace(chr(34), chr(34) * 2)}"', [arrow(rows, names).to_batches()])
        return [row for batch in context.sql(query).collect() for row in zip(*batch.to_pydict().values(), strict=True)]

    yield run


@contextmanager
def in_polars() -> Iterator[Any]:
    import polars

    def run(query: str, rows: Rows, names: Sequence[str] = (), table: str = "t") -> list[Any]:
        context = polars.SQLContext({table: polars.from_arrow(arrow(rows, names))})
        return context.execute(query, eager=True).rows()

    yield run


@contextmanager
def in_clickhouse() -> Iterator[Any]:
    from chdb import session

    with tempfile.TemporaryDirectory() as folder:
        opened = session.Session(f"{folder}/data")
        # Tables of the default database may be files: their names would be patterns.
        opened.query("CREATE DATABASE tests ENGINE = Atomic")
        opened.query("USE tests")

        def run(query: str, rows: Rows, names: Sequence[str] = (), table: str = "t") -> list[Any]:
            path = f"{folder}/rows.parquet"
            parquet.write_table(arrow(rows, names), path)
            quoted = "`" + table.replace("\\", "\\\\").replace("`", "\\`") + "`"
            opened.query(f"DROP TABLE IF EXISTS {quoted}")
            opened.query(f"CREATE TABLE {quoted} ENGINE = Memory AS SELECT * FROM file('{path}', 'Parquet')")
            found = opened.query(query, "ArrowTable")
            return list(zip(*found.to_pydict().values(), strict=True))

        try:
            yield run
        finally:
            opened.close()


@contextmanager
def in_spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:

        def run(query: str, rows: Rows, names: Sequence[str] = (), table: str = "t") -> list[Any]:
            path = f"{folder}/{secrets.token_hex(8)}.parquet"
            parquet.write_table(arrow(rows, names), path)
            spark.read.parquet(path).createOrReplaceTempView("`" + table.replace("`", "``") + "`")
            return [tuple(row) for row in spark.sql(query).collect()]

        try:
            yield run
        finally:
            spark.stop()


ENGINES = {
    "postgres": in_postgres,
    "datafusion": in_datafusion,
    "polars": in_polars,
    "clickhouse": in_clickhouse,
    "spark": in_spark,
}
