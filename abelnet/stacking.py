r"""Many small models as one, so that a machine is busy with arithmetic and not with bookkeeping.

Models of different widths share a stack by padding that is exact: padded parts start at zero, get no gradient, and so
stay what they are.
"""

from __future__ import annotations

__all__ = ["OperationStack", "stack_deepsets", "unstack_deepsets"]

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from abelnet.baselines import MLP, DeepSets
from abelnet.bijections import Monotonic
from abelnet.errors import AbelnetError
from abelnet.operation import Operation


@torch.no_grad()
def stack_deepsets(models: Sequence[DeepSets]) -> DeepSets:
    """Puts models of equal depth side by side; narrower ones are padded with zeros, which a ReLU keeps silent.

    Example:
        >>> models = [DeepSets(1, 3, middle=4, hidden=8, seed=0), DeepSets(1, 3, middle=6, hidden=5, seed=1)]
        >>> stacked = stack_deepsets(models)
        >>> x = torch.randn(2, 7, 3, 1)
        >>> torch.allclose(stacked(x)[1], models[1](x[1]), atol=1e-6)
        True
    """
    depths = {len(model.inner.weights) for model in models}
    dims = {model.inner.widths[0] for model in models}
    if len(depths) != 1 or len(dims) != 1:
        raise AbelnetError(f"models: expected one depth and dimension, got {sorted(depths)} and {sorted(dims)}")
    middle = max(model.inner.widths[-1] for model in models)
    hidden = max(model.inner.widths[1] for model in models) if depths != {1} else 1
    like = models[0].inner.weights[0]
    stacked = DeepSets(
        dims.pop(), depths.pop(), middle, hidden, seed=[0] * len(models), device=like.device, dtype=like.dtype
    )
    for target, *sources in _mlps(stacked, models):
        for i, source in enumerate(sources):
            _copy_padded(target, source, i)
    return stacked


@torch.no_grad()
def unstack_deepsets(stacked: DeepSets, models: Sequence[DeepSets]) -> None:
    """Copies each model of a stack back into the module that it was made of."""
    for source, *targets in _mlps(stacked, models):
        for i, target in enumerate(targets):
            for mine, theirs in zip(target.parameters(), source.parameters(), strict=True):
                mine.copy_(theirs[i][tuple(slice(n) for n in mine.shape)])


def _mlps(stacked: DeepSets, models: Sequence[DeepSets]) -> list[list[MLP]]:
    return [[stacked.inner, *(m.inner for m in models)], [stacked.outer, *(m.outer for m in models)]]


def _copy_padded(target: MLP, source: MLP, i: int) -> None:
    for mine, theirs in zip(target.parameters(), source.parameters(), strict=True):
        mine[i] = 0
        mine[i][tuple(slice(n) for n in theirs.shape)] = theirs


class OperationStack(nn.Module):
    r"""Operations on single numbers side by side, each a dimension of one operation.

    An elementwise bijection and a law act on each dimension by itself, so :math:`M` operations over
    :class:`~abelnet.Monotonic` networks of one dimension are one operation over a network of :math:`M`. Smaller
    networks are padded with lines at :math:`-\infty`, which no maximum takes, and groups at :math:`+\infty`, which no
    minimum takes.

    Arguments:
        operations: Operations over ``Monotonic(1)``, all with the same law.

    Example:
        >>> from abelnet import AbelianGroup
        >>> operations = [AbelianGroup(Monotonic(1, groups, 3, seed=groups)) for groups in (2, 5)]
        >>> stack = OperationStack(operations)
        >>> x, mask = torch.randn(2, 7, 4), torch.ones(2, 7, 4, dtype=torch.bool)
        >>> torch.allclose(stack(x, mask)[1], operations[1].reduce(x[1, ..., None])[:, 0], atol=1e-5)
        True
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__()
        networks = []
        for operation in operations:
            if not isinstance(operation.bijection, Monotonic) or operation.dim != 1:
                raise AbelnetError("operations: expected bijections Monotonic(1)")
            networks.append(operation.bijection)
        groups, units = (max(network.bias.shape[i] for network in networks) for i in (1, 2))
        like = networks[0].bias
        network = Monotonic(len(networks), groups, units, seed=0, device=like.device, dtype=like.dtype)
        with torch.no_grad():
            network.log_weight.zero_()
            network.bias.fill_(-math.inf)
            for i, one in enumerate(networks):
                _, k, j = one.bias.shape
                network.raw_sign[i] = one.raw_sign[0]
                network.log_weight[i, :k, :j] = one.log_weight[0]
                network.bias[i, :k, :j] = one.bias[0]
                network.bias[i, k:] = math.inf
        self.bijection, self.law = network, operations[0].law

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Folds multisets of numbers :math:`(M, B, n)`, with a mask of the same shape, to :math:`(M, B)`."""
        mask = mask.permute(1, 2, 0)
        u = self.bijection(torch.where(mask, values.permute(1, 2, 0), 0))
        identity = self.law.identity(len(values))
        if identity is None:
            raise AbelnetError(f"law: expected one with an identity for padding, got {self.law.name}")
        u = torch.where(mask, u, identity.to(u))
        folded = self.law.lower(self.law.gather(self.law.lift(u)), u.dtype)
        result: Tensor = self.bijection.inverse(folded)
        return result.t()

    @torch.no_grad()
    def unstack(self, operations: Sequence[Operation]) -> None:
        """Copies each model of the stack back into the operation that it was made of."""
        for i, operation in enumerate(operations):
            network = operation.bijection
            assert isinstance(network, Monotonic)
            _, k, j = network.bias.shape
            network.raw_sign.copy_(self.bijection.raw_sign[i : i + 1])
            network.log_weight.copy_(self.bijection.log_weight[i : i + 1, :k, :j])
            network.bias.copy_(self.bijection.bias[i : i + 1, :k, :j])
