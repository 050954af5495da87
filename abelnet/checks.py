"""Input validation: each check raises :class:`~abelnet.AbelnetError` before anything is computed."""

from __future__ import annotations

__all__ = [
    "check_count",
    "check_dtype",
    "check_finite",
    "check_integers",
    "check_number",
    "check_one_dtype",
    "check_range",
    "check_values",
    "peek",
]

import math
import numbers
import operator
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.errors import AbelnetError


def check_count(name: str, n: Any, least: int = 1) -> int:
    """Returns ``n`` as an int; raises unless it is an integer of at least ``least``."""
    try:
        count = operator.index(n)
    except TypeError:
        raise AbelnetError(f"{name}: expected an integer, got {n!r}") from None
    if count < least:
        raise AbelnetError(f"{name}: expected at least {least}, got {count}")
    return count


def check_number(
    name: str,
    x: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> None:
    """Raises unless ``x`` is a finite real number within the limits that are given.

    Example:
        >>> check_number("lr", 0.0, above=0)
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: lr: expected a number above 0, got 0.0
    """
    limits = {"above": (above, operator.gt), "at least": (least, operator.ge)}
    limits |= {"below": (below, operator.lt), "at most": (most, operator.le)}
    given = {word: (limit, holds) for word, (limit, holds) in limits.items() if limit is not None}
    if not (
        isinstance(x, numbers.Real) and math.isfinite(x) and all(holds(x, limit) for limit, holds in given.values())
    ):
        words = " and ".join(f"{word} {limit}" for word, (limit, _) in given.items())
        raise AbelnetError(f"{name}: expected a number {words}, got {x!r}")


def check_dtype(name: str, x: Tensor, module: nn.Module) -> None:
    """Raises unless ``x`` has the dtype and device of the module's parameters."""
    parameter = next(module.parameters(), x)
    if x.device != parameter.device:
        raise AbelnetError(f"{name}: expected device {parameter.device} as the parameters are, got {x.device}")
    if x.dtype != parameter.dtype and not torch.is_autocast_enabled(x.device.type):
        raise AbelnetError(
            f"{name}: expected {parameter.dtype} as the parameters are, got {x.dtype}; "
            f"convert the values, or the operation with .to({x.dtype})"
        )


def check_one_dtype(name: str, module: nn.Module) -> None:
    """Raises unless all parameters of a module have one dtype."""
    dtypes = sorted({str(parameter.dtype) for parameter in module.parameters()})
    if len(dtypes) > 1:
        raise AbelnetError(f"{name}: expected parameters of one dtype, got {' and '.join(dtypes)}")


def check_values(name: str, x: Any, dim: int) -> None:
    """Raises unless ``x`` is a floating-point tensor of shape :math:`(*, d)`; values are not inspected."""
    if not isinstance(x, Tensor):
        raise AbelnetError(f"{name}: expected a torch.Tensor of shape (*, {dim}), got {type(x).__name__}")
    if not x.is_floating_point():
        raise AbelnetError(f"{name}: expected a floating-point tensor, got {x.dtype}; convert it with .float()")
    if x.ndim == 0 or x.shape[-1] != dim:
        raise AbelnetError(f"{name}: expected shape (*, {dim}), got {tuple(x.shape)}")


def check_finite(name: str, x: Tensor) -> None:
    """Raises if ``x`` contains NaN or infinity. Passes under tracing, where values are not available."""
    if torch.compiler.is_compiling():
        return
    x = x.detach()
    # One NaN or infinity makes the sum non-finite, and a sum costs a tenth of an elementwise test; a finite tensor
    # whose sum overflows passes the second test.
    if peek(torch.isfinite(x.sum()), True) or peek(torch.isfinite(x).all(), True):
        return
    bad = int(x.numel() - torch.isfinite(x).sum())
    kinds = [kind for kind, found in (("NaN", x.isnan()), ("infinity", x.isinf())) if found.any()]
    raise AbelnetError(f"{name}: expected finite values, got {bad} of {x.numel()} that are {' or '.join(kinds)}")


def check_integers(name: str, x: Any) -> Tensor:
    """Returns ``x`` as int64; raises unless it is an integer tensor."""
    if not isinstance(x, Tensor) or x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise AbelnetError(f"{name}: expected a tensor of integers, got {getattr(x, 'dtype', type(x).__name__)}")
    return x.long()


def check_range(name: str, index: Tensor, count: int) -> None:
    """Raises unless all entries are from 0 to ``count - 1``. Passes under tracing."""
    if index.numel() == 0:
        return
    low, high = torch.aminmax(index)
    if peek(low, 0) < 0 or peek(high, 0) >= count:
        raise AbelnetError(f"{name}: expected entries from 0 to {count - 1}, got {int(low)} to {int(high)}")


def peek(x: Tensor, default: Any) -> Any:
    """Returns the value of a one-element tensor, or ``default`` if it is not available (compile, export, vmap)."""
    if torch.compiler.is_compiling():
        return default
    try:
        return x.item()
    except RuntimeError:
        return default
