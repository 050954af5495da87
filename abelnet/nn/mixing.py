r"""The formulas of a gated bank, compiled by numba: all laws of a set are folded while it is in the cache.

Imported on first use, by :mod:`abelnet.nn.mixture`; see :mod:`abelnet.lanes` for how kernels are written.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["EXPONENTIALS", "FORMULAS", "POWERS", "mix", "mix_gradient"]

import math

import numpy as np
from numba import njit

from abelnet.kernels import buffer, compiled, longest, move, sum_of_powers
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

# Number of log-sum-exp and of power sums, and of all laws: a polynomial, mean, maximum, minimum, geometric mean,
# product, and for each rate and exponent a sum and a mean.
EXPONENTIALS, POWERS = 4, 3
_SUMS = EXPONENTIALS + POWERS
FORMULAS = 6 + 2 * _SUMS
# Rows of coefficients that are given: units per element, gamma, shift, the factor of products; then rates, exponents,
# and weights of laws. Logarithms, rates and exponents are of powers of 2.
_UNIT, _GAMMA, _SHIFT, _FACTOR, _RATE = 0, 1, 2, 3, 4
_WEIGHT = _RATE + _SUMS
# Flags of what is used: the polynomial, the mean, extremes, logarithms, then each rate and exponent.
_USE_SUMS = 4
# What is known of a set, a row each: extremes, sums of elements and of logarithms, logarithms of extremes, the
# polynomial, the product of its factors and its slope; then, for each rate and exponent, the sum of powers and that of
# their products with the exponents.
_HIGH, _LOW, _TOTAL, _LOGS, _LOG_HIGH, _LOG_LOW, _POLYNOMIAL, _PRODUCT, _SLOPE, _POWERS = range(10)
_MOMENTS = _POWERS + _SUMS
_KNOWN = _MOMENTS + _SUMS
# Gradients by elements of a set, a row each: that of all elements, those of extremes, the numerator of those by factors
# of the polynomial and the gradient by it, that by all logarithms, and those by powers.
_FLAT, _AT_HIGH, _AT_LOW, _OF_FACTORS, _OF_POLYNOMIAL, _OF_LOGS, _OF_POWERS = range(7)
_SHARES = _OF_POWERS + _SUMS
# Rows, and sets, whose sum is rounded to single precision; sums of more are added in double precision.
_BLOCK = 64
# Sets and rows that are folded one after the other before their laws are computed: then nothing waits for a result.
_GROUP, _ROOM = 16, 40
# Rows that are fetched ahead.
_AHEAD = 16
inlined = njit(forceinline=True)
_ZERO, _ONE = np.float32(0), np.float32(1)
_SMALLEST = np.float32(1e-6)  # as in members
_LOG_LIMIT = np.float32(30 * math.log2(math.e))
_LEAST_POWER, _LARGEST_POWER = np.float32(math.exp(-30)), np.float32(math.exp(30))
_NEAREST, _FARTHEST = math.exp(-30), math.exp(30)
# Partial products are cut off here, which needs no thought if factors are mild and few.
_HUGE, _MILD, _FEW = 1e150, np.float32(16), 100
_HUGE_SINGLE = 1e37


@inlined
def _get(known, s, row):
    return load(known, (s * _KNOWN + row) * LANES, first(LANES))


@inlined
def _know(known, s, row, value):
    store(known, (s * _KNOWN + row) * LANES, first(LANES), value)


@inlined
def _read(x, rows, start, stop, last, d, column, mask, unit, use_logs, z, logs, at):
    """Reads a set in units into the cache; returns its extremes."""
    high, low, everything = fill(-np.inf), fill(np.inf), first(LANES)
    for i in range(start, stop):
        fetch(x, item(rows, min(i + _AHEAD, last)) * d + column)
        one = load(x, item(rows, i) * d + column, mask) * unit
        store(z, (at + i - start) * LANES, everything, one)
        high, low = maximum(one, high), minimum(one, low)
        if use_logs:
            store(logs, (at + i - start) * LANES, everything, log2(maximum(one, _SMALLEST)))
    return high, low


@inlined
def _total(z, at, count):
    """Returns the sum of a set."""
    everything, part, total = first(LANES), fill(_ZERO), double_zeros()
    if count <= _BLOCK:
        for i in range(at, at + count):
            part = part + load(z, i * LANES, everything)
        return part
    for begin in range(at, at + count, _BLOCK):
        part = fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, at + count)):
            part = part + load(z, i * LANES, everything)
        total = total + double(part)
    return single(total)


@inlined
def _keep_some_powers(z, begin, end, extreme, rate, powers, place):
    everything, part, moment = first(LANES), fill(_ZERO), fill(_ZERO)
    for i in range(begin, end):
        t = (load(z, i * LANES, everything) - extreme) * rate
        power = exp2(t)
        store(powers, (place + i) * LANES, everything, power)
        part, moment = part + power, moment + power * t
    return part, moment


@inlined
def _keep_powers(z, at, count, extreme, rate, powers, place):
    """Writes the powers; returns their sum, and that of their products with the exponents."""
    if count <= _BLOCK:
        return _keep_some_powers(z, at, at + count, extreme, rate, powers, place)
    total, moment = double_zeros(), double_zeros()
    for begin in range(at, at + count, _BLOCK):
        end = min(begin + _BLOCK, at + count)
        part, part_moment = _keep_some_powers(z, begin, end, extreme, rate, powers, place)
        total, moment = total + double(part), moment + double(part_moment)
    return single(total), single(moment)


@inlined
def _limited(t):
    return exp2(maximum(minimum(t, _LOG_LIMIT), -_LOG_LIMIT))


@inlined
def _extreme(known, s, rate, is_log):
    """Returns what powers are measured from: the extreme by the sign of the rate."""
    if is_log:
        one = where(rate > _ZERO, _get(known, s, _LOG_HIGH), _get(known, s, _LOG_LOW))
    else:
        one = where(rate > _ZERO, _get(known, s, _HIGH), _get(known, s, _LOW))
    return one


@inlined
def _power_sum(extreme, total, reciprocal, log_count, is_log):
    """Returns the results of one rate or exponent: the sum and the mean."""
    fold = extreme + log2(total) * reciprocal
    mean = fold - log_count * reciprocal
    if is_log:
        fold, mean = _limited(fold), _limited(mean)
    return fold, mean


@inlined
def _cut(y, limit):
    return maximum(minimum(y, limit), -limit)


@inlined
def _is_mild(high, low, gamma, shift, count):
    """Whether no factor is near 0, and no partial product far out."""
    a, b = gamma * (high + shift) + _ONE, gamma * (low + shift) + _ONE
    least, most = minimum(a, b), maximum(a, b)
    return count <= _FEW and not any_of((least < _ONE / _MILD) | (most > _MILD))


@inlined
def _multiply(z, at, count, gamma, shift, is_mild):
    """Returns the polynomial, the product of its factors, and its slope by gamma, by the law itself."""
    everything, gamma, shift = first(LANES), double(gamma), double(shift)
    fold, slope, product, reciprocal = double_zeros(), double_zeros(), double_zeros() + 1.0, 1.0 / gamma
    if is_mild:
        for i in range(at, at + count):
            u = double(load(z, i * LANES, everything)) + shift
            factor = gamma * u + 1.0
            slope = slope * factor + fold * u
            fold = fold * factor + u
            product = product * factor
    else:
        for i in range(at, at + count):
            u = double(load(z, i * LANES, everything)) + shift
            factor = gamma * u + 1.0
            is_near = size(factor) < 1e-6
            factor = where(is_near, where(factor < 0.0, double_zeros() - 1e-6, 1e-6), factor)
            near = (factor - 1.0) * reciprocal
            slope = _cut(slope * factor + where(is_near, (0.0 - near) * reciprocal, fold * u), _HUGE)
            fold = _cut(fold * factor + where(is_near, near, u), _HUGE)
            product = _cut(product * factor, _HUGE)
    limited = maximum(minimum(size(product), _FARTHEST), _NEAREST)
    limited = where(product < 0.0, 0.0 - limited, limited)
    is_one = (product > 0.5) & (product < 2.0)
    result = where(is_one, fold, (limited - 1.0) * reciprocal) - shift
    # Where the product is cut off, the slope is that of the limit, whose own logarithm is constant.
    is_inside = (size(product) >= _NEAREST) & (size(product) <= _FARTHEST)
    outside = where(size(product) > 1.0, limited, 0.0)
    slope = where(is_inside, slope, (1.0 - outside) * reciprocal * reciprocal)
    product = where(is_inside, product, 0.0)
    return single(_cut(result, _HUGE_SINGLE)), single(product), single(_cut(slope, _HUGE_SINGLE))


@inlined
def _fold(x, rows, start, stop, last, d, c, mask, given, use, use_logs, is_kept, z, logs, powers, room, at, known, s):
    """Writes what laws need of a set, and its powers if they are kept; its rows are from a place of the cache on."""
    count, unit = stop - start, load(given, _UNIT * d + c, mask)
    high, low = _read(x, rows, start, stop, last, d, c, mask, unit, use_logs, z, logs, at)
    _know(known, s, _HIGH, high)
    _know(known, s, _LOW, low)
    if use[1]:
        _know(known, s, _TOTAL, _total(z, at, count))
    if use[3]:
        _know(known, s, _LOGS, _total(logs, at, count))
    if use_logs:
        _know(known, s, _LOG_HIGH, log2(maximum(high, _SMALLEST)))
        _know(known, s, _LOG_LOW, log2(maximum(low, _SMALLEST)))
    if use[0]:
        gamma, shift = load(given, _GAMMA * d + c, mask), load(given, _SHIFT * d + c, mask)
        is_mild = _is_mild(high, low, gamma, shift, count)
        polynomial, product, slope = _multiply(z, at, count, gamma, shift, is_mild)
        _know(known, s, _POLYNOMIAL, polynomial)
        _know(known, s, _PRODUCT, product)
        _know(known, s, _SLOPE, slope)
    for k in range(_SUMS):
        if use[_USE_SUMS + k]:
            is_log, rate = k >= EXPONENTIALS, load(given, (_RATE + k) * d + c, mask)
            source, extreme = logs if is_log else z, _extreme(known, s, rate, is_log)
            if is_kept:
                total, moment = _keep_powers(source, at, count, extreme, rate, powers, k * room)
                _know(known, s, _MOMENTS + k, moment)
            else:
                total = sum_of_powers(source, at, count, extreme, rate)
            _know(known, s, _POWERS + k, total)


@inlined
def _end_of_group(ends, begin, sets, room):
    """Returns the set after the last that is folded together with one: all are in the cache."""
    end = begin + 1
    while end < min(sets, begin + _GROUP) and item(ends, end + 1) - item(ends, begin) <= room:
        end += 1
    return end


@inlined
def _mixed(known, s, number, d, c, mask, given, inverses, use, limit):
    """Returns the weighted results of laws."""
    mixed, count, log_count = fill(_ZERO), np.float32(number), np.float32(math.log2(number))
    if use[0]:
        mixed = mixed + load(given, _WEIGHT * d + c, mask) * _cut(_get(known, s, _POLYNOMIAL), limit)
    if use[1]:
        mixed = mixed + load(given, (_WEIGHT + 1) * d + c, mask) * _cut(_get(known, s, _TOTAL) / count, limit)
    if use[2]:
        mixed = mixed + load(given, (_WEIGHT + 2) * d + c, mask) * _cut(_get(known, s, _HIGH), limit)
        mixed = mixed + load(given, (_WEIGHT + 3) * d + c, mask) * _cut(_get(known, s, _LOW), limit)
    if use[3]:
        logs = _get(known, s, _LOGS)
        product = logs + (count - _ONE) * load(given, _FACTOR * d + c, mask)
        mixed = mixed + load(given, (_WEIGHT + 4) * d + c, mask) * _cut(_limited(logs / count), limit)
        mixed = mixed + load(given, (_WEIGHT + 5) * d + c, mask) * _cut(_limited(product), limit)
    for k in range(_SUMS):
        if use[_USE_SUMS + k]:
            is_log, rate = k >= EXPONENTIALS, load(given, (_RATE + k) * d + c, mask)
            extreme, reciprocal = _extreme(known, s, rate, is_log), load(inverses, k * d + c, mask)
            fold, mean = _power_sum(extreme, _get(known, s, _POWERS + k), reciprocal, log_count, is_log)
            mixed = mixed + load(given, (_WEIGHT + 6 + 2 * k) * d + c, mask) * _cut(fold, limit)
            mixed = mixed + load(given, (_WEIGHT + 7 + 2 * k) * d + c, mask) * _cut(mean, limit)
    return mixed


@njit
def _mix(x, rows, ends, given, inverses, use, limit, result, z, logs, known):
    d, sets, last, room, begin = x.shape[1], len(ends) - 1, ends[-1] - 1, len(z), 0
    x, rows, ends, given, inverses = address(x), address(rows), address(ends), address(given), address(inverses)
    z, logs, known, result = address(z), address(logs), address(known), address(result)
    use_logs = use[3] | use[_USE_SUMS + EXPONENTIALS :].any()
    while begin < sets:
        end, base = _end_of_group(ends, begin, sets, room), item(ends, begin)
        for c in range(0, d, LANES):
            mask = first(d - c)
            for s in range(begin, end):
                start, stop = item(ends, s), item(ends, s + 1)
                if stop > start:
                    _fold(
                        x, rows, start, stop, last, d, c, mask, given, use, use_logs, False, z, logs, z, 0,
                        start - base, known, s - begin,
                    )  # fmt: skip
            for s in range(begin, end):
                mixed, number = fill(_ZERO), item(ends, s + 1) - item(ends, s)
                if number > 0:
                    mixed = _mixed(known, s - begin, number, d, c, mask, given, inverses, use, limit)
                store(result, s * d + c, mask, mixed)
        begin = end


@compiled
def mix(x, rows, ends, given, use, limit, result):
    """Writes the results of laws of each set, weighted; 0 if it is empty.

    Arguments:
        given: Coefficients, with shape (4 + sums + laws, d); see above.
        use: Flags of what is used.
        limit: Size beyond which results of laws are cut off.
        result: Shape (B, d), written.
    """
    room = max(longest(ends), _ROOM)
    z, logs, known = buffer(room), buffer(room), buffer(_GROUP * _KNOWN)
    _mix(x, rows, ends, given, _ONE / given[_RATE:_WEIGHT], use, limit, result, z, logs, known)


@inlined
def _add(sums, place, mask, value):
    store(sums, place, mask, load(sums, place, mask) + value)


@inlined
def _share(y, given, place, mask, gradient, limit, sums):
    """Returns the gradient by the result of one law, and adds that by its weight, which is at this place."""
    _add(sums, place, mask, gradient * _cut(y, limit))
    return where(size(y) <= limit, gradient * load(given, place, mask), _ZERO)


@inlined
def _numbers_of(z, at, count, high, low):
    """Returns how many elements are equal to the extremes."""
    everything, highs, lows = first(LANES), fill(_ZERO), fill(_ZERO)
    for i in range(at, at + count):
        one = load(z, i * LANES, everything)
        highs, lows = where(one == high, highs + _ONE, highs), where(one == low, lows + _ONE, lows)
    return highs, lows


@inlined
def _put_share(shares, s, row, value):
    store(shares, (s * _SHARES + row) * LANES, first(LANES), value)


@inlined
def _share_of(shares, s, row):
    return load(shares, (s * _SHARES + row) * LANES, first(LANES))


@inlined
def _share_logs(known, s, count, d, c, mask, given, limit, g, sums):
    """Returns the gradient by all logarithms, through the geometric mean and the product."""
    logs = _get(known, s, _LOGS)
    mean, product = logs / count, logs + (count - _ONE) * load(given, _FACTOR * d + c, mask)
    y = _limited(mean)
    share = y * _share(y, given, (_WEIGHT + 4) * d + c, mask, g, limit, sums)
    flat = where(size(mean) <= _LOG_LIMIT, share / count, _ZERO)
    y = _limited(product)
    share = y * _share(y, given, (_WEIGHT + 5) * d + c, mask, g, limit, sums)
    share = where(size(product) <= _LOG_LIMIT, share, _ZERO)
    _add(sums, _FACTOR * d + c, mask, share * (count - _ONE))
    return flat + share


@inlined
def _share_all(known, s, number, z, at, d, c, mask, given, inverses, use, limit, g, sums, shares):
    """Writes the gradients by elements that are the same for all of a set, and adds those by coefficients."""
    count, log_count = np.float32(number), np.float32(math.log2(number))
    flat, at_high, at_low, of_logs = fill(_ZERO), fill(_ZERO), fill(_ZERO), fill(_ZERO)
    if use[0]:
        share = _share(_get(known, s, _POLYNOMIAL), given, _WEIGHT * d + c, mask, g, limit, sums)
        _put_share(shares, s, _OF_POLYNOMIAL, share)
        _put_share(shares, s, _OF_FACTORS, share * _get(known, s, _PRODUCT))
        _add(sums, _GAMMA * d + c, mask, share * _get(known, s, _SLOPE))
    if use[1]:
        flat = _share(_get(known, s, _TOTAL) / count, given, (_WEIGHT + 1) * d + c, mask, g, limit, sums) / count
    if use[2]:
        high, low = _get(known, s, _HIGH), _get(known, s, _LOW)
        highs, lows = _numbers_of(z, at, number, high, low)
        at_high = _share(high, given, (_WEIGHT + 2) * d + c, mask, g, limit, sums) / highs
        at_low = _share(low, given, (_WEIGHT + 3) * d + c, mask, g, limit, sums) / lows
    if use[3]:
        of_logs = _share_logs(known, s, count, d, c, mask, given, limit, g, sums)
    _put_share(shares, s, _FLAT, flat)
    _put_share(shares, s, _AT_HIGH, at_high)
    _put_share(shares, s, _AT_LOW, at_low)
    _put_share(shares, s, _OF_LOGS, of_logs)
    for k in range(_SUMS):
        if use[_USE_SUMS + k]:
            is_log, rate, law = k >= EXPONENTIALS, load(given, (_RATE + k) * d + c, mask), 6 + 2 * k
            extreme, reciprocal = _extreme(known, s, rate, is_log), load(inverses, k * d + c, mask)
            total = _get(known, s, _POWERS + k)
            fold, mean = _power_sum(extreme, total, reciprocal, log_count, is_log)
            share = _share(fold, given, (_WEIGHT + law) * d + c, mask, g, limit, sums)
            other = _share(mean, given, (_WEIGHT + law + 1) * d + c, mask, g, limit, sums)
            if is_log:
                share = where((fold > _LEAST_POWER) & (fold < _LARGEST_POWER), share * fold, _ZERO)
                other = where((mean > _LEAST_POWER) & (mean < _LARGEST_POWER), other * mean, _ZERO)
            factor = (share + other) / total
            _put_share(shares, s, _OF_POWERS + k, factor)
            change = factor * _get(known, s, _MOMENTS + k) - (share + other) * log2(total) + other * log_count
            _add(sums, (_RATE + k) * d + c, mask, change * reciprocal * reciprocal)


@inlined
def _power(powers, k, room, place):
    return load(powers, (k * room + place) * LANES, first(LANES))


@inlined
def _write(rows, start, number, d, c, mask, given, uses, z, powers, room, at, known, shares, s, result, sums):
    """Writes the gradient by the rows of a set, and adds that by the shift."""
    use_factors, use_logs = uses
    everything, total, unit = first(LANES), fill(_ZERO), load(given, _UNIT * d + c, mask)
    gamma, shift = load(given, _GAMMA * d + c, mask), load(given, _SHIFT * d + c, mask)
    high, low = _get(known, s, _HIGH), _get(known, s, _LOW)
    flat, at_high, at_low = _share_of(shares, s, _FLAT), _share_of(shares, s, _AT_HIGH), _share_of(shares, s, _AT_LOW)
    of_factors, of_logs = _share_of(shares, s, _OF_FACTORS), _share_of(shares, s, _OF_LOGS)
    p, q = _share_of(shares, s, _OF_POWERS), _share_of(shares, s, _OF_POWERS + 1)
    v, w = _share_of(shares, s, _OF_POWERS + 2), _share_of(shares, s, _OF_POWERS + 3)
    e, f, g = (
        _share_of(shares, s, _OF_POWERS + 4),
        _share_of(shares, s, _OF_POWERS + 5),
        _share_of(shares, s, _OF_POWERS + 6),
    )
    for i in range(at, at + number):
        one = load(z, i * LANES, everything)
        found = where(one == high, flat + at_high, flat)
        found = where(one == low, found + at_low, found)
        if use_factors:
            own = gamma * (one + shift) + _ONE
            part = where(size(own) < _SMALLEST, _ZERO, of_factors * inverse(own))
            found, total = found + part, total + part
        found = found + (p * _power(powers, 0, room, i) + q * _power(powers, 1, room, i))
        found = found + (v * _power(powers, 2, room, i) + w * _power(powers, 3, room, i))
        if use_logs:
            others = of_logs + e * _power(powers, 4, room, i)
            others = others + (f * _power(powers, 5, room, i) + g * _power(powers, 6, room, i))
            found = found + where(one < _SMALLEST, _ZERO, others * inverse(one))
        store(result, item(rows, start + i - at) * d + c, mask, found * unit)
    if use_factors:
        _add(sums, _SHIFT * d + c, mask, total - _share_of(shares, s, _OF_POLYNOMIAL))


@njit
def _mix_gradient(
    x, rows, ends, last, given, inverses, use, limit, gradient, result, z, logs, powers, known, shares, sums
):
    d, sets, room, begin = x.shape[1], len(ends) - 1, len(z), 0
    x, rows, ends, given, inverses = address(x), address(rows), address(ends), address(given), address(inverses)
    z, logs, powers, known, shares = address(z), address(logs), address(powers), address(known), address(shares)
    sums, result, gradient = address(sums), address(result), address(gradient)
    use_logs = use[3] | use[_USE_SUMS + EXPONENTIALS :].any()
    while begin < sets:
        end, base = _end_of_group(ends, begin, sets, room), item(ends, begin)
        for c in range(0, d, LANES):
            mask = first(d - c)
            for s in range(begin, end):
                start, stop = item(ends, s), item(ends, s + 1)
                for i in range(start, stop):
                    fetch(result, item(rows, min(i + _AHEAD, last)) * d + c)
                if stop > start:
                    _fold(
                        x, rows, start, stop, last, d, c, mask, given, use, use_logs, True, z, logs, powers, room,
                        start - base, known, s - begin,
                    )  # fmt: skip
            for s in range(begin, end):
                start, number, g = item(ends, s), item(ends, s + 1) - item(ends, s), load(gradient, s * d + c, mask)
                if number > 0:
                    _share_all(
                        known, s - begin, number, z, start - base, d, c, mask, given, inverses, use, limit, g, sums,
                        shares,
                    )  # fmt: skip
            for s in range(begin, end):
                start, number = item(ends, s), item(ends, s + 1) - item(ends, s)
                if number > 0:
                    _write(
                        rows, start, number, d, c, mask, given, (use[0], use_logs), z, powers, room, start - base,
                        known, shares, s - begin, result, sums,
                    )  # fmt: skip
        begin = end


@compiled
def mix_gradient(x, rows, ends, given, use, limit, gradient, result, of_given):
    """Writes the gradient by the rows, and adds those by the coefficients; arguments as those of :func:`mix`.

    Gradients by rates and exponents are in units of log 2, those by weights of the products with units.
    """
    room, inverses = max(longest(ends), _ROOM), _ONE / given[_RATE:_WEIGHT]
    z, logs, powers, sums = buffer(room), buffer(room), buffer(_SUMS * room), np.zeros(given.shape, np.float32)
    known, shares = buffer(_GROUP * _KNOWN), buffer(_GROUP * _SHARES)
    powers[:], shares[:] = _ZERO, _ZERO  # those of laws that are not used
    for begin in range(0, len(ends) - 1, _BLOCK):
        some = slice(begin, begin + _BLOCK)
        _mix_gradient(
            x, rows, ends[begin : begin + _BLOCK + 1], ends[-1] - 1, given, inverses, use, limit, gradient[some],
            result, z, logs, powers, known, shares, sums,
        )  # fmt: skip
        move(sums.reshape(-1), of_given.reshape(-1))
