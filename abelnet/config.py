"""What an object is made of, as plain arguments that rebuild it."""

from __future__ import annotations

__all__ = ["Configurable"]

from collections.abc import Mapping
from typing import Any, Self

from abelnet.errors import AbelnetError


class Configurable:
    """An object that :func:`abelnet.save` can write: it owns the arguments that rebuild it.

    Arguments are JSON data (numbers, text, booleans, None, lists, dictionaries) and other configurable objects. What a
    module learns, its parameters and buffers, is saved beside them and is not part of them.
    """

    def config(self) -> dict[str, Any]:
        """Arguments that rebuild this object."""
        raise AbelnetError(f"config: expected {type(self).__name__} to define config(), the arguments that rebuild it")

    def check_state(self) -> None:
        """Raises if parameters or buffers have values that no object of this class can have; asked after loading."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """An object made of what :meth:`config` has given."""
        return cls(**config)
