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

from abelnet.kernels import compiled, move
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


@njit
def _gradients(features, weights, gradient, result, sums):
    (sets, count, d), units = features.shape, weights.shape[0]
    features, weights, gradient = address(features), address(weights), address(gradient)
    result, sums = address(result), address(sums)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for s in range(sets):
            g, at = load(gradient, s * d + c, mask), s * count * d + c
            for f in range(count):
                store(result, at + f * d, mask, fill(_ZERO))
            for h in range(units):
                place = h * (count + 2) * d + c
                a, logistic = _hidden(features, at, weights, place, count, d, mask)
                last = place + (count + 1) * d
                store(sums, last, mask, load(sums, last, mask) + g * a * logistic)
                found = g * load(weights, last, mask) * logistic * (_ONE + a * (_ONE - logistic))
                store(sums, last - d, mask, load(sums, last - d, mask) + found)
                for f in range(count):
                    one, own = at + f * d, place + f * d
                    store(sums, own, mask, load(sums, own, mask) + found * load(features, one, mask))
                    store(result, one, mask, load(result, one, mask) + found * load(weights, own, mask))


@compiled
def bend_gradient(features, weights, gradient, result, of_weights):
    """Writes the gradient by features, and adds those by weights, in double precision."""
    sums, total = np.zeros(weights.shape, np.float32), of_weights.reshape(-1)
    for begin in range(0, len(features), _BLOCK):
        end = begin + _BLOCK
        _gradients(features[begin:end], weights, gradient[begin:end], result[begin:end], sums)
        move(sums.reshape(-1), total)
