"""Input of users as arrays: what is no number is refused, not converted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from abelnet import AbelnetError
from abelnet.arrays import read_results, read_sets

DATES = np.array([["2024-01-01", "2024-01-02"]], dtype="datetime64[D]")
MASKED = np.ma.masked_array([[1, 2], [3, 4]], [[False, False], [False, True]])


@pytest.mark.parametrize(
    "X",
    [
        DATES,
        [DATES[0]],
        DATES - DATES[0, 0],
        np.array([[1 + 2j]]),
        [[1 + 2j]],
        [["1", "2"]],
        np.array([["1"]]),
        [[b"1"]],
        [["1", None]],
        np.array([[1, "2"]], dtype=object),
        np.array([[1, DATES[0, 0] - DATES[0, 1]]], dtype=object),
    ],
    ids=[
        *("dates", "list of dates", "durations", "complex", "list of complex", "text", "array of text", "bytes"),
        *("text and none", "objects with text", "objects with durations"),
    ],
)
def test_no_numbers(X: Any) -> None:
    with pytest.raises(AbelnetError, match="X: expected numbers, got"):
        read_sets(X)


@pytest.mark.parametrize(
    "X", [[[1, 2], [3]], [[True, 2], [3]], [np.float32([1, 2]), [3]], np.array([[1, 2], [3, None]]), MASKED]
)
def test_numbers(X: Any) -> None:
    values, ptr = read_sets(X)
    assert values.dtype == np.float64
    assert (values[:, 0].tolist(), ptr.tolist()) == ([1.0, 2.0, 3.0], [0, 2, 3])


def test_results_that_are_not_finite_are_named() -> None:
    with pytest.raises(
        AbelnetError, match="y: expected finite numbers, got 2 that are missing or infinite, first of set 1"
    ):
        read_results([1.0, np.inf, np.nan], 3, 1)
    with pytest.raises(AbelnetError, match="y: expected numbers, got"):
        read_results(DATES[0], 2, 1)


def test_masked_numbers_are_missing() -> None:
    with pytest.raises(AbelnetError, match="got 1 that are missing or infinite, first of set 1"):
        read_results(MASKED[1][::-1][[1, 0]], 2, 1)
    assert np.isnan(read_sets([MASKED[0], MASKED[1]])[0][-1])
