"""Sliding windows of pandas objects: the operation in place of ``rolling(...).sum()``."""

from __future__ import annotations

__all__ = ["rolling"]

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from abelnet.errors import AbelnetError
from abelnet.operation import Operation

if TYPE_CHECKING:
    import pandas as pd

Data = TypeVar("Data", "pd.Series[Any]", "pd.DataFrame")


def rolling(
    operation: Operation,
    data: Data,
    window: Any,
    *,
    min_periods: int | None = None,
    closed: str = "right",
) -> Data:
    """Aggregates a sliding window of a pandas object, in the conventions of its ``rolling``.

    Missing values count for nothing, and a window with fewer than ``min_periods`` of the others has no result. The
    columns of a frame are the coordinates of elements; with an operation of one dimension, each column is a sequence of
    its own.

    Arguments:
        operation: The operation.
        data: Series or data frame, in the order of time.
        window: Number of rows; or a length of time, such as ``"7D"``, if the index has times, which must ascend.
        min_periods: Number of values that a window needs for a result: by default ``window``, and 1 for a length of
            time. At 0, an empty window has the identity, or NaN if there is none.
        closed: Which ends of a window of time belong to it: ``"right"``, ``"both"``, ``"left"`` or ``"neither"``.

    Returns:
        The aggregate of each window, with index and names of ``data``.

    Example:
        >>> import pandas as pd
        >>> from abelnet import AbelianGroup, Generator
        >>> compound = AbelianGroup(Generator(1, "logarithm", [1.0], dtype=torch.float64))
        >>> returns = pd.Series([0.1, 0.2, -0.5], index=pd.to_datetime(["2026-03-01", "2026-03-02", "2026-03-09"]))
        >>> rolling(compound, returns, 2).round(6).tolist()
        [nan, 0.32, -0.4]
        >>> rolling(compound, returns, "7D").round(6).tolist()
        [0.1, 0.32, -0.5]
    """
    import pandas as pd

    columns = data.to_frame() if data.ndim == 1 else data
    if operation.dim not in (1, columns.shape[1]):
        raise AbelnetError(f"data: expected {operation.dim} columns, as the operation has, got {columns.shape[1]}")
    like = next(operation.bijection.parameters(), torch.empty(0, dtype=torch.float64))
    values = torch.from_numpy(_numbers(columns)).to(like.device, like.dtype)
    values = values[None] if operation.dim > 1 else values.T[..., None]
    span, times = (int(window), None) if isinstance(window, int | np.integer) else _times(columns.index, window)
    with torch.no_grad():
        found = operation.rolling(values, span, times=times, min_periods=min_periods, closed=closed)
    table = (found[0] if operation.dim > 1 else found[..., 0].T).cpu().numpy()
    if data.ndim == 1:
        return pd.Series(table[:, 0], index=data.index, name=data.name)
    return pd.DataFrame(table, index=data.index, columns=data.columns)


def _numbers(columns: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    bad = [name for name, dtype in columns.dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]
    if bad:
        raise AbelnetError(f"data: expected columns of numbers, got {columns[bad[0]].dtype} in {bad[0]!r}")
    # A copy: frames may share their memory, and torch warns of memory that is not to be written to.
    numbers: np.ndarray[Any, np.dtype[np.float64]] = columns.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    return numbers


def _times(index: Any, window: Any) -> tuple[int, torch.Tensor]:
    """Returns the length of a window and the times of an index, in nanoseconds."""
    import pandas as pd

    try:
        span = pd.Timedelta(pd.tseries.frequencies.to_offset(window) if isinstance(window, str) else window).value
    except (TypeError, ValueError):
        raise AbelnetError(
            f'window: expected a number of rows or a length of time such as "7D", got {window!r}'
        ) from None
    if not isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex | pd.PeriodIndex):
        got = type(index).__name__
        raise AbelnetError(f"data: expected an index of times for the window {window!r}, got {got}; call set_index")
    index = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
    if index.hasnans:
        raise AbelnetError("data: expected an index of times without missing ones; drop these rows")
    return span, torch.from_numpy(index.as_unit("ns").asi8.copy())
