r"""Rational-quadratic splines and their gradients, compiled by numba: sixteen dimensions at a time.

Imported on first use, by :mod:`abelnet.bijections.spline`; see :mod:`abelnet.lanes` for how kernels are written. Bins
of a spline are given by rows of ``table``, with shape (bins, ROWS, d); see :mod:`abelnet.bijections.knotting`. Values
beyond all bins are those at the end, plus a line.

With :math:`z = (v - x_0) / w`, :math:`r = 1 - z`, and the slopes :math:`p, q` at both ends in units of the mean slope
:math:`m = h / w`, the value within a bin and its derivative are

.. math:: y_0 + h \frac{p z r + z^2}{n}, \quad m \frac{p r^2 + 2 z r + q z^2}{n^2},
    \quad n = r^2 + (p + q) z r + z^2 ,

of which all terms are positive: nothing cancels, however steep a slope is. Derivatives by all that defines a bin are
polynomials of degree 4 divided by :math:`n^2`, so that five sums over its values are enough for all of them.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = [
    "ENDS",
    "GRADIENTS",
    "ROWS",
    "spline",
    "spline_gradient",
    "spline_sum",
]

import numpy as np
from numba import njit

from abelnet.kernels import AHEAD, BLOCK, TINY, buffer, compiled, is_finite, trace
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

# Of a bin: where it begins, and its inverse size, on the axis of its values; where it begins, and its size, on the
# other axis (for gradients, the mean slope and 0); and the slopes at both ends in units of the mean slope.
ROWS = 6
# Sums over the values of a bin, of their gradients times z^k r^(4 - k) / n^2 for k from 0 to 4.
GRADIENTS = 5
# The ends of all bins, and values and slopes there: below, above. Within a steep bin, what is rounded next to its end
# may be far off, which lines beyond must not inherit.
ENDS = 6
# Rows whose gradients by bins are added in single precision.
_BLOCK = 256
# Bins that are kept together, if the values of a block are in no more.
_FEW = 3
_ZERO, _ONE, _TWO, _FOUR = (np.float32(c) for c in (0, 1, 2, 4))

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
def _extent_of_sets(x, rows, begin, end, d, column, mask):
    """Returns the extremes of some rows in the order of sets."""
    least, most = fill(np.inf), fill(-np.inf)
    for i in range(begin, end):
        v = load(x, item(rows, i) * d + column, mask)
        least, most = minimum(v, least), maximum(v, most)
    return least, most


@_inlined
def _ends_of(ends, d, column, mask):
    return (
        load(ends, column, mask),
        load(ends, d + column, mask),
        load(ends, 2 * d + column, mask),
        load(ends, 3 * d + column, mask),
        load(ends, 4 * d + column, mask),
        load(ends, 5 * d + column, mask),
    )


@_inlined
def _range(extent, ends, table, bins, d, column, mask):
    """Returns the first and the last bin in which there are values, and whether some are beyond all bins."""
    least, most = extent
    low, high = 0, 0
    for k in range(1, bins):
        edge = load(table, k * ROWS * d + column, mask)
        if not any_of(mask & (least < edge)):
            low = k
        if any_of(mask & (most >= edge)):
            high = k
    return low, high, any_of(mask & ((least < ends[0]) | (most > ends[1])))


@_inlined
def _with_lines(v, y, ends):
    """Returns values, and those of lines beyond the ends."""
    below, above = ends[2] + ends[4] * (v - ends[0]), ends[3] + ends[5] * (v - ends[1])
    return where(v < ends[0], below, where(v > ends[1], above, y))


@_inlined
def _within(v, z, ends):
    """Returns places within bins, and those at the ends for what is beyond."""
    return where(v < ends[0], _ZERO, where(v > ends[1], _ONE, z))


@_inlined
def _rows(table, k, d, column, mask):
    """Returns the rows of one bin."""
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
    """Returns the rows of one bin where there is a mask, else those of the other."""
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
    """Writes the rows of few bins, of which the last is repeated, where they are read fast."""
    for j in range(_FEW):
        place = min(low + j, high) * ROWS * d + column
        for k in range(ROWS):
            store(few, (j * ROWS + k) * LANES, first(LANES), load(table, place + k * d, mask))


@_inlined
def _edges(few):
    """Returns where the bins after the first of few begin."""
    return load(few, ROWS * LANES, first(LANES)), load(few, 2 * ROWS * LANES, first(LANES))


@_inlined
def _one_of(v, few):
    """Returns the bin of each value, of few: the last that begins at or below it.

    Rows are read again for each value: registers are needed for other numbers.
    """
    everything, (second, third) = first(LANES), _edges(few)
    one = _choose(v >= second, _rows(few, 1, LANES, 0, everything), _rows(few, 0, LANES, 0, everything))
    return _choose(v >= third, _rows(few, 2, LANES, 0, everything), one)


@_inlined
def _one_of_many(v, table, low, high, d, column, mask):
    """Returns the bin of each value, and its number."""
    one, number = _rows(table, low, d, column, mask), fill(np.float32(low))
    for k in range(low + 1, high + 1):
        there = v >= load(table, k * ROWS * d + column, mask)
        one = _choose(there, _rows(table, k, d, column, mask), one)
        number = where(there, np.float32(k), number)
    return one, number


@_inlined
def _value(v, one):
    """Returns the value of splines, of which bins are given."""
    x0, per_width, y0, height, p, q = one
    z = (v - x0) * per_width
    both = z * (_ONE - z)
    return y0 + height * ((p * both + z * z) / ((_ONE - _TWO * both) + (p + q) * both))


@_inlined
def _place(v, one):
    """Returns where the value of splines is v."""
    y0, per_height, x0, width, p, q = one
    t = (v - y0) * per_height
    bend = t * (p + q - _TWO)
    a, b = _ONE - p + bend, p - bend
    root = sqrt(maximum(b * b + _FOUR * a * t, TINY))
    # Each of the two forms of the root is used where it does not subtract nearly equal numbers.
    direct = b >= _ZERO
    return x0 + width * (where(direct, _TWO * t, root - b) / where(direct, b + root, _TWO * a))


@compiled
def spline(x, table, ends, is_inverse, result):
    """Writes the values of splines at rows of x, or where values are these rows."""
    (n, d), bins, few = x.shape, table.shape[0], buffer(_FEW * ROWS)
    x, table, ends, result, few = address(x), address(table), address(ends), address(result), address(few)
    for c in range(0, d, LANES):
        mask = first(d - c)
        own = _ends_of(ends, d, c, mask)
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            low, high, _ = _range(_extent(x, begin, end, d, c, mask), own, table, bins, d, c, mask)
            is_few = high - low < _FEW
            if is_few:
                _keep(table, low, high, d, c, mask, few)
            for i in range(begin, end):
                fetch(x, min(i + _BLOCK, n - 1) * d + c)
                v = load(x, i * d + c, mask)
                one = _one_of(v, few) if is_few else _one_of_many(v, table, low, high, d, c, mask)[0]
                y = _place(v, one) if is_inverse else _value(v, one)
                store(result, i * d + c, mask, _with_lines(v, y, own))


@njit
def _spline_sum(x, rows, bounds, table, ends, c, result, few):
    (n, d), bins, traces = x.shape, table.shape[0], fill(_ZERO)
    start, stop, last, mask = bounds[0], bounds[-1], n - 1, first(d - c)
    x, rows, table, ends = address(x), address(rows), address(table), address(ends)
    result, few, own = address(result), address(few), _ends_of(ends, d, c, mask)
    extent = _extent_of_sets(x, rows, start, stop, d, c, mask)
    low, high, some_beyond = _range(extent, own, table, bins, d, c, mask)
    is_few = high - low < _FEW
    if is_few:
        _keep(table, low, high, d, c, mask, few)
    for s in range(len(bounds) - 1):
        whole = double_zeros()
        for begin in range(bounds[s], bounds[s + 1], BLOCK):
            part, end = fill(_ZERO), min(begin + BLOCK, bounds[s + 1])
            if is_few and not some_beyond:
                for i in range(begin, end):
                    fetch(x, item(rows, min(i + _BLOCK, last)) * d + c)
                    v = load(x, item(rows, i) * d + c, mask)
                    part = part + _value(v, _one_of(v, few))
            else:
                for i in range(begin, end):
                    fetch(x, item(rows, min(i + _BLOCK, last)) * d + c)
                    v = load(x, item(rows, i) * d + c, mask)
                    one, _ = _one_of_many(v, table, low, high, d, c, mask)
                    part = part + _with_lines(v, _value(v, one), own)
            whole = whole + double(part)
        # Splines map what is not finite to what is not: a sum tells as much as all of its rows.
        traces = trace(traces, single(whole))
        store(result, s * d + c, mask, single(whole))
    return is_finite(traces)


@compiled
def spline_sum(x, rows, bounds, table, ends, result):
    """Writes the sum over each set of the values of splines; arguments as in :mod:`abelnet.kernels`.

    Returns whether all sums are finite, and therefore all rows.
    """
    begin, sets, few, fine = 0, len(bounds) - 1, buffer(_FEW * ROWS), True
    while begin < sets:
        end = begin + 1
        while end < sets and bounds[end + 1] - bounds[begin] <= _BLOCK:
            end += 1
        for c in range(0, x.shape[1], LANES):
            fine &= _spline_sum(x, rows, bounds[begin : end + 1], table, ends, c, result[begin:end], few)
        begin = end
    return fine


@_inlined
def _shape(z, one):
    """Returns what the gradient by a value and the terms of its sums consist of."""
    _, _, mean, _, p, q = one
    r = _ONE - z
    both, rr, zz = z * r, r * r, z * z
    over = _ONE / ((rr + zz) + (p + q) * both)
    return over, mean * (p * rr + (q * zz + _TWO * both)), rr, both, zz


@_inlined
def _slopes(g, shape, is_inverse):
    """Returns the gradient by rows from that by values of splines, and the factors of what is added to sums.

    If ``is_inverse``, values are given, and g is the gradient by where they are.
    """
    over, slope, rr, both, zz = shape
    factor = over * over
    if is_inverse:  # x is the result, by the gradient of which that of rows is divided by the slope
        found = g / (slope * factor)
        factor = (_ZERO - found) * factor
    else:
        factor = g * factor
        found = slope * factor
    return found, (factor * rr, factor * zz, rr, both, zz)


@_inlined
def _zeros():
    zero = fill(_ZERO)
    return zero, zero, zero, zero, zero


@_inlined
def _added(there, sums, terms):
    """Returns sums of one bin, with the terms of one row where there is a mask."""
    by_r, by_z, rr, both, zz = terms
    return (
        where(there, by_r * rr + sums[0], sums[0]),
        where(there, by_r * both + sums[1], sums[1]),
        where(there, by_r * zz + sums[2], sums[2]),
        where(there, by_z * both + sums[3], sums[3]),
        where(there, by_z * zz + sums[4], sums[4]),
    )


@_inlined
def _add(v, few, sums, terms):
    """Returns sums of few bins, with the terms of one row."""
    second, third = _edges(few)
    return (
        _added(v < second, sums[0], terms),
        _added((v >= second) & (v < third), sums[1], terms),
        _added(v >= third, sums[2], terms),
    )


@_inlined
def _move_few(sums, low, high, of_table, d, column, mask):
    """Adds sums of few bins in double precision."""
    for j in range(_FEW):
        place = min(low + j, high) * GRADIENTS * d + column
        for one in sums[j]:
            store(of_table, place, mask, load(of_table, place, mask) + double(one))
            place += d


@_inlined
def _add_many(sums, number, low, high, terms):
    """Adds the terms of one row to the sums of its bins."""
    everything = first(LANES)
    for k in range(low, high + 1):
        there, place = number == np.float32(k), k * GRADIENTS * LANES
        for one in _added(there, _sums_of(sums, place), terms):  # a branch would cost more than what it may save
            store(sums, place, everything, one)
            place += LANES


@_inlined
def _sums_of(sums, place):
    everything = first(LANES)
    return (
        load(sums, place, everything),
        load(sums, place + LANES, everything),
        load(sums, place + 2 * LANES, everything),
        load(sums, place + 3 * LANES, everything),
        load(sums, place + 4 * LANES, everything),
    )


@_inlined
def _move_many(sums, low, high, of_table, d, column, mask):
    """Adds sums of some bins in double precision, and starts again from 0."""
    everything = first(LANES)
    for k in range(low * GRADIENTS, (high + 1) * GRADIENTS):
        place = k * d + column
        store(of_table, place, mask, load(of_table, place, mask) + double(load(sums, k * LANES, everything)))
        store(sums, k * LANES, everything, fill(_ZERO))


@_inlined
def _add_beyond(v, g, own, tails):
    """Returns sums of gradients times distances beyond the ends, with those of one row."""
    return tails[0] + g * minimum(_ZERO, v - own[0]), tails[1] + g * maximum(_ZERO, v - own[1])


@_inlined
def _move_tails(tails, of_slopes, d, column, mask):
    store(of_slopes, column, mask, load(of_slopes, column, mask) + double(tails[0]))
    store(of_slopes, d + column, mask, load(of_slopes, d + column, mask) + double(tails[1]))


@_inlined
def _shape_of_few(x, place, mask, some_beyond, own, few):
    """Returns the value at a place and its shape, if it is in one of few bins, or beyond."""
    v = load(x, place, mask)
    one = _one_of(v, few)
    z = (v - one[0]) * one[1]
    if some_beyond:
        z = _within(v, z, own)
    return v, _shape(z, one)


@_inlined
def _gradients_of_few(
    x, rows, bounds, start, stop, s, d, c, last, last_set, mask, some_beyond, is_inverse, own, few, gradient, result
):
    """Writes the gradient by some rows that are in few bins, or beyond; returns the sums of bins and tails."""
    tails, totals = (fill(_ZERO), fill(_ZERO)), (_zeros(), _zeros(), _zeros())
    v, shape = _shape_of_few(x, item(rows, start) * d + c, mask, some_beyond, own, few)
    while start < stop:
        fetch(gradient, min(s + AHEAD, last_set) * d + c)
        g, end = load(gradient, s * d + c, mask), min(item(bounds, s + 1), stop)
        for i in range(start, end):
            # The next row is begun before this one is finished: it need not wait for divisions.
            following = _shape_of_few(x, item(rows, min(i + 1, last)) * d + c, mask, some_beyond, own, few)
            fetch(x, item(rows, min(i + _BLOCK, last)) * d + c)
            fetch(result, item(rows, min(i + AHEAD, last)) * d + c)
            found, terms = _slopes(g, shape, is_inverse)
            if some_beyond:
                tails = _add_beyond(v, _ZERO - found if is_inverse else g, own, tails)
            store(result, item(rows, i) * d + c, mask, found)
            totals = _add(v, few, totals, terms)
            v, shape = following
        start = end
        s += 1
    return totals, tails


@njit
def _gradients(
    x, rows, bounds, start, stop, s, table, ends, c, is_inverse, gradient, result, of_table, of_slopes, sums, few
):
    """Writes the gradient by some rows, from that by their sums, and adds those by bins and by slopes beyond."""
    (n, d), bins = x.shape, table.shape[0]
    last, last_set, mask = n - 1, len(bounds) - 2, first(d - c)
    x, rows, bounds, table, ends = address(x), address(rows), address(bounds), address(table), address(ends)
    gradient, result, sums, few = address(gradient), address(result), address(sums), address(few)
    of_table, of_slopes, own = address(of_table), address(of_slopes), _ends_of(ends, d, c, mask)
    extent = _extent_of_sets(x, rows, start, stop, d, c, mask)
    low, high, some_beyond = _range(extent, own, table, bins, d, c, mask)
    tails = fill(_ZERO), fill(_ZERO)
    if high - low < _FEW:
        _keep(table, low, high, d, c, mask, few)
        if some_beyond | is_inverse:
            totals, tails = _gradients_of_few(
                x, rows, bounds, start, stop, s, d, c, last, last_set, mask, some_beyond, is_inverse, own, few,
                gradient, result,
            )  # fmt: skip
        else:  # by a loop without branches
            totals, tails = _gradients_of_few(
                x, rows, bounds, start, stop, s, d, c, last, last_set, mask, False, False, own, few, gradient, result
            )
        _move_few(totals, low, high, of_table, d, c, mask)
    else:
        while start < stop:
            fetch(gradient, min(s + AHEAD, last_set) * d + c)
            g, end = load(gradient, s * d + c, mask), min(item(bounds, s + 1), stop)
            for i in range(start, end):
                row = item(rows, i) * d + c
                fetch(x, item(rows, min(i + _BLOCK, last)) * d + c)
                fetch(result, item(rows, min(i + AHEAD, last)) * d + c)
                v = load(x, row, mask)
                one, number = _one_of_many(v, table, low, high, d, c, mask)
                found, terms = _slopes(g, _shape(_within(v, (v - one[0]) * one[1], own), one), is_inverse)
                store(result, row, mask, found)
                _add_many(sums, number, low, high, terms)
                tails = _add_beyond(v, _ZERO - found if is_inverse else g, own, tails)
            start = end
            s += 1
        _move_many(sums, low, high, of_table, d, c, mask)
    _move_tails(tails, of_slopes, d, c, mask)


@compiled
def spline_gradient(x, rows, bounds, table, ends, is_inverse, gradient, result, of_table, of_slopes):
    """Writes the gradient by rows of x, and adds those by bins and by slopes beyond, in double precision.

    Arguments:
        x: Rows of the axis from which splines map.
        rows: Order of the rows by sets.
        bounds: Ends of the sets in that order.
        table: Bins of the splines, for gradients.
        ends: Ends of all bins.
        is_inverse: Whether x is the result, and a set one row: then the gradient by rows is that by the values of
            splines.
        gradient: Gradient by the sums of the values of splines over sets; by x if ``is_inverse``.
        result: Gradient by rows, written.
        of_table: Sums of the gradients of each bin, with shape (bins, GRADIENTS, d).
        of_slopes: Gradients by the slopes below and above all bins, with shape (2, d).
    """
    sums, few, s = buffer(len(table) * GRADIENTS), buffer(_FEW * ROWS), 0
    sums[:] = _ZERO
    for start in range(bounds[0], bounds[-1], _BLOCK):
        stop = min(start + _BLOCK, bounds[-1])
        while bounds[s + 1] <= start:
            s += 1
        for c in range(0, x.shape[1], LANES):
            _gradients(
                x, rows, bounds, start, stop, s, table, ends, c, is_inverse, gradient, result, of_table, of_slopes,
                sums, few,
            )  # fmt: skip
