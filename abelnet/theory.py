"""What the theorems promise, measured: how far an operation is from its laws."""

from __future__ import annotations

__all__ = ["Defect", "LawDefects", "law_defects"]

from dataclasses import dataclass

import torch
from torch import Tensor

from abelnet.errors import AbelnetError, check_values
from abelnet.operation import Operation


@dataclass(frozen=True)
class Defect:
    """The largest difference between two sides of a law, and its ratio to the largest entry that took part."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class LawDefects:
    """The largest defect of each law over all samples; None where the operation does not claim the law."""

    associativity: Defect
    commutativity: Defect
    round_trip: Defect
    identity: Defect | None
    inverse: Defect | None

    def __str__(self) -> str:
        lines = [f"{'law':<14} {'absolute':>10} {'relative':>10}"]
        for name, defect in vars(self).items():
            numbers = f"{defect.absolute:10.2e} {defect.relative:10.2e}" if defect else f"{'–':>10} {'–':>10}"
            lines.append(f"{name.replace('_', ' '):<14} {numbers}")
        return "\n".join(lines)


@torch.no_grad()
def law_defects(operation: Operation, samples: Tensor) -> LawDefects:
    r"""Measures how far an operation is from each of its laws, over triples of samples.

    The laws hold exactly in exact arithmetic; what is measured is rounding. The relative defect of a row is its largest
    absolute difference over the largest entry of everything that entered or left the operation there.

    Arguments:
        operation: The operation :math:`\circ`.
        samples: Elements to try, with shape :math:`(n, d)`.

    Example:
        >>> from abelnet import AbelianGroup, Monotonic
        >>> group = AbelianGroup(Monotonic(1, seed=0, dtype=torch.float64))
        >>> defects = law_defects(group, torch.randn(100, 1, dtype=torch.float64))
        >>> defects.associativity.relative < 1e-12
        True
    """
    check_values("samples", samples, operation.dim)
    if samples.ndim != 2 or len(samples) == 0:
        raise AbelnetError(f"samples: expected shape (n, {operation.dim}) with n > 0, got {tuple(samples.shape)}")
    x, y, z = samples, samples.roll(1, 0), samples.roll(2, 0)
    xy, yz = operation(x, y), operation(y, z)
    identity = inverse = None
    if operation.law.identity(operation.dim) is not None:
        e = operation.identity().expand_as(x)
        identity = _defect(operation(x, e), x, e)
        if operation.is_group:
            opposite = operation.inverse(x)
            inverse = _defect(operation(x, opposite), e, x, opposite)
    return LawDefects(
        associativity=_defect(operation(xy, z), operation(x, yz), x, y, z, xy, yz),
        commutativity=_defect(xy, operation(y, x), x, y),
        round_trip=_defect(operation.bijection.inverse(operation.bijection(x)), x),
        identity=identity,
        inverse=inverse,
    )


def _defect(left: Tensor, right: Tensor, *others: Tensor) -> Defect:
    difference = (left - right).abs().amax(-1)
    scale = torch.stack([part.abs().amax(-1) for part in (left, right, *others)]).amax(0)
    relative = difference / scale.clamp(min=torch.finfo(scale.dtype).tiny)
    return Defect(difference.max().item(), relative.max().item())
