"""Types of arguments that are read from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pytest

from abelnet import AbelnetError, Affine, Chain
from abelnet.config import Configurable, check_arguments


class Row(NamedTuple):
    name: str
    size: float


class Example(Configurable):
    def __init__(
        self,
        *parts: Affine,
        count: int = 0,
        size: float = 0.0,
        flag: bool = False,
        kind: Literal["a", "b"] = "a",
        near: Sequence[float] | None = None,
        ends: tuple[float, int] = (0.0, 0),
        row: Row | None = None,
        sizes: Mapping[str, float] | None = None,
        anything: Any = None,
    ) -> None:
        pass


RIGHT: list[tuple[str, Any]] = [
    *(("count", value) for value in (0, -(2**63) + 1, 2**63 - 1)),
    *(("size", value) for value in (0, 0.5, float("nan"), float("inf"))),
    *(("flag", value) for value in (True, False)),
    *(("near", value) for value in (None, [], [1, 2.5])),
    *(("row", value) for value in (None, ["x", 1], ["x", 0.5])),
    *(("sizes", value) for value in (None, {}, {"x": 1})),
    *(("anything", value) for value in (None, 10**400, [[]])),
    *(("parts", value) for value in ([], [Affine(1)])),
    ("kind", "b"),
    ("ends", [1, 2]),
    ("unknown", 1),
]
WRONG: list[tuple[str, Any]] = [
    *(("count", value) for value in (True, 1.0, "1", None, [1], 2**63, 10**400)),
    *(("size", value) for value in (True, "0", None, [0.5], {}, 10**400)),
    *(("flag", value) for value in (0, 1, "true", None)),
    *(("near", value) for value in (1.0, "12", [None], ["1"], {"x": 1}, [10**400])),
    *(("row", value) for value in ([], ["x"], ["x", "y"], ["x", 1, 2], {"name": "x", "size": 1}, "xy")),
    *(("sizes", value) for value in ([], {"x": None}, {"x": "1"}, "x")),
    *(("parts", value) for value in (Affine(1), [Chain(Affine(1))], [1], "x", None)),
    ("kind", "c"),
    ("kind", []),
    ("ends", [1, 2.5]),
    ("ends", [1]),
    ("ends", 1),
]


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_right_types(name: str, value: Any) -> None:
    check_arguments(Example, {name: value})


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_types(name: str, value: Any) -> None:
    with pytest.raises(AbelnetError, match=rf"^{name}: expected [^\n]+, got [^\n]+$"):
        check_arguments(Example, {name: value})
