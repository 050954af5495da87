r"""The formulas of a gated bank, compiled by numba: all laws of a set are folded while it is in the cache.

Imported on first use, by :mod:`abelnet.nn.mixture`; see :mod:`abelnet.lanes` for how kernels are written.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["EXPONENTIALS", "FORMULAS", "POWERS", "mix", "mix_gradient"]

import math

import numpy as np
from numba import njit

from abelnet.kernels import TINY, buffer, compiled, longest, move
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
# Rows, and sets, whose sum is rounded to single precision; sums of more are added in double precision.
_BLOCK = 64
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
def _read(x, rows, start, stop, last, d, column, mask, unit, use_logs, z, logs):
    """Reads a set in units into the cache; returns its extremes, its sum, and the sum of logarithms."""
    high, low, everything = fill(-np.inf), fill(np.inf), first(LANES)
    total, total_logs = double_zeros(), double_zeros()
    for begin in range(start, stop, _BLOCK):
        part, part_logs = fill(_ZERO), fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, stop)):
            fetch(x, item(rows, min(i + _AHEAD, last)) * d + column)
            one = load(x, item(rows, i) * d + column, mask) * unit
            store(z, (i - start) * LANES, everything, one)
            high, low = maximum(one, high), minimum(one, low)
            part = part + one
            if use_logs:
                log = log2(maximum(one, _SMALLEST))
                store(logs, (i - start) * LANES, everything, log)
                part_logs = part_logs + log
        total, total_logs = total + double(part), total_logs + double(part_logs)
    return high, low, single(total), single(total_logs)


@inlined
def _add_powers(z, count, extreme, rate):
    everything, total = first(LANES), double_zeros()
    for begin in range(0, count, _BLOCK):
        part = fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, count)):
            part = part + exp2((load(z, i * LANES, everything) - extreme) * rate)
        total = total + double(part)
    return maximum(single(total), TINY)


@inlined
def _keep_powers(z, count, extreme, rate, powers):
    """Writes the powers; returns their sum, and that of their products with the exponents."""
    everything, total, moment = first(LANES), double_zeros(), double_zeros()
    for begin in range(0, count, _BLOCK):
        part, part_moment = fill(_ZERO), fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, count)):
            t = (load(z, i * LANES, everything) - extreme) * rate
            power = exp2(t)
            store(powers, i * LANES, everything, power)
            part, part_moment = part + power, part_moment + power * t
        total, moment = total + double(part), moment + double(part_moment)
    return maximum(single(total), TINY), single(moment)


@inlined
def _spread_powers(powers, count, factor, result):
    """Adds the gradient by elements or logarithms."""
    everything = first(LANES)
    for i in range(count):
        found = load(result, i * LANES, everything) + factor * load(powers, i * LANES, everything)
        store(result, i * LANES, everything, found)


@inlined
def _extreme(high, low, rate, is_log):
    """Returns what powers are measured from: the extreme by the sign of the rate."""
    one = where(rate > _ZERO, high, low)
    if is_log:
        one = log2(maximum(one, _SMALLEST))
    return one


@inlined
def _limited(t):
    return exp2(maximum(minimum(t, _LOG_LIMIT), -_LOG_LIMIT))


@inlined
def _power_sum(extreme, total, inverse, log_count, is_log):
    """Returns the results of one rate or exponent: the sum and the mean."""
    fold = extreme + log2(total) * inverse
    mean = fold - log_count * inverse
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
def _multiply(z, count, gamma, shift, is_mild):
    """Returns the polynomial, the product of its factors, and its slope by gamma, by the law itself."""
    everything, gamma, shift = first(LANES), double(gamma), double(shift)
    fold, slope, product, inverse = double_zeros(), double_zeros(), double_zeros() + 1.0, 1.0 / gamma
    if is_mild:
        for i in range(count):
            u = double(load(z, i * LANES, everything)) + shift
            factor = gamma * u + 1.0
            slope = slope * factor + fold * u
            fold = fold * factor + u
            product = product * factor
    else:
        for i in range(count):
            u = double(load(z, i * LANES, everything)) + shift
            factor = gamma * u + 1.0
            is_near = size(factor) < 1e-6
            factor = where(is_near, where(factor < 0.0, double_zeros() - 1e-6, 1e-6), factor)
            near = (factor - 1.0) * inverse
            slope = _cut(slope * factor + where(is_near, (0.0 - near) * inverse, fold * u), _HUGE)
            fold = _cut(fold * factor + where(is_near, near, u), _HUGE)
            product = _cut(product * factor, _HUGE)
    limited = maximum(minimum(size(product), _FARTHEST), _NEAREST)
    limited = where(product < 0.0, 0.0 - limited, limited)
    is_one = (product > 0.5) & (product < 2.0)
    result = where(is_one, fold, (limited - 1.0) * inverse) - shift
    # Where the product is cut off, the slope is that of the limit, whose own logarithm is constant.
    is_inside = (size(product) >= _NEAREST) & (size(product) <= _FARTHEST)
    outside = where(size(product) > 1.0, limited, 0.0)
    slope = where(is_inside, slope, (1.0 - outside) * inverse * inverse)
    product = where(is_inside, product, 0.0)
    return single(_cut(result, _HUGE_SINGLE)), single(product), single(_cut(slope, _HUGE_SINGLE))


@inlined
def _spread_products(z, count, gamma, shift, factor, result):
    """Adds the gradient by elements: the factor, divided by that of each; returns their sum."""
    everything, total = first(LANES), fill(_ZERO)
    for i in range(count):
        own = gamma * (load(z, i * LANES, everything) + shift) + _ONE
        found = where(size(own) < _SMALLEST, _ZERO, factor / own)
        store(result, i * LANES, everything, load(result, i * LANES, everything) + found)
        total = total + found
    return total


@njit
def _mix(x, rows, ends, given, inverses, use, limit, result, z, logs):
    d, last = x.shape[1], max(ends[-1] - 1, 0)
    x, rows, given, inverses = address(x), address(rows), address(given), address(inverses)
    z, logs, result = address(z), address(logs), address(result)
    use_logs = use[3] | use[_USE_SUMS + EXPONENTIALS :].any()
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        count = np.float32(stop - start)
        log_count = np.float32(math.log2(max(stop - start, 1)))
        for c in range(0, d, LANES):
            mask, mixed = first(d - c), fill(_ZERO)
            if stop == start:
                store(result, s * d + c, mask, mixed)
                continue
            high, low, total, total_logs = _read(
                x, rows, start, stop, last, d, c, mask, load(given, _UNIT * d + c, mask), use_logs, z, logs
            )
            if use[0]:
                gamma, shift = load(given, _GAMMA * d + c, mask), load(given, _SHIFT * d + c, mask)
                is_mild = _is_mild(high, low, gamma, shift, stop - start)
                polynomial, _, _ = _multiply(z, stop - start, gamma, shift, is_mild)
                mixed = mixed + load(given, _WEIGHT * d + c, mask) * _cut(polynomial, limit)
            if use[1]:
                mixed = mixed + load(given, (_WEIGHT + 1) * d + c, mask) * _cut(total / count, limit)
            if use[2]:
                mixed = mixed + load(given, (_WEIGHT + 2) * d + c, mask) * _cut(high, limit)
                mixed = mixed + load(given, (_WEIGHT + 3) * d + c, mask) * _cut(low, limit)
            if use[3]:
                product = total_logs + (count - _ONE) * load(given, _FACTOR * d + c, mask)
                mixed = mixed + load(given, (_WEIGHT + 4) * d + c, mask) * _cut(_limited(total_logs / count), limit)
                mixed = mixed + load(given, (_WEIGHT + 5) * d + c, mask) * _cut(_limited(product), limit)
            for k in range(_SUMS):
                if use[_USE_SUMS + k]:
                    is_log, rate = k >= EXPONENTIALS, load(given, (_RATE + k) * d + c, mask)
                    extreme = _extreme(high, low, rate, is_log)
                    powers = _add_powers(logs if is_log else z, stop - start, extreme, rate)
                    fold, mean = _power_sum(extreme, powers, load(inverses, k * d + c, mask), log_count, is_log)
                    mixed = mixed + load(given, (_WEIGHT + 6 + 2 * k) * d + c, mask) * _cut(fold, limit)
                    mixed = mixed + load(given, (_WEIGHT + 7 + 2 * k) * d + c, mask) * _cut(mean, limit)
            store(result, s * d + c, mask, mixed)


@compiled
def mix(x, rows, ends, given, use, limit, result):
    """Writes the results of laws of each set, weighted; 0 if it is empty.

    Arguments:
        given: Coefficients, with shape (4 + sums + laws, d); see above.
        use: Flags of what is used.
        limit: Size beyond which results of laws are cut off.
        result: Shape (B, d), written.
    """
    z, logs = buffer(longest(ends)), buffer(longest(ends))
    _mix(x, rows, ends, given, _ONE / given[_RATE:_WEIGHT], use, limit, result, z, logs)


@inlined
def _add(sums, place, mask, value):
    store(sums, place, mask, load(sums, place, mask) + value)


@inlined
def _share(y, given, place, mask, gradient, limit, sums):
    """Returns the gradient by the result of one law, and adds that by its weight, which is at this place."""
    _add(sums, place, mask, gradient * _cut(y, limit))
    return where(size(y) <= limit, gradient * load(given, place, mask), _ZERO)


@inlined
def _number_of(z, count, one):
    """Returns how many elements are equal to one."""
    everything, number = first(LANES), fill(_ZERO)
    for i in range(count):
        number = where(load(z, i * LANES, everything) == one, number + _ONE, number)
    return number


@inlined
def _start(z, count, flat, high, at_high, low, at_low, result):
    """Writes the gradient by elements that is the same for all, and that by the extremes."""
    everything = first(LANES)
    for i in range(count):
        one = load(z, i * LANES, everything)
        found = where(one == high, flat + at_high, flat)
        store(result, i * LANES, everything, where(one == low, found + at_low, found))


@inlined
def _write(rows, start, count, d, column, mask, unit, use_logs, z, of_z, of_logs, result):
    """Writes the gradient by rows, from those by elements and by logarithms."""
    everything = first(LANES)
    for i in range(count):
        found = load(of_z, i * LANES, everything)
        if use_logs:
            one = load(z, i * LANES, everything)
            found = found + where(one < _SMALLEST, _ZERO, load(of_logs, i * LANES, everything) / one)
        store(result, item(rows, start + i) * d + column, mask, found * unit)


@njit
def _mix_gradient(x, rows, ends, given, inverses, use, limit, gradient, result, buffers, sums):
    d, last, everything = x.shape[1], max(ends[-1] - 1, 0), first(LANES)
    x, rows, given, inverses = address(x), address(rows), address(given), address(inverses)
    z, logs, powers = address(buffers[0]), address(buffers[1]), address(buffers[2])
    of_z, of_logs = address(buffers[3]), address(buffers[4])
    sums, result, gradient = address(sums), address(result), address(gradient)
    use_logs = use[3] | use[_USE_SUMS + EXPONENTIALS :].any()
    for s in range(len(ends) - 1):
        start, number = ends[s], ends[s + 1] - ends[s]
        count, log_count = np.float32(number), np.float32(math.log2(max(number, 1)))
        for c in range(0, d if number > 0 else 0, LANES):
            mask = first(d - c)
            g, unit = load(gradient, s * d + c, mask), load(given, _UNIT * d + c, mask)
            for i in range(number):
                fetch(result, item(rows, min(start + i + _AHEAD, last)) * d + c)
            high, low, total, total_logs = _read(
                x, rows, start, start + number, last, d, c, mask, unit, use_logs, z, logs
            )
            flat = fill(_ZERO)
            if use[1]:
                flat = _share(total / count, given, (_WEIGHT + 1) * d + c, mask, g, limit, sums) / count
            if use[2]:
                at_high = _share(high, given, (_WEIGHT + 2) * d + c, mask, g, limit, sums) / _number_of(z, number, high)
                at_low = _share(low, given, (_WEIGHT + 3) * d + c, mask, g, limit, sums) / _number_of(z, number, low)
            else:
                at_high, at_low = fill(_ZERO), fill(_ZERO)
            _start(z, number, flat, high, at_high, low, at_low, of_z)
            if use[0]:
                gamma, shift = load(given, _GAMMA * d + c, mask), load(given, _SHIFT * d + c, mask)
                is_mild = _is_mild(high, low, gamma, shift, number)
                polynomial, product, slope = _multiply(z, number, gamma, shift, is_mild)
                share = _share(polynomial, given, _WEIGHT * d + c, mask, g, limit, sums)
                found = _spread_products(z, number, gamma, shift, share * product, of_z)
                _add(sums, _SHIFT * d + c, mask, found - share)
                _add(sums, _GAMMA * d + c, mask, share * slope)
            if use_logs:
                flat = fill(_ZERO)
                if use[3]:
                    mean = total_logs / count
                    product = total_logs + (count - _ONE) * load(given, _FACTOR * d + c, mask)
                    y = _limited(mean)
                    share = y * _share(y, given, (_WEIGHT + 4) * d + c, mask, g, limit, sums)
                    flat = where(size(mean) <= _LOG_LIMIT, share / count, _ZERO)
                    y = _limited(product)
                    share = y * _share(y, given, (_WEIGHT + 5) * d + c, mask, g, limit, sums)
                    share = where(size(product) <= _LOG_LIMIT, share, _ZERO)
                    flat = flat + share
                    _add(sums, _FACTOR * d + c, mask, share * (count - _ONE))
                for i in range(number):
                    store(of_logs, i * LANES, everything, flat)
            for k in range(_SUMS):
                if use[_USE_SUMS + k]:
                    is_log, rate, law = k >= EXPONENTIALS, load(given, (_RATE + k) * d + c, mask), 6 + 2 * k
                    extreme = _extreme(high, low, rate, is_log)
                    total, moment = _keep_powers(logs if is_log else z, number, extreme, rate, powers)
                    inverse = load(inverses, k * d + c, mask)
                    fold, mean = _power_sum(extreme, total, inverse, log_count, is_log)
                    share = _share(fold, given, (_WEIGHT + law) * d + c, mask, g, limit, sums)
                    other = _share(mean, given, (_WEIGHT + law + 1) * d + c, mask, g, limit, sums)
                    if is_log:
                        share = where((fold > _LEAST_POWER) & (fold < _LARGEST_POWER), share * fold, _ZERO)
                        other = where((mean > _LEAST_POWER) & (mean < _LARGEST_POWER), other * mean, _ZERO)
                    factor = (share + other) / total
                    _spread_powers(powers, number, factor, of_logs if is_log else of_z)
                    change = factor * moment - (share + other) * log2(total) + other * log_count
                    _add(sums, (_RATE + k) * d + c, mask, change * inverse * inverse)
            _write(rows, start, number, d, c, mask, unit, use_logs, z, of_z, of_logs, result)


@compiled
def mix_gradient(x, rows, ends, given, use, limit, gradient, result, of_given):
    """Writes the gradient by the rows, and adds those by the coefficients; arguments as those of :func:`mix`.

    Gradients by rates and exponents are in units of log 2, those by weights of the products with units.
    """
    rows_of_set = longest(ends)
    buffers, sums = buffer(5 * rows_of_set).reshape(5, rows_of_set, LANES), np.zeros(given.shape, np.float32)
    inverses = _ONE / given[_RATE:_WEIGHT]
    for begin in range(0, len(ends) - 1, _BLOCK):
        end = begin + _BLOCK
        _mix_gradient(
            x, rows, ends[begin : end + 1], given, inverses, use, limit, gradient[begin:end], result, buffers, sums
        )
        move(sums.reshape(-1), of_given.reshape(-1))
