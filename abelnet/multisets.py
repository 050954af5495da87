"""Batches of multisets in any layout: tensors, padded tensors with a mask, index, ptr, and lists."""

from __future__ import annotations

__all__ = ["MultisetValues", "Multisets"]

import copy
import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.arrays import read_results, read_sets
from abelnet.checks import check_count, check_finite, check_range, check_values, is_checking
from abelnet.errors import AbelnetError
from abelnet.layouts import (
    check_element_weights,
    check_mask,
    check_places,
    check_targets,
    check_weights,
    concatenate,
    concatenate_weights,
    from_index,
    from_ptr,
    may_read,
)
from abelnet.segments import Segments, is_plain, kernels_for

MultisetValues: TypeAlias = "Multisets | Tensor | Sequence[Tensor]"

# Sets up to this size are summed in their own precision, larger ones in float64. Only the size of the set decides, so
# that its result never depends on the rest of the batch.
_PLAIN_SIZE = 1024
# Dimensions from which sums of sorted sets are faster than those of scattered ones.
_WIDE = 8


class Multisets:
    r"""Batch of multisets, stored as rows with the index of the set of each row.

    Every layout is converted to this form, in which the elements of a set are summed in the given order. The sum over a
    set is therefore bitwise identical whatever its layout, the rest of the batch, and the padding. A batch may have no
    sets, and sets no elements.

    Arguments:
        values: Elements :math:`x_i`, with shape :math:`(*, n, d)` for plain or masked batches, :math:`(N, d)` with
            ``index`` or ``ptr``, or a list of tensors :math:`(n_i, d)`.
        dim: Number of dimensions :math:`d` of an element.
        mask: Boolean mask of the elements, with shape :math:`(*, n)`; padding is never used.
        index: Index of the set of each element, with shape :math:`(N)`, in any order.
        ptr: Offsets of the sets, with shape :math:`(B + 1)`: set :math:`i` is ``values[ptr[i]:ptr[i + 1]]``. With
            both, ``index`` must be the one that ``ptr`` describes.
        dim_size: Number of sets :math:`B` with ``index`` or ``ptr``; if None, one more than the largest entry of
            ``index``, which waits for the device. Pass it under ``torch.compile``: without it shapes depend on data,
            which requires ``capture_scalar_outputs`` and a bijection other than a glow.
        targets: Result of each set, to learn from, with shape :math:`(*)` or :math:`(*, d)`.
        weights: Weight of each set in squared errors, with shape :math:`(*)`; 1 if None.
        element_weights: How many times each element counts, a number of 0 or more, with shape :math:`(*, n)` or
            :math:`(N)`, or a list of tensors :math:`(n_i)`; 1 if None. Elements of weight 0 are left out.

    Example:
        >>> x = torch.tensor([[1.0], [2.0], [3.0]])
        >>> Multisets(x, 1, index=torch.tensor([2, 0, 2]), dim_size=4).sum(x)
        tensor([[2.],
                [0.],
                [4.],
                [0.]])
        >>> Multisets([x[:1], x[1:]], 1).sizes
        tensor([1, 2])
        >>> examples = Multisets(x, 1, ptr=torch.tensor([0, 1, 3]), targets=torch.tensor([1.0, 5.0]))
        >>> examples.take(torch.tensor([1])).targets
        tensor([5.])
        >>> Multisets(x, 1, ptr=torch.tensor([0, 1, 3]), element_weights=torch.tensor([2.0, 0.5, 1.0])).totals
        tensor([2.0000, 1.5000])
    """

    def __init__(
        self,
        values: Tensor | Sequence[Tensor],
        dim: int,
        *,
        mask: Tensor | None = None,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        targets: Tensor | None = None,
        weights: Tensor | None = None,
        element_weights: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        self._read(values, dim, mask, index, ptr, dim_size, element_weights)
        check_finite("values", self.values)
        self._targets: Tensor | None = None if targets is None else check_targets(targets, self.shape, dim)
        self._weights: Tensor | None = None if weights is None else check_weights(weights, self.shape)

    def _read(
        self,
        values: Tensor | Sequence[Tensor],
        dim: int,
        mask: Tensor | None = None,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        element_weights: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Reads values in any layout, without a look at whether they are finite."""
        self._unchecked: Tensor | None = None
        self._targets, self._weights = None, None
        if mask is not None and (index is not None or ptr is not None):
            raise AbelnetError("mask: expected None with index or ptr, got a mask")
        if dim_size is not None:
            if not torch.compiler.is_compiling():  # where it may be symbolic, and a check would fix it
                dim_size = check_count("dim_size", dim_size, 0)
            if index is None and ptr is None:
                raise AbelnetError("dim_size: expected only with index or ptr, got neither")
        if not isinstance(values, Tensor):
            if mask is not None or index is not None or ptr is not None:
                raise AbelnetError("values: expected one tensor with mask, index or ptr, got a list")
            if element_weights is not None:
                element_weights = concatenate_weights(values, element_weights)
            values, ptr = concatenate(values, dim)
        check_values("values", values, dim)
        there = None if mask is None else check_mask(values, mask).reshape(-1)
        self.element_weights: Tensor | None = None  # with shape (N)
        if element_weights is not None:
            self.element_weights = check_element_weights(values, element_weights, there)
            there = self.element_weights > 0  # of padding it is 0

        self._sizes: Tensor | None = None
        self._segments: Segments | None = None
        self._spare = 0  # 1 if an extra last set, dropped at the end, collects padding that cannot be removed
        self._limit = values.shape[0]  # no set has more elements
        if ptr is not None:
            self.shape, self.index, self._limit = from_ptr(values, ptr, index, dim_size)
        elif index is not None:
            self.shape, self.index = from_index(values, index, dim_size)
        else:
            if values.ndim < 2:
                raise AbelnetError(f"values: expected shape (*, n, {dim}), got {tuple(values.shape)}")
            self.shape, self._limit = values.shape[:-2], values.shape[-2]
            sets = torch.arange(math.prod(self.shape), device=values.device)
            self.index = sets[:, None].expand(-1, self._limit).reshape(-1)
        self.values = values.reshape(-1, dim)
        if there is not None:
            self._keep(there)

    @classmethod
    def of(cls, values: MultisetValues, dim: int, **layout: Any) -> Multisets:
        """Returns multisets unchanged, and builds a batch from values in any other layout.

        Arguments:
            values: Multisets of :math:`d` dimensions, or values as for the constructor.
            dim: Number of dimensions :math:`d` of an element.
            layout: ``mask``, ``index``, ``ptr`` and ``dim_size`` of the constructor.
        """
        if not isinstance(values, Multisets):
            return cls(values, dim, **layout)
        given = [name for name, value in layout.items() if value is not None]
        if given:
            raise AbelnetError(f"{given[0]}: expected None with Multisets, which have their own layout")
        if values.dim != dim:
            raise AbelnetError(f"values: expected multisets of {dim} dimensions, got {values.dim}")
        return values

    @classmethod
    def unchecked(cls, values: MultisetValues, dim: int, **layout: Any) -> Multisets:
        """Returns what :meth:`of` does, before values are checked for NaN and infinity if kernels are to fold them.

        These notice both on the way, which saves one pass over all elements. Whoever calls this must call
        :meth:`check_values` when the sets are folded, and also if that fails.
        """
        if isinstance(values, Multisets):
            return cls.of(values, dim, **layout)
        multisets = cls.__new__(cls)
        multisets._read(values, dim, **layout)
        multisets._unchecked = multisets.values
        if not is_checking() or multisets.kernels(multisets.values) is None:
            multisets.check_values()
        return multisets

    def check_values(self) -> None:
        """Raises if values are not finite, unless that is known."""
        if self._unchecked is not self.values:  # checked, or derived from values that their owner checks
            return
        self._unchecked = None
        if self._segments is None or not self._segments.saw(self.values):
            check_finite("values", self.values)

    @classmethod
    def from_arrays(cls, X: Any, y: Any = None) -> Multisets:
        """Reads multisets from lists, arrays or data frames, in float64.

        Arguments:
            X: A list of arrays :math:`(n_i)` or :math:`(n_i, d)`; an array :math:`(R, n)` or :math:`(R, n, d)`, or a
                data frame, padded with NaN; or multisets.
            y: Results, with shape :math:`(R)` or :math:`(R, d)`.

        Example:
            >>> Multisets.from_arrays([[1.0, 2.0], [3.0]], [3.0, 3.0]).ptr
            tensor([0, 2, 3])
            >>> Multisets.from_arrays(np.array([[1.0, 2.0], [3.0, np.nan]])).sizes
            tensor([2, 1])
        """
        if isinstance(X, Multisets):
            ordered = X.ordered()
            rows, ptr = ordered.values.detach().double().cpu().numpy(), ordered.ptr.cpu().numpy()
            y = X._flat_targets() if y is None and X.has_targets else y
        else:
            rows, ptr = read_sets(X)
        if len(ptr) < 2:
            raise AbelnetError("X: expected at least one set, got none")
        bad = ~np.isfinite(rows).all(1)
        if bad.any():
            first = int(np.searchsorted(ptr, bad.argmax(), "right")) - 1
            one = rows[ptr[first] : ptr[first + 1]].tolist()
            raise AbelnetError(f"X: expected finite numbers in set {first}, got {one!s:.80}")
        dim = rows.shape[1]
        targets = None if y is None else torch.from_numpy(read_results(y, len(ptr) - 1, dim))
        return cls(torch.from_numpy(rows), dim, ptr=torch.from_numpy(ptr), targets=targets)

    @staticmethod
    def join(parts: Sequence[Multisets]) -> Multisets:
        """Concatenates batches, with their targets if all have targets.

        Example:
            >>> one, two = (Multisets(torch.ones(n, 2, 1), 1) for n in (1, 3))
            >>> len(Multisets.join([one, two]))
            4
        """
        if not parts:
            raise AbelnetError("parts: expected at least one batch, got none")
        parts = [part.ordered() for part in parts]
        ends = _ends(torch.cat([part.sizes.reshape(-1) for part in parts]))
        have_targets = all(part.has_targets for part in parts)
        targets = torch.cat([part._flat_targets() for part in parts]) if have_targets else None
        weights = torch.cat([part.weights.reshape(-1) for part in parts]) if any(p.has_weights for p in parts) else None
        values, elements = torch.cat([part.values for part in parts]), None
        if any(part.element_weights is not None for part in parts):
            elements = torch.cat([part._all_element_weights() for part in parts])
        return Multisets(values, parts[0].dim, ptr=ends, targets=targets, weights=weights, element_weights=elements)

    def _keep(self, there: Tensor) -> None:
        """Leaves out elements that are padding, or of weight 0."""
        weights = self.element_weights
        if not torch.compiler.is_compiling():
            try:
                self.index = self.index[there]
                self.values = self.values[there]
                self.element_weights = None if weights is None else weights[there]
                return
            except RuntimeError:  # under vmap the number of elements must not depend on the mask
                pass
        self._spare = 1
        self.index = torch.where(there, self.index, math.prod(self.shape))
        self.values = torch.where(there[:, None], self.values, 0)
        self.element_weights = None if weights is None else torch.where(there, weights, 1)

    def __len__(self) -> int:
        return self.count

    @property
    def count(self) -> int:
        """Number of sets; unlike ``len``, which is a number, it may be symbolic while an operation is exported."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        sets, targets = tuple(self.shape), "" if self._targets is None else ", with targets"
        return f"Multisets({sets} sets of {len(self.values)} elements, dim={self.dim}{targets})"

    @property
    def dim(self) -> int:
        """Number of dimensions :math:`d` of an element."""
        return self.values.shape[-1]

    @property
    def targets(self) -> Tensor:
        """Result of each set, with shape :math:`(*)` or :math:`(*, d)`."""
        if self._targets is None:
            raise AbelnetError("targets: expected multisets with targets, got none; pass targets to Multisets")
        return self._targets

    @property
    def has_targets(self) -> bool:
        """Whether the batch has targets."""
        return self._targets is not None

    @property
    def weights(self) -> Tensor:
        """Weight of each set in squared errors, with shape :math:`(*)`; 1 unless given.

        Example:
            >>> Multisets(torch.ones(2, 3, 1), 1, weights=torch.tensor([0.5, 1.5])).take(torch.tensor([1])).weights
            tensor([1.5000])
        """
        return self.values.new_ones(self.shape) if self._weights is None else self._weights

    @property
    def has_weights(self) -> bool:
        """Whether weights were given."""
        return self._weights is not None

    @cached_property
    def ptr(self) -> Tensor:
        """Offsets of the sets, with shape :math:`(B + 1)`; requires the rows of each set to be adjacent."""
        if not self._is_ordered:
            raise AbelnetError("ptr: expected the rows of each set to be adjacent and in order; call ordered() first")
        return _ends(self.sizes.reshape(-1))

    @property
    def _is_ordered(self) -> bool:
        if self._spare:
            raise AbelnetError("ptr: expected values that can be inspected, got a mask under vmap or compile")
        return bool((self.index.diff() >= 0).all())

    def ordered(self) -> Multisets:
        """Returns the batch with rows sorted by set; the order within each set is kept."""
        if self._is_ordered:
            return self
        order = self.index.argsort(stable=True)
        result = copy.copy(self)
        result.values, result.index, result._segments = self.values[order], self.index[order], None
        result.element_weights = None if self.element_weights is None else self.element_weights[order]
        return result

    def take(self, sets: Tensor) -> Multisets:
        """Returns a selection of sets, indexed over the flattened leading dimensions.

        Arguments:
            sets: Indices of sets, in any order, or a boolean mask :math:`(B)`.
        """
        sets = sets.reshape(-1).nonzero()[:, 0] if sets.dtype == torch.bool else check_places("sets", sets)
        check_range("sets", sets, len(self))
        ordered = self.ordered()
        begins, sizes = ordered.ptr[:-1][sets], ordered.ptr.diff()[sets]
        ends = _ends(sizes)
        rows = torch.repeat_interleave(begins - ends[:-1], sizes)
        rows += torch.arange(len(rows), device=rows.device)
        targets = self._flat_targets()[sets] if self.has_targets else None
        weights = self.weights.reshape(-1)[sets] if self.has_weights else None
        elements = None if ordered.element_weights is None else ordered.element_weights[rows]
        return Multisets(
            ordered.values[rows], self.dim, ptr=ends, targets=targets, weights=weights, element_weights=elements
        )

    def split(self, part: float, seed: int) -> tuple[Multisets, Multisets]:
        """Splits the batch at random in two; the second has about the given fraction, each at least one set.

        Example:
            >>> first, second = Multisets(torch.ones(8, 2, 1), 1).split(0.25, seed=0)
            >>> len(first), len(second)
            (6, 2)
        """
        if not 0 < part < 1 or len(self) < 2:
            raise AbelnetError(f"part: expected a fraction in (0, 1) of two or more sets, got {part} of {len(self)}")
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        cut = len(self) - min(len(self) - 1, max(1, round(part * len(self))))
        return self.take(order[:cut]), self.take(order[cut:])

    def column(self, dimension: int) -> Multisets:
        """Returns one dimension of the elements and targets; targets have shape :math:`(*)`."""
        if not 0 <= dimension < self.dim:
            raise AbelnetError(f"dimension: expected from 0 to {self.dim - 1}, got {dimension}")
        result = copy.copy(self)
        result.values = self.values[:, dimension : dimension + 1].contiguous()
        if self._targets is not None and self._targets.ndim > len(self.shape):
            result._targets = self._targets[..., dimension].contiguous()
        return result

    def columns(self, dimensions: Sequence[int]) -> Multisets:
        """Returns several dimensions of the elements and targets.

        Example:
            >>> Multisets(torch.tensor([[[1.0, 2.0, 3.0]]]), 3).columns([2, 0]).values
            tensor([[3., 1.]])
        """
        if not dimensions or not all(0 <= one < self.dim for one in dimensions):
            raise AbelnetError(f"dimensions: expected some from 0 to {self.dim - 1}, got {list(dimensions)}")
        result = copy.copy(self)
        result.values = self.values[:, list(dimensions)]
        if self._targets is not None and self._targets.ndim > len(self.shape):
            result._targets = self._targets[..., list(dimensions)]
        return result

    def cast(self, dtype: torch.dtype) -> Multisets:
        """Returns the batch with elements in another floating-point dtype.

        Example:
            >>> Multisets(torch.ones(2, 3, 1), 1).cast(torch.float64).values.dtype
            torch.float64
        """
        result = copy.copy(self)
        result.values = self.values.to(dtype)
        return result

    def with_values(self, values: Tensor) -> Multisets:
        """Returns the same sets with other rows as elements, one for each, as an encoder gives them.

        Example:
            >>> Multisets(torch.ones(2, 3, 1), 1).with_values(torch.zeros(6, 4)).dim
            4
        """
        if values.ndim != 2 or values.shape[0] != self.values.shape[0]:
            raise AbelnetError(f"values: expected shape ({self.values.shape[0]}, d), got {tuple(values.shape)}")
        result = copy.copy(self)
        result.values = values
        return result

    def padded(self, width: int | None = None) -> tuple[Tensor, Tensor]:
        """Returns the padded layout, with zeros as padding.

        Arguments:
            width: Padded size :math:`n`; the largest size if None.

        Returns:
            Values :math:`(*, n, d)` and the mask :math:`(*, n)`.

        Example:
            >>> x = torch.tensor([[1.0], [2.0], [3.0]])
            >>> values, mask = Multisets(x, 1, ptr=torch.tensor([0, 1, 3])).padded()
            >>> values[..., 0], mask
            (tensor([[1., 0.],
                    [2., 3.]]), tensor([[ True, False],
                    [ True,  True]]))
        """
        ordered = self.ordered()
        sizes = ordered.sizes.reshape(-1, 1)
        largest = int(sizes.amax())
        width = largest if width is None else check_count("width", width, largest)
        mask = torch.arange(width, device=sizes.device) < sizes
        values = ordered.values.new_zeros(len(self), width, self.dim)
        values[mask] = ordered.values
        return values.reshape(*self.shape, width, self.dim), mask.reshape(*self.shape, width)

    @property
    def sizes(self) -> Tensor:
        """Number of elements of each set, with shape :math:`(*)`."""
        if self._sizes is None:  # functools.cached_property cannot be compiled
            if (segments := self.segments()) is not None:
                self._sizes = segments.sizes.reshape(self.shape)
            else:
                self._sizes = self._add(torch.ones_like(self.index)).reshape(self.shape)
        return self._sizes

    @property
    def totals(self) -> Tensor:
        """Sum of the weights of the elements of each set, with shape :math:`(*)`; their number if they have none."""
        if self.element_weights is None:
            return self.sizes
        return self.sum(torch.ones_like(self.element_weights)[:, None])[..., 0]

    @property
    def log_totals(self) -> Tensor:
        """Logarithms of :attr:`totals`, 0 for empty sets, with shape :math:`(*)`."""
        dtype = torch.promote_types(self.values.dtype, torch.float32)  # half precision does not count far
        return torch.where(self.sizes == 0, 1, self.totals).to(dtype).log()

    def _all_element_weights(self) -> Tensor:
        return self.values.new_ones(len(self.values)) if self.element_weights is None else self.element_weights

    def sum(self, u: Tensor) -> Tensor:
        """Returns the sum over each set of the rows of ``u``, one per element: :math:`(N, k)` to :math:`(*, k)`.

        Each row is multiplied by the weight of its element, if elements have weights.
        """
        if u.dtype in (torch.float16, torch.bfloat16):
            return self.sum(u.float()).to(u.dtype)
        if self.element_weights is not None:
            u = u * self.element_weights[:, None].to(u.dtype)
        if torch.compiler.is_exporting():  # one program is for sets of any size
            return self._add(u.double()).to(u.dtype).reshape(*self.shape, u.shape[-1])
        total = self._add(u)
        if u.dtype != torch.float64 and self._may_exceed(_PLAIN_SIZE):
            large = self.sizes.reshape(-1, 1) > _PLAIN_SIZE
            total = torch.where(large, self._add(u.double()).to(u.dtype), total)
        if u is self._unchecked and self._segments is not None and bool(total.detach().sum().isfinite()):
            self._segments.note(u)  # no sum of what is not finite is
        return total.reshape(*self.shape, u.shape[-1])

    def amax(self, u: Tensor) -> Tensor:
        """Returns the maximum over each set of the rows of ``u``; ties share the gradient. Empty sets give -inf."""
        if (segments := self.segments(u)) is not None:
            return segments.amax(u).reshape(*self.shape, u.shape[-1])
        rows = self.index[:, None].expand_as(u)
        start = u.new_full((self.count + self._spare, u.shape[-1]), -math.inf)
        return start.scatter_reduce(0, rows, u, "amax")[: self.count].reshape(*self.shape, u.shape[-1])

    def amin(self, u: Tensor) -> Tensor:
        """Returns the minimum over each set of the rows of ``u``; ties share the gradient. Empty sets give inf."""
        if (segments := self.segments(u)) is not None:
            return segments.amin(u).reshape(*self.shape, u.shape[-1])
        return -self.amax(-u)

    def segments(self, *tensors: Tensor) -> Segments | None:
        """Returns the sets for fast sums on a CPU; None if these or other tensors are elsewhere, or are traced.

        Of few dimensions too: there, to sort the sets costs more than it saves.
        """
        return self._grouped(*tensors) if self.dim >= _WIDE else None

    def kernels(self, *tensors: Tensor) -> tuple[Segments, ModuleType] | None:
        """Returns the sets, and compiled kernels that fold the first of the tensors; None if there are none."""
        segments = None if self.element_weights is not None else self.segments(*tensors)  # which kernels do not have
        kernels = None if segments is None else kernels_for(tensors[0])
        return None if segments is None or kernels is None else (segments, kernels)

    def can_be_cut(self, u: Tensor) -> bool:
        """Returns whether the batch can be cut into parts: on a CPU, and not while it is traced."""
        return self._grouped(u) is not None

    def _grouped(self, *tensors: Tensor) -> Segments | None:
        if not is_plain(self.index, *tensors) or self._spare or len(self) == 0:
            return None
        if self._segments is None:
            self._segments = Segments(self.index, len(self))
        return self._segments

    def cut(self, u: Tensor, count: int) -> list[Multisets]:
        """Cuts the batch into parts of consecutive sets, about as many in each, with rows of ``u`` as values.

        Arguments:
            u: Rows, one per element, with shape :math:`(N, k)`.
            count: Number of parts; those without sets are left out.

        Example:
            >>> x = torch.tensor([[1.0], [2.0], [3.0]])
            >>> [part.values[:, 0].tolist() for part in Multisets(x, 1, index=torch.tensor([2, 0, 1])).cut(x, 2)]
            [[2.0, 3.0], [1.0]]
        """
        segments = self._grouped(u)
        if segments is None:
            raise AbelnetError("cut: expected values on a CPU that can be inspected, got others")
        ends = _ends(segments.sizes)
        sets = sorted({round(i * len(self) / count) for i in range(count + 1)})
        places = ends[sets].tolist()
        index = self.index if segments.order is None else self.index.index_select(0, segments.order)
        weights = self.element_weights
        weights = weights if weights is None or segments.order is None else weights.index_select(0, segments.order)
        rows = torch.split(segments.ordered(u), [high - low for low, high in pairwise(places)])
        parts = []
        for (first, last), (low, high), values in zip(pairwise(sets), pairwise(places), rows, strict=True):
            part = copy.copy(self)
            part.values, part.index, part.shape = values, index[low:high] - first, torch.Size([last - first])
            part._sizes = part._segments = part._targets = part._weights = None
            part.element_weights = None if weights is None else weights[low:high]
            parts.append(part)
        return parts

    def spread(self, results: Tensor) -> Tensor:
        """Returns the row of the set of each element: :math:`(*, k)`, one per set, to :math:`(N, k)`.

        Example:
            >>> x = torch.tensor([[1.0], [2.0], [3.0]])
            >>> multisets = Multisets(x, 1, index=torch.tensor([1, 0, 1]))
            >>> (x / multisets.spread(multisets.sum(x))).tolist()
            [[0.25], [1.0], [0.75]]
        """
        rows = results.reshape(self.count, results.shape[-1])
        return (F.pad(rows, (0, 0, 0, 1)) if self._spare else rows).index_select(0, self.index)

    def _flat_targets(self) -> Tensor:
        return self.targets.reshape(len(self), *self.targets.shape[len(self.shape) :])

    def _may_exceed(self, size: int) -> bool:
        if self._limit <= size or not may_read(self.index):
            return self._limit > size
        try:
            if (segments := self.segments()) is not None:
                return int(segments.sizes.amax()) > size
            return int(torch.bincount(self.index, minlength=1)[: max(1, len(self))].amax()) > size
        except RuntimeError:  # under vmap the sets cannot be inspected
            return True

    def _add(self, u: Tensor) -> Tensor:
        if u.ndim == 2 and (segments := self.segments(u)) is not None:
            return segments.sum(u)
        start = u.new_zeros((self.count + self._spare, *u.shape[1:]))
        total = start.index_add(0, self.index, u)
        return total[: self.count] if self._spare else total


def _ends(sizes: Tensor) -> Tensor:
    return F.pad(sizes.cumsum(0), (1, 0))
