r"""Rational-quadratic splines and their gradients, compiled by numba: sixteen dimensions at a time.

Imported on first use, by :mod:`abelnet.bijections.spline`; see :mod:`abelnet.lanes` for how kernels are written. Pieces
of a spline are given by rows of ``table``, with shape (pieces, 7, d): the tail below, the bins, and the tail above.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["GRADIENTS", "ROWS", "spline", "spline_gradient", "spline_inverse"]

import numpy as np
from numba import njit

from abelnet.kernels import TINY, compiled
from abelnet.lanes import LANES, address, fill, first, item, load, maximum, put, sqrt, store, where

# Corner of a piece on both axes, inverse width, height (0 of tails), slopes at both ends, and the number of the piece.
ROWS = 7
# Gradients that are added for each piece: by the corner on both axes, and by the inverse width, the height, and both
# slopes, as if these were independent.
GRADIENTS = 6
# Rows whose gradients by pieces are added in single precision.
_BLOCK = 256
_ZERO, _HALF, _ONE, _TWO, _FOUR = (np.float32(c) for c in (0, 0.5, 1, 2, 4))

_inlined = njit(forceinline=True)


@_inlined
def _piece(v, axis, table, pieces, d, column, mask):
    """Returns the row of the piece of each value on an axis: the last that begins at or below it."""
    place = column
    x0, y0 = load(table, place, mask), load(table, place + d, mask)
    inverse, height = load(table, place + 2 * d, mask), load(table, place + 3 * d, mask)
    slope0, slope1, number = load(table, place + 4 * d, mask), load(table, place + 5 * d, mask), fill(_ZERO)
    for k in range(1, pieces):
        place = k * ROWS * d + column
        there = v >= load(table, place + axis * d, mask)
        x0 = where(there, load(table, place, mask), x0)
        y0 = where(there, load(table, place + d, mask), y0)
        inverse = where(there, load(table, place + 2 * d, mask), inverse)
        height = where(there, load(table, place + 3 * d, mask), height)
        slope0 = where(there, load(table, place + 4 * d, mask), slope0)
        slope1 = where(there, load(table, place + 5 * d, mask), slope1)
        number = where(there, load(table, place + 6 * d, mask), number)
    return x0, y0, inverse, height, slope0, slope1, number


@compiled
def spline(x, table, result):
    """Writes the values of splines at rows of x."""
    (n, d), pieces = x.shape, table.shape[0]
    x, table, result = address(x), address(table), address(result)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for i in range(n):
            v = load(x, i * d + c, mask)
            x0, y0, inverse, height, slope0, slope1, _ = _piece(v, 0, table, pieces, d, c, mask)
            is_tail, rise = height == _ZERO, v - x0
            z = where(is_tail, _ZERO, rise * inverse)
            mean, both = height * inverse, z * (_ONE - z)
            curve = (mean * z * z + slope0 * both) / (mean + (slope0 + slope1 - _TWO * mean) * both)
            store(result, i * d + c, mask, y0 + where(is_tail, slope0 * rise, height * curve))


@compiled
def spline_inverse(y, table, result):
    """Writes where the values of splines are those of rows of y."""
    (n, d), pieces = y.shape, table.shape[0]
    y, table, result = address(y), address(table), address(result)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for i in range(n):
            v = load(y, i * d + c, mask)
            x0, y0, inverse, height, slope0, slope1, _ = _piece(v, 1, table, pieces, d, c, mask)
            is_tail = height == _ZERO
            rise, mean = where(is_tail, _ZERO, v - y0), height * inverse
            bend = slope0 + slope1 - _TWO * mean
            a, b = height * (mean - slope0) + rise * bend, height * slope0 - rise * bend
            minus = mean * rise
            root = sqrt(maximum(b * b + _FOUR * a * minus, TINY))
            # Each of the two forms of the root is used where it does not subtract nearly equal numbers.
            direct = b >= _ZERO
            top, bottom = where(direct, _TWO * minus, root - b), where(direct, b + root, _TWO * a)
            inside = top / (bottom * inverse)
            store(result, i * d + c, mask, x0 + where(is_tail, (v - y0) / slope0, inside))


@_inlined
def _scatter(values, d, column, sums):
    """Adds the gradients of one row to those of its pieces."""
    for j in range(min(LANES, d - column)):
        place = (int(item(values, GRADIENTS * LANES + j)) * d + column + j) * GRADIENTS
        for k in range(GRADIENTS):
            put(sums, place + k, item(sums, place + k) + item(values, k * LANES + j))


@njit
def _gradients(x, table, gradient, is_inverse, result, values, sums):
    """Writes the gradient by rows, and adds those by pieces."""
    (n, d), pieces, everything = x.shape, table.shape[0], first(LANES)
    x, table, gradient, result = address(x), address(table), address(gradient), address(result)
    values, sums = address(values), address(sums)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for i in range(n):
            v, g = load(x, i * d + c, mask), load(gradient, i * d + c, mask)
            x0, _, inverse, height, slope0, slope1, number = _piece(v, 0, table, pieces, d, c, mask)
            is_tail, rise = height == _ZERO, v - x0
            z = where(is_tail, _ZERO, rise * inverse)
            mean, both = where(is_tail, _ONE, height * inverse), z * (_ONE - z)
            bottom = _ONE / (mean + (slope0 + slope1 - _TWO * mean) * both)
            curve = (mean * z * z + slope0 * both) * bottom
            part = mean * bottom
            rest = _ONE - z
            inside = part * part * (slope1 * z * z + _TWO * mean * both + slope0 * rest * rest)
            slope = where(is_tail, slope0, inside)
            if is_inverse:  # x is the result, by the gradient of which that of rows is divided by the slope
                found = g / slope
                store(result, i * d + c, mask, found)
                g = _ZERO - found
            else:
                store(result, i * d + c, mask, g * slope)
            first_slope = height * both * bottom * (_ONE - curve)
            last_slope = _ZERO - height * both * bottom * curve
            store(values, 0, everything, _ZERO - g * slope)
            store(values, LANES, everything, g)
            # By the inverse width through z, and through the mean slope of a bin.
            store(values, 2 * LANES, everything, where(is_tail, _ZERO, g * slope * rise / inverse))
            store(values, 3 * LANES, everything, where(is_tail, _ZERO, g * curve))
            store(values, 4 * LANES, everything, g * where(is_tail, rise, first_slope))
            store(values, 5 * LANES, everything, where(is_tail, _ZERO, g * last_slope))
            store(values, 6 * LANES, everything, number)
            _scatter(values, d, c, sums)


@compiled
def spline_gradient(x, table, gradient, is_inverse, result, of_table):
    """Writes the gradient by rows of x, and adds those by pieces, with shape (pieces, d, GRADIENTS), double precision.

    Arguments:
        x: Rows of the axis from which splines map.
        table: Pieces of the splines.
        gradient: Gradient by the values of splines; by x if ``is_inverse``.
        is_inverse: Whether x is the result: then the gradient by rows is that by the values of splines.
        result: Gradient by rows, written.
        of_table: Gradients by pieces.
    """
    values, sums = np.empty((GRADIENTS + 1) * LANES, np.float32), np.zeros(of_table.size, np.float32)
    total = of_table.reshape(-1)
    for begin in range(0, len(x), _BLOCK):
        end = begin + _BLOCK
        _gradients(x[begin:end], table, gradient[begin:end], is_inverse, result[begin:end], values, sums)
        for k in range(len(sums)):
            total[k] += sums[k]
            sums[k] = _ZERO
