"""Configurable objects, which can be rebuilt from plain arguments."""

from __future__ import annotations

__all__ = ["Configurable", "check_arguments"]

import inspect
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST_INTEGER = 2**63 - 1


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

    def upgrade_state(self, state: dict[str, Tensor], prefix: str) -> None:
        """Translates the tensors of an earlier version, whose names start with a prefix; asked before loading."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Builds an object from the arguments returned by :meth:`config`."""
        return cls(**config)


def check_arguments(kind: type[Configurable], config: Mapping[str, Any]) -> None:
    """Raises unless arguments, read from a file, have the types that the constructor of a class declares.

    Arguments:
        kind: The class, whose constructor is fully annotated.
        config: The arguments: JSON data and configurable objects.

    Example:
        >>> from abelnet import Affine
        >>> check_arguments(Affine, {"dim": 2.5})
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: dim: expected int, got 2.5
    """
    types = get_type_hints(kind.__init__)
    for name, parameter in inspect.signature(kind.__init__).parameters.items():
        if name not in config or name not in types:
            continue
        expected = types[name]
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            expected = tuple[expected, ...]  # type: ignore[valid-type]
        if not _fits(config[name], expected):
            got = " ".join(repr(config[name]).split())  # modules are shown in many lines
            raise AbelnetError(f"{name}: expected {parameter.annotation}, got {got:.80}")


def _fits(value: Any, expected: Any) -> bool:
    """Returns whether JSON data or an object is of a type; lists stand for sequences, tuples and named tuples."""
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple and arguments[-1] is not ...:
        return _fit(value, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(_fits(part, arguments[1]) for part in value.values())
    if origin is not None:
        return isinstance(value, list) and all(_fits(part, arguments[0]) for part in value)
    if hasattr(expected, "_fields"):
        return _fit(value, tuple(get_type_hints(expected).values()))
    if expected in (None, NoneType):
        return value is None
    if expected in (int, float):
        return isinstance(value, int | expected) and not isinstance(value, bool) and not _is_huge(value)
    return expected is Any or isinstance(value, expected)


def _is_huge(value: float) -> bool:
    """Returns whether a number is an integer that neither torch nor a float can hold."""
    return isinstance(value, int) and not -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER


def _fit(values: Any, expected: tuple[Any, ...]) -> bool:
    return isinstance(values, list) and len(values) == len(expected) and all(map(_fits, values, expected))
