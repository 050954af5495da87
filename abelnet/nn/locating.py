r"""Robust locations of sets of rows, compiled by numba: a set stays in the cache during all rounds of reweighting.

Imported on first use, by :mod:`abelnet.nn.statistics`; see :mod:`abelnet.lanes` for how kernels are written.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["locate", "locate_gradient"]

import math

import numpy as np
from numba import njit

from abelnet.kernels import AHEAD, TINY, compiled
from abelnet.lanes import (
    LANES,
    address,
    double,
    double_zeros,
    exp2,
    fetch,
    fill,
    first,
    inverse,
    inverse_sqrt,
    item,
    load,
    maximum,
    minimum,
    single,
    size,
    store,
)

_ZERO, _ONE, _TWO, _FOUR, _HALF = (np.float32(c) for c in (0, 1, 2, 4, 0.5))
_SMALLEST = np.float32(1e-6)
_LOG2_E, _STEEP = np.float32(math.log2(math.e)), np.float32(8 * math.log2(math.e))
_MOST = np.float32(60)
# Rows whose sum is rounded to single precision; sums of more are added in double precision.
_BLOCK = 64

_inlined = njit(forceinline=True)


@_inlined
def _tanh(rest):
    """Returns tanh(4 r)."""
    t = maximum(minimum(_STEEP * rest, _MOST), -_MOST)
    return _ONE - _TWO * inverse(_ONE + exp2(t))


@_inlined
def _read(x, rows, start, stop, last, d, column, mask, mean, z):
    """Reads a set into the cache; returns the inverse of its mean deviation."""
    everything, whole = first(LANES), double_zeros()
    for begin in range(start, stop, _BLOCK):
        part = fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, stop)):
            fetch(x, item(rows, min(i + AHEAD, last)) * d + column)
            one = load(x, item(rows, i) * d + column, mask)
            store(z, (i - start) * LANES, everything, one)
            part = part + size(one - mean)
        whole = whole + double(part)
    return _ONE / (single(whole) / np.float32(max(stop - start, 1)) + _SMALLEST)


@_inlined
def _move(z, number, location, scale, tilt, width):
    """Returns the step of one round, in units of the scale, and the sum of weights."""
    everything, total, weights = first(LANES), double_zeros(), double_zeros()
    for begin in range(0, number, _BLOCK):
        part, part_weights = fill(_ZERO), fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, number)):
            # Measured from the location, so that sums lose nothing.
            rest = (load(z, i * LANES, everything) - location) * scale
            weight = exp2(tilt * _tanh(rest)) * inverse_sqrt(rest * rest + width)
            part, part_weights = part + weight * rest, part_weights + weight
        total, weights = total + double(part), weights + double(part_weights)
    weights = maximum(single(weights), TINY)
    return single(total) / weights, weights


@njit
def _locate(x, rows, ends, given, mean, scales, locations, weights, z):
    d, last, rounds = x.shape[1], len(rows) - 1, locations.shape[1]
    x, rows, given, mean, scales = address(x), address(rows), address(given), address(mean), address(scales)
    locations, weights, z = address(locations), address(weights), address(z)
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        for c in range(0, d, LANES):
            mask, place = first(d - c), s * d + c
            tilt, width = load(given, c, mask) * _LOG2_E, load(given, d + c, mask)
            location = load(mean, place, mask)
            scale = _read(x, rows, start, stop, last, d, c, mask, location, z)
            store(scales, place, mask, scale)
            for k in range(rounds):
                step, total = _move(z, stop - start, location, scale, tilt, width)
                location = location + step / scale
                store(locations, (s * rounds + k) * d + c, mask, location)
                store(weights, (s * rounds + k) * d + c, mask, total)


@compiled
def locate(x, rows, ends, given, mean, scale, locations, weights):
    """Writes the location of each set after each round, the first from its mean, and its inverse scale.

    Arguments:
        given: Rows of the tilt and of the squared width.
        scale: Inverse of the mean deviation, with shape (B, d), written.
        locations: Locations after each round, with shape (B, rounds, d), written.
        weights: Sums of weights, likewise.
    """
    z = np.empty((_longest(ends), LANES), np.float32)
    _locate(x, rows, ends, given, mean, scale, locations, weights, z)


@njit
def _longest(ends):
    longest = 0
    for s in range(len(ends) - 1):
        longest = max(longest, ends[s + 1] - ends[s])
    return longest


@_inlined
def _turn_back(z, of_z, number, before, after, scale, factor, tilt, width):
    """Adds the gradient of one round by elements; returns those by the location before, the tilt and the width."""
    everything, of_location, of_tilt, of_width = first(LANES), fill(_ZERO), fill(_ZERO), fill(_ZERO)
    for i in range(number):
        one = load(z, i * LANES, everything)
        rest, left = (one - before) * scale, (one - after) * scale
        tanh, root = _tanh(rest), inverse_sqrt(rest * rest + width)
        weight = factor * exp2(tilt * _LOG2_E * tanh) * root
        moment, square = left * weight, root * root
        change = moment * (_FOUR * tilt * (_ONE - tanh * tanh) - rest * square)
        store(of_z, i * LANES, everything, load(of_z, i * LANES, everything) + (weight + change))
        of_location = of_location - change
        of_tilt, of_width = of_tilt + moment * tanh, of_width + moment * square
    return of_location, of_tilt, of_width


@njit
def _locate_gradient(
    x, rows, ends, given, mean, scales, locations, weights, gradient, of_mean, result, of_given, z, of_z
):
    d, last, rounds, everything = x.shape[1], len(rows) - 1, locations.shape[1], first(LANES)
    x, rows, given, mean, scales = address(x), address(rows), address(given), address(mean), address(scales)
    locations, weights, gradient, of_mean = address(locations), address(weights), address(gradient), address(of_mean)
    result, of_given, z, of_z = address(result), address(of_given), address(z), address(of_z)
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        for c in range(0, d, LANES):
            mask, place = first(d - c), s * d + c
            tilt, width, center = load(given, c, mask), load(given, d + c, mask), load(mean, place, mask)
            scale, g = load(scales, place, mask), load(gradient, place, mask)
            _read(x, rows, start, stop, last, d, c, mask, center, z)
            for i in range(stop - start):
                store(of_z, i * LANES, everything, fill(_ZERO))
            by_tilt, by_width = fill(_ZERO), fill(_ZERO)
            for k in range(rounds - 1, -1, -1):
                at = (s * rounds + k) * d + c
                after, factor = load(locations, at, mask), g / load(weights, at, mask)
                before = center
                if k > 0:
                    before = load(locations, at - d, mask)
                g, of_tilt, of_width = _turn_back(z, of_z, stop - start, before, after, scale, factor, tilt, width)
                by_tilt, by_width = by_tilt + of_tilt, by_width + of_width
            store(of_mean, place, mask, g)
            for i in range(start, stop):
                store(result, item(rows, i) * d + c, mask, load(of_z, (i - start) * LANES, everything))
            store(of_given, c, mask, load(of_given, c, mask) + double(by_tilt / scale))
            store(of_given, d + c, mask, load(of_given, d + c, mask) - double(by_width * _HALF / scale))


@compiled
def locate_gradient(x, rows, ends, given, mean, scale, locations, weights, gradient, of_mean, result, of_given):
    """Writes gradients by the rows and by the mean, and adds those by what is given; the scale counts as constant."""
    z, of_z = np.empty((_longest(ends), LANES), np.float32), np.empty((_longest(ends), LANES), np.float32)
    _locate_gradient(
        x, rows, ends, given, mean, scale, locations, weights, gradient, of_mean, result, of_given, z, of_z
    )
