"""Figures, with matplotlib and without."""

from __future__ import annotations

import io
import sys

import matplotlib.image
import pytest

from abelnet.reporting.plots import Panel, draw


def test_panels_side_by_side() -> None:
    seen = []
    line = Panel("line", lambda axes: seen.append(axes.get_title()))
    images = draw({"one": [line], "two": [line, line]})  # equal titles are no trouble
    assert seen == ["line"] * 3
    one, two = (matplotlib.image.imread(io.BytesIO(images[name])) for name in ("one", "two"))
    assert two.shape[0] == one.shape[0]
    assert two.shape[1] == 2 * one.shape[1]


def test_without_matplotlib_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert draw({"one": [Panel("line", lambda axes: None)]}) == {}
