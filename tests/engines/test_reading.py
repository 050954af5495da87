"""Batches of rows: as large as allowed, in order, whatever the format."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from abelnet import AbelnetError
from abelnet.engines import reading
from abelnet.engines.reading import Columns, read_rows


@pytest.fixture
def table(tmp_path: Path) -> pa.Table:
    """100 rows as CSV, as compressed TSV and as Parquet."""
    data = pa.table({"s": [f"a{i // 3}" for i in range(100)], "x": np.arange(100.0), "y": np.arange(100.0) // 3})
    lines = [["s", "x", "y"], *([str(row[key]) for key in ("s", "x", "y")] for row in data.to_pylist())]
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, lines)))
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress("\n".join(map("\t".join, lines)).encode()))
    pyarrow.parquet.write_table(data, tmp_path / "t.parquet")
    return data


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet"])
@pytest.mark.parametrize(("rows", "cells"), [(100_000, 10_000), (30, 10_000), (30, 14), (7, 1)])
def test_batches(
    name: str, rows: int, cells: int, table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_ROWS", rows)
    monkeypatch.setattr(reading, "_CELLS_OF_TEXT", cells)
    batches = list(read_rows(tmp_path / name, Columns(("x",), "s", ("y",))))
    assert max(len(batch.sets) for batch in batches) <= rows
    assert len(batches) <= np.ceil(100 / rows) + 1
    assert [name for batch in batches for name in batch.sets] == table["s"].to_pylist()
    first = 1 if name == "t.parquet" else 2
    assert [place for batch in batches for place in batch.places] == list(range(first, 100 + first))
    for key, column in (("values", "x"), ("targets", "y")):
        found = np.concatenate([getattr(batch, key) for batch in batches])
        np.testing.assert_array_equal(found[:, 0], table[column].to_numpy())


def test_wide_tables_have_batches_of_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"c{i}" for i in range(50))
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *(",".join(map(str, range(50))) for _ in range(9))]))
    monkeypatch.setattr(reading, "_CELLS", 100)
    monkeypatch.setattr(reading, "_CELLS_OF_TEXT", 60)
    batches = list(read_rows(tmp_path / "t.csv", Columns(names)))
    assert [len(batch.sets) for batch in batches] == [2, 2, 2, 2, 1]


def test_what_is_wrong_with_the_file_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="no such file"):
        read_rows(tmp_path / "missing.csv", Columns(("x",)))
    with pytest.raises(AbelnetError, match="expected a regular file"):
        read_rows(tmp_path, Columns(("x",)))
