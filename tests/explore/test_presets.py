"""Presets: tables of the sizes and columns that they say."""

from __future__ import annotations

import csv
import io

import pytest

from abelnet.explore.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_tables_are_the_same_at_every_call_and_complete(name: str) -> None:
    preset = PRESETS[name]
    assert preset.text == preset.text
    header, *rows = csv.reader(io.StringIO(preset.text))
    key, values, targets = preset.columns
    assert header == [key, *values, *targets]
    assert len({row[0] for row in rows}) == 60
    assert all(len(row) == len(header) and float(row[-1]) == float(row[-1]) for row in rows)
