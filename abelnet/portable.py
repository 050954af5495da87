"""Numbers and functions in a form that every exporter has, since ONNX lacks some of those of torch."""

from __future__ import annotations

__all__ = ["exact", "hypot", "next_above"]

import math

import torch
from torch import Tensor


def exact(number: float, like: Tensor) -> float | Tensor:
    """Returns a number beyond the range of float32, as a tensor while an operation is exported: ONNX would round it.

    Example:
        >>> exact(1e-150, torch.ones(1))
        1e-150
    """
    return torch.tensor(number, dtype=like.dtype, device=like.device) if torch.compiler.is_exporting() else number


def hypot(a: Tensor, b: Tensor) -> Tensor:
    """Returns :math:`\\sqrt{a^2 + b^2}`, where the squares may overflow.

    Example:
        >>> hypot(torch.tensor(3e30), torch.tensor(4e30))
        tensor(5.0000e+30)
    """
    if not torch.compiler.is_exporting():
        return torch.hypot(a, b)
    large = torch.maximum(a.abs(), b.abs())
    unit = torch.where(large > 0, large, 1)
    return large * ((a / unit).square() + (b / unit).square()).sqrt()


def next_above(x: Tensor) -> Tensor:
    """Returns the next larger number in float64, or one that is larger by a few units of rounding if it is exported.

    Example:
        >>> (next_above(torch.tensor(1.0)) - 1).item()
        2.220446049250313e-16
    """
    x = x.double()
    if not torch.compiler.is_exporting():
        return torch.nextafter(x, x.new_full((), math.inf))
    limits = torch.finfo(x.dtype)
    return x + (x.abs() * exact(2 * limits.eps, x) + exact(limits.tiny, x))
