r"""Robust locations of sets of rows, compiled by numba: a set stays in the cache during all rounds of reweighting.

Imported on first use, by :mod:`abelnet.nn.statistics`; see :mod:`abelnet.kernels` for how kernels are written.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["locate", "locate_gradient"]

import math

import numpy as np
from numba import njit

from abelnet.kernels import TINY, WIDTH, compiled, exp2, fetch

_AHEAD = 12
_ZERO, _ONE, _TWO, _FOUR = (np.float32(c) for c in (0, 1, 2, 4))
_SMALLEST = np.float32(1e-6)
_LOG2_E, _STEEP = np.float32(math.log2(math.e)), np.float32(8 * math.log2(math.e))
_MOST = np.float32(60)


@njit(inline="always")
def _tanh(rest):
    """Returns tanh(4 r)."""
    t = _STEEP * rest
    t = t if t < _MOST else _MOST
    t = t if t > -_MOST else -_MOST
    return _ONE - _TWO / (_ONE + exp2(t))


@compiled
def locate(x, rows, ends, given, mean, scale, locations, weights):
    """Writes the location of each set after each round, the first from its mean, and its inverse scale.

    Arguments:
        given: Rows of the tilt and of the squared width.
        scale: Inverse of the mean deviation, with shape (B, d), written.
        locations: Locations after each round, with shape (B, rounds, d), written.
        weights: Sums of weights, likewise.
    """
    d, last = x.shape[1], len(rows) - 1
    work = np.empty((6, WIDTH), np.float32)  # tilt, width, location, inverse scale, sum, sum of weights
    for j in range(d):
        work[0, j], work[1, j] = given[0, j], given[1, j]
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        for j in range(d):
            work[2, j] = mean[s, j]
            work[3, j] = _ZERO
        for i in range(start, stop):
            row = rows[i]
            fetch(x, rows[min(i + _AHEAD, last)])
            for j in range(d):
                work[3, j] += abs(x[row, j] - work[2, j])
        count = np.float32(max(stop - start, 1))
        for j in range(d):
            work[3, j] = _ONE / (work[3, j] / count + _SMALLEST)
            scale[s, j] = work[3, j]
        for k in range(locations.shape[1]):
            for j in range(d):
                work[4, j] = _ZERO
                work[5, j] = TINY
            for i in range(start, stop):
                row = rows[i]
                for j in range(d):
                    # Measured from the location, so that sums lose nothing.
                    rest = (x[row, j] - work[2, j]) * work[3, j]
                    weight = exp2(_LOG2_E * work[0, j] * _tanh(rest)) / np.sqrt(rest * rest + work[1, j])
                    work[4, j] += weight * rest
                    work[5, j] += weight
            for j in range(d):
                work[2, j] += work[4, j] / (work[3, j] * work[5, j])
                locations[s, k, j] = work[2, j]
            for j in range(d):
                weights[s, k, j] = work[5, j]


@compiled
def locate_gradient(x, rows, ends, given, mean, scale, locations, weights, gradient, of_mean, result, of_given):
    """Writes gradients by the rows and by the mean, and adds those by what is given; the scale counts as constant."""
    d, last = x.shape[1], len(rows) - 1
    # tilt, width, locations before and after a round, inverse scale, gradient, slope, sums by tilt and width
    work = np.empty((9, WIDTH), np.float32)
    for j in range(d):
        work[0, j], work[1, j] = given[0, j], given[1, j]
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        for j in range(d):
            work[4, j] = scale[s, j]
            work[5, j] = gradient[s, j]
            work[7, j] = work[8, j] = _ZERO
        for i in range(start, stop):
            row = rows[i]
            fetch(x, rows[min(i + _AHEAD, last)])
            fetch(result, rows[min(i + _AHEAD, last)])
            for j in range(d):
                result[row, j] = _ZERO
        for k in range(locations.shape[1] - 1, -1, -1):
            for j in range(d):
                work[2, j] = locations[s, k - 1, j] if k > 0 else mean[s, j]
                work[3, j] = locations[s, k, j]
                work[5, j] /= weights[s, k, j]
                work[6, j] = _ZERO
            for i in range(start, stop):
                row = rows[i]
                for j in range(d):
                    rest = (x[row, j] - work[2, j]) * work[4, j]
                    left = (x[row, j] - work[3, j]) * work[4, j]
                    tanh = _tanh(rest)
                    inverse = _ONE / (rest * rest + work[1, j])
                    weight = work[5, j] * exp2(_LOG2_E * work[0, j] * tanh) * np.sqrt(inverse)
                    change = left * weight * (_FOUR * work[0, j] * (_ONE - tanh * tanh) - rest * inverse)
                    result[row, j] += weight + change
                    work[6, j] -= change
                    work[7, j] += left * weight * tanh
                    work[8, j] += left * weight * inverse
            for j in range(d):
                work[5, j] = work[6, j]
        for j in range(d):
            of_mean[s, j] = work[5, j]
        for j in range(d):
            of_given[0, j] += work[7, j] / work[4, j]
        for j in range(d):
            of_given[1, j] -= work[8, j] / (_TWO * work[4, j])
