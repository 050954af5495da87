"""Tables opened in DuckDB: of any size, in any order, with an exact place for whatever is wrong."""

from __future__ import annotations

__all__ = ["FaultError", "Table", "open_table"]

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from abelnet.engines.columns import Columns
from abelnet.engines.database import Database, DatabaseError, MemoryLimitError, open_database
from abelnet.engines.sources import Part, Reading, Row, copied_part, parts_of
from abelnet.errors import AbelnetError
from abelnet.files import scratch_folder

Array = np.ndarray[Any, np.dtype[np.float64]]
Result = TypeVar("Result")
Check = Callable[[Array, Sequence[tuple[str, str | None]]], None]

_ROWS = 10_000  # examined at a time
_SHARE = 0.6  # of the memory limit, for a query


class FaultError(Exception):
    """A table has something that it may not have; where, is found by reading it again."""


@contextmanager
def open_table(source: Any, columns: Columns, reading: Reading | None = None) -> Iterator[Table]:
    """Opens a table of any size.

    Arguments:
        source: A ``.csv``, ``.tsv``, ``.txt`` or ``.jsonl`` file, possibly with ``.gz``, a ``.parquet`` file, a folder
            or a glob pattern of these, or a data frame of pandas, Polars or Arrow.
        columns: Columns to read.
        reading: How to read it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "t.csv")
        ...     _ = path.write_text("order,price\\na,1.5\\na,2\\n")
        ...     with open_table(path, Columns(("price",), "order")) as table:
        ...         table.database.run(f"SELECT s, sum(x0) FROM ({table.rows}) GROUP BY s")
        [('a', 3.5)]
    """
    reading = reading or Reading()
    apart = reading.apart and isinstance(source, str | Path)
    with scratch_folder() as scratch, open_database(apart=apart) as database:
        database.run(f"SET temp_directory = '{scratch}'; SET autoinstall_known_extensions = false")
        if reading.memory_limit is not None:
            try:
                database.run("SET memory_limit = ?", [reading.memory_limit])
            except DatabaseError:
                got = repr(reading.memory_limit)
                raise AbelnetError(f"memory-limit: expected a size such as 2GB, got {got}") from None
            _give_to_queries(database)
        name, parts = parts_of(source, columns, database, reading)
        yield Table(database, name, columns, parts, scratch)


def _give_to_queries(database: Database) -> None:
    """Lets a query keep its hash table in memory if it takes no more than most of the limit.

    By itself, DuckDB writes it to disk as soon as it takes a third, since another query may need the rest.
    """
    with suppress(DatabaseError):  # versions before 2.0 have no such limit, and no memory at all is reported later
        ((limit,),) = database.run("SELECT current_setting('memory_limit')")
        size, unit = limit.split()
        database.run(f"SET operator_memory_limit = '{_SHARE * float(size):.3f} {unit}'")


class Table:
    """A table in DuckDB: the set of each row as ``s``, its numbers as ``x0``, ``x1``, …, values before targets.

    Attributes:
        database: The database that reads it.
        name: The file or object, for messages.
        columns: Its columns.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        columns: Columns,
        parts: Sequence[Part],
        scratch: Path,
    ) -> None:
        self.database, self.name, self.columns = database, name, columns
        self._originals, self._scratch = parts, scratch
        self._parts = parts  # the same, or a copy

    @property
    def numbers(self) -> list[str]:
        """Names of the columns of numbers in DuckDB."""
        return [f"x{i}" for i in range(len(self.columns.numbers))]

    @property
    def rows(self) -> str:
        """The rows in SQL, in no order; in wide form without ``s``. Whatever is no finite number may be NULL."""
        return " UNION ALL ".join(self._select(part, part.finite) for part in self._parts)

    def count(self) -> int | None:
        """Returns the number of rows, or None if they would have to be read."""
        if not all(part.is_counted for part in self._parts):
            return None
        ((rows,),) = self.database.run(f"SELECT count(*) FROM ({self.rows})")
        return int(rows)

    @property
    def is_unnamed(self) -> str:
        """Condition in SQL that ``s`` is no name of a set."""
        text = "CAST(s AS VARCHAR)"
        blank = rf"trim({text}, E' \t\r\n\v\f') IN ('', 'nan')"
        # Most names are neither empty nor start with a blank or an n, and need not be trimmed.
        may_be_blank = f"{text} < '!' OR starts_with({text}, 'n')"
        return f"(s IS NULL OR CASE WHEN {may_be_blank} THEN {blank} ELSE contains({text}, chr(0)) END)"

    @property
    def is_fault(self) -> str:
        """Condition in SQL that a row has something else than a finite number."""
        return f"({' OR '.join(f'isinf({name})' for name in self.numbers)})"

    def store(self, condition: str = "true") -> None:
        """Copies the rows to a temporary table ``stored``, in order; the view ``numbered`` has ``s`` in wide form, too.

        Numbers that are missing are NULL, and infinite if they are wrong. In wide form, ``s`` is the line of a row in a
        CSV file, and its number otherwise.

        Arguments:
            condition: Which rows to copy, in SQL.
        """
        plain = ", ".join(f"CASE WHEN NOT isnan({name}) THEN {name} END AS {name}" for name in self.numbers)
        selects = (f"SELECT * REPLACE ({plain}) FROM ({self._select(part, part.numbers)})" for part in self._parts)
        first, *others = (f"{select} WHERE {condition}" for select in selects)
        self.database.run(f"CREATE OR REPLACE TEMP TABLE stored AS {first}")
        for other in others:
            self.database.run(f"INSERT INTO stored {other}")
        offset = 1
        if self.columns.set is None and self._parts is self._originals and len(self._parts[0].paths) == 1:
            layout, (path,) = self._parts[0].layout, self._parts[0].paths
            if layout is not None and len(self._parts) == 1:
                ((count,),) = self.database.run("SELECT count(*) FROM stored")
                if count and layout.lines + count != layout.count_lines(path):
                    raise FaultError("rows of several lines, or blank lines")  # the copy has their places
                offset = layout.lines + 1
        has_key = self._parts[0].key is not None
        chosen = "*" if has_key else f"rowid + {offset} AS s, *"
        self.database.run(f"CREATE OR REPLACE TEMP VIEW numbered AS SELECT {chosen} FROM stored")

    def attempt(self, work: Callable[[], Result], check: Check | None = None, *, skip_unnamed: bool = False) -> Result:
        """Returns what some work on the table returns; if it fails, raises an error that names the place in the table.

        Arguments:
            work: Reads the table; raises FaultError if it has something that it may not have.
            check: Raises for rows that may not be there, given their values and the place and set of each.
            skip_unnamed: Whether rows may have no set.
        """
        try:
            return self._tried(work)
        except (DatabaseError, FaultError) as error:
            self._examine(error, check, skip_unnamed)
        try:  # the copy
            return self._tried(work)
        except (DatabaseError, FaultError) as error:
            raise self._unreadable(error) from None

    def _select(self, part: Part, numbers: Sequence[str]) -> str:
        key = [] if part.key is None else [f"{part.key} AS s"]
        chosen = [f"{number} AS {name}" for number, name in zip(numbers, self.numbers, strict=True)]
        return f"SELECT {', '.join([*key, *chosen])} FROM {part.source()}"

    def _tried(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except MemoryLimitError as error:
            reason = str(error).splitlines()[0]
            raise AbelnetError(
                f"memory-limit: expected enough memory for the table, got: {reason}; allow more"
            ) from None

    def _unreadable(self, error: Exception) -> AbelnetError:
        kind = "Parquet file" if self.name.lower().endswith(".parquet") else "table"
        return AbelnetError(f"{self.name}: expected a readable {kind}, got: {' '.join(str(error).split()):.200}")

    def _examine(self, reason: Exception, check: Check | None, skip_unnamed: bool) -> None:
        """Raises for the first row that is wrong; if there is none, has DuckDB read a copy that Python has written.

        Python reads what DuckDB does not, such as lines that end in different ways.
        """
        copy = self._scratch / "copy.csv"
        with copy.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            for part in self._originals:
                rows = part.rows(self.database, self.columns)
                try:
                    while batch := list(islice(rows, _ROWS)):
                        numbers = self._numbers_of(part, batch, skip_unnamed)
                        if check is not None:
                            check(numbers[:, : len(self.columns.values)], [(row.place, row.name) for row in batch])
                        keys = [row.number if self.columns.set is None else row.name for row in batch]
                        writer.writerows([key, *row] for key, row in zip(keys, numbers.tolist(), strict=True))
                except DatabaseError as error:
                    raise self._unreadable(error) from None
        if all(part.layout is None for part in self._originals):
            raise self._unreadable(reason)
        self._parts = [copied_part(copy, self.columns)]

    def _numbers_of(self, part: Part, rows: Sequence[Row], skip_unnamed: bool) -> Array:
        names = self.columns.numbers
        for row in rows:
            if not skip_unnamed and (row.name is None or row.name.strip() in ("", "nan")):
                raise AbelnetError(
                    f"{row.place}: expected the name of a set in column {self.columns.set}, got none; use "
                    "--skip-missing to skip such rows in learning"
                )
        numbers = np.array([[part.number(row, i, name) for i, name in enumerate(names)] for row in rows])
        for i, j in np.argwhere(np.isinf(numbers)).tolist():
            of_set = "" if self.columns.set is None else f" of set {rows[i].name}"
            raise AbelnetError(
                f"{rows[i].place}: expected a finite number in column {names[j]}{of_set}, got {rows[i].cells[j]!s:.80}"
            )
        return numbers
