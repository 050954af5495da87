"""One way in for every layout of a batch of multisets: padded with a mask, index, ptr, lists, plain tensors."""

from __future__ import annotations

__all__ = ["Multisets", "MultisetValues"]

import math
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from abelnet.checks import check_count, check_finite, check_integers, check_range, check_values, peek
from abelnet.errors import AbelnetError

MultisetValues: TypeAlias = Tensor | Sequence[Tensor]

# Sets up to this size are summed in their own precision, larger ones in float64: a set's own size alone decides, so
# that its result never depends on its neighbours.
_PLAIN_SIZE = 1024


class Multisets:
    r"""A batch of multisets, held as rows and the set that each row belongs to.

    Every layout becomes this one form, in which the elements of a set are added in the order they came. That makes the
    sum over a set the same to the last bit whatever its layout, its neighbours in the batch, or the padding around it.

    Arguments:
        values: Elements :math:`x_i`, with shape :math:`(*, n, d)` for plain or masked batches, :math:`(N, d)` with
            ``index`` or ``ptr``, or a list of tensors :math:`(n_i, d)`.
        dim: Number of dimensions :math:`d` of an element.
        mask: Which elements are there, boolean, with shape :math:`(*, n)`. What stands elsewhere is never used.
        index: The set of each element, with shape :math:`(N)`, in any order.
        ptr: Where each set begins, and the end, with shape :math:`(B + 1)`: set :math:`i` is
            ``values[ptr[i]:ptr[i + 1]]``.
        dim_size: Number of sets :math:`B` with ``index``; otherwise one more than its largest entry.

    Example:
        >>> x = torch.tensor([[1.0], [2.0], [3.0]])
        >>> Multisets(x, 1, index=torch.tensor([2, 0, 2]), dim_size=4).sum(x)
        tensor([[2.],
                [0.],
                [4.],
                [0.]])
        >>> Multisets([x[:1], x[1:]], 1).sizes
        tensor([1, 2])
    """

    def __init__(
        self,
        values: MultisetValues,
        dim: int,
        *,
        mask: Tensor | None = None,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
    ) -> None:
        if sum(layout is not None for layout in (mask, index, ptr)) > 1:
            raise AbelnetError("values: expected at most one of mask, index and ptr, got several")
        if dim_size is not None:
            dim_size = check_count("dim_size", dim_size, 0)
            if index is None:
                raise AbelnetError("dim_size: expected together with index only")
        if not isinstance(values, Tensor):
            if mask is not None or index is not None or ptr is not None:
                raise AbelnetError("values: expected one tensor with mask, index or ptr, got a list")
            values, ptr = _concatenate(values, dim)
        check_values("values", values, dim)

        self._spare = 0  # whether a last set, dropped in the end, takes up padding that could not be left out
        self._limit = values.shape[0]  # no set has more elements
        if index is not None:
            self.shape, self.index = _from_index(values, index, dim_size)
        elif ptr is not None:
            self.shape, self.index, self._limit = _from_ptr(values, ptr)
        else:
            if values.ndim < 2:
                raise AbelnetError(f"values: expected shape (*, n, {dim}), got {tuple(values.shape)}")
            self.shape, self._limit = values.shape[:-2], values.shape[-2]
            sets = torch.arange(math.prod(self.shape), device=values.device)
            self.index = sets[:, None].expand(-1, self._limit).reshape(-1)
            if mask is not None:
                values = self._leave_out_padding(values, _check_mask(values, mask))
        if math.prod(self.shape) == 0:
            raise AbelnetError("values: expected at least one set, got an empty batch")
        check_finite("values", values)
        self.values = values.reshape(-1, dim)

    def _leave_out_padding(self, values: Tensor, mask: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            try:
                self.index = self.index[mask.reshape(-1)]
                return values[mask]
            except RuntimeError:  # under vmap the number of elements must not depend on the mask
                pass
        self._spare = 1
        self.index = torch.where(mask.reshape(-1), self.index, math.prod(self.shape))
        return torch.where(mask[..., None], values, 0)

    def __len__(self) -> int:
        return math.prod(self.shape)

    @property
    def sizes(self) -> Tensor:
        """Number of elements of each set, with shape :math:`(*)`."""
        return self._add(torch.ones_like(self.index)).reshape(self.shape)

    def sum(self, u: Tensor) -> Tensor:
        """Adds the rows of ``u``, one for each element, within each set: :math:`(N, k)` to :math:`(*, k)`."""
        total = self._add(u)
        if u.dtype != torch.float64 and self._may_exceed(_PLAIN_SIZE):
            large = self.sizes.reshape(-1, 1) > _PLAIN_SIZE
            total = torch.where(large, self._add(u.double()).to(u.dtype), total)
        return total.reshape(*self.shape, u.shape[-1])

    def amax(self, u: Tensor) -> Tensor:
        """The largest of the rows of ``u`` within each set; ties share the gradient. Empty sets give -inf."""
        rows = self.index[:, None].expand_as(u)
        start = u.new_full((len(self) + self._spare, u.shape[-1]), -math.inf)
        return start.scatter_reduce(0, rows, u, "amax")[: len(self)].reshape(*self.shape, u.shape[-1])

    def _may_exceed(self, size: int) -> bool:
        if self._limit <= size or torch.compiler.is_compiling():
            return self._limit > size
        try:
            return int(torch.bincount(self.index)[: len(self)].amax()) > size
        except RuntimeError:  # under vmap the sets cannot be looked at
            return True

    def _add(self, u: Tensor) -> Tensor:
        start = u.new_zeros((len(self) + self._spare, *u.shape[1:]))
        return start.index_add(0, self.index, u)[: len(self)]


def _concatenate(sets: Sequence[Tensor], dim: int) -> tuple[Tensor, Tensor]:
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


def _check_places(name: str, x: Tensor) -> Tensor:
    x = check_integers(name, x)
    if x.ndim != 1:
        raise AbelnetError(f"{name}: expected one dimension, got shape {tuple(x.shape)}")
    return x


def _check_mask(values: Tensor, mask: Tensor) -> Tensor:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise AbelnetError(f"mask: expected a boolean tensor, got {getattr(mask, 'dtype', type(mask).__name__)}")
    if mask.shape != values.shape[:-1]:
        raise AbelnetError(f"mask: expected shape {tuple(values.shape[:-1])}, got {tuple(mask.shape)}")
    return mask


def _from_index(values: Tensor, index: Tensor, dim_size: int | None) -> tuple[torch.Size, Tensor]:
    _check_rows(values)
    index = _check_places("index", index)
    if len(index) != len(values):
        raise AbelnetError(f"index: expected one entry for each of {len(values)} elements, got {len(index)}")
    if len(index) > 0 and dim_size is None:
        last = peek(index.amax(), None)
        if last is None:
            raise AbelnetError("dim_size: expected with index under vmap and compile, got none")
        dim_size = last + 1
    check_range("index", index, dim_size or 0)
    return torch.Size([dim_size or 0]), index


def _from_ptr(values: Tensor, ptr: Tensor) -> tuple[torch.Size, Tensor, int]:
    _check_rows(values)
    ptr = _check_places("ptr", ptr)
    if len(ptr) == 0:
        raise AbelnetError("ptr: expected at least one entry, got none")
    sizes = ptr.diff()
    if peek(ptr[0], 0) != 0 or peek(ptr[-1], len(values)) != len(values):
        raise AbelnetError(f"ptr: expected to run from 0 to {len(values)}, got {int(ptr[0])} to {int(ptr[-1])}")
    if peek((sizes < 0).any(), False):
        raise AbelnetError("ptr: expected ascending entries, got one below the entry before it")
    sets = torch.arange(len(sizes), device=values.device)
    index = torch.repeat_interleave(sets, sizes, output_size=len(values))
    limit = peek(sizes.amax(), len(values)) if len(sizes) > 0 else 0
    return torch.Size([len(sizes)]), index, limit
