"""Results as CSV, Parquet and in databases."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from abelnet import AbelnetError
from abelnet.engines.database import open_database
from abelnet.engines.writing import check_out, write_results

QUERY = "SELECT 'a' AS s, 1.5::DOUBLE AS result UNION ALL SELECT 'b', NULL ORDER BY s"
ROWS = [("a", 1.5), ("b", None)]


def write(path: Path, query: str = QUERY, table: str = "results") -> None:
    with open_database() as database:
        write_results(database, query, path, table)


def test_no_file_of_the_table_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,x\na,1\n")
    for source in (path, tmp_path, f"{tmp_path}/*.csv"):
        with pytest.raises(AbelnetError, match="out: expected another file than the table"):
            check_out(path, source)
        check_out(tmp_path / "r.csv", source)


def test_files(tmp_path: Path) -> None:
    for name in ("r.csv", "r.csv.gz", "r.parquet", "r"):
        write(tmp_path / name)
    assert (tmp_path / "r.csv").read_bytes() == (tmp_path / "r").read_bytes() == b"s,result\na,1.5\nb,\n"
    assert gzip.decompress((tmp_path / "r.csv.gz").read_bytes()) == b"s,result\na,1.5\nb,\n"
    with duckdb.connect() as connection:
        assert connection.sql(f"FROM '{tmp_path / 'r.parquet'}'").fetchall() == ROWS
    assert len(list(tmp_path.iterdir())) == 4


def read(path: Path, table: str) -> list[tuple[object, ...]]:
    name = table.replace('"', '""')
    if path.suffix == ".duckdb":
        with duckdb.connect(path) as connection:
            return list(connection.execute(f'FROM "{name}"').fetchall())
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f'SELECT * FROM "{name}"').fetchall()


@pytest.mark.parametrize("suffix", [".duckdb", ".sqlite"])
def test_databases(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"bank{suffix}"
    write(path, table='t"; DROP TABLE x')
    write(path, "SELECT 'c' AS s, 2.0::DOUBLE AS result")
    write(path, "SELECT 'd' AS s, 3.0::DOUBLE AS result")  # replaces the table
    assert read(path, 't"; DROP TABLE x') == ROWS
    assert read(path, "results") == [("d", 3.0)]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".duckdb", ".sqlite"])
def test_what_fails_leaves_nothing_new(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{suffix}"
    fails = "SELECT 'a' AS s, error('enough')::DOUBLE AS result"
    with pytest.raises(AbelnetError, match=f"r{suffix}: expected a file that can be written, got: .*enough"):
        write(path, fails)
    assert not list(tmp_path.iterdir())
    write(path)
    with pytest.raises(AbelnetError, match="enough"):
        write(path, fails)
    if suffix in (".duckdb", ".sqlite"):
        assert read(path, "results") == ROWS
