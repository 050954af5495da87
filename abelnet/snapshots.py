"""Snapshots of parameters, which tell whether a running state still belongs to the parameters it was computed with."""

from __future__ import annotations

__all__ = ["Snapshot", "bytes_of", "has_same_bits", "named_tensors"]

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from abelnet.errors import AbelnetError


class Snapshot:
    """Parameters and buffers of modules as they are now, to notice when they change.

    Arguments:
        modules: The modules.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> snapshot = Snapshot(layer)
        >>> snapshot.check("window")
        >>> with torch.no_grad():
        ...     _ = layer.bias.add_(1)
        >>> snapshot.check("window")
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: window: expected the parameters it was created with, got a different Linear.bias;
        create a new one with operation.window() after training
    """

    def __init__(self, *modules: nn.Module) -> None:
        self._modules = modules
        self._records = _record(modules)

    def check(self, owner: str) -> torch.device | None:
        """Raises if a parameter has changed; ``owner`` is the method of operations that made the running state.

        Returns:
            The device of the parameters if they are in other memory than before, as after ``.to(device)``; else None.
        """
        tensors = named_tensors(*self._modules)
        if all(record.is_of(tensors.get(name)) for name, record in self._records.items()):
            return None
        for name, record in self._records.items():
            if not record.holds(tensors.get(name)):
                raise AbelnetError(
                    f"{owner}: expected the parameters it was created with, got a different {name}; create a new "
                    f"one with operation.{owner}() after training"
                )
        self._records = _record(self._modules)
        return next(iter(tensors.values())).device


@dataclass(frozen=True)
class _Record:
    """Snapshot of a tensor: an alias, which keeps its memory from being reused, and its version."""

    alias: Tensor
    version: int

    def is_of(self, tensor: Tensor | None) -> bool:
        """Whether this is the same memory, unmodified since."""
        return (
            tensor is not None
            and tensor.data_ptr() == self.alias.data_ptr()
            and tensor.dtype == self.alias.dtype
            and tensor.shape == self.alias.shape
            and _version(tensor) == self.version
        )

    def holds(self, tensor: Tensor | None) -> bool:
        """Whether the tensor has the same bits, possibly in other memory."""
        return tensor is not None and _version(self.alias) == self.version and has_same_bits(self.alias, tensor)


def _record(modules: tuple[nn.Module, ...]) -> dict[str, _Record]:
    return {name: _Record(x.detach(), _version(x)) for name, x in named_tensors(*modules).items()}


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def named_tensors(*modules: nn.Module) -> dict[str, Tensor]:
    """Returns parameters and buffers of modules by class and name, such as ``Affine.shift``."""
    return {
        f"{type(module).__name__}.{name}": tensor
        for module in modules
        for name, tensor in (*module.named_parameters(), *module.named_buffers())
    }


def has_same_bits(x: Tensor, y: Tensor) -> bool:
    """Returns whether two tensors are equal in shape, dtype and every bit."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    return torch.equal(bytes_of(x), bytes_of(y))


def bytes_of(x: Tensor) -> Tensor:
    """Returns the memory of a tensor as bytes."""
    # Cloned: an expanded tensor of one element has stride 0, counts as contiguous, and has no view as bytes.
    return x.detach().cpu().clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
