"""Configurable objects, which can be rebuilt from plain arguments."""

from __future__ import annotations

__all__ = ["Configurable"]

from collections.abc import Mapping
from typing import Any, Self

from abelnet.errors import AbelnetError


class Configurable:
    """Object that :func:`abelnet.save` can write: it provides the arguments that rebuild it.

    Arguments are JSON data (numbers, strings, booleans, None, lists, dictionaries) and other configurable objects.
    Parameters and buffers of a module are saved separately and are not part of them.
    """

    def config(self) -> dict[str, Any]:
        """Returns the arguments that rebuild this object."""
        raise AbelnetError(f"config: expected {type(self).__name__} to define config(), the arguments that rebuild it")

    def check_state(self) -> None:
        """Raises if parameters or buffers have values that no object of this class can have; asked after loading."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Builds an object from the arguments returned by :meth:`config`."""
        return cls(**config)
