"""Operations as functions of SQLite: aggregates, and window functions whose frames slide."""

from __future__ import annotations

__all__ = ["ExactSums", "register"]

import json
import math
import sqlite3
from typing import Any, Protocol

import torch
from torch import Tensor

from abelnet.errors import AbelnetError
from abelnet.operation import Operation
from abelnet.windows import StateQueue

# Rows are mapped by the bijection together, as long as no result is asked for.
_BATCH = 1024


def register(connection: sqlite3.Connection, name: str, operation: Operation) -> None:
    r"""Adds an operation to a connection, as an aggregate and as a window function.

    ``name(x)``, or ``name(x, y, …)`` with an argument for each coordinate, can be called with ``GROUP BY`` and with
    ``OVER``. Rows with NULL count for nothing, and the aggregate of no rows is NULL, as for ``SUM``. The result of an
    operation on vectors is a JSON array, of which ``json_extract(…, '$[0]')`` is a coordinate.

    When a frame slides, the states of rows that leave it are removed: in constant memory by exact sums where they add,
    and by two stacks where they do not, as for maxima. Either way no rounding error stays behind.

    A frame has to contain a row before it may be empty: Python ends with a segmentation fault if the first frame of a
    partition is empty, as that of ``ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING`` (python/cpython#153800). Let frames
    contain the current row, and shift their results by ``lag``.

    Arguments:
        connection: The connection; SQLite 3.25 or later.
        name: Name of the function.
        operation: The operation. Its parameters must not change as long as the connection is used.

    Example:
        >>> import sqlite3
        >>> from abelnet import AbelianGroup, Generator
        >>> connection = sqlite3.connect(":memory:")
        >>> register(connection, "compound", AbelianGroup(Generator(1, "logarithm", [1.0], dtype=torch.float64)))
        >>> _ = connection.execute("CREATE TABLE returns (day, x)")
        >>> _ = connection.executemany("INSERT INTO returns VALUES (?, ?)", [(1, 0.1), (2, 0.2), (3, -0.5)])
        >>> connection.execute("SELECT round(compound(x), 6) FROM returns").fetchone()
        (-0.34,)
        >>> query = "SELECT round(compound(x) OVER (ORDER BY day ROWS 1 PRECEDING), 6) FROM returns"
        >>> [row[0] for row in connection.execute(query)]
        [0.1, 0.32, -0.4]
    """
    if not name.isidentifier():
        raise AbelnetError(f"name: expected letters, digits and underscores, got {name!r}")

    class Function(_Function):
        def __init__(self) -> None:
            super().__init__(operation)

    connection.create_window_function(name, operation.dim, Function)  # type: ignore[arg-type]


class _States(Protocol):
    """Merged state of rows that enter and leave."""

    def push(self, states: Tensor) -> None:
        """Adds rows of states."""

    def remove(self, state: Tensor) -> None:
        """Removes the oldest row, whose state is given."""

    def total(self) -> Tensor:
        """Returns the merged state."""


class ExactSums:
    """Sums of columns without any rounding, from which numbers can be removed again, in constant memory.

    Each sum is a few floating-point numbers that do not overlap (Shewchuk, 1997), of which only the last is rounded.

    Arguments:
        width: Number of columns.

    Example:
        >>> sums = ExactSums(1)
        >>> sums.push(torch.tensor([[1.0], [1e300], [1e-300]], dtype=torch.float64))
        >>> for x in (1e300, 1.0):
        ...     sums.remove(torch.tensor([x], dtype=torch.float64))
        >>> sums.total()
        tensor([1.0000e-300], dtype=torch.float64)
    """

    def __init__(self, width: int) -> None:
        self._columns: list[list[float]] = [[] for _ in range(width)]

    def push(self, states: Tensor) -> None:
        """Adds rows, with shape :math:`(n, k)`."""
        for parts, column in zip(self._columns, states.T.tolist(), strict=True):
            for x in column:
                _add(parts, x)

    def remove(self, state: Tensor) -> None:
        """Subtracts a row, with shape :math:`(k)`."""
        for parts, x in zip(self._columns, state.tolist(), strict=True):
            _add(parts, -x)

    def total(self) -> Tensor:
        """Returns the sums, correctly rounded, with shape :math:`(k)`."""
        return torch.tensor([math.fsum(parts) for parts in self._columns], dtype=torch.float64)


def _add(parts: list[float], x: float) -> None:
    """Adds a number to a sum of numbers that do not overlap, exactly."""
    kept = 0
    for part in parts:
        if abs(x) < abs(part):
            x, part = part, x
        high = x + part
        low = part - (high - x)
        if low:
            parts[kept] = low
            kept += 1
        x = high
    parts[kept:] = [x] if x else []


class _Queue(StateQueue):
    def remove(self, state: Tensor) -> None:
        self.pop()


class _Function:
    """One group, or one partition of a window, as SQLite calls it."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._like = next(operation.bijection.parameters(), torch.empty(0, dtype=torch.float64))
        law = operation.folding.law
        width = len(law.empty(operation.dim))
        self._states: _States = ExactSums(width) if law.aggregate == "sum" else _Queue(law, operation.dim)
        self._waiting: list[tuple[Any, ...]] = []
        self._count = 0

    def step(self, *row: Any) -> None:
        if None in row:
            return
        self._waiting.append(row)
        self._count += 1
        if len(self._waiting) == _BATCH:
            self._take()

    def inverse(self, *row: Any) -> None:
        if None in row:
            return
        self._take()
        self._count -= 1
        self._states.remove(self._lift([row])[0])

    @torch.no_grad()
    def value(self) -> float | str | None:
        if self._count == 0:
            return None
        self._take()
        _, law, decode = self._operation.folding
        state = self._states.total()[None].to(self._like.device)
        found: list[float] = decode(law.lower(state, self._like.dtype))[0].tolist()
        # SQLite has no NaN, and JSON neither: a result that the operation does not have is NULL.
        results = [None if math.isnan(x) else x for x in found]
        return results[0] if self._operation.dim == 1 else json.dumps(results)

    finalize = value

    def _take(self) -> None:
        if self._waiting:
            self._states.push(self._lift(self._waiting))
            self._waiting = []

    @torch.no_grad()
    def _lift(self, rows: list[tuple[Any, ...]]) -> Tensor:
        x = torch.tensor(rows, device=self._like.device, dtype=self._like.dtype)
        if not bool(x.isfinite().all()):
            raise AbelnetError("x: expected finite numbers, got infinity")
        encode, law, _ = self._operation.folding
        return law.lift(encode(x)).double().cpu()
