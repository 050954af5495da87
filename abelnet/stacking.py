r"""Many small models as one, so that a machine is busy with arithmetic and not with bookkeeping.

Models of different widths share a stack by padding that is exact: padded parts start at zero, get no gradient, and so
stay what they are.
"""

from __future__ import annotations

__all__ = ["DeepSetsStack", "OperationStack"]

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from abelnet.baselines import DeepSets
from abelnet.bijections import Monotonic
from abelnet.errors import AbelnetError
from abelnet.operation import Operation


class DeepSetsStack(nn.Module):
    """DeepSets side by side; narrower ones are padded with zeros, which a ReLU keeps silent.

    Arguments:
        models: Models on single numbers, all of the same depth.

    Example:
        >>> models = [DeepSets(1, 3, middle=4, hidden=8, seed=0), DeepSets(1, 3, middle=6, hidden=5, seed=1)]
        >>> stack = DeepSetsStack(models)
        >>> x, mask = torch.randn(2, 7, 3), torch.ones(2, 7, 3, dtype=torch.bool)
        >>> torch.allclose(stack(x, mask)[1], models[1](x[1, ..., None])[:, 0], atol=1e-6)
        True
    """

    def __init__(self, models: Sequence[DeepSets]) -> None:
        super().__init__()
        depths = {len(model.inner.weights) for model in models}
        dims = {model.inner.widths[0] for model in models}
        if len(depths) != 1 or dims != {1}:
            raise AbelnetError(f"models: expected one depth, and dimension 1, got {sorted(depths)} and {sorted(dims)}")
        middle, hidden = (max(model.inner.widths[i] for model in models) for i in (-1, 1))
        like = models[0].inner.weights[0]
        self.models = DeepSets(
            1, depths.pop(), middle, hidden, seed=[0] * len(models), device=like.device, dtype=like.dtype
        )
        with torch.no_grad():
            for i, model in enumerate(models):
                for target, source in zip(self.models.parameters(), model.parameters(), strict=True):
                    target[i] = 0
                    target[i][tuple(slice(n) for n in source.shape)] = source

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Maps multisets of numbers :math:`(M, B, n)`, with a mask of the same shape, to :math:`(M, B)`."""
        result: Tensor = self.models(values[..., None], mask)
        return result[..., 0]

    @torch.no_grad()
    def unstack(self, models: Sequence[DeepSets]) -> None:
        """Copies each model of the stack back into the one that it was made of."""
        for i, model in enumerate(models):
            for target, source in zip(model.parameters(), self.models.parameters(), strict=True):
                target.copy_(source[i][tuple(slice(n) for n in target.shape)])


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
