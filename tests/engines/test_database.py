from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from abelnet.engines.columns import Columns
from abelnet.engines.database import Database, DatabaseError, MemoryLimitError, ServedDatabase, open_database
from abelnet.engines.sources import Reading
from abelnet.engines.tables import read_sets


@pytest.fixture(params=[False, True], ids=["local", "apart"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    with open_database(apart=request.param) as opened:
        yield opened


def test_both_answer_alike(database: Database) -> None:
    assert database.run("SELECT ?::INTEGER + 1, 'a'", [1]) == [(2, "a")]
    assert database.run("CREATE TEMP TABLE t AS SELECT range AS i, nullif(range, 1)::DOUBLE AS x FROM range(5)") == [
        (5,)
    ]
    found = database.columns("FROM t ORDER BY i")
    assert found["i"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found["x"], [0, np.nan, 2, 3, 4])
    assert [len(rows) for rows in database.batches("FROM t", 2)] == [2, 2, 1]
    database.add("added", {"a": np.array([1.5, 2.5])})
    assert database.run("SELECT sum(a) FROM added") == [(4.0,)]
    database.remove("added")
    with pytest.raises(DatabaseError, match="added"):
        database.run("FROM added")
    with pytest.raises(DatabaseError, match="nonsense"):
        database.run("nonsense")
    database.run("SET memory_limit = '10MB'; SET temp_directory = ''")
    with pytest.raises(MemoryLimitError):
        database.run("CREATE TEMP TABLE large AS SELECT range AS i, random() AS x FROM range(10000000)")
    assert database.run("SELECT 1") == [(1,)]  # errors end nothing


def test_a_table_is_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,x,y\na,1,3\nb,5,5\na,2,3\n")
    columns = Columns(("x",), "s", ("y",))
    (own,), (apart,) = (list(read_sets(path, columns, reading=Reading(apart=apart))) for apart in (False, True))
    for one, other in zip(own, apart, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_process_that_ended_is_an_error() -> None:
    with open_database(apart=True) as served:
        assert isinstance(served, ServedDatabase)
        os.kill(served.pid, signal.SIGKILL)
        with pytest.raises(DatabaseError, match="the process of DuckDB ended with exit code -9"):
            served.run("SELECT 1")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_it_ends_with_the_process_that_asks() -> None:
    code = """
from abelnet.engines.database import ServedDatabase
served = ServedDatabase()
served.run("SELECT 1")
print(served.pid, flush=True)
served.run("SELECT count(*) FROM range(100000) a, range(10000000) b WHERE a.range * b.range = 7")  # for hours
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        served = Path("/proc", asking.stdout.readline().strip())
        assert served.exists()
        asking.kill()
    deadline = time.monotonic() + 30
    while served.exists() and (served / "stat").read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, "it goes on without anyone to ask"
        time.sleep(0.02)
