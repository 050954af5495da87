"""DuckDB, in this process or in one of its own, whose memory is not added to that of PyTorch and ends with it."""

from __future__ import annotations

__all__ = ["Database", "DatabaseError", "LocalDatabase", "MemoryLimitError", "ServedDatabase", "open_database", "serve"]

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np

Columns = Mapping[str, np.ndarray[Any, Any]]


class DatabaseError(Exception):
    """DuckDB could not do something; the message is its own."""


class MemoryLimitError(DatabaseError):
    """DuckDB needs more memory than it may have."""


class Database(ABC):
    """A database in memory, used by one thread.

    Example:
        >>> with open_database() as database:
        ...     database.run("SELECT 1 AS a UNION ALL SELECT NULL ORDER BY a")
        [(1,), (None,)]
    """

    @abstractmethod
    def run(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs a query and returns its rows."""

    @abstractmethod
    def columns(self, query: str) -> dict[str, np.ndarray[Any, Any]]:
        """Runs a query and returns its columns of numbers, with NaN for NULL."""

    @abstractmethod
    def start(self, query: str) -> None:
        """Runs a query whose rows are fetched by :meth:`next_rows`."""

    @abstractmethod
    def next_rows(self, count: int) -> list[tuple[Any, ...]]:
        """Returns at most so many of the next rows, none at the end."""

    @abstractmethod
    def add(self, name: str, table: Any) -> None:
        """Makes columns, or a data frame, a table of a name."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Takes back a table that was added."""

    def batches(self, query: str, count: int = 10_000) -> Iterator[list[tuple[Any, ...]]]:
        """Yields the rows of a query, so many at a time."""
        self.start(query)
        while rows := self.next_rows(count):
            yield rows


class LocalDatabase(Database):
    """DuckDB in this process.

    Arguments:
        connection: A connection of :mod:`duckdb`.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _own_errors():
            return list(self._connection.execute(query, list(parameters)).fetchall())

    def columns(self, query: str) -> dict[str, np.ndarray[Any, Any]]:
        with _own_errors():
            found = self._connection.execute(query).fetchnumpy()
        # Columns with NULL are masked arrays. Those without keep their type.
        return {
            name: one.astype(np.float64).filled(np.nan) if hasattr(one, "filled") else one
            for name, one in found.items()
        }

    def start(self, query: str) -> None:
        with _own_errors():
            self._connection.execute(query)

    def next_rows(self, count: int) -> list[tuple[Any, ...]]:
        with _own_errors():
            return list(self._connection.fetchmany(count))

    def add(self, name: str, table: Any) -> None:
        with _own_errors():
            self._connection.register(name, table)

    def remove(self, name: str) -> None:
        self._connection.unregister(name)


class ServedDatabase(Database):
    """DuckDB in a process of its own, which runs :func:`serve` and ends with this one."""

    def __init__(self) -> None:
        # Not by multiprocessing, which would run the user's script again.
        code = f"import sys; sys.path[:] = {sys.path!r}; from abelnet.engines.database import serve; serve()"
        self._process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        """Its number among processes."""
        return self._process.pid

    def run(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return list(self._ask("run", query, parameters))

    def columns(self, query: str) -> dict[str, np.ndarray[Any, Any]]:
        return dict(self._ask("columns", query))

    def start(self, query: str) -> None:
        self._ask("start", query)

    def next_rows(self, count: int) -> list[tuple[Any, ...]]:
        return list(self._ask("next_rows", count))

    def add(self, name: str, table: Any) -> None:
        self._ask("add", name, table)

    def remove(self, name: str) -> None:
        self._ask("remove", name)

    def close(self) -> None:
        """Ends the process, also in the midst of a query."""
        self._process.kill()
        with suppress(OSError):  # what was not sent is not wanted any more
            self._questions.close()
        self._answers.close()
        self._process.wait()

    def _ask(self, method: str, *arguments: Any) -> Any:
        try:
            _send(self._questions, (method, arguments))
            kind, answer = pickle.load(self._answers)
        except (OSError, EOFError):
            status = self._process.wait()
            raise DatabaseError(f"the process of DuckDB ended with exit code {status}") from None
        if kind is not None:
            raise kind(answer)
        return answer


@contextmanager
def open_database(*, apart: bool = False) -> Iterator[Database]:
    """Opens an empty database in memory.

    Arguments:
        apart: Whether it runs in a process of its own, of which data frames would have to be copied.
    """
    if apart:
        served = ServedDatabase()
        try:
            yield served
        finally:
            served.close()
    else:
        import duckdb

        with duckdb.connect() as connection:
            # It would be in the midst of what a command prints.
            connection.execute("SET enable_progress_bar = false")
            yield LocalDatabase(connection)


def serve() -> None:
    """Answers the questions of a :class:`ServedDatabase` on the standard streams until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process ends this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed
    questions: queue.SimpleQueue[tuple[str, tuple[Any, ...]]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, questions), daemon=True).start()
    with open_database() as database:
        while True:
            method, arguments = questions.get()
            kind: type[DatabaseError] | None = None
            try:
                answer = getattr(database, method)(*arguments)
            except DatabaseError as error:
                kind, answer = type(error), str(error)
            _send(answers, (kind, answer))


def _listen(stream: IO[bytes], questions: queue.SimpleQueue[tuple[str, tuple[Any, ...]]]) -> None:
    """Reads questions, also during a query, which must end when nobody waits for it any more."""
    while True:
        try:
            questions.put(pickle.load(stream))
        except Exception:  # the end, or part of a question
            os._exit(0)


def _send(stream: IO[bytes], message: Any) -> None:
    pickle.dump(message, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


@contextmanager
def _own_errors() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise MemoryLimitError(str(error)) from None
    except duckdb.Error as error:
        raise DatabaseError(str(error)) from None
