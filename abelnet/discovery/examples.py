"""Examples to learn from: multisets of numbers, each with the result of combining them."""

from __future__ import annotations

__all__ = ["Examples"]

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.errors import AbelnetError


class Examples(NamedTuple):
    """Multisets of numbers and their results, in float64.

    Attributes:
        values: Elements, :math:`(R, n)`; beyond the size of a set its first element is repeated, so that nothing out of
            the data's range stands anywhere.
        mask: Which elements are there, :math:`(R, n)`.
        target: Results, :math:`(R)`.
    """

    values: Tensor
    mask: Tensor
    target: Tensor

    @property
    def sizes(self) -> Tensor:
        """Number of elements of each set."""
        return self.mask.sum(1)

    def take(self, rows: Tensor) -> Examples:
        """Some of them."""
        return Examples(*(part[rows] for part in self))

    def split(self, part: float, seed: int) -> tuple[Examples, Examples]:
        """Two shares at random, the second of about the given part."""
        order = torch.randperm(len(self.target), generator=torch.Generator().manual_seed(seed))
        cut = len(order) - max(1, round(part * len(order)))
        return self.take(order[:cut]), self.take(order[cut:])

    @staticmethod
    def join(parts: Sequence[Examples]) -> Examples:
        """Several batches as one."""
        width = max(part.values.shape[1] for part in parts)
        values = [torch.cat((x, x[:, :1].expand(-1, width - x.shape[1])), 1) for x, _, _ in parts]
        masks = [torch.nn.functional.pad(part.mask, (0, width - part.mask.shape[1])) for part in parts]
        return Examples(torch.cat(values), torch.cat(masks), torch.cat([part.target for part in parts]))


def sets_of(X: Any) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """Each multiset as an array :math:`(n, d)`: from a list of arrays, or a table with NaN where an element is missing.

    A table of numbers :math:`(R, n)` holds one multiset a row; one of shape :math:`(R, n, d)` holds vectors.
    """
    if isinstance(X, np.ndarray) or hasattr(X, "to_numpy") or isinstance(X, Tensor):
        table = _numbers("X", X)
        if table.ndim not in (2, 3):
            raise AbelnetError(f"X: expected shape (R, n) or (R, n, d), got {table.shape}")
        table = table[..., None] if table.ndim == 2 else table
        there = np.asarray(~np.isnan(table).all(-1))
        return [_check(row[mask], i) for i, (row, mask) in enumerate(zip(table, there, strict=True))]
    if not isinstance(X, Sequence) or isinstance(X, str | bytes):
        raise AbelnetError(f"X: expected a list of arrays, or a table, got {type(X).__name__}")
    arrays = [_numbers("X", one) for one in X]
    return [_check(one[:, None] if one.ndim == 1 else one, i) for i, one in enumerate(arrays)]


def targets_of(y: Any, count: int, dim: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Results as an array :math:`(R, d)`."""
    target = _numbers("y", y)
    target = target[:, None] if target.ndim == 1 else target
    if target.shape != (count, dim):
        raise AbelnetError(f"y: expected one result of {dim} dimensions for each of {count} sets, got {target.shape}")
    if not np.isfinite(target).all():
        raise AbelnetError(
            f"y: expected finite numbers, got {int((~np.isfinite(target)).sum())} that are missing or not"
        )
    return target


def examples_of(sets: Sequence[np.ndarray[Any, Any]], target: np.ndarray[Any, Any], dimension: int) -> Examples:
    """The examples of one dimension."""
    sizes = np.array([len(one) for one in sets])
    if (sizes == 0).any():
        raise AbelnetError(f"X: expected no empty set to learn from, got {int((sizes == 0).sum())}")
    mask = np.arange(sizes.max()) < sizes[:, None]
    firsts = np.array([one[0, dimension] for one in sets])
    values = np.repeat(firsts[:, None], sizes.max(), 1)
    values[mask] = np.concatenate([one[:, dimension] for one in sets])
    return Examples(
        torch.from_numpy(values), torch.from_numpy(mask), torch.from_numpy(np.ascontiguousarray(target[:, dimension]))
    )


def _numbers(name: str, x: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    if isinstance(x, Tensor):
        x = x.detach().cpu().numpy()
    try:
        return np.asarray(x.to_numpy() if hasattr(x, "to_numpy") else x, dtype=np.float64)
    except (TypeError, ValueError):
        raise AbelnetError(f"{name}: expected numbers, got {str(x)[:60]!r}") from None


def _check(one: np.ndarray[Any, Any], i: int) -> np.ndarray[Any, Any]:
    if one.ndim != 2 or not np.isfinite(one).all():
        raise AbelnetError(f"X: expected finite numbers in set {i}, got {one.tolist()!s:.80}")
    return one
