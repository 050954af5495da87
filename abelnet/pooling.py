r"""Set pooling: layers that aggregate each set of a batch, in whatever layout it comes."""

from __future__ import annotations

__all__ = ["Pooling"]

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from abelnet.config import Configurable
from abelnet.multisets import Multisets, MultisetValues


class Pooling(Configurable, nn.Module, ABC):
    """Layer that aggregates sets. A subclass has the number of channels, and aggregates :class:`~abelnet.Multisets`.

    Shapes:
        - input: elements :math:`(*, n, c)` with a mask, or :math:`(N, c)` with ``index`` or ``ptr``, or a list
        - output: one result per set, :math:`(*, c)` or :math:`(B, c)`

    Example:
        >>> import torch
        >>> class Total(Pooling):
        ...     channels = 1
        ...     def pool(self, multisets):
        ...         return multisets.sum(multisets.values)
        >>> Total()(torch.tensor([[1.0], [2.0], [3.0]]), ptr=torch.tensor([0, 1, 3]))
        tensor([[1.],
                [5.]])
    """

    channels: int
    """Number of channels :math:`c`."""
    is_pure: ClassVar[bool] = False
    """Whether pooling writes nothing that would remain if values turn out not to be finite in the end."""

    def forward(
        self,
        values: MultisetValues,
        *,
        mask: Tensor | None = None,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        element_weights: Tensor | Sequence[Tensor] | None = None,
    ) -> Tensor:
        r"""Aggregates each set.

        Arguments:
            values: Elements, :math:`(*, n, c)`, or :math:`(N, c)` with ``index`` or ``ptr``, or a list.
            mask: True for elements, False for padding, :math:`(*, n)`.
            index: Set of each element, :math:`(N)`, in any order.
            ptr: Offset of each set, and :math:`N`, as in CSR, :math:`(B + 1)`.
            dim_size: Number of sets :math:`B` with ``index``.
            element_weights: How many times each element counts, :math:`(*, n)`, :math:`(N)` or a list; once if None.

        Returns:
            One result per set, :math:`(*, c)` or :math:`(B, c)`.
        """
        read = Multisets.unchecked if self.is_pure else Multisets.of
        multisets = read(
            values,
            self.channels,
            mask=mask,
            index=index,
            ptr=ptr,
            dim_size=dim_size,
            element_weights=element_weights,
        )
        try:
            return self.pool(multisets).contiguous()  # layers such as GATConv call .view on what they get
        finally:
            multisets.check_values()

    @abstractmethod
    def pool(self, multisets: Multisets) -> Tensor:
        """Returns the result of each set, with shape :math:`(*, c)`."""
