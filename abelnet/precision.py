"""Autocast: operations compute in the precision of their parameters, since an inverse of rounded numbers is none."""

from __future__ import annotations

__all__ = ["in_own_precision"]

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from abelnet.multisets import Multisets

Module = TypeVar("Module", bound=nn.Module)
Arguments = ParamSpec("Arguments")


def in_own_precision(
    method: Callable[Concatenate[Module, Arguments], Tensor],
) -> Callable[Concatenate[Module, Arguments], Tensor]:
    """Turns autocast off within a method: elements are converted to the dtype of parameters, and the result back.

    Example:
        >>> from abelnet import AbelianGroup, glow
        >>> group = AbelianGroup(glow(2, layers=1, hidden=8, seed=0))
        >>> x = torch.randn(5, 2)
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     torch.equal(group(x, x), group.reduce(torch.stack((x, x), 1))), group(x.bfloat16(), x.bfloat16()).dtype
        (True, torch.bfloat16)
    """

    @wraps(method)
    def wrapped(self: Module, *arguments: Arguments.args, **named: Arguments.kwargs) -> Tensor:
        first = _tensor(arguments[0] if arguments else next(iter(named.values()), None))
        if first is None or first.is_meta or not torch.is_autocast_enabled(first.device.type):
            return method(self, *arguments, **named)
        like = next(self.parameters(), None)
        dtype = torch.promote_types(first.dtype, torch.float32) if like is None else like.dtype
        with torch.autocast(first.device.type, enabled=False):
            cast: Any = [_converted(one, dtype) for one in arguments]
            cast_named: Any = {name: _converted(one, dtype) for name, one in named.items()}
            return method(self, *cast, **cast_named).to(first.dtype)

    return wrapped  # type: ignore[return-value]  # the name of its first argument


def _tensor(values: Any) -> Tensor | None:
    """Returns the tensor, or one of the tensors, that an argument consists of; None if it is something else."""
    if isinstance(values, Multisets):
        return values.values
    if isinstance(values, list | tuple) and values:
        return _tensor(values[0])
    return values if isinstance(values, Tensor) else None


def _converted(values: Any, dtype: torch.dtype) -> Any:
    """Returns elements in a dtype; integers, masks and what is no tensor remain."""
    if isinstance(values, Multisets):
        return values.cast(dtype)
    if isinstance(values, list | tuple):
        return [_converted(one, dtype) for one in values]
    return values.to(dtype) if isinstance(values, Tensor) and values.is_floating_point() else values
