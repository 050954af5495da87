"""Awkward tables: how each file is made, and what must happen to it. Independent of what reads tables.

Each table has a column ``s`` of sets and a column ``x`` of numbers, which are added up. Either all sums are right, or
one line says what is wrong.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import torch

from abelnet import AbelianGroup, AbelnetError, Generator, LawRegressor
from abelnet.discovery.report import LearnedLaw
from abelnet.engines.applying import apply_law
from abelnet.engines.columns import Columns

Sums = dict[str, float]


@dataclass(frozen=True)
class Case:
    """An awkward table.

    Attributes:
        name: Name of the file or folder.
        what: What is awkward about it.
        make: Writes the file; or its content.
        expected: The sum of each set, or part of the error.
    """

    name: str
    what: str
    make: Callable[[Path], object] | bytes | str
    expected: Sums | str

    def write(self, folder: Path) -> Path:
        """Writes the file, and returns its path."""
        path = folder / self.name
        if callable(self.make):
            self.make(path)
        else:
            path.write_bytes(self.make.encode() if isinstance(self.make, str) else self.make)
        return path


def sum_model() -> LawRegressor:
    """A model of the sum, as if it had been learned."""
    law = LearnedLaw(AbelianGroup(Generator(1, "affine", dtype=torch.float64)), "sum", 0.0, 1.0)
    return LawRegressor.from_config(LawRegressor().get_params() | {"flat": True, "laws": [law]})


def read_sums(path: Path) -> Sums:
    """Reads what apply has written; an empty cell, which has no finite result, as infinity."""
    with path.open(newline="", encoding="utf-8") as file:
        return {name: float(result or "inf") for name, result, _ in list(csv.reader(file))[1:]}


def outcome(case: Case) -> Sums | str:
    """Returns the sum of each set of a table, or the error, with the name of the file but not its folder."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = case.write(Path(folder)), Path(folder, "sums.out")
        try:
            apply_law(sum_model(), path, Columns(("x",), "s"), out)
        except AbelnetError as error:
            assert not out.exists()
            return str(error).replace(f"{folder}{os.sep}", "")
        return read_sums(out)


PLAIN = "s,x\na,1\na,2\nb,5\n"
SUMS = {"a": 3.0, "b": 5.0}


def _parquet(**columns: Any) -> Callable[[Path], object]:
    return lambda path: pyarrow.parquet.write_table(pa.table(columns), path)


def _numbers(values: list[Any], kind: pa.DataType | None = None) -> Callable[[Path], object]:
    return _parquet(s=["a", "a", "b"], x=pa.array(values, kind))


def _names(names: list[Any], kind: pa.DataType | None = None) -> Callable[[Path], object]:
    return _parquet(s=pa.array(names, kind), x=[1.0, 2.0, 5.0])


def _twice_the_same_column(path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([1.0]), pa.array([2.0])], names=["s", "x", "x"])
    pyarrow.parquet.write_table(table, path)


def _damaged(keep: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        _numbers([1.0, 2.0, 5.0])(path)
        path.write_bytes(keep(path.read_bytes()))

    return make


def _link(target: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        path.with_name("plain-table.csv").write_text(PLAIN)
        path.symlink_to(target)

    return make


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "t1.csv").write_text("s,x\na,1\n")
    (path / "t2.csv").write_text("x;s\n2;a\n")
    (path / "t3.jsonl").write_text('{"s": "b", "x": 2}')
    _parquet(s=["b"], x=[3])(path / "t4.parquet")
    (path / "notes").write_text("no table")


def _folder_with_a_fault(path: Path) -> None:
    path.mkdir()
    (path / "t1.csv").write_text("s,x\na,1\n")
    (path / "t2.csv").write_text("s,x\na,two\n")


JSON = '{"s": "a", "x": 1}\n{"s": "a", "x": 2.0, "n": null}\n{"x": 5, "s": "b"}\n'


def _number(text: str) -> str:
    return f"s,x\na,1\na,2\nb,{text}\n"


def _cell(name: str, what: str, text: str, expected: float | str) -> Case:
    wanted = expected if isinstance(expected, str) else {"a": 3.0, "b": expected}
    return Case(name, what, _number(text), wanted)


WIDE = ",".join(["s", "x", *(f"c{i}" for i in range(10_000))]) + "\n"
WIDE += "".join(",".join([name, x, *["7"] * 10_000]) + "\n" for name, x in (("a", "1"), ("a", "2"), ("b", "5")))
NO_NUMBER = "line 4: expected a number in column x, got"
MISSING = "expected a number in each column, got none in set b"
INFINITE = "line 4: expected a finite number in column x of set b, got"
NO_NAME = "expected the name of a set in column s, got none"
NO_COLUMN = "expected a column x"
UNREADABLE = "expected a readable"
NOT_UTF8 = "expected text in UTF-8"

ENCODINGS = [
    Case("plain.csv", "nothing", PLAIN, SUMS),
    Case("bom.csv", "UTF-8 with a byte order mark", PLAIN.encode("utf-8-sig"), SUMS),
    Case("names.csv", "names of sets in UTF-8", "s,x\nGröße,1\n温度,2\n", {"Größe": 1.0, "温度": 2.0}),
    Case("utf16.csv", "UTF-16", PLAIN.encode("utf-16"), NOT_UTF8),
    Case("utf16le.csv", "UTF-16 without a byte order mark", PLAIN.encode("utf-16-le"), "got a NUL byte"),
    Case("utf32.csv", "UTF-32", PLAIN.encode("utf-32"), NOT_UTF8),
    Case("latin1.csv", "Latin-1", "s,x\nGröße,1\n".encode("latin-1"), NOT_UTF8),
    Case("nul.csv", "a NUL byte in a number", "s,x\na,1\0\n", "got a NUL byte"),
    Case("nul-name.csv", "a NUL byte in a name", "s,x\na\0,1\n", "got a NUL byte"),
    Case("image.csv", "an image", b"\x89PNG\r\n\x1a\n\0\0", NOT_UTF8),
    Case("escape.csv", "a name with control characters", "s,x\n\x1b[2J,1\n", {"\x1b[2J": 1.0}),
]

SHAPES = [
    Case("crlf.csv", "lines that end in CR LF", PLAIN.replace("\n", "\r\n"), SUMS),
    Case("cr.csv", "lines that end in CR", PLAIN.replace("\n", "\r"), SUMS),
    Case("mixed.csv", "lines that end in either", "s,x\ra,1\r\na,2\nb,5", SUMS),
    Case("no-end.csv", "no end of the last line", PLAIN.rstrip(), SUMS),
    Case("blank-lines.csv", "blank lines", "\ns,x\n\na,1\n\n\na,2\nb,5\n\n", SUMS),
    Case("scattered.csv", "rows of a set that are not adjacent", "s,x\na,1\nb,5\na,2\n", SUMS),
    Case("tabs.tsv", "tabs", PLAIN.replace(",", "\t"), SUMS),
    Case("commas.txt", "extension .txt", PLAIN, SUMS),
    Case("tabs.csv", "tabs in .csv", PLAIN.replace(",", "\t"), SUMS),
    Case("commas.tsv", "commas in .tsv", PLAIN, SUMS),
    Case("semicolons.csv", "semicolons", PLAIN.replace(",", ";"), SUMS),
    Case("bars.csv", "vertical bars", PLAIN.replace(",", "|"), SUMS),
    Case("excel.csv", "semicolons and decimal commas", "s;x\na;1,5\na;1,5\nb;5,0\n", SUMS),
    Case("excel-tabs.txt", "tabs and decimal commas", "s\tx\na\t1\na\t2\nb\t-,5e1\n", {"a": 3.0, "b": -5.0}),
    Case(
        "decimals-or-thousands.csv",
        "semicolons and commas that may be decimal or separate thousands",
        "s;x\na;1\na;2\nb;1,234\n",
        f"{NO_NUMBER} '1,234'; if commas separate decimals, use --decimal ,",
    ),
    Case(
        "excel-thousands.csv",
        "decimal commas, and points that separate thousands",
        "s;x\na;1,5\na;1,5\nb;1.234,5\n",
        "line 2: expected a number in column x, got '1,5'; if commas separate decimals, use --decimal ,",
    ),
    Case(
        "mixed-decimals.csv",
        "decimal commas, and a point after the first 1,000 rows",
        "s;x\n" + "a;0,5\n" * 1200 + "b;1.5\n",
        "line 1202: expected a number in column x, got '1.5'",
    ),
    Case("spaces.txt", "spaces", PLAIN.replace(",", " "), NO_COLUMN),
    Case("CAPITALS.CSV", "extension in capitals", PLAIN, SUMS),
    Case("quotes.csv", "every cell in quotes", '"s","x"\n"a","1"\n"a","2"\n"b","5"\n', SUMS),
    Case(
        "quoted.csv",
        "a comma, a quote and a newline in names",
        's,x\n"a,b",1\n"""",2\n"c\nd",3\n',
        {"a,b": 1.0, '"': 2.0, "c\nd": 3.0},
    ),
    Case(
        "open-quote.csv",
        "a quote that is not closed",
        's,x,n\na,1,"\na,2,\nb,5,\n',
        "line 2: expected a row of a table",
    ),
    Case("after-quote.csv", "text after a quote", 's,x\n"a"a,1\n', "line 2: expected a row of a table"),
    Case("short.csv", "a row that is too short", "s,x,n\na,1,\na,2\nb,5,\n", "line 3: expected 3 cells, got 2"),
    Case("long.csv", "a row that is too long", "s,x\na,1\na,2,7\nb,5\n", "line 3: expected 2 cells, got 3"),
    Case("wrong-line.csv", "an error after a name of two lines", 's,x\n"a\nb",1\nc,one\n', "line 4: expected a number"),
    Case(
        "huge-cell.csv",
        "a cell of 200,000 characters",
        f"s,x,n\na,1,{'n' * 200_000}\n",
        {"a": 1.0},
    ),
    Case(
        "huge-line.csv",
        "a line of 20 million characters",
        lambda path: path.write_text(f"s,x\na,{'1' * 20_000_000}\n"),
        "expected lines of less than",
    ),
    Case("wide.csv", "10,000 more columns", WIDE, SUMS),
    Case("empty.csv", "nothing in it", "", "expected a header line"),
    Case("newlines.csv", "nothing but blank lines", "\n\n\n", "expected a header line"),
    Case("header.csv", "nothing but a header", "s,x\n", "expected at least one row, got none"),
    Case("no-header.csv", "no header", "a,1\na,2\n", NO_COLUMN),
    Case("comment.csv", "a comment before the header", "# made by hand\ns,x\na,1\n", NO_COLUMN),
    Case("other-case.csv", "names of columns in another case", "S,X\na,1\n", NO_COLUMN),
    Case("padded-header.csv", "spaces around names of columns", " s , x \na,1\na,2\nb,5\n", SUMS),
    Case("twice.csv", "two columns x", "s,x,x\na,1,2\n", "expected one column x, got several"),
    Case("others-twice.csv", "two columns that are not read", "s,n,n,x\na,0,0,1\na,0,0,2\nb,0,0,5\n", SUMS),
    Case("blank-name.csv", "a row without a set", "s,x\na,1\n,2\n", f"line 3: {NO_NAME}"),
    Case("space-name.csv", "a set whose name is a space", "s,x\na,1\n ,2\n", f"line 3: {NO_NAME}"),
    Case(
        "words.csv",
        "sets named None, NA and 007",
        "s,x\nNone,1\nNA,2\n007,3\n7,4\n",
        {"None": 1.0, "NA": 2.0, "007": 3.0, "7": 4.0},
    ),
]

NUMBERS = [
    _cell("forms.csv", "exponents", "+.5E1", 5.0),
    _cell("spaces.csv", "spaces around a number", "  5 ", 5.0),
    _cell("no-break-space.csv", "a no-break space before a number", "\u00a05", 5.0),
    _cell("largest.csv", "1e308", "1e308", 1e308),
    _cell("quoted-empty.csv", "an empty cell in quotes", '""', f"line 4: {MISSING}"),
    _cell("minus-zero.csv", "−0", "-0", 0.0),
    _cell("digits.csv", "more digits than float64 has", "0.1000000000000000055511151231257827", 0.1),
    _cell("beyond-2-53.csv", "an integer beyond 2⁵³", "9007199254740993", 9007199254740992.0),
    _cell("tiny.csv", "1e-400, nearer to 0 than to any other float64", "1e-400", 0.0),
    _cell("overflow.csv", "1e400", "1e400", f"{INFINITE} 1e400"),
    _cell("long-integer.csv", "an integer of 400 digits", "9" * 400, INFINITE),
    _cell("infinity.csv", "infinity", "-Infinity", f"{INFINITE} -Infinity"),
    _cell(
        "sum-overflow.csv",
        "a sum that overflows",
        "1e308\nb,1e308",
        math.inf,
    ),
    _cell("missing.csv", "an empty cell", "", f"line 4: {MISSING}"),
    _cell("nan.csv", "NaN", "NaN", f"line 4: {MISSING}"),
    _cell("null.csv", "null", "null", f"line 4: {MISSING}"),
    _cell("na.csv", "NA", "NA", f"line 4: {MISSING}"),
    _cell("dash.csv", "a dash for a missing number", "-", f"{NO_NUMBER} '-'"),
    _cell("question.csv", "a question mark for a missing number", "?", f"{NO_NUMBER} '?'"),
    _cell("thousands.csv", "a thousands separator", '"1,234"', f"{NO_NUMBER} '1,234'"),
    _cell("thousand-dots.csv", "two thousands separators", "1.234.567", f"{NO_NUMBER} '1.234.567'"),
    _cell("thousand-spaces.csv", "a space in a number", "1 234", f"{NO_NUMBER} '1 234'"),
    _cell("apostrophe.csv", "an apostrophe in a number", "1'234", f'{NO_NUMBER} "1\'234"'),
    _cell("decimal-comma.csv", "a decimal comma in quotes", '"1,5"', f"{NO_NUMBER} '1,5'"),
    _cell("bare-comma.csv", "a decimal comma", "1,5", "line 4: expected 2 cells, got 3"),
    _cell("underscore.csv", "an underscore", "1_000", f"{NO_NUMBER} '1_000'"),
    _cell("hexadecimal.csv", "a hexadecimal number", "0x10", f"{NO_NUMBER} '0x10'"),
    _cell("percent.csv", "a percent sign", "5%", f"{NO_NUMBER} '5%'"),
    _cell("currency.csv", "a currency", "$5", f"{NO_NUMBER} '$5'"),
    _cell("fraction.csv", "a fraction", "1/2", f"{NO_NUMBER} '1/2'"),
    _cell("accounting.csv", "a negative number in parentheses", "(5)", f"{NO_NUMBER} '(5)'"),
    _cell("unicode-minus.csv", "the minus sign of Unicode", "−5", f"{NO_NUMBER} '−5'"),
    _cell("arabic.csv", "Arabic digits", "٥", f"{NO_NUMBER} '٥'"),
    _cell("full-width.csv", "full-width digits", "５", f"{NO_NUMBER} '５'"),
    _cell("complex.csv", "a complex number", "1+2j", f"{NO_NUMBER} '1+2j'"),
    _cell("boolean.csv", "a boolean", "true", f"{NO_NUMBER} 'true'"),
    _cell("date.csv", "a date", "2024-01-31", f"{NO_NUMBER} '2024-01-31'"),
    _cell("time.csv", "a time", "12:30", f"{NO_NUMBER} '12:30'"),
    _cell("formula.csv", "a formula", "=1+1", f"{NO_NUMBER} '=1+1'"),
]

FILES = [
    Case("compressed.csv.gz", "gzip", gzip.compress(PLAIN.encode()), SUMS),
    Case("compressed.tsv.gz", "gzip of tabs", gzip.compress(PLAIN.replace(",", "\t").encode()), SUMS),
    Case("truncated.csv.gz", "gzip, truncated", gzip.compress(PLAIN.encode() * 99)[:-12], UNREADABLE),
    Case("trailing.csv.gz", "gzip, followed by something else", gzip.compress(PLAIN.encode()) + b"more", UNREADABLE),
    Case("not-gzip.csv.gz", "text with the extension of gzip", PLAIN, UNREADABLE),
    Case("empty.csv.gz", "an empty file with the extension of gzip", b"", "expected a header line"),
    Case("gzip.csv", "gzip without its extension", gzip.compress(PLAIN.encode(), mtime=0), NOT_UTF8),
    Case("missing-file.csv", "no such file", lambda path: None, "no such file"),
    Case("folder.csv", "a folder without files", Path.mkdir, "expected tables in the folder"),
    Case("folder", "a folder of tables of several kinds", _folder, SUMS),
    Case(
        "folder-with-a-fault",
        "a folder in which the second table is wrong",
        _folder_with_a_fault,
        "t2.csv, line 2: exp",
    ),
    Case("lines.jsonl", "JSON lines", JSON, SUMS),
    Case("lines.ndjson.gz", "gzip of JSON lines", gzip.compress(JSON.encode()), SUMS),
    Case("json-null.jsonl", "null in JSON", JSON.replace("5", "null"), f"row 3: {MISSING}"),
    Case(
        "json-text.jsonl",
        "a number in quotes in JSON",
        JSON.replace("5", '"5"'),
        "row 3: expected a number in column x",
    ),
    Case("json-no-key.jsonl", "JSON without a key", JSON.replace('"x"', '"y"'), "expected a column x, got n, s, y"),
    Case("json-no-name.jsonl", "a set that is null in JSON", JSON.replace('"b"', "null"), f"row 3: {NO_NAME}"),
    Case("json-broken.jsonl", "JSON that is broken", JSON + "{", UNREADABLE),
    Case("brackets[1].csv", "brackets in the name", PLAIN, SUMS),
    Case("link.csv", "a link to a table", _link("plain-table.csv"), SUMS),
    Case("broken-link.csv", "a link to nothing", _link("nothing.csv"), "no such file"),
    Case("loop.csv", "a link to itself", lambda path: path.symlink_to(path.name), "no such file"),
    Case("device.csv", "a link to /dev/null", _link("/dev/null"), "expected a regular file"),
    Case("pipe.csv", "a named pipe", os.mkfifo if hasattr(os, "mkfifo") else Path.mkdir, "expected a regular file"),
    Case("table", "no extension", PLAIN, "expected .csv"),
    Case("table.xlsx", "another extension", PLAIN, "expected .csv"),
    Case(".csv", "nothing but an extension", PLAIN, "expected .csv"),
    Case("table.parquet.gz", "Parquet in gzip", b"", "expected .parquet without .gz"),
]

PARQUET = [
    Case("plain.parquet", "nothing", _numbers([1.0, 2.0, 5.0]), SUMS),
    Case("CAPITALS.PARQUET", "extension in capitals", _numbers([1.0, 2.0, 5.0]), SUMS),
    Case("int8.parquet", "8-bit integers", _numbers([1, 2, 5], pa.int8()), SUMS),
    Case(
        "uint64.parquet",
        "unsigned integers beyond 2⁵³",
        _numbers([1, 2, 2**64 - 1], pa.uint64()),
        {"a": 3.0, "b": 2.0**64},
    ),
    Case("int64.parquet", "an integer beyond 2⁵³", _numbers([1, 2, 2**53 + 1]), {"a": 3.0, "b": 2.0**53}),
    Case("float32.parquet", "single precision", _numbers([1, 2, 5], pa.float32()), SUMS),
    Case("float16.parquet", "half precision", _numbers([1, 2, 5], pa.float16()), SUMS),
    Case(
        "decimal.parquet", "decimals", _numbers([Decimal("1.0"), Decimal("2.0"), Decimal("0.1")]), {"a": 3.0, "b": 0.1}
    ),
    Case(
        "dictionary.parquet",
        "dictionaries",
        _parquet(s=pa.array(["a", "a", "b"]).dictionary_encode(), x=pa.array([1.0, 2.0, 5.0]).dictionary_encode()),
        SUMS,
    ),
    Case("boolean.parquet", "booleans", _numbers([True, False, True]), "expected numbers in column x, got BOOLEAN"),
    Case("date.parquet", "dates", _numbers([date(2024, 1, 1)] * 3), "expected numbers in column x, got DATE"),
    Case(
        "timestamp.parquet",
        "timestamps",
        _numbers([datetime(2024, 1, 1)] * 3),
        "expected numbers in column x, got TIMESTAMP",
    ),
    Case("duration.parquet", "durations, integers in Parquet", _numbers([timedelta(1)] * 3), {"a": 1728e8, "b": 864e8}),
    Case("time.parquet", "times", _numbers([time(1)] * 3), "expected numbers in column x, got TIME"),
    Case("other-case.parquet", "columns x and X", _parquet(s=["a"], X=[7.0], x=[1.0]), {"a": 1.0}),
    Case("plain-names.parquet", "column x_1 beside x", _parquet(s=["a"], x=[1.0], x_1=[2.0]), {"a": 1.0}),
    Case(
        "nested.parquet", "a nested column before x", _parquet(s=["a"], n=[{"x": 7.0, "y": [1]}], x=[1.0]), {"a": 1.0}
    ),
    Case("text.parquet", "numbers as text", _numbers(["1", "2", "5"]), "expected numbers in column x, got VARCHAR"),
    Case("bytes.parquet", "bytes", _numbers([b"1", b"2", b"5"]), "expected numbers in column x, got BLOB"),
    Case("list.parquet", "lists", _numbers([[1.0], [2.0], [5.0]]), "expected numbers in column x, got DOUBLE[]"),
    Case("struct.parquet", "nested columns", _numbers([{"x": 1.0}] * 3), "expected numbers in column x, got STRUCT"),
    Case("nulls.parquet", "a null", _numbers([1.0, 2.0, None]), f"row 3: {MISSING}"),
    Case("null-integers.parquet", "a null among integers", _numbers([1, 2, None]), f"row 3: {MISSING}"),
    Case("null-column.parquet", "a column of nulls", _numbers([None, None, None]), "got none in set a"),
    Case("nan.parquet", "NaN", _numbers([1.0, 2.0, float("nan")]), f"row 3: {MISSING}"),
    Case(
        "infinity.parquet",
        "infinity",
        _numbers([1.0, 2.0, float("inf")]),
        "row 3: expected a finite number in column x of set b",
    ),
    Case("integer-names.parquet", "sets named by integers", _names([1, 1, 2]), {"1": 3.0, "2": 5.0}),
    Case("date-names.parquet", "sets named by dates", _names([date(2024, 1, 1)] * 3), {"2024-01-01": 8.0}),
    Case("null-names.parquet", "a row without a set", _names(["a", None, "b"]), f"row 2: {NO_NAME}"),
    Case("nan-names.parquet", "a set named NaN", _names([1.0, float("nan"), 2.0]), f"row 2: {NO_NAME}"),
    Case("blank-names.parquet", "a set whose name is empty", _names(["a", "", "b"]), f"row 2: {NO_NAME}"),
    Case(
        "byte-names.parquet",
        "sets named by bytes",
        _names([b"a", b"a", b"b"]),
        "expected names of sets in column s, got BLOB",
    ),
    Case(
        "list-names.parquet",
        "sets named by lists",
        _names([[1], [1], [2]]),
        "expected names of sets in column s, got BIGINT[]",
    ),
    Case(
        "no-rows.parquet",
        "no rows",
        _parquet(s=pa.array([], pa.string()), x=pa.array([], pa.float64())),
        "expected at least one row, got none",
    ),
    Case("no-column.parquet", "no column x", _parquet(s=["a"], y=[1.0]), "expected a column x, got s, y"),
    Case("twice.parquet", "two columns x", _twice_the_same_column, "expected one column x, got several"),
    Case("empty.parquet", "an empty file", b"", UNREADABLE),
    Case("text-file.parquet", "CSV with the extension of Parquet", PLAIN, UNREADABLE),
    Case("truncated.parquet", "truncated", _damaged(lambda content: content[:-20]), UNREADABLE),
    Case("headless.parquet", "without its beginning", _damaged(lambda content: content[20:]), UNREADABLE),
    Case("parquet.csv", "Parquet with the extension of CSV", _numbers([1.0, 2.0, 5.0]), "expected text"),
]

CASES = [*ENCODINGS, *SHAPES, *NUMBERS, *FILES, *PARQUET]
