r"""Rational-quadratic splines and their gradients, compiled by numba: sixteen dimensions at a time.

Imported on first use, by :mod:`abelnet.bijections.spline`; see :mod:`abelnet.lanes` for how kernels are written. Pieces
of a spline are given by rows of ``table``, with shape (pieces, ROWS, d): the tail below, the bins, and the tail above;
see :mod:`abelnet.bijections.knotting`.

With :math:`z = (v - x_0) / w` and :math:`r = 1 - z`, slopes times the width :math:`p` and :math:`q`, and the height
:math:`h`, the value within a bin is

.. math:: y_0 + h c, \quad c = \frac{z (p r + h z)}{h (1 - 2 z r) + (p + q) z r} ,

of which all terms are positive: nothing cancels, however steep a slope is.
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

# Corner of a piece on both axes, inverse width, height, and slopes at both ends times the width. A tail has width 1 and
# height 0.
ROWS = 6
# Sums over the values of a piece, of their gradients g times: 1, c, the derivatives by p and, negated, by q, that by z,
# and that by z times z. Of a tail: g, by p (its slope), and by z count; others have no meaning.
GRADIENTS = 6
# Rows whose gradients by pieces are added in single precision.
_BLOCK = 256
# Pieces that are kept in registers, if the values of a block are in no more.
_FEW = 3
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
def _rows(table, k, d, column, mask):
    """Returns the row of one piece."""
    place = k * ROWS * d + column
    return (
        load(table, place, mask),
        load(table, place + d, mask),
        load(table, place + 2 * d, mask),
        load(table, place + 3 * d, mask),
        load(table, place + 4 * d, mask),
        load(table, place + 5 * d, mask),
    )


@_inlined
def _choose(there, one, other):
    """Returns one row where there is a mask, else the other."""
    return (
        where(there, one[0], other[0]),
        where(there, one[1], other[1]),
        where(there, one[2], other[2]),
        where(there, one[3], other[3]),
        where(there, one[4], other[4]),
        where(there, one[5], other[5]),
    )


@_inlined
def _keep(table, low, high, d, column, mask, few):
    """Writes the rows of few pieces, of which the last is repeated, where they are read fast."""
    for j in range(_FEW):
        place = min(low + j, high) * ROWS * d + column
        for k in range(ROWS):
            store(few, (j * ROWS + k) * LANES, first(LANES), load(table, place + k * d, mask))


@_inlined
def _edges(axis, few):
    """Returns where the pieces after the first of few begin."""
    everything = first(LANES)
    return load(few, (ROWS + axis) * LANES, everything), load(few, (2 * ROWS + axis) * LANES, everything)


@_inlined
def _one_of(v, axis, few):
    """Returns the row of the piece of each value on an axis, of few: the last that begins at or below it.

    Rows are read again for each value: registers are needed for other numbers.
    """
    everything, (second, third) = first(LANES), _edges(axis, few)
    piece = _choose(v >= second, _rows(few, 1, LANES, 0, everything), _rows(few, 0, LANES, 0, everything))
    return _choose(v >= third, _rows(few, 2, LANES, 0, everything), piece)


@_inlined
def _one_of_many(v, axis, table, low, high, d, column, mask):
    """Returns the row of the piece of each value on an axis, and the number of the piece."""
    piece, number = _rows(table, low, d, column, mask), fill(np.float32(low))
    for k in range(low + 1, high + 1):
        there = v >= load(table, (k * ROWS + axis) * d + column, mask)
        piece = _choose(there, _rows(table, k, d, column, mask), piece)
        number = where(there, np.float32(k), number)
    return piece, number


@_inlined
def _value(v, piece):
    """Returns the value of splines, of which pieces are given."""
    x0, y0, inverse, h, p, q = piece
    rise = v - x0
    z = rise * inverse
    r = _ONE - z
    both = z * r
    top, bottom = z * (p * r + h * z), h * (_ONE - _TWO * both) + (p + q) * both
    return y0 + where(h == _ZERO, p * rise, h * top / bottom)


@compiled
def spline(x, table, result):
    """Writes the values of splines at rows of x."""
    (n, d), pieces, few = x.shape, table.shape[0], buffer(_FEW * ROWS)
    x, table, result, few = address(x), address(table), address(result), address(few)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            low, high = _range(_extent(x, begin, end, d, c, mask), 0, table, pieces, d, c, mask)
            if high - low < _FEW:
                _keep(table, low, high, d, c, mask, few)
                for i in range(begin, end):
                    v = load(x, i * d + c, mask)
                    store(result, i * d + c, mask, _value(v, _one_of(v, 0, few)))
            else:
                for i in range(begin, end):
                    v = load(x, i * d + c, mask)
                    piece, _ = _one_of_many(v, 0, table, low, high, d, c, mask)
                    store(result, i * d + c, mask, _value(v, piece))


@njit
def _spline_sum(x, rows, ends, table, c, result, few):
    (n, d), pieces = x.shape, table.shape[0]
    start, stop, last, mask = ends[0], ends[-1], n - 1, first(d - c)
    x, rows, table, result, few = address(x), address(rows), address(table), address(result), address(few)
    extent = _extent_of_sets(x, rows, start, stop, last, d, c, mask)
    low, high = _range(extent, 0, table, pieces, d, c, mask)
    is_few = high - low < _FEW
    if is_few:
        _keep(table, low, high, d, c, mask, few)
    for s in range(len(ends) - 1):
        whole = double_zeros()
        for begin in range(ends[s], ends[s + 1], BLOCK):
            part, end = fill(_ZERO), min(begin + BLOCK, ends[s + 1])
            if is_few:
                for i in range(begin, end):
                    v = load(x, item(rows, i) * d + c, mask)
                    part = part + _value(v, _one_of(v, 0, few))
            else:
                for i in range(begin, end):
                    v = load(x, item(rows, i) * d + c, mask)
                    piece, _ = _one_of_many(v, 0, table, low, high, d, c, mask)
                    part = part + _value(v, piece)
            whole = whole + double(part)
        store(result, s * d + c, mask, single(whole))


@compiled
def spline_sum(x, rows, ends, table, result):
    """Writes the sum over each set of the values of splines; arguments as in :mod:`abelnet.kernels`."""
    begin, sets, few = 0, len(ends) - 1, buffer(_FEW * ROWS)
    while begin < sets:
        end = begin + 1
        while end < sets and ends[end + 1] - ends[begin] <= _BLOCK:
            end += 1
        for c in range(0, x.shape[1], LANES):
            _spline_sum(x, rows, ends[begin : end + 1], table, c, result[begin:end], few)
        begin = end


@_inlined
def _place(v, piece):
    """Returns where the value of splines is v."""
    x0, y0, inverse, h, p, q = piece
    is_tail, rise = h == _ZERO, v - y0
    bend = rise * (p + q - _TWO * h)
    a, b, minus = h * (h - p) + bend, h * p - bend, h * rise
    root = sqrt(maximum(b * b + _FOUR * a * minus, TINY))
    # Each of the two forms of the root is used where it does not subtract nearly equal numbers.
    direct = b >= _ZERO
    top, bottom = where(direct, _TWO * minus, root - b), where(direct, b + root, _TWO * a) * inverse
    return x0 + where(is_tail, rise, top) / where(is_tail, p, bottom)


@compiled
def spline_inverse(y, table, result):
    """Writes where the values of splines are those of rows of y."""
    (n, d), pieces, few = y.shape, table.shape[0], buffer(_FEW * ROWS)
    y, table, result, few = address(y), address(table), address(result), address(few)
    for c in range(0, d, LANES):
        mask = first(d - c)
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            low, high = _range(_extent(y, begin, end, d, c, mask), 1, table, pieces, d, c, mask)
            if high - low < _FEW:
                _keep(table, low, high, d, c, mask, few)
                for i in range(begin, end):
                    v = load(y, i * d + c, mask)
                    store(result, i * d + c, mask, _place(v, _one_of(v, 1, few)))
            else:
                for i in range(begin, end):
                    v = load(y, i * d + c, mask)
                    piece, _ = _one_of_many(v, 1, table, low, high, d, c, mask)
                    store(result, i * d + c, mask, _place(v, piece))


@_inlined
def _slopes(v, g, piece, is_inverse):
    """Returns the gradient by rows, and what is added for their pieces, from that by the values of splines.

    If ``is_inverse``, values are given, and g is the gradient by where they are.
    """
    x0, _, inverse, h, p, q = piece
    is_tail, rise = h == _ZERO, v - x0
    z = rise * inverse
    r = _ONE - z
    both, pr, hz = z * r, p * r, h * z
    bottom = _ONE / (h * (_ONE - _TWO * both) + (p + q) * both)
    c, t = z * (pr + hz) * bottom, h * bottom
    slope = where(is_tail, p, t * t * (r * (pr + _TWO * hz) + q * z * z))
    if is_inverse:  # x is the result, by the gradient of which that of rows is divided by the slope
        found = g / (slope * inverse)
        g = _ZERO - found
    else:
        found = g * (slope * inverse)
    change, share = g * slope, g * both * t
    of_last = share * c
    of_first = where(is_tail, g * rise, share - of_last)
    return found, (g, g * c, of_first, of_last, change, change * z)


@_inlined
def _zeros():
    zero = fill(_ZERO)
    return zero, zero, zero, zero, zero, zero


@_inlined
def _added(there, sums, of_piece):
    """Returns sums of the gradients of one piece, with those of one row where there is a mask."""
    return (
        where(there, sums[0] + of_piece[0], sums[0]),
        where(there, sums[1] + of_piece[1], sums[1]),
        where(there, sums[2] + of_piece[2], sums[2]),
        where(there, sums[3] + of_piece[3], sums[3]),
        where(there, sums[4] + of_piece[4], sums[4]),
        where(there, sums[5] + of_piece[5], sums[5]),
    )


@_inlined
def _add(v, few, sums, of_piece):
    """Returns sums of the gradients of few pieces, with those of one row."""
    second, third = _edges(0, few)
    return (
        _added(v < second, sums[0], of_piece),
        _added((v >= second) & (v < third), sums[1], of_piece),
        _added(v >= third, sums[2], of_piece),
    )


@_inlined
def _move(sums, k, of_table, d, column, mask):
    """Adds sums of one piece in double precision."""
    place = k * GRADIENTS * d + column
    for one in sums:
        store(of_table, place, mask, load(of_table, place, mask) + double(one))
        place += d


@_inlined
def _move_few(sums, low, high, of_table, d, column, mask):
    _move(sums[0], low, of_table, d, column, mask)
    _move(sums[1], min(low + 1, high), of_table, d, column, mask)
    _move(sums[2], high, of_table, d, column, mask)


@_inlined
def _add_many(sums, number, low, high, gradients):
    """Adds the gradients of one row to those of its pieces, of which lanes have few."""
    everything = first(LANES)
    for k in range(low, high + 1):
        there, place = number == np.float32(k), k * GRADIENTS * LANES
        if any_of(there):
            for one in gradients:
                store(sums, place, everything, load(sums, place, everything) + where(there, one, _ZERO))
                place += LANES


@_inlined
def _move_many(sums, low, high, of_table, d, column, mask):
    """Adds sums of some pieces in double precision, and starts again from 0."""
    everything = first(LANES)
    for k in range(low, high + 1):
        for q in range(GRADIENTS):
            place, own = (k * GRADIENTS + q) * d + column, (k * GRADIENTS + q) * LANES
            store(of_table, place, mask, load(of_table, place, mask) + double(load(sums, own, everything)))
            store(sums, own, everything, fill(_ZERO))


@njit
def _gradients(x, begin, end, table, c, gradient, is_inverse, result, of_table, sums, few):
    """Writes the gradient by rows, and adds those by pieces, in some lanes."""
    d, pieces, mask = x.shape[1], table.shape[0], first(x.shape[1] - c)
    x, table, gradient, result = address(x), address(table), address(gradient), address(result)
    of_table, sums, few = address(of_table), address(sums), address(few)
    low, high = _range(_extent(x, begin, end, d, c, mask), 0, table, pieces, d, c, mask)
    if high - low < _FEW:
        _keep(table, low, high, d, c, mask, few)
        totals = _zeros(), _zeros(), _zeros()
        for i in range(begin, end):
            v, g = load(x, i * d + c, mask), load(gradient, i * d + c, mask)
            found, of_piece = _slopes(v, g, _one_of(v, 0, few), is_inverse)
            store(result, i * d + c, mask, found)
            totals = _add(v, few, totals, of_piece)
        _move_few(totals, low, high, of_table, d, c, mask)
    else:
        for i in range(begin, end):
            v, g = load(x, i * d + c, mask), load(gradient, i * d + c, mask)
            piece, number = _one_of_many(v, 0, table, low, high, d, c, mask)
            found, of_piece = _slopes(v, g, piece, is_inverse)
            store(result, i * d + c, mask, found)
            _add_many(sums, number, low, high, of_piece)
        _move_many(sums, low, high, of_table, d, c, mask)


@compiled
def spline_gradient(x, table, gradient, is_inverse, result, of_table):
    """Writes the gradient by rows of x, and adds those by pieces, with shape (pieces, GRADIENTS, d), double precision.

    Arguments:
        x: Rows of the axis from which splines map.
        table: Pieces of the splines.
        gradient: Gradient by the values of splines; by x if ``is_inverse``.
        is_inverse: Whether x is the result: then the gradient by rows is that by the values of splines.
        result: Gradient by rows, written.
        of_table: Gradients by pieces.
    """
    n, sums, few = len(x), buffer(len(table) * GRADIENTS), buffer(_FEW * ROWS)
    sums[:] = _ZERO
    for begin in range(0, n, _BLOCK):
        for c in range(0, x.shape[1], LANES):
            _gradients(x, begin, min(begin + _BLOCK, n), table, c, gradient, is_inverse, result, of_table, sums, few)


@njit
def _sum_gradients(x, rows, ends, start, stop, s, table, c, gradient, result, of_table, sums, few):
    """Writes the gradient by some rows, from that by their sums, and adds those by pieces."""
    (n, d), pieces = x.shape, table.shape[0]
    last, mask = n - 1, first(d - c)
    x, rows, ends, table, gradient = address(x), address(rows), address(ends), address(table), address(gradient)
    result, of_table, sums, few = address(result), address(of_table), address(sums), address(few)
    low, high = _range(_extent_of_sets(x, rows, start, stop, last, d, c, mask), 0, table, pieces, d, c, mask)
    if high - low < _FEW:
        _keep(table, low, high, d, c, mask, few)
        totals = _zeros(), _zeros(), _zeros()
        while start < stop:
            g, end = load(gradient, s * d + c, mask), min(item(ends, s + 1), stop)
            for i in range(start, end):
                row = item(rows, i) * d + c
                fetch(result, item(rows, min(i + AHEAD, last)) * d + c)
                v = load(x, row, mask)
                found, of_piece = _slopes(v, g, _one_of(v, 0, few), False)
                store(result, row, mask, found)
                totals = _add(v, few, totals, of_piece)
            start = end
            s += 1
        _move_few(totals, low, high, of_table, d, c, mask)
    else:
        while start < stop:
            g, end = load(gradient, s * d + c, mask), min(item(ends, s + 1), stop)
            for i in range(start, end):
                row = item(rows, i) * d + c
                fetch(result, item(rows, min(i + AHEAD, last)) * d + c)
                v = load(x, row, mask)
                piece, number = _one_of_many(v, 0, table, low, high, d, c, mask)
                found, of_piece = _slopes(v, g, piece, False)
                store(result, row, mask, found)
                _add_many(sums, number, low, high, of_piece)
            start = end
            s += 1
        _move_many(sums, low, high, of_table, d, c, mask)


@compiled
def spline_sum_gradient(x, rows, ends, table, gradient, result, of_table):
    """Writes the gradient by rows of x, from that by sums of sets, and adds those by pieces."""
    sums, few, s = buffer(len(table) * GRADIENTS), buffer(_FEW * ROWS), 0
    sums[:] = _ZERO
    for start in range(ends[0], ends[-1], _BLOCK):
        stop = min(start + _BLOCK, ends[-1])
        while ends[s + 1] <= start:
            s += 1
        for c in range(0, x.shape[1], LANES):
            _sum_gradients(x, rows, ends, start, stop, s, table, c, gradient, result, of_table, sums, few)
