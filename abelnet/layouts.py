"""Layouts of batches of multisets: lists, padding with a mask, index and ptr, checked and brought to rows of sets."""

from __future__ import annotations

__all__ = [
    "check_element_weights",
    "check_mask",
    "check_places",
    "check_targets",
    "check_weights",
    "concatenate",
    "concatenate_weights",
    "from_index",
    "from_ptr",
    "may_read",
]

from collections.abc import Sequence

import torch
from torch import Tensor

from abelnet.checks import check_finite, check_integers, check_range, check_values, is_checking, peek
from abelnet.errors import AbelnetError


def check_targets(targets: Tensor, shape: torch.Size, dim: int) -> Tensor:
    """Returns the results of sets, if there is one per set."""
    if not isinstance(targets, Tensor) or not targets.is_floating_point():
        got = getattr(targets, "dtype", type(targets).__name__)
        raise AbelnetError(f"targets: expected a floating-point tensor, got {got}")
    if targets.shape not in (shape, (*shape, dim)):
        raise AbelnetError(
            f"targets: expected shape {tuple(shape)} or {(*shape, dim)}, one result per set, got {tuple(targets.shape)}"
        )
    check_finite("targets", targets)
    return targets


def check_weights(weights: Tensor, shape: torch.Size) -> Tensor:
    """Returns the weights of sets, if there is one per set and none is negative."""
    if weights.shape != shape:
        raise AbelnetError(f"weights: expected shape {tuple(shape)}, one weight per set, got {tuple(weights.shape)}")
    check_finite("weights", weights)
    if bool((weights < 0).any()):
        raise AbelnetError(f"weights: expected no negative weight, got {float(weights.min()):g}")
    return weights


def check_element_weights(values: Tensor, weights: Tensor | Sequence[Tensor], there: Tensor | None) -> Tensor:
    """Returns the weights of elements, with shape :math:`(N)`, of which those of padding are 0."""
    if not isinstance(weights, Tensor) or weights.shape != values.shape[:-1]:
        got = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        raise AbelnetError(f"element_weights: expected shape {tuple(values.shape[:-1])}, one per element, got {got}")
    weights = weights.reshape(-1).to(values.dtype)
    if there is not None:
        weights = torch.where(there, weights, 0)
    check_finite("element_weights", weights)
    if is_checking() and peek((weights < 0).any(), False):
        raise AbelnetError(f"element_weights: expected no negative weight, got {float(weights.min()):g}")
    return weights


def concatenate_weights(sets: Sequence[Tensor], weights: Tensor | Sequence[Tensor]) -> Tensor:
    """Returns the weights of a list of sets as one tensor."""
    shapes = [tuple(one.shape[:1]) for one in sets]
    if isinstance(weights, Tensor) or [tuple(one.shape) for one in weights] != shapes:
        raise AbelnetError("element_weights: expected a list with one weight per element of each set, got another")
    return torch.cat(list(weights))


def concatenate(sets: Sequence[Tensor], dim: int) -> tuple[Tensor, Tensor]:
    """Returns a list of sets as rows, with their ends as ``ptr``."""
    if not isinstance(sets, Sequence):
        raise AbelnetError(f"values: expected a tensor or a list of tensors, got {type(sets).__name__}")
    if len(sets) == 0:
        raise AbelnetError(f"values: expected at least one set of shape (n, {dim}), got an empty list")
    for i, one in enumerate(sets):
        check_values(f"values[{i}]", one, dim)
        if one.ndim != 2:
            raise AbelnetError(f"values[{i}]: expected shape (n, {dim}), got {tuple(one.shape)}")
    ends = torch.tensor([0] + [len(one) for one in sets], device=sets[0].device).cumsum(0)
    return torch.cat(list(sets)), ends


def _check_rows(values: Tensor) -> None:
    if values.ndim != 2:
        raise AbelnetError(f"values: expected shape (N, d) with index or ptr, got {tuple(values.shape)}")


def check_places(name: str, x: Tensor) -> Tensor:
    """Returns integers of one dimension."""
    x = check_integers(name, x)
    if x.ndim != 1:
        raise AbelnetError(f"{name}: expected one dimension, got shape {tuple(x.shape)}")
    return x


def check_mask(values: Tensor, mask: Tensor) -> Tensor:
    """Returns a mask that has an entry per element."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise AbelnetError(f"mask: expected a boolean tensor, got {getattr(mask, 'dtype', type(mask).__name__)}")
    if mask.shape != values.shape[:-1]:
        raise AbelnetError(f"mask: expected shape {tuple(values.shape[:-1])}, got {tuple(mask.shape)}")
    return mask


def _check_index(values: Tensor, index: Tensor) -> Tensor:
    index = check_places("index", index)
    if not torch.compiler.is_exporting() and index.shape[0] != values.shape[0]:
        raise AbelnetError(f"index: expected {len(values)} entries, one per element, got {len(index)}")
    return index


def from_index(values: Tensor, index: Tensor, dim_size: int | None) -> tuple[torch.Size, Tensor]:
    """Returns the shape of the batch, and the set of each row."""
    _check_rows(values)
    index = _check_index(values, index)
    if dim_size is None:
        dim_size = _last(index) + 1
    check_range("index", index, dim_size)
    return torch.Size([dim_size]), index


def _last(index: Tensor) -> int:
    """Returns the largest entry, which may be a symbolic integer under compile; -1 if there is none."""
    if index.shape[0] == 0:
        return -1
    try:
        return index.amax().item()  # type: ignore[return-value]
    except RuntimeError:
        raise AbelnetError("dim_size: expected an integer with index under vmap, got None") from None


def from_ptr(values: Tensor, ptr: Tensor, index: Tensor | None, dim_size: int | None) -> tuple[torch.Size, Tensor, int]:
    """Returns the shape of the batch, the set of each row, and the size of the largest set, or more."""
    _check_rows(values)
    ptr = check_places("ptr", ptr)
    if torch.compiler.is_exporting():
        return _from_symbolic_ptr(values, ptr)
    rows, count = values.shape[0], ptr.shape[0] - 1
    if count < 0:
        raise AbelnetError("ptr: expected at least one entry, got none")
    if dim_size is not None and dim_size != count:
        raise AbelnetError(f"dim_size: expected {count}, the number of sets of ptr, got {dim_size}")
    sizes = ptr.diff()
    if is_checking():
        if peek((ptr[0] != 0) | (ptr[-1] != len(values)), False):
            raise AbelnetError(f"ptr: expected to run from 0 to {len(values)}, got {int(ptr[0])} to {int(ptr[-1])}")
        if peek((sizes < 0).any(), False):
            raise AbelnetError("ptr: expected ascending entries, got a descending one")
    sets = torch.arange(count, device=values.device)
    places = torch.repeat_interleave(sets, sizes, output_size=rows)
    if index is not None and is_checking() and peek((_check_index(values, index) != places).any(), False):
        raise AbelnetError("index, ptr: expected the same sets, got different ones; pass only one of them")
    largest = peek(sizes.amax(), len(values)) if len(sizes) > 0 and may_read(sizes) else len(values)
    return torch.Size([len(sizes)]), places, largest


def _from_symbolic_ptr(values: Tensor, ptr: Tensor) -> tuple[torch.Size, Tensor, int]:
    """Returns what :func:`from_ptr` does, for any number of rows and sets, which nothing may depend on."""
    rows, ones = values.shape[0], torch.ones_like(ptr)
    # The set of a row is the number of sets that begin at or before it, less one.
    begins = torch.zeros(rows + 1, dtype=torch.long, device=values.device).index_add(0, ptr, ones)
    # One less than a size that may be 2 may be 1, which would be taken for a dimension that broadcasts.
    count: int = (ones.sum() - 1).item()  # type: ignore[assignment]
    return torch.Size([count]), begins[:rows].cumsum(0) - 1, rows


def may_read(x: Tensor) -> bool:
    """Whether values that no check needs may be read: nothing has to wait for a CPU."""
    return is_checking() or (x.device.type == "cpu" and not torch.compiler.is_compiling())
