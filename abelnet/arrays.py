"""Conversion of user input to float64 arrays: lists of arrays, padded arrays and data frames."""

from __future__ import annotations

__all__ = ["coordinate_names", "read_results", "read_sets"]

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from abelnet.errors import AbelnetError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# Kinds of dtypes that numpy converts to float64 all the same: dates, durations, complex numbers and text.
_NO_NUMBERS = "MmcUS"


def read_sets(X: Any) -> tuple[Array, Array]:
    """Reads multisets from a list of arrays, or from an array padded with NaN.

    A column of a data frame, or an array of objects, that holds lists is read as a list of them. Two or more such
    columns hold the coordinates of the elements, in lists of equal length in each row.

    Returns:
        Elements :math:`(N, d)`, and offsets ``ptr`` with shape :math:`(R + 1)`.

    Example:
        >>> read_sets([[1.0, 2.0], [3.0]])
        (array([[1.],
               [2.],
               [3.]]), array([0, 2, 3]))
    """
    if hasattr(X, "tocsr"):
        raise AbelnetError(
            "X: expected a dense array, got a sparse one; a 0 that is left out is an element all the same"
        )
    if isinstance(X, Tensor):
        return _from_table(X)
    if not hasattr(X, "to_numpy") and not hasattr(X, "__array__"):
        return _from_list(X)
    objects = np.asanyarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if objects.dtype.kind != "O" or not any(map(_is_set, objects.flat)):
        return _from_table(objects)
    if objects.ndim == 1 or objects.shape[1:] == (1,):
        return _from_list(list(objects.reshape(-1)))
    if objects.ndim != 2:
        raise AbelnetError(f"X: expected lists in an array of shape (R) or (R, d), got {objects.shape}")
    return _from_list([_joined(i, row) for i, row in enumerate(objects)])


def coordinate_names(X: Any) -> list[str]:
    """Returns the names of the coordinates, if sets are data frames, or a data frame has a column for each.

    Example:
        >>> coordinate_names([[1.0, 2.0]])
        []
    """
    if _is_frame(X):
        has_sets = len(X) > 0 and len(X.columns) > 1 and any(map(_is_set, X.to_numpy()[0]))
        columns = list(X.columns) if has_sets else []
    else:
        sets = list(X) if isinstance(X, Sequence) or getattr(getattr(X, "dtype", None), "kind", "") == "O" else []
        frames = {tuple(one.columns) for one in sets if _is_frame(one)}
        columns = list(frames.pop()) if len(frames) == 1 and all(map(_is_frame, sets)) else []
    return columns if all(isinstance(name, str) for name in columns) else []


def _is_frame(x: Any) -> bool:
    return hasattr(x, "columns") and hasattr(x, "to_numpy")


def _is_set(x: Any) -> bool:
    is_list = isinstance(x, Sequence | np.ndarray | Tensor) and not isinstance(x, str | bytes)
    return is_list or hasattr(x, "to_numpy")


def _joined(i: int, row: Sequence[Any]) -> Array:
    """Returns the elements :math:`(n, d)` of set ``i``, from a list of each coordinate."""
    columns = [_numbers("X", one) for one in row]
    if any(one.ndim != 1 or len(one) != len(columns[0]) for one in columns):
        raise AbelnetError(
            f"X: expected lists of equal length in the columns of set {i}, got shapes "
            f"{', '.join(str(one.shape) for one in columns)}"
        )
    return np.stack(columns, -1)


def read_results(y: Any, count: int, dim: int) -> Array:
    """Reads the result of each of ``count`` sets, with shape :math:`(R)` or :math:`(R, d)`."""
    results = _numbers("y", y)
    if results.shape != (count, dim) and (results.shape != (count,) or dim > 1):
        raise AbelnetError(f"y: expected one result of {dim} dimensions for each of {count} sets, got {results.shape}")
    bad = ~np.isfinite(results)
    if bad.any():
        first = int(np.argwhere(bad)[0, 0])
        raise AbelnetError(
            f"y: expected finite numbers, got {bad.sum()} that are missing or infinite, first of set {first}"
        )
    return results


def _from_table(X: Any) -> tuple[Array, Array]:
    """Returns elements and offsets of an array padded with NaN."""
    table = _numbers("X", X)
    if table.ndim not in (2, 3):
        raise AbelnetError(
            f"X: expected shape (R, n) or (R, n, d), got {table.shape}. Reshape your data: X[None] is a single set"
        )
    table = table[..., None] if table.ndim == 2 else table
    there = ~np.isnan(table).all(-1)
    return table[there], np.concatenate(([0], there.sum(1).cumsum()))


def _from_list(X: Any) -> tuple[Array, Array]:
    """Returns elements and offsets of a list of arrays."""
    if not isinstance(X, Sequence) or isinstance(X, str | bytes):
        raise AbelnetError(f"X: expected a list of arrays, an array or a data frame, got {type(X).__name__}")
    arrays = [_numbers("X", one) for one in X]
    bad = next((i for i, one in enumerate(arrays) if one.ndim not in (1, 2)), None)
    if bad is not None:
        raise AbelnetError(f"X: expected shape (n) or (n, d) for set {bad}, got {arrays[bad].shape}")
    dims = {one.shape[-1] if one.ndim == 2 else 1 for one in arrays if one.size > 0} or {1}
    if len(dims) > 1:
        raise AbelnetError(f"X: expected elements of equal dimension, got {sorted(dims)}")
    (dim,) = dims
    rows = np.concatenate([one.reshape(-1, dim) for one in arrays]) if arrays else np.empty((0, dim))
    return rows, np.cumsum([0, *(len(one) for one in arrays)])


def _numbers(name: str, x: Any) -> Array:
    """Returns a float64 array; elements that are masked are missing."""
    if isinstance(x, Tensor):
        x = x.detach().cpu().numpy()
    try:
        array = np.asanyarray(x.to_numpy() if hasattr(x, "to_numpy") else x)
        if array.dtype.kind not in _NO_NUMBERS and not _has_no_numbers(array):
            numbers = array.astype(np.float64, copy=False)
            filled = numbers.filled(np.nan) if hasattr(numbers, "filled") else np.asarray(numbers)
            return np.require(filled, requirements="W")  # a copy of what is read-only, which no tensor can share
    except (TypeError, ValueError):
        pass
    remedy = "; Complex data not supported: pass both parts as coordinates" if np.iscomplexobj(x) else ""
    raise AbelnetError(f"{name}: expected numbers, got {str(x)[:60]!r}{remedy}")


def _has_no_numbers(array: Array) -> bool:
    """Returns whether an array of objects has text or dates, some of which numpy converts to numbers."""
    return array.dtype.kind == "O" and any(
        isinstance(one, str | bytes | np.datetime64 | np.timedelta64) for one in array.flat
    )
