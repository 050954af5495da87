"""Input validation: each check raises :class:`~abelnet.AbelnetError` before anything is computed.

Types and shapes are always checked, at no cost. Checks of values wait for the device: :class:`set_checks_enabled` turns
them off.
"""

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
    "is_checking",
    "peek",
    "set_checks_enabled",
]

import math
import numbers
import operator
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.errors import AbelnetError

_ENABLED: ContextVar[bool] = ContextVar("abelnet_checks", default=True)


class set_checks_enabled:
    """Turns checks of values on or off: from here on as a function, within a block as a context manager.

    With checks off, values are not inspected: not for NaN, for entries of ``index`` and ``ptr`` out of range, for
    elements outside the domain of a bijection, or for empty sets without an identity. On a GPU, aggregation by
    ``index`` with ``dim_size`` then never waits for the device; the result of invalid values is undefined. Types and
    shapes are checked regardless, and so are files that are loaded. Like ``torch.set_grad_enabled``, it applies to the
    current thread (or asynchronous task) only. Values are never inspected under ``torch.compile``.

    Arguments:
        enabled: Whether values are checked; they are by default.

    Example:
        >>> from abelnet import AbelianGroup, Affine
        >>> x = torch.tensor([[1.0], [float("nan")]])
        >>> with set_checks_enabled(False):
        ...     AbelianGroup(Affine(1)).reduce(x).item()
        nan
        >>> AbelianGroup(Affine(1)).reduce(x)
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: values: expected finite values, got 1 of 2 that are NaN
    """

    def __init__(self, enabled: bool) -> None:
        self._before = _ENABLED.get()
        _ENABLED.set(bool(enabled))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _ENABLED.set(self._before)


def is_checking() -> bool:
    """Whether values are checked: unless checks are turned off, or values are not available under tracing."""
    return not torch.compiler.is_compiling() and _ENABLED.get()


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
    """Raises if ``x`` contains NaN or infinity."""
    if not is_checking():
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
    """Raises unless all entries are from 0 to ``count - 1``."""
    if not is_checking() or index.numel() == 0:
        return
    low, high = torch.aminmax(index)
    if peek((low < 0) | (high >= count), False):
        raise AbelnetError(f"{name}: expected entries from 0 to {count - 1}, got {int(low)} to {int(high)}")


def peek(x: Tensor, default: Any) -> Any:
    """Returns the value of a one-element tensor, or ``default`` if it is not available (compile, export, vmap)."""
    if torch.compiler.is_compiling():
        return default
    try:
        return x.item()
    except RuntimeError:
        return default
