r"""Operations as aggregations of PyTorch Geometric; requires the extra ``abelnet[pyg]``."""

from __future__ import annotations

__all__ = ["AbelianAggregation", "register"]

from typing import Literal

import torch
from torch import Tensor, nn

from abelnet.aggregation import Aggregation
from abelnet.checks import check_count
from abelnet.errors import AbelnetError, needs_extra
from abelnet.nn.bank import GatedBank
from abelnet.operation import Operation

with needs_extra("pyg", "abelnet.integrations.pyg"):
    import torch_geometric.nn.aggr as pyg_aggr


class AbelianAggregation(pyg_aggr.Aggregation):  # type: ignore[misc]  # PyG has no types
    r"""Aggregation of PyTorch Geometric by a learnable operation.

    .. math:: x_i' = \bigcirc_{j \in \mathcal{N}(i)} x_j

    It takes the place of ``"sum"`` or ``"max"`` in any message-passing layer, alone or within a ``MultiAggregation``.
    Sets need not be sorted, and the result of a set never depends on the rest of the batch. An empty set gives the
    identity of the operation, or ``fill`` if there is none, as PyG does for maximum and minimum.

    Values are checked on every call, which waits for a GPU: see :class:`~abelnet.set_checks_enabled`. Under
    ``torch.compile`` they are not; pass ``dim_size`` there. An instance that is passed to several layers is shared by
    them, as all instances are in PyG; a name (see :func:`register`) or a copy gives each its own parameters.

    Arguments:
        pool: An :class:`~abelnet.Operation`; a number of channels :math:`d` for a
            :class:`~abelnet.nn.GatedBank`, which finds its own law; or a module with ``reset_parameters()`` that is
            called with values :math:`(N, d)` and the keywords ``index``, ``ptr`` and ``dim_size``, and returns
            :math:`(B, d)`.
        fill: Result of an empty set if the operation has no identity.
        normalization: Exponent of the number of elements by a power of which sums are divided, or ``"learned"``; see
            :class:`~abelnet.Aggregation`. Requires an operation unless it is 0: a bank finds its own.
        centered: Whether an operation starts near the identity of its law, so that products of what an encoder sends do
            not vanish: see :meth:`abelnet.Operation.centered`. With False, it is the given operation from the start.

    Shapes:
        - input: elements :math:`(*, N, d)`, ``index`` :math:`(N)` or ``ptr`` :math:`(B + 1)`
        - output: :math:`(*, B, d)`

        With ``dim``, elements are those along any other dimension; the last of the remaining ones has the channels.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> aggregation = AbelianAggregation(AbelianGroup(Generator(1, "power", [2.0])))
        >>> aggregation(torch.tensor([[3.0], [1.0], [4.0]]), torch.tensor([0, 2, 0]), dim_size=3).tolist()
        [[5.0], [0.0], [1.0]]
        >>> from torch_geometric.nn import SAGEConv
        >>> convolution = SAGEConv(8, 8, aggr=AbelianAggregation(8))
    """

    def __init__(
        self,
        pool: Operation | nn.Module | int,
        fill: float = 0.0,
        normalization: float | Literal["learned"] = 0.0,
        centered: bool = True,
    ) -> None:
        super().__init__()
        if normalization != 0 and not isinstance(pool, Operation):
            raise AbelnetError(f"normalization: expected 0 unless pool is an Operation, got {normalization!r}")
        if not isinstance(pool, nn.Module):
            pool = GatedBank(check_count("pool", pool), fill=fill)
        elif not hasattr(pool, "reset_parameters"):
            raise AbelnetError(f"pool: expected an Operation or a module with reset_parameters, got {pool}")
        self.fill = float(fill)
        self.pool = pool
        if isinstance(pool, Operation):
            operation = pool.centered() if centered else pool
            self.pool = Aggregation(operation, fill=self.fill, normalization=normalization)

    def reset_parameters(self) -> None:
        """Resets the operation to its initial parameters, drawn anew where they are random."""
        self.pool.reset_parameters()  # type: ignore[operator]

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        max_num_elements: int | None = None,
    ) -> Tensor:
        r"""Aggregates elements along a dimension.

        Arguments:
            x: Elements, with shape :math:`(*, N, d)`.
            index: Set of each element, :math:`(N)`, in any order; one set of all elements if it and ``ptr`` are None.
            ptr: Offset of each set, and :math:`N`, as in CSR, :math:`(B + 1)`.
            dim_size: Number of sets :math:`B`.
            dim: The dimension along which elements are aggregated.
            max_num_elements: Ignored: no set is padded.
        """
        if x.ndim == 1:
            return self.forward(x[:, None], index, ptr, dim_size, 0)[:, 0]
        if index is None and ptr is None:
            index = torch.zeros(x.shape[dim], dtype=torch.long, device=x.device)
            dim_size = 1 if dim_size is None else dim_size
        rows = x.movedim(dim, 0)
        n, others, channels = rows.shape[0], rows.shape[1:-1], rows.shape[-1]
        if len(others) > 0:
            # Every position beside the elements is a batch of its own: set i of position k is set i * count + k.
            count = others.numel()
            index, dim_size = _index_of(index, ptr, dim_size, n)
            places = torch.arange(count, device=x.device)
            pooled: Tensor = self.pool(
                rows.reshape(n * count, channels),
                index=(index[:, None] * count + places).reshape(-1),
                ptr=None,
                dim_size=dim_size * count,
            )
            pooled = pooled.reshape(dim_size, *others, channels)
        else:
            pooled = self.pool(rows, index=index, ptr=ptr, dim_size=dim_size)
        return pooled.movedim(0, dim).contiguous()

    def __repr__(self) -> str:
        pool = self.pool.operation if isinstance(self.pool, Aggregation) else self.pool
        return f"{type(self).__name__}({type(pool).__name__})"

    def __prepare_scriptable__(self) -> AbelianAggregation:
        raise AbelnetError(
            "torch.jit.script: expected a model without AbelianAggregation, which TorchScript cannot compile; use "
            "torch.compile or torch.export"
        )


def register() -> None:
    """Makes :class:`AbelianAggregation` known to PyG by name, so that each layer creates its own.

    Example:
        >>> from torch_geometric.nn import GraphSAGE
        >>> register()
        >>> model = GraphSAGE(16, 16, 2, aggr="abelian", aggr_kwargs={"pool": 16})
        >>> model.convs[0].aggr_module is model.convs[1].aggr_module
        False
    """
    pyg_aggr.AbelianAggregation = AbelianAggregation


def _index_of(index: Tensor | None, ptr: Tensor | None, dim_size: int | None, n: int) -> tuple[Tensor, int]:
    """Returns the set of each of ``n`` elements, and the number of sets."""
    if ptr is not None:
        sets = torch.arange(len(ptr) - 1, device=ptr.device)
        return torch.repeat_interleave(sets, ptr.diff(), output_size=n), len(ptr) - 1
    assert index is not None
    if dim_size is None:
        dim_size = int(index.max()) + 1 if index.shape[0] > 0 else 0
    return index.long(), dim_size
