"""Tasks: what a request may say."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from abelnet.errors import AbelnetError
from abelnet.explore.server import Explorer
from abelnet.explore.tasks import TASKS, Arguments, run_task


def test_every_task_has_a_function_and_a_worker() -> None:
    with Explorer() as explorer:
        for task in TASKS.values():
            assert callable(getattr(import_module(f"abelnet.explore.{task.module}"), task.function))
            assert task.worker in explorer.workers


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 200_000, b'{"a": 1', "é".encode("latin-1")])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(AbelnetError, match="request: expected JSON"):
        run_task("inspect", body, print)


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"text"'])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(AbelnetError, match="request: expected an object"):
        run_task("inspect", body, print)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, lambda own: own.text("a")),
        ({"a": 1}, lambda own: own.text("a")),
        ({"a": "b"}, lambda own: own.texts("a")),
        ({"a": ["b", 1]}, lambda own: own.texts("a")),
        ({"a": True}, lambda own: own.number("a", 0, 5)),
        ({"a": 6}, lambda own: own.number("a", 0, 5)),
        ({"a": 2.5}, lambda own: own.number("a", 0, 5)),
        ({}, lambda own: own.number("a", 0, 5)),
        ({"a": "yes"}, lambda own: own.flag("a")),
    ],
)
def test_wrong_arguments_are_named(given: dict[str, Any], read: Any) -> None:
    with pytest.raises(AbelnetError, match=r"^a: expected"):
        read(Arguments(given))


def test_right_arguments() -> None:
    own = Arguments({"a": "b", "c": ["d"], "e": 5, "f": True})
    assert (own.text("a"), own.texts("c"), own.number("e", 0, 5), own.flag("f")) == ("b", ["d"], 5, True)
    assert (own.text("x", "y"), own.texts("x"), own.flag("x")) == ("y", [], False)
