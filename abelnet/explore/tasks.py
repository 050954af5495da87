"""Tasks of the page: which function does what, in which worker. Modules are imported on use, in the worker."""

from __future__ import annotations

__all__ = ["TASKS", "Arguments", "Task", "run_task"]

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from abelnet.errors import AbelnetError


class Task(NamedTuple):
    """A task: a function of a module of this package, and the worker that runs it.

    The function gets :class:`Arguments` and a function that reports a step, and returns what JSON can hold.
    """

    worker: str
    module: str
    function: str


TASKS = {
    "presets": Task("tables", "presets", "list_presets"),
    "inspect": Task("tables", "tables", "inspect_table"),
    "learn": Task("laws", "laws", "learn"),
    "predict": Task("laws", "laws", "predict"),
    "analogies": Task("analogies", "analogies", "answer"),
    "multisets": Task("multisets", "multisets", "compare"),
}
"""Tasks by name."""


class Arguments:
    """Arguments of a task, as a request has them.

    Arguments:
        given: The object in the body of the request.

    Example:
        >>> Arguments({"size": "many"}).number("size", 2, 1000)
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: size: expected an integer from 2 to 1000, got 'many'
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a text."""
        found = self._given.get(name, default)
        if not isinstance(found, str):
            raise AbelnetError(f"{name}: expected a text, got {found!r:.80}")
        return found

    def texts(self, name: str) -> list[str]:
        """Returns a list of texts."""
        found = self._given.get(name, [])
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise AbelnetError(f"{name}: expected a list of texts, got {found!r:.80}")
        return found

    def number(self, name: str, least: int, most: int) -> int:
        """Returns an integer within limits."""
        found = self._given.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise AbelnetError(f"{name}: expected an integer from {least} to {most}, got {found!r:.80}")
        return found

    def flag(self, name: str) -> bool:
        """Returns a boolean, False if it is not given."""
        found = self._given.get(name, False)
        if not isinstance(found, bool):
            raise AbelnetError(f"{name}: expected true or false, got {found!r:.80}")
        return found


def run_task(name: str, body: bytes, say: Callable[[str], None]) -> Any:
    """Runs a task in this process.

    Arguments:
        name: Key of :data:`TASKS`.
        body: An object with its arguments, as JSON.
        say: Called with a description of each step.

    Example:
        >>> body = b'{"text": "a,b,sum\\\\n1,2,3\\\\n"}'
        >>> run_task("inspect", body, print)["columns"]
        ['a', 'b', 'sum']
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise AbelnetError(f"request: expected JSON in UTF-8, got: {' '.join(str(error).split()):.200}") from None
    if not isinstance(given, dict):
        raise AbelnetError(f"request: expected an object, got {type(given).__name__}")
    task = TASKS[name]
    function = getattr(import_module(f"abelnet.explore.{task.module}"), task.function)
    return function(Arguments(given), say)
