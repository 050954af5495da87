r"""Small networks with one hidden layer, one per channel, compiled by numba: hidden units are never written.

Imported on first use, by :mod:`abelnet.nn.statistics`; see :mod:`abelnet.lanes` for how kernels are written. Channels
come last in all arrays, and weights and biases of the hidden layer are rows of one array, (hidden, features + 2, c):
of the features, the bias, and the weight of the result.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["bend", "bend_gradient"]

import math

import numpy as np
from numba import njit

from abelnet.kernels import buffer, compiled
from abelnet.lanes import LANES, address, exp2, fill, first, inverse, load, minimum, store

_ZERO, _ONE = np.float32(0), np.float32(1)
_MINUS_LOG2_E, _MOST = np.float32(-math.log2(math.e)), np.float32(100)
# Sets whose gradients by weights are added in single precision.
_BLOCK = 256

# Sets that are computed together, so that a weight is read once for all of them.
_GROUP = 4

_inlined = njit(forceinline=True)


@_inlined
def _copy(source, place, stride, count, mask, target):
    """Copies rows of some lanes, so that what is read again and again is whole: only that is fast."""
    everything = first(LANES)
    for k in range(count):
        store(target, k * LANES, everything, load(source, place + k * stride, mask))


@_inlined
def _read(source, begin, sets, rows, d, column, mask, target):
    """Copies rows of a group of sets, (B, rows, d) to (rows, GROUP, LANES); those beyond the last set are 0."""
    everything = first(LANES)
    for j in range(_GROUP):
        for k in range(rows):
            value = fill(_ZERO)
            if begin + j < sets:
                value = load(source, ((begin + j) * rows + k) * d + column, mask)
            store(target, (k * _GROUP + j) * LANES, everything, value)


@_inlined
def _write(source, begin, sets, rows, d, column, mask, target):
    """Copies rows of a group of sets, (rows, GROUP, LANES) to (B, rows, d)."""
    everything = first(LANES)
    for j in range(min(_GROUP, sets - begin)):
        for k in range(rows):
            value = load(source, (k * _GROUP + j) * LANES, everything)
            store(target, ((begin + j) * rows + k) * d + column, mask, value)


@_inlined
def _four(source, place):
    """Returns a row of a group of sets."""
    everything, place = first(LANES), place * _GROUP * LANES
    return (
        load(source, place, everything),
        load(source, place + LANES, everything),
        load(source, place + 2 * LANES, everything),
        load(source, place + 3 * LANES, everything),
    )


@_inlined
def _put_four(target, place, values):
    everything, place = first(LANES), place * _GROUP * LANES
    store(target, place, everything, values[0])
    store(target, place + LANES, everything, values[1])
    store(target, place + 2 * LANES, everything, values[2])
    store(target, place + 3 * LANES, everything, values[3])


@_inlined
def _add_products(totals, values, weight):
    """Returns totals to which values times a weight are added, in a group of sets."""
    return (
        totals[0] + values[0] * weight,
        totals[1] + values[1] * weight,
        totals[2] + values[2] * weight,
        totals[3] + values[3] * weight,
    )


@_inlined
def _hidden(values, weights, place, count):
    """Returns the inputs of a hidden unit in a group of sets, and their logistic functions."""
    everything = first(LANES)
    bias = load(weights, place + count * LANES, everything)
    a = bias, bias, bias, bias
    for f in range(count):
        a = _add_products(a, _four(values, f), load(weights, place + f * LANES, everything))
    return a, (_logistic(a[0]), _logistic(a[1]), _logistic(a[2]), _logistic(a[3]))


@_inlined
def _logistic(a):
    return inverse(_ONE + exp2(minimum(a * _MINUS_LOG2_E, _MOST)))


@_inlined
def _products(a, b):
    return a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]


@_inlined
def _dot(a, b):
    return (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3])


@njit
def _bend(features, weights, c, result, own, values):
    (sets, count, d), units, everything = features.shape, weights.shape[0], first(LANES)
    features, weights, result = address(features), address(weights), address(result)
    own, values = address(own), address(values)
    mask = first(d - c)
    _copy(weights, c, d, units * (count + 2), mask, own)
    for begin in range(0, sets, _GROUP):
        _read(features, begin, sets, count, d, c, mask, values)
        totals = _four(values, 0)
        for h in range(units):
            place = h * (count + 2) * LANES
            a, logistic = _hidden(values, own, place, count)
            last = load(own, place + (count + 1) * LANES, everything)
            totals = _add_products(totals, _products(a, logistic), last)
        _put_four(values, 0, totals)
        _write(values, begin, sets, 1, d, c, mask, result)


@compiled
def bend(features, weights, result):
    """Writes the first of the features (B, f, c) plus what networks add to it.

    That is the sum over hidden units of their weights times the SiLU of a linear function of features.
    """
    (_, count, d), (units, rows, _) = features.shape, weights.shape
    own, values = buffer(units * rows), buffer(count * _GROUP)
    for c in range(0, d, LANES):
        _bend(features, weights, c, result, own, values)


@_inlined
def _change(g, last, a, logistic):
    """Returns the gradient by the input of a hidden unit."""
    return g * last * logistic * (_ONE + a * (_ONE - logistic))


@_inlined
def _add(sums, place, value):
    everything = first(LANES)
    store(sums, place, everything, load(sums, place, everything) + value)


@njit
def _gradients(features, weights, c, gradient, result, own, sums, values, changes):
    (sets, count, d), units, everything = features.shape, weights.shape[0], first(LANES)
    features, weights, gradient, result = address(features), address(weights), address(gradient), address(result)
    own, sums, values, changes = address(own), address(sums), address(values), address(changes)
    mask, zero = first(d - c), fill(_ZERO)
    _copy(weights, c, d, units * (count + 2), mask, own)
    for begin in range(0, sets, _GROUP):
        _read(gradient, begin, sets, 1, d, c, mask, values)
        g = _four(values, 0)
        _read(features, begin, sets, count, d, c, mask, values)
        for h in range(units):
            place = h * (count + 2) * LANES
            a, logistic = _hidden(values, own, place, count)
            last = load(own, place + (count + 1) * LANES, everything)
            change = (
                _change(g[0], last, a[0], logistic[0]),
                _change(g[1], last, a[1], logistic[1]),
                _change(g[2], last, a[2], logistic[2]),
                _change(g[3], last, a[3], logistic[3]),
            )
            _put_four(changes, h, change)
            for f in range(count):
                _add(sums, place + f * LANES, _dot(change, _four(values, f)))
            _add(sums, place + count * LANES, (change[0] + change[1]) + (change[2] + change[3]))
            _add(sums, place + (count + 1) * LANES, _dot(g, _products(a, logistic)))
        for f in range(count):
            found = g if f == 0 else (zero, zero, zero, zero)
            for h in range(units):
                weight = load(own, (h * (count + 2) + f) * LANES, everything)
                found = _add_products(found, _four(changes, h), weight)
            _put_four(values, f, found)
        _write(values, begin, sets, count, d, c, mask, result)


@compiled
def bend_gradient(features, weights, gradient, result, of_weights):
    """Writes the gradient by features, and adds those by weights, in double precision."""
    (sets, count, d), (units, rows, _) = features.shape, weights.shape
    own, sums = buffer(units * rows), buffer(units * rows)
    sums[:] = _ZERO
    values, changes = buffer(count * _GROUP), buffer(units * _GROUP)
    for c in range(0, d, LANES):
        for begin in range(0, sets, _BLOCK):
            end = begin + _BLOCK
            _gradients(
                features[begin:end], weights, c, gradient[begin:end], result[begin:end], own, sums, values, changes
            )
            for h in range(units):
                for k in range(rows):
                    for j in range(min(LANES, d - c)):
                        of_weights[h, k, c + j] += sums[h * rows + k, j]
            sums[:] = _ZERO
