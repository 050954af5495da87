"""Tables that are pasted: what is read, guessed and refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abelnet.errors import AbelnetError
from abelnet.explore.presets import PRESETS
from abelnet.explore.tables import MOST_ROWS, stored
from abelnet.explore.tasks import run_task


def inspected(text: str) -> dict[str, Any]:
    return run_task("inspect", json.dumps({"text": text}).encode(), print)


@pytest.mark.parametrize("name", PRESETS)
def test_columns_of_presets_are_guessed(name: str) -> None:
    preset = PRESETS[name]
    found = inspected(preset.text)
    assert (found["set"], tuple(found["values"]), tuple(found["targets"])) == preset.columns
    assert found["count"] == preset.text.count("\n") - 1


def test_a_row_per_set_is_guessed() -> None:
    found = inspected("label\ta\tb\tresult\nu\t1\t2.5\t3.5\nv\t2\t2\t4\n")
    assert (found["set"], found["values"], found["targets"]) == (None, ["a", "b"], ["result"])
    assert found["numbers"] == ["a", "b", "result"]


def test_the_result_is_found_by_its_name() -> None:
    assert inspected("total,a,b\n3,1.5,1.5\n5,2.5,2.5\n")["targets"] == ["total"]


def test_decimal_commas() -> None:
    found = inspected("a;b;summe\n1,5;2,25;3,75\n2,5;1,5;4\n")
    assert found["numbers"] == ["a", "b", "summe"]


def test_a_table_without_a_header_gets_one() -> None:
    found = inspected("1,2,3\n4,5,9\n")
    assert found["added_header"]
    assert list(found["columns"]) == ["x1", "x2", "result"]
    assert found["rows"] == [["1", "2", "3"], ["4", "5", "9"]]


def test_markup_is_text() -> None:
    found = inspected("<script>alert(1)</script>,x,y\n<img src=x onerror=alert(1)>,1,2\n")
    assert found["columns"][0] == "<script>alert(1)</script>"
    assert found["rows"][0][0] == "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected rows, got an empty text"),
        (" \n \n", "expected rows, got an empty text"),
        ("a,b\n", "expected rows below the header"),
        ("x\n1\n", "expected at least two columns"),
        ("a,a\n1,2\n", "expected columns of different names"),
        ("a,b\n1\n", "line 2: expected 2 cells, got 1"),
        ('a,b\n"1,2\n', "line 2: expected a row of a table"),
        ("\x7fELF\x01\0\0", "is it a binary file"),
        ("a,b\n1,\ud800\n", "half of a surrogate pair"),
        (",".join(f"c{i}" for i in range(200)) + "\n" + ",".join("1" * 200), "at most 100 columns"),
        ("x" * 3_000_000 + ",y\n1,2\n", "expected lines of less than"),
    ],
)
def test_tables_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(AbelnetError, match=message) as raised:
        inspected(text)
    assert str(raised.value).startswith("table")
    assert "/" not in str(raised.value)  # no path of this machine


def test_a_million_rows_are_refused_at_once() -> None:
    with pytest.raises(AbelnetError, match=f"at most {MOST_ROWS:,} rows, got 1,000,000; take a sample"):
        inspected("set,x,y\n" + "1,2,3\n" * 1_000_000)


def test_options_of_the_command_line_are_those_of_the_page() -> None:
    with pytest.raises(AbelnetError, match='tick "skip incomplete sets"'), stored("a,b\n1,2\n"):
        raise AbelnetError("got none; use --skip-missing to skip them")
