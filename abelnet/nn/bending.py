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

from abelnet.kernels import compiled
from abelnet.lanes import LANES, address, exp2, fill, first, inverse, load, minimum, store

_ZERO, _ONE = np.float32(0), np.float32(1)
_MINUS_LOG2_E, _MOST = np.float32(-math.log2(math.e)), np.float32(100)
# Sets whose gradients by weights are added in single precision.
_BLOCK = 64

_inlined = njit(forceinline=True)


@_inlined
def _hidden(features, at, weights, place, count, d, mask):
    """Returns the input of a hidden unit, and its logistic function."""
    total = load(weights, place + count * d, mask)
    for f in range(count):
        total = total + load(features, at + f * d, mask) * load(weights, place + f * d, mask)
    return total, inverse(_ONE + exp2(minimum(total * _MINUS_LOG2_E, _MOST)))


@compiled
def bend(features, weights, result):
    """Writes the sum over hidden units of their weights times the SiLU of a linear function of features (B, f, c)."""
    (sets, count, d), units = features.shape, weights.shape[0]
    features, weights, result = address(features), address(weights), address(result)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for s in range(sets):
            total = fill(_ZERO)
            for h in range(units):
                place = h * (count + 2) * d + c
                a, logistic = _hidden(features, s * count * d + c, weights, place, count, d, mask)
                total = total + a * logistic * load(weights, place + (count + 1) * d, mask)
            store(result, s * d + c, mask, total)


@_inlined
def _copy(source, place, stride, count, mask, target):
    """Copies rows of some lanes, so that what is added to them again and again is written whole: only that is fast."""
    everything = first(LANES)
    for k in range(count):
        store(target, k * LANES, everything, load(source, place + k * stride, mask))


@njit
def _gradients(features, weights, c, gradient, result, own, sums, values, found):
    (sets, count, d), units, everything = features.shape, weights.shape[0], first(LANES)
    features, weights, gradient, result = address(features), address(weights), address(gradient), address(result)
    own, sums, values, found = address(own), address(sums), address(values), address(found)
    mask = first(d - c)
    _copy(weights, c, d, units * (count + 2), mask, own)
    for s in range(sets):
        g, at = load(gradient, s * d + c, mask), s * count * d + c
        _copy(features, at, d, count, mask, values)
        for f in range(count):
            store(found, f * LANES, everything, fill(_ZERO))
        for h in range(units):
            place = h * (count + 2) * LANES
            a, logistic = _hidden(values, 0, own, place, count, LANES, everything)
            last = place + (count + 1) * LANES
            bias = last - LANES
            change = g * load(own, last, everything) * logistic * (_ONE + a * (_ONE - logistic))
            store(sums, last, everything, load(sums, last, everything) + g * a * logistic)
            store(sums, bias, everything, load(sums, bias, everything) + change)
            for f in range(count):
                one, other = f * LANES, place + f * LANES
                store(sums, other, everything, load(sums, other, everything) + change * load(values, one, everything))
                store(found, one, everything, load(found, one, everything) + change * load(own, other, everything))
        for f in range(count):
            store(result, at + f * d, mask, load(found, f * LANES, everything))


@compiled
def bend_gradient(features, weights, gradient, result, of_weights):
    """Writes the gradient by features, and adds those by weights, in double precision."""
    (sets, count, d), (units, rows, _) = features.shape, weights.shape
    own, sums = np.empty((units, rows, LANES), np.float32), np.zeros((units, rows, LANES), np.float32)
    values, found = np.empty((count, LANES), np.float32), np.empty((count, LANES), np.float32)
    for c in range(0, d, LANES):
        for begin in range(0, sets, _BLOCK):
            end = begin + _BLOCK
            _gradients(
                features[begin:end], weights, c, gradient[begin:end], result[begin:end], own, sums, values, found
            )
            for h in range(units):
                for k in range(rows):
                    for j in range(min(LANES, d - c)):
                        of_weights[h, k, c + j] += sums[h, k, j]
                        sums[h, k, j] = _ZERO
