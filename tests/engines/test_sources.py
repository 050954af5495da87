"""What tables are read from: files of each kind, patterns, and data frames."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

from abelnet import AbelnetError
from abelnet.engines.columns import Columns
from abelnet.engines.reading import open_table
from abelnet.engines.sources import Reading

COLUMNS = Columns(("x",), "s", ("y",))
DATA = pa.table({"s": [f"a{i // 3}" for i in range(100)], "x": np.arange(100.0), "y": np.arange(100.0) // 3})


def rows(source: object, columns: Columns = COLUMNS, reading: Reading | None = None) -> list[tuple[object, ...]]:
    with open_table(source, columns, reading) as table:
        table.store()
        return table.database.run("FROM numbered")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same 100 rows in files of each kind."""
    lines = [["s", "x", "y"], *([str(row[key]) for key in ("s", "x", "y")] for row in DATA.to_pylist())]
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, lines)))
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress("\n".join(map("\t".join, lines)).encode()))
    (tmp_path / "t.jsonl").write_text(DATA.to_pandas().to_json(orient="records", lines=True))
    pyarrow.parquet.write_table(DATA, tmp_path / "t.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.jsonl", "t.parquet"])
def test_every_kind_has_the_same_rows(name: str, folder: Path) -> None:
    assert rows(folder / name) == list(zip(*DATA.to_pydict().values(), strict=True))


@pytest.mark.parametrize("convert", [pa.Table.to_pandas, polars.from_arrow, lambda table: table])
def test_data_frames(convert: object) -> None:
    frame = convert(DATA)  # type: ignore[operator]
    assert isinstance(frame, pandas.DataFrame | polars.DataFrame | pa.Table)
    assert rows(frame) == list(zip(*DATA.to_pydict().values(), strict=True))


def test_what_is_no_table() -> None:
    with pytest.raises(
        AbelnetError, match="table: expected a path or a data frame of pandas, Polars or Arrow, got float"
    ):
        rows(1.5)


def test_patterns_and_folders(folder: Path) -> None:
    assert len(rows(folder)) == 400
    assert len(rows(f"{folder}/t.[cj]s*")) == 200
    with pytest.raises(AbelnetError, match=r"file: no file matches .*\*\.tsv"):
        rows(f"{folder}/*.tsv")


def test_a_name_like_a_pattern_is_that_file(folder: Path) -> None:
    (folder / "t[1].csv").write_text("s,x,y\nb,1,1\n")
    (folder / "t1.csv").write_text("s,x,y\nc,1,1\n")
    assert rows(folder / "t[1].csv") == [("b", 1.0, 1.0)]


def test_names_that_look_like_sql(tmp_path: Path) -> None:
    path = tmp_path / "it's\"; DROP TABLE t.csv"
    path.write_text('"x""y; --",\'s\n1,a\n')
    assert rows(path, Columns(('x"y; --',), "'s")) == [("a", 1.0)]


def test_delimiter_and_decimals(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s x\na 1,234\n")
    with pytest.raises(AbelnetError, match="expected a column x, got s x"):
        rows(path, Columns(("x",), "s"))
    assert rows(path, Columns(("x",), "s"), Reading(" ", ",")) == [("a", 1.234)]
    for wrong in ({"delimiter": "ab"}, {"decimal": ";"}, {"delimiter": ",", "decimal": ","}):
        with pytest.raises(AbelnetError, match="expected"):
            Reading(**wrong)
