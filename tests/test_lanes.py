"""Sixteen numbers at a time: the arithmetic of numpy, in any number of lanes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")
from abelnet import lanes
from abelnet.kernels import compiled

EPSILON = np.finfo(np.float32).eps


@compiled
def functions(t, x, results):  # type: ignore[no-untyped-def]
    n = len(t)
    t, x, out = lanes.address(t), lanes.address(x), lanes.address(results)
    for i in range(0, n, lanes.LANES):
        mask = lanes.first(n - i)
        one = lanes.load(x, i, mask)
        lanes.store(out, i, mask, lanes.exp2(lanes.load(t, i, mask)))
        lanes.store(out, n + i, mask, lanes.log2(one))
        lanes.store(out, 2 * n + i, mask, lanes.inverse(one))
        lanes.store(out, 3 * n + i, mask, lanes.inverse_sqrt(one))
        lanes.store(out, 4 * n + i, mask, lanes.single(lanes.sqrt(lanes.double(one))))


@compiled
def choices(a, b, results):  # type: ignore[no-untyped-def]
    n = len(a)
    a, b, out = lanes.address(a), lanes.address(b), lanes.address(results)
    for i in range(0, n, lanes.LANES):
        mask = lanes.first(n - i)
        x, y = lanes.load(a, i, mask), lanes.load(b, i, mask)
        lanes.store(out, i, mask, lanes.maximum(x, y) + 2.0 * lanes.minimum(x, y) - x / 4.0)
        both = (x < y) & (lanes.size(x) >= 0.5)
        lanes.store(out, n + i, mask, lanes.where(both | (x != x), x, 7.0))
        lanes.put(out, 2 * n + i, 1.0 if lanes.any_of(mask & (x == y)) else 0.0)


def test_functions_are_precise() -> None:
    t = np.linspace(-125, 126, 100_001, dtype=np.float32)
    x = np.exp2(np.linspace(-125, 125, 100_001)).astype(np.float32)
    results = np.empty((5, len(t)), np.float32)
    functions(t, x, results)
    powers, logs, *others = results.astype(np.float64)
    exact = x.astype(np.float64)
    assert np.max(np.abs(powers / np.exp2(t.astype(np.float64)) - 1)) < 2 * EPSILON
    assert np.max(np.abs(logs - np.log2(exact)) / np.maximum(1, np.abs(logs))) < 2 * EPSILON
    for found, expected in zip(others, (1 / exact, exact**-0.5, exact**0.5), strict=True):
        assert np.max(np.abs(found / expected - 1)) < 4 * EPSILON


def test_powers_vanish_and_nan_stays() -> None:
    results = np.empty((5, 3), np.float32)
    functions(np.array([-1e30, 0, np.nan], np.float32), np.ones(3, np.float32), results)
    assert results[0, 0] == np.float32(2.0**-126)
    assert results[0, 1] == 1
    assert np.isnan(results[0, 2])


@pytest.mark.parametrize("n", [1, 15, 16, 17, 40])
def test_choices_and_tails(n: int) -> None:
    generator = np.random.default_rng(n)
    a, b = generator.normal(size=(2, n)).astype(np.float32)
    b[n // 2] = a[n // 2]
    results = np.full((3, n + 16), 5, np.float32)
    choices(a, b, results.reshape(-1)[: 3 * n].reshape(3, n))
    flat = results.reshape(-1)
    np.testing.assert_allclose(flat[:n], np.maximum(a, b) + 2 * np.minimum(a, b) - a / 4, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(flat[n : 2 * n], np.where((a < b) & (abs(a) >= 0.5), a, 7))
    assert flat[2 * n + n // 2 // 16 * 16] == 1
    np.testing.assert_array_equal(flat[3 * n :], 5)  # nothing is written beyond the last
