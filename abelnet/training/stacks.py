r"""Stacks: many small models trained as one module, to spend time on arithmetic and not on overhead."""

from __future__ import annotations

__all__ = ["ModelStack", "OperationStack", "fold_side_by_side"]

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from abelnet.bijections import Bijection
from abelnet.bijections.base import Elementwise
from abelnet.errors import AbelnetError
from abelnet.laws import Law
from abelnet.operation import Operation

Model = TypeVar("Model", bound=nn.Module)


class ModelStack(nn.Module, ABC, Generic[Model]):
    """Stack of models on multisets of single numbers, as one module.

    Every parameter has a leading dimension :math:`M`, one entry per model, or less if only the first models have it.
    """

    @abstractmethod
    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Maps multisets of numbers :math:`(M, B, n)`, with a mask of the same shape, to :math:`(M, B)`."""

    @abstractmethod
    def select(self, mask: Tensor) -> None:
        """Keeps only the models of a boolean mask :math:`(M)`."""

    @abstractmethod
    def unstack(self, models: Sequence[Model]) -> None:
        """Copies each model of the stack back into the original."""


class OperationStack(ModelStack[Operation]):
    r"""Stack of operations on single numbers, each a dimension of one operation.

    An elementwise bijection and a law act on each dimension independently, so :math:`M` operations with one-dimensional
    bijections are one operation with an :math:`M`-dimensional bijection, built by
    :meth:`~abelnet.bijections.base.Elementwise.stacked`.

    Arguments:
        operations: Operations with one-dimensional bijections of one class, all with the same law.

    Example:
        >>> from abelnet import AbelianGroup, Monotonic
        >>> operations = [AbelianGroup(Monotonic(1, groups, 3, seed=groups)) for groups in (2, 5)]
        >>> stack = OperationStack(operations)
        >>> x, mask = torch.randn(2, 7, 4), torch.ones(2, 7, 4, dtype=torch.bool)
        >>> torch.allclose(stack(x, mask)[1], operations[1].reduce(x[1, ..., None])[:, 0], atol=1e-5)
        True
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__()
        bijections = _curves(operations)
        if len({type(one) for one in bijections}) != 1:
            names = sorted({type(one).__name__ for one in bijections})
            raise AbelnetError(f"operations: expected bijections of one class, got {', '.join(names) or 'none'}")
        laws = {operation.law.name for operation in operations}
        if len(laws) != 1 or operations[0].law.state_dict():
            raise AbelnetError(f"operations: expected one law without coefficients, got {', '.join(sorted(laws))}")
        self.bijection, self.law = type(bijections[0]).stacked(bijections), operations[0].law

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Aggregates multisets of numbers :math:`(M, B, n)`, with a mask of the same shape, to :math:`(M, B)`."""
        return fold_side_by_side(self.bijection, self.law, values, mask)

    def select(self, mask: Tensor) -> None:
        self.bijection.select(mask)

    def unstack(self, models: Sequence[Operation]) -> None:
        self.bijection.unstack(_curves(models))


def _curves(operations: Sequence[Operation]) -> list[Elementwise]:
    """Returns the bijections, each a single curve."""
    curves = []
    for operation in operations:
        bijection = operation.bijection
        if not isinstance(bijection, Elementwise) or bijection.dim != 1:
            raise AbelnetError(f"operations: expected elementwise bijections of one dimension, got {bijection}")
        curves.append(bijection)
    return curves


def fold_side_by_side(bijection: Bijection, law: Law, values: Tensor, mask: Tensor) -> Tensor:
    """Aggregates multisets :math:`(M, B, n)`, with a mask of the same shape, each of :math:`M` in its own dimension."""
    mask = mask.permute(1, 2, 0)
    u = bijection(torch.where(mask, values.permute(1, 2, 0), 0))
    identity = law.identity(len(values))
    if identity is None:
        raise AbelnetError(f"law: expected one with an identity for padding, got {law.name}")
    u = torch.where(mask, u, identity.to(u))
    folded = law.lower(law.gather(law.lift(u)), u.dtype)
    result: Tensor = bijection.inverse(folded)
    return result.t()
