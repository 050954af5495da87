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
from abelnet.lanes import LANES, address, any_of, fill, first, load, maximum, minimum, sqrt, store, where

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
def _range(x, begin, end, axis, table, pieces, d, column, mask):
    """Returns the first and the last piece in which there are values of some rows: others need not be searched."""
    least, most = fill(np.inf), fill(-np.inf)
    for i in range(begin, end):
        v = load(x, i * d + column, mask)
        least, most = minimum(v, least), maximum(v, most)
    low, high = 0, 0
    for k in range(1, pieces):
        edge = load(table, (k * ROWS + axis) * d + column, mask)
        if not any_of(mask & (least < edge)):
            low = k
        if any_of(mask & (most >= edge)):
            high = k
    return low, high


@_inlined
def _piece(v, axis, table, low, high, d, column, mask):
    """Returns the row of the piece of each value on an axis: the last that begins at or below it."""
    place = low * ROWS * d + column
    x0, y0 = load(table, place, mask), load(table, place + d, mask)
    inverse, height = load(table, place + 2 * d, mask), load(table, place + 3 * d, mask)
    slope0, slope1 = load(table, place + 4 * d, mask), load(table, place + 5 * d, mask)
    number = load(table, place + 6 * d, mask)
    for k in range(low + 1, high + 1):
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
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            low, high = _range(x, begin, end, 0, table, pieces, d, c, mask)
            for i in range(begin, end):
                v = load(x, i * d + c, mask)
                x0, y0, inverse, height, slope0, slope1, _ = _piece(v, 0, table, low, high, d, c, mask)
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
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            low, high = _range(y, begin, end, 1, table, pieces, d, c, mask)
            for i in range(begin, end):
                v = load(y, i * d + c, mask)
                x0, y0, inverse, height, slope0, slope1, _ = _piece(v, 1, table, low, high, d, c, mask)
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
def _add(sums, number, low, high, of_x0, of_y0, of_inverse, of_height, of_slope0, of_slope1):
    """Adds the gradients of one row to those of its pieces, of which lanes have few."""
    everything = first(LANES)
    for k in range(low, high + 1):
        there, place = number == np.float32(k), k * GRADIENTS * LANES
        if any_of(there):
            for one in (of_x0, of_y0, of_inverse, of_height, of_slope0, of_slope1):
                store(sums, place, everything, load(sums, place, everything) + where(there, one, _ZERO))
                place += LANES


@njit
def _gradients(x, table, c, gradient, is_inverse, result, sums):
    """Writes the gradient by rows, and adds those by pieces, in some lanes."""
    (n, d), pieces, mask = x.shape, table.shape[0], first(x.shape[1] - c)
    x, table, gradient, result, sums = address(x), address(table), address(gradient), address(result), address(sums)
    low, high = _range(x, 0, n, 0, table, pieces, d, c, mask)
    for i in range(n):
        v, g = load(x, i * d + c, mask), load(gradient, i * d + c, mask)
        x0, _, inverse, height, slope0, slope1, number = _piece(v, 0, table, low, high, d, c, mask)
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
        of_corner = _ZERO - g * slope
        # By the inverse width through z, and through the mean slope of a bin.
        of_inverse = where(is_tail, _ZERO, g * slope * rise / inverse)
        of_height, of_last = where(is_tail, _ZERO, g * curve), where(is_tail, _ZERO, g * last_slope)
        of_first = g * where(is_tail, rise, first_slope)
        _add(sums, number, low, high, of_corner, g, of_inverse, of_height, of_first, of_last)


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
    (n, d), pieces = x.shape, len(table)
    sums = np.zeros((pieces, GRADIENTS, LANES), np.float32)
    for c in range(0, d, LANES):
        for begin in range(0, n, _BLOCK):
            end = begin + _BLOCK
            _gradients(x[begin:end], table, c, gradient[begin:end], is_inverse, result[begin:end], sums)
            for k in range(pieces):
                for q in range(GRADIENTS):
                    for j in range(min(LANES, d - c)):
                        of_table[k, c + j, q] += sums[k, q, j]
                        sums[k, q, j] = _ZERO
