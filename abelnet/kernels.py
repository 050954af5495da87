r"""Folds of sets of rows compiled by numba: each set is read once into the cache, and only its result is written.

Imported on first use, by :func:`abelnet.segments.kernels_for`. Rows :math:`(N, d)` are given in float32 with their
order by sets, and the ends of the sets in that order, :math:`(B + 1)`. Of a set, sixteen dimensions at a time are
folded in vector registers; see :mod:`abelnet.lanes`.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = [
    "AHEAD",
    "BLOCK",
    "LN_2",
    "TINY",
    "buffer",
    "compiled",
    "extreme",
    "extreme_gradient",
    "is_finite",
    "log_sum",
    "log_sum_exp",
    "log_sum_exp_gradient",
    "log_sum_gradient",
    "longest",
    "move",
    "order_by_set",
    "polynomial",
    "polynomial_gradient",
    "sum_of_powers",
    "trace",
]

import math

import numpy as np
from numba import njit

from abelnet.lanes import (
    LANES,
    address,
    any_of,
    double,
    double_zeros,
    exp2,
    fetch,
    fill,
    first,
    inverse,
    item,
    load,
    log2,
    maximum,
    minimum,
    single,
    size,
    store,
    where,
)

LN_2 = np.float32(math.log(2))
_ZERO, _ONE = np.float32(0), np.float32(1)
TINY = np.float32(np.finfo(np.float32).tiny)
_FAR = np.float32(math.sqrt(np.finfo(np.float32).max))
# Rows, and sets, whose sum is rounded to single precision; sums of more are added in double precision.
BLOCK = 64
# Largest number of dimensions: of more, what kernels need of a set does not stay in the cache.
LARGEST_DIM = 1024
# Rows, and what is read by set, that are fetched ahead.
AHEAD = 32
# Partial products within these limits neither overflow nor vanish, and nor do the products of all others.
_LEAST, _MOST = 1e-100, 1e100
# Partial products within these are differences from 1 without loss.
_MILD = 16.0
# Products up to this, and of this on, are divided in single precision.
_USUAL = 1e25


def compiled(function):
    """Compiles a kernel: it releases the interpreter, and is kept in a cache if there is a folder to write to."""
    options = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no folder can be written to
        return njit(**options)(function)


@njit(forceinline=True)
def trace(traces, v):
    """Returns zeros as long as all numbers are finite: 0 times infinity is NaN."""
    return traces + v * _ZERO


@njit(forceinline=True)
def is_finite(traces):
    """Whether all numbers that have left their traces are finite."""
    return not any_of(traces != _ZERO)


@njit
def move(sums, total):
    """Adds sums to a total in double precision, and starts again from 0."""
    for k in range(len(sums)):
        total[k] += sums[k]
        sums[k] = _ZERO


@njit
def longest(ends):
    """Returns the size of the largest set, of those that end here."""
    most = 0
    for s in range(len(ends) - 1):
        most = max(most, ends[s + 1] - ends[s])
    return most


@njit
def buffer(rows):
    """Returns space for rows of sixteen numbers, each in one line of the cache: others take twice as long to read."""
    space = np.empty((rows + 1) * LANES, np.float32)
    skipped = -space.ctypes.data % (4 * LANES) // 4
    return space[skipped : skipped + rows * LANES].reshape(rows, LANES)


@compiled
def order_by_set(index, count):
    """Returns the rows sorted by set, in the given order within each, and the ends of the sets; linear in their number.

    Ascending is whether they are sorted already.
    """
    ends = np.zeros(count + 1, np.int64)
    ascending, last = True, index[0] if len(index) > 0 else 0
    for one in index:
        ends[one + 1] += 1
        ascending &= one >= last
        last = one
    for s in range(count):
        ends[s + 1] += ends[s]
    rows = np.empty(len(index), np.int64)
    if ascending:
        for i in range(len(index)):
            rows[i] = i
        return rows, ends, True
    places = ends[:-1].copy()
    for i in range(len(index)):
        rows[places[index[i]]] = i
        places[index[i]] += 1
    return rows, ends, False


@compiled
def extreme(x, rows, ends, sign, result):
    """Writes the largest number of each set if ``sign`` is 1, the smallest if it is -1; infinite if it is empty.

    Returns whether all rows are finite, as other folds do.
    """
    d, last, traces = x.shape[1], len(rows) - 1, fill(_ZERO)
    x, rows, result = address(x), address(rows), address(result)
    for s in range(len(ends) - 1):
        for c in range(0, d, LANES):
            mask, top = first(d - c), fill(-np.inf)
            for i in range(ends[s], ends[s + 1]):
                fetch(x, item(rows, min(i + AHEAD, last)) * d + c)
                y = sign * load(x, item(rows, i) * d + c, mask)
                traces = trace(traces, y)
                top = where((y > top) | (y != y), y, top)  # NaN stays
            store(result, s * d + c, mask, sign * top)
    return is_finite(traces)


@compiled
def extreme_gradient(x, rows, ends, extremes, gradient, result):
    """Writes the gradient by the rows, which those at the extreme share."""
    d, last, last_set = x.shape[1], len(rows) - 1, len(ends) - 2
    x, rows, extremes = address(x), address(rows), address(extremes)
    gradient, result = address(gradient), address(result)
    for s in range(len(ends) - 1):
        for c in range(0, d, LANES):
            mask, count, later = first(d - c), fill(_ZERO), min(s + AHEAD, last_set) * d + c
            fetch(extremes, later)
            fetch(gradient, later)
            top, g = load(extremes, s * d + c, mask), load(gradient, s * d + c, mask)
            for i in range(ends[s], ends[s + 1]):
                ahead = item(rows, min(i + AHEAD, last)) * d + c
                fetch(x, ahead)
                fetch(result, ahead)
                count = where(load(x, item(rows, i) * d + c, mask) == top, count + _ONE, count)
            share = g / maximum(count, _ONE)
            for i in range(ends[s], ends[s + 1]):
                row = item(rows, i) * d + c
                store(result, row, mask, where(load(x, row, mask) == top, share, _ZERO))


@njit(forceinline=True)
def _some_powers(read, begin, end, extreme, rate):
    part, everything = fill(_ZERO), first(LANES)
    for i in range(begin, end):
        part = part + exp2((load(read, i * LANES, everything) - extreme) * rate)
    return part


@njit(forceinline=True)
def sum_of_powers(read, begin, count, extreme, rate):
    """Returns the sum of powers of 2, whose exponents are measured from the extreme; of many in double precision."""
    if count <= BLOCK:
        return _some_powers(read, begin, begin + count, extreme, rate)
    end, whole = begin + count, double_zeros()
    for start in range(begin, end, BLOCK):
        whole = whole + double(_some_powers(read, start, min(start + BLOCK, end), extreme, rate))
    return single(whole)


@njit
def _log_sum_exp(x, rows, ends, given, logs, exponent, top, total, result, read):
    d, last, unit, traces = x.shape[1], len(rows) - 1, LN_2 if logs else _ONE, fill(_ZERO)
    x, rows, given, read = address(x), address(rows), address(given), address(read)
    top, total, result = address(top), address(total), address(result)
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        log_count = exponent * np.float32(math.log2(max(stop - start, 1)))
        for c in range(0, d, LANES):
            mask, place = first(d - c), s * d + c
            sign, rate, least = load(given, c, mask), load(given, d + c, mask), load(given, 2 * d + c, mask)
            # A set of zeros, or of nothing, has a logarithm that is as good as -inf, but finite.
            extreme, everything = fill(-_FAR), first(LANES)
            for i in range(start, stop):
                fetch(x, item(rows, min(i + AHEAD, last)) * d + c)
                u = load(x, item(rows, i) * d + c, mask)
                traces = trace(traces, u)
                if logs:
                    u = log2(maximum(u, least))
                store(read, (i - start) * LANES, everything, u)
                extreme = maximum(sign * u, extreme)
            extreme = sign * extreme
            powers = maximum(sum_of_powers(read, 0, stop - start, extreme, rate), TINY)
            store(top, place, mask, extreme)
            store(total, place, mask, powers)
            store(result, place, mask, unit * (extreme + (log2(powers) - log_count) / rate))
    return is_finite(traces)


@compiled
def log_sum_exp(x, rows, ends, given, logs, exponent, top, total, result):
    r"""Writes :math:`\frac{1}{k} (\log \sum_i e^{k u_i} - a \log n)`, with u = x, or u = log max(x, least) if ``logs``.

    Returns whether all rows are finite.

    Arguments:
        given: Rows of the sign of k, of k (times log2(e) unless ``logs``: powers of 2 are what is added), and of the
            least number of which a logarithm is taken, which is positive and not subnormal.
        exponent: Exponent a of the count: 0 for sums, 1 for means.
        top: What elements of each set are measured from; a binary logarithm if ``logs``. Written.
        total: Sum of the powers of 2. Written.
    """
    return _log_sum_exp(x, rows, ends, given, logs, exponent, top, total, result, buffer(longest(ends)))


@njit
def _log_sum_exp_gradient(x, rows, ends, given, logs, exponent, top, total, gradient, result, sums):
    d, last = x.shape[1], len(rows) - 1
    x, rows, given, top, total = address(x), address(rows), address(given), address(top), address(total)
    gradient, result, sums = address(gradient), address(result), address(sums)
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        log_count = exponent * np.float32(math.log2(max(stop - start, 1)))
        for c in range(0, d if stop > start else 0, LANES):
            mask, place, later = first(d - c), s * d + c, (s + AHEAD) * d + c
            fetch(top, later)  # beyond the end this does nothing
            fetch(total, later)
            fetch(gradient, later)
            rate, least = load(given, d + c, mask), load(given, 2 * d + c, mask)
            extreme, powers, g = load(top, place, mask), load(total, place, mask), load(gradient, place, mask)
            factor, moment = g / powers, fill(_ZERO)
            for i in range(start, stop):
                row, ahead = item(rows, i) * d + c, item(rows, min(i + AHEAD, last)) * d + c
                fetch(x, ahead)
                fetch(result, ahead)
                v = load(x, row, mask)
                if logs:
                    u = maximum(v, least)
                    t = (log2(u) - extreme) * rate
                    w = factor * exp2(t)
                    store(result, row, mask, where(v < least, _ZERO, w * inverse(u)))
                else:
                    t = (v - extreme) * rate
                    w = factor * exp2(t)
                    store(result, row, mask, w)
                moment = moment + w * t
            store(sums, c, mask, load(sums, c, mask) + (moment - g * (log2(powers) - log_count)))


@compiled
def log_sum_exp_gradient(x, rows, ends, given, logs, exponent, top, total, gradient, result, of_rate):
    """Writes the gradient by the rows, and adds that by k, times k^2 / log 2; see :func:`log_sum_exp`."""
    sums = np.zeros(x.shape[1], np.float32)
    for begin in range(0, len(ends) - 1, BLOCK):
        some = slice(begin, begin + BLOCK)
        bounds = ends[begin : begin + BLOCK + 1]
        _log_sum_exp_gradient(
            x, rows, bounds, given, logs, exponent, top[some], total[some], gradient[some], result, sums
        )
        move(sums, of_rate)


@compiled
def log_sum(x, rows, ends, given, result):
    """Writes the sum of log max(x + offset, least) of each set; these are the two rows that are given.

    Returns whether all rows are finite.
    """
    d, last, traces = x.shape[1], len(rows) - 1, fill(_ZERO)
    x, rows, given, result = address(x), address(rows), address(given), address(result)
    for s in range(len(ends) - 1):
        for c in range(0, d, LANES):
            mask, whole = first(d - c), double_zeros()
            offset, least = load(given, c, mask), load(given, d + c, mask)
            for begin in range(ends[s], ends[s + 1], BLOCK):
                part = fill(_ZERO)
                for i in range(begin, min(begin + BLOCK, ends[s + 1])):
                    fetch(x, item(rows, min(i + AHEAD, last)) * d + c)
                    v = load(x, item(rows, i) * d + c, mask)
                    traces = trace(traces, v)
                    part = part + log2(maximum(v + offset, least))
                whole = whole + double(part)
            store(result, s * d + c, mask, LN_2 * single(whole))
    return is_finite(traces)


@njit
def _log_sum_gradient(x, rows, ends, given, gradient, result, sums):
    d, last = x.shape[1], len(rows) - 1
    x, rows, given = address(x), address(rows), address(given)
    gradient, result, sums = address(gradient), address(result), address(sums)
    for s in range(len(ends) - 1):
        for c in range(0, d, LANES):
            fetch(gradient, (s + AHEAD) * d + c)  # beyond the end this does nothing
            mask, total = first(d - c), fill(_ZERO)
            offset, least, g = load(given, c, mask), load(given, d + c, mask), load(gradient, s * d + c, mask)
            for i in range(ends[s], ends[s + 1]):
                row, ahead = item(rows, i) * d + c, item(rows, min(i + AHEAD, last)) * d + c
                fetch(x, ahead)
                fetch(result, ahead)
                u = load(x, row, mask) + offset
                quotient = g / maximum(u, least)
                store(result, row, mask, where(u < least, _ZERO, quotient))
                total = total + quotient
            store(sums, c, mask, load(sums, c, mask) + total)


@compiled
def log_sum_gradient(x, rows, ends, given, gradient, result, of_offset):
    """Writes the gradient by the rows, and adds that by the offset, as if rows were moved to keep what is least."""
    sums = np.zeros(x.shape[1], np.float32)
    for begin in range(0, len(ends) - 1, BLOCK):
        end = begin + BLOCK
        _log_sum_gradient(x, rows, ends[begin : end + 1], given, gradient[begin:end], result, sums)
        move(sums, of_offset)


@compiled
def polynomial(x, rows, ends, given, result):
    r"""Writes the fold of each set by :math:`u * v = \beta (u + v + s) + \gamma u v`, in double precision.

    By the law itself, one element after the other, where no partial product is far from 1, else by the product of the
    factors. Returns whether all rows are finite and all products within limits, where nothing overflows or vanishes
    on the way; else the result must not be used. The rows that are given are gamma, beta and the shift.
    """
    d, last, fine, traces = x.shape[1], len(rows) - 1, True, fill(_ZERO)
    x, rows, given, result = address(x), address(rows), address(given), address(result)
    for s in range(len(ends) - 1):
        for c in range(0, d, LANES):
            mask = first(d - c)
            gamma, beta, shift = load(given, c, mask), load(given, d + c, mask), load(given, 2 * d + c, mask)
            fold, product = double_zeros(), double_zeros() + 1.0
            least, most = product, product
            for i in range(ends[s], ends[s + 1]):
                fetch(x, item(rows, min(i + AHEAD, last)) * d + c)
                v = load(x, item(rows, i) * d + c, mask)
                traces = trace(traces, v)
                u = double(v)
                factor = gamma * u + beta
                fold = fold * factor + (u + shift)
                product = product * factor
                least, most = minimum(size(product), least), maximum(size(product), most)
            is_mild = (least * _MILD > 1.0) & (most < _MILD)
            fine &= not any_of(mask & ((least < _LEAST) | (most > _MOST)))
            store(result, s * d + c, mask, single(where(is_mild, fold - shift, (product - beta) / gamma)))
    return fine & is_finite(traces)


@compiled
def polynomial_gradient(x, rows, ends, given, gradient, result, of_gamma, of_shift):
    """Writes the gradient by the rows, and adds those by the coefficients; arguments as those of :func:`polynomial`."""
    d, last, last_set = x.shape[1], len(rows) - 1, len(ends) - 2
    x, rows, given, gradient = address(x), address(rows), address(given), address(gradient)
    result, of_gamma, of_shift = address(result), address(of_gamma), address(of_shift)
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        for c in range(0, d, LANES):
            mask = first(d - c)
            fetch(gradient, min(s + AHEAD, last_set) * d + c)
            g = double(load(gradient, s * d + c, mask))
            gamma, beta, shift = load(given, c, mask), load(given, d + c, mask), load(given, 2 * d + c, mask)
            fold, slope, product = double_zeros(), double_zeros(), double_zeros() + 1.0
            for i in range(start, stop):
                ahead = item(rows, min(i + AHEAD, last)) * d + c
                fetch(x, ahead)
                fetch(result, ahead)
                u = double(load(x, item(rows, i) * d + c, mask))
                factor, w = gamma * u + beta, u + shift
                slope = slope * factor + fold * w
                fold = fold * factor + w
                product = product * factor
            all_factors, total = g * product, double_zeros() - g
            if any_of(mask & ((size(product) > _USUAL) | (size(product) < 1 / _USUAL))):
                for i in range(start, stop):
                    row = item(rows, i) * d + c
                    found = all_factors / (gamma * double(load(x, row, mask)) + beta)
                    store(result, row, mask, single(found))
                    total = total + found
            else:
                others = single(all_factors)
                for i in range(start, stop):
                    row = item(rows, i) * d + c
                    found = others / single(gamma * double(load(x, row, mask)) + beta)
                    store(result, row, mask, found)
                    total = total + double(found)
            store(of_gamma, c, mask, load(of_gamma, c, mask) + g * slope)
            store(of_shift, c, mask, load(of_shift, c, mask) + total)
