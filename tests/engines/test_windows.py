from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from cases import VECTOR_CASES, vectors

import abelnet
from abelnet import AbelianGroup, AbelnetError, Generator, Operation
from abelnet.engines.windows import rolling

F64 = torch.float64


@pytest.fixture
def total() -> Operation:
    return Operation(Generator(1, "affine", dtype=F64), abelnet.Sum())


@pytest.fixture
def series() -> pd.Series:
    """Numbers at irregular times, some of them equal, and some numbers missing."""
    generator = np.random.default_rng(0)
    hours = np.sort(generator.integers(0, 24 * 60, 200))
    numbers = pd.Series(generator.normal(size=200), pd.Timestamp("2026-03-01") + pd.to_timedelta(hours, "h"), name="x")
    numbers[generator.random(200) < 0.2] = math.nan
    return numbers


@pytest.mark.parametrize("window", [1, 5, 100, "7h", "2D", "90D", pd.Timedelta(hours=30)])
@pytest.mark.parametrize("min_periods", [None, 0, 1])
def test_sums_maxima_and_means_are_those_of_pandas(series: pd.Series, window: Any, min_periods: int | None) -> None:
    theirs = series.rolling(window, min_periods=min_periods)
    for law, expected in (
        (abelnet.Sum(), theirs.sum()),
        (abelnet.Maximum(), theirs.max()),
        (abelnet.Mean(), theirs.mean()),
    ):
        found = rolling(Operation(Generator(1, "affine", dtype=F64), law), series, window, min_periods=min_periods)
        pd.testing.assert_series_equal(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("closed", ["right", "both", "left", "neither"])
def test_ends_of_windows_are_those_of_pandas(series: pd.Series, total: Operation, closed: str) -> None:
    expected = series.rolling("2D", closed=closed).sum()
    pd.testing.assert_series_equal(rolling(total, series, "2D", closed=closed), expected, atol=1e-12)


def test_columns_are_coordinates_or_sequences_of_their_own(series: pd.Series, total: Operation) -> None:
    frame = pd.DataFrame({"a": series, "b": 2 * series.shift(1), "c": range(200)})
    pd.testing.assert_frame_equal(rolling(total, frame, 7), frame.rolling(7).sum(), atol=1e-12)
    center = AbelianGroup(VECTOR_CASES["center_of_mass"][0](F64))
    masses = pd.DataFrame(vectors("center_of_mass", 50).numpy(), columns=["m", "x"])
    found, weights = rolling(center, masses, 5), masses["m"].rolling(5).sum()
    expected = pd.DataFrame({"m": weights, "x": (masses["m"] * masses["x"]).rolling(5).sum() / weights})
    pd.testing.assert_frame_equal(found, expected)


def test_other_indexes_and_dtypes(total: Operation) -> None:
    numbers = pd.Series([1, 2, 4], index=pd.to_timedelta([0, 1, 5], "s"), dtype="Int64")
    assert rolling(total, numbers, "2s").tolist() == [1.0, 3.0, 4.0]
    numbers = pd.Series([True, False, True], index=pd.period_range("2026-03-01", periods=3, freq="D"))
    assert rolling(total, numbers, "2D").tolist() == [1.0, 1.0, 1.0]
    numbers = pd.Series([1, None, 4], dtype="Int64")
    assert rolling(total, numbers, 2, min_periods=1).tolist() == [1.0, 1.0, 4.0]
    assert rolling(AbelianGroup(abelnet.Affine(1)), numbers, 1).dtype == np.float32  # as the parameters are
    assert rolling(total, numbers[:0].astype(float), 3).empty


@pytest.mark.parametrize(
    ("data", "window", "message"),
    [
        (pd.Series([1.0]), "7D", "data: expected an index of times for the window '7D', got RangeIndex"),
        (pd.Series([1.0]), "seven", "window: expected a number of rows or a length of time"),
        (pd.Series([1.0]), 2.5j, "window: expected a number of rows or a length of time"),
        (pd.Series(["a"]), 2, "data: expected columns of numbers, got .* in 0"),
        (pd.Series([1.0], index=pd.DatetimeIndex([None])), "1D", "data: expected an index of times without missing"),
        (pd.Series([1.0, 2.0], index=pd.to_datetime(["2026-03-02", "2026-03-01"])), "1D", "times: .* ascending order"),
    ],
)
def test_misuse(total: Operation, data: pd.Series, window: Any, message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        rolling(total, data, window)


def test_columns_are_as_many_as_coordinates() -> None:
    center = AbelianGroup(VECTOR_CASES["center_of_mass"][0](F64))
    with pytest.raises(AbelnetError, match="data: expected 2 columns, as the operation has, got 1"):
        rolling(center, pd.Series([1.0]), 2)
