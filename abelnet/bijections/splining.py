r"""Rational-quadratic splines and their gradients, compiled by numba: sixteen dimensions at a time.

Imported on first use, by :mod:`abelnet.bijections.spline`; see :mod:`abelnet.lanes` for how kernels are written. Pieces
of a spline are given by rows of ``table``, with shape (pieces, 7, d): the tail below, the bins, and the tail above.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = [
    "GRADIENTS",
    "ROWS",
    "spline",
    "spline_gradient",
    "spline_inverse",
    "spline_sum",
    "spline_sum_gradient",
]

import numpy as np
from numba import njit

from abelnet.kernels import AHEAD, BLOCK, TINY, buffer, compiled
from abelnet.lanes import (
    LANES,
    address,
    any_of,
    double,
    double_zeros,
    fetch,
    fill,
    first,
    item,
    load,
    maximum,
    minimum,
    single,
    sqrt,
    store,
    where,
)

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
def _extent(x, begin, end, d, column, mask):
    """Returns the extremes of some rows."""
    least, most = fill(np.inf), fill(-np.inf)
    for i in range(begin, end):
        v = load(x, i * d + column, mask)
        least, most = minimum(v, least), maximum(v, most)
    return least, most


@_inlined
def _extent_of_sets(x, rows, begin, end, last, d, column, mask):
    """Returns the extremes of some rows in the order of sets."""
    least, most = fill(np.inf), fill(-np.inf)
    for i in range(begin, end):
        fetch(x, item(rows, min(i + AHEAD, last)) * d + column)
        v = load(x, item(rows, i) * d + column, mask)
        least, most = minimum(v, least), maximum(v, most)
    return least, most


@_inlined
def _range(extent, axis, table, pieces, d, column, mask):
    """Returns the first and the last piece in which there are values: others need not be searched."""
    least, most = extent
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


@_inlined
def _value(v, piece):
    """Returns the value of splines, of which pieces are given."""
    x0, y0, inverse, height, slope0, slope1, _ = piece
    is_tail, rise = height == _ZERO, v - x0
    z = where(is_tail, _ZERO, rise * inverse)
    mean, both = height * inverse, z * (_ONE - z)
    curve = (mean * z * z + slope0 * both) / (mean + (slope0 + slope1 - _TWO * mean) * both)
    return y0 + where(is_tail, slope0 * rise, height * curve)


@compiled
def spline(x, table, result):
    """Writes the values of splines at rows of x."""
    (n, d), pieces = x.shape, table.shape[0]
    x, table, result = address(x), address(table), address(result)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            low, high = _range(_extent(x, begin, end, d, c, mask), 0, table, pieces, d, c, mask)
            for i in range(begin, end):
                v = load(x, i * d + c, mask)
                store(result, i * d + c, mask, _value(v, _piece(v, 0, table, low, high, d, c, mask)))


@njit
def _spline_sum(x, rows, ends, table, c, result):
    (n, d), pieces = x.shape, table.shape[0]
    start, stop, last, mask = ends[0], ends[-1], n - 1, first(d - c)
    x, rows, table, result = address(x), address(rows), address(table), address(result)
    extent = _extent_of_sets(x, rows, start, stop, last, d, c, mask)
    low, high = _range(extent, 0, table, pieces, d, c, mask)
    for s in range(len(ends) - 1):
        whole = double_zeros()
        for begin in range(ends[s], ends[s + 1], BLOCK):
            part = fill(_ZERO)
            for i in range(begin, min(begin + BLOCK, ends[s + 1])):
                v = load(x, item(rows, i) * d + c, mask)
                part = part + _value(v, _piece(v, 0, table, low, high, d, c, mask))
            whole = whole + double(part)
        store(result, s * d + c, mask, single(whole))


@compiled
def spline_sum(x, rows, ends, table, result):
    """Writes the sum over each set of the values of splines; arguments as in :mod:`abelnet.kernels`."""
    begin, sets = 0, len(ends) - 1
    while begin < sets:
        end = begin + 1
        while end < sets and ends[end + 1] - ends[begin] <= _BLOCK:
            end += 1
        for c in range(0, x.shape[1], LANES):
            _spline_sum(x, rows, ends[begin : end + 1], table, c, result[begin:end])
        begin = end


@compiled
def spline_inverse(y, table, result):
    """Writes where the values of splines are those of rows of y."""
    (n, d), pieces = y.shape, table.shape[0]
    y, table, result = address(y), address(table), address(result)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            low, high = _range(_extent(y, begin, end, d, c, mask), 1, table, pieces, d, c, mask)
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
def _slopes(v, g, piece, is_inverse):
    """Returns the gradient by rows, and those by their pieces, from that by the values of splines.

    If ``is_inverse``, values are given, and g is the gradient by where they are.
    """
    x0, _, inverse, height, slope0, slope1, _ = piece
    is_tail, rise = height == _ZERO, v - x0
    z = where(is_tail, _ZERO, rise * inverse)
    mean, both, rest = where(is_tail, _ONE, height * inverse), z * (_ONE - z), _ONE - z
    bottom = _ONE / (mean + (slope0 + slope1 - _TWO * mean) * both)
    curve = (mean * z * z + slope0 * both) * bottom
    part = mean * bottom
    inside = part * part * (slope1 * z * z + _TWO * mean * both + slope0 * rest * rest)
    slope = where(is_tail, slope0, inside)
    if is_inverse:  # x is the result, by the gradient of which that of rows is divided by the slope
        found = g / slope
        g = _ZERO - found
    else:
        found = g * slope
    change = g * slope
    first_slope = height * both * bottom * (_ONE - curve)
    last_slope = _ZERO - height * both * bottom * curve
    # By the inverse width through z, and through the mean slope of a bin.
    of_inverse = where(is_tail, _ZERO, change * rise / inverse)
    of_height, of_last = where(is_tail, _ZERO, g * curve), where(is_tail, _ZERO, g * last_slope)
    of_first = g * where(is_tail, rise, first_slope)
    return found, (_ZERO - change, g, of_inverse, of_height, of_first, of_last)


@_inlined
def _add(sums, number, low, high, gradients):
    """Adds the gradients of one row to those of its pieces, of which lanes have few."""
    everything = first(LANES)
    for k in range(low, high + 1):
        there, place = number == np.float32(k), k * GRADIENTS * LANES
        if any_of(there):
            for one in gradients:
                store(sums, place, everything, load(sums, place, everything) + where(there, one, _ZERO))
                place += LANES


@njit
def _gradients(x, begin, end, table, c, gradient, is_inverse, result, sums):
    """Writes the gradient by rows, and adds those by pieces, in some lanes; returns which pieces."""
    d, pieces, mask = x.shape[1], table.shape[0], first(x.shape[1] - c)
    x, table, gradient, result, sums = address(x), address(table), address(gradient), address(result), address(sums)
    low, high = _range(_extent(x, begin, end, d, c, mask), 0, table, pieces, d, c, mask)
    for i in range(begin, end):
        v, g = load(x, i * d + c, mask), load(gradient, i * d + c, mask)
        piece = _piece(v, 0, table, low, high, d, c, mask)
        found, of_piece = _slopes(v, g, piece, is_inverse)
        store(result, i * d + c, mask, found)
        _add(sums, piece[6], low, high, of_piece)
    return low, high


@njit
def _move(sums, low, high, of_table, c):
    """Adds sums of some pieces in double precision, and starts again from 0."""
    for k in range(low, high + 1):
        for q in range(GRADIENTS):
            for j in range(min(LANES, of_table.shape[1] - c)):
                of_table[k, c + j, q] += sums[k * GRADIENTS + q, j]
            sums[k * GRADIENTS + q] = _ZERO


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
    n, sums = len(x), buffer(len(table) * GRADIENTS)
    sums[:] = _ZERO
    for c in range(0, x.shape[1], LANES):
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            low, high = _gradients(x, begin, end, table, c, gradient, is_inverse, result, sums)
            _move(sums, low, high, of_table, c)


@njit
def _sum_gradients(x, rows, ends, start, stop, s, table, c, gradient, result, sums):
    """Writes the gradient by some rows, from that by their sums, and adds those by pieces; returns which pieces."""
    (n, d), pieces = x.shape, table.shape[0]
    last, mask = n - 1, first(d - c)
    x, rows, table, gradient = address(x), address(rows), address(table), address(gradient)
    result, sums = address(result), address(sums)
    low, high = _range(_extent_of_sets(x, rows, start, stop, last, d, c, mask), 0, table, pieces, d, c, mask)
    while start < stop:
        g, end = load(gradient, s * d + c, mask), min(ends[s + 1], stop)
        for i in range(start, end):
            row = item(rows, i) * d + c
            fetch(result, item(rows, min(i + AHEAD, last)) * d + c)
            v = load(x, row, mask)
            piece = _piece(v, 0, table, low, high, d, c, mask)
            found, of_piece = _slopes(v, g, piece, False)
            store(result, row, mask, found)
            _add(sums, piece[6], low, high, of_piece)
        start = end
        s += 1
    return low, high


@compiled
def spline_sum_gradient(x, rows, ends, table, gradient, result, of_table):
    """Writes the gradient by rows of x, from that by sums of sets, and adds those by pieces."""
    sums, s = buffer(len(table) * GRADIENTS), 0
    sums[:] = _ZERO
    for start in range(ends[0], ends[-1], _BLOCK):
        stop = min(start + _BLOCK, ends[-1])
        while ends[s + 1] <= start:
            s += 1
        for c in range(0, x.shape[1], LANES):
            low, high = _sum_gradients(x, rows, ends, start, stop, s, table, c, gradient, result, sums)
            _move(sums, low, high, of_table, c)
