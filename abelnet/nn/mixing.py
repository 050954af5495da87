r"""The formulas of a gated bank, compiled by numba: all laws of a set are folded while it is in the cache.

Imported on first use, by :mod:`abelnet.nn.mixture`; see :mod:`abelnet.kernels` for how kernels are written.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["EXPONENTIALS", "FORMULAS", "KEPT", "POWERS", "mix", "mix_gradient"]

import math

import numpy as np
from numba import njit

from abelnet.kernels import TINY, WIDTH, compiled, exp2, fetch, log2

# Number of log-sum-exp and of power sums, and of all laws: a polynomial, mean, maximum, minimum, geometric mean,
# product, and for each rate and exponent a sum and a mean.
EXPONENTIALS, POWERS = 4, 3
_SUMS = EXPONENTIALS + POWERS
FORMULAS = 6 + 2 * _SUMS
# What is kept of each set: its largest and smallest element, its sum, the sum of logarithms, and those of powers of 2.
KEPT = 4 + _SUMS
# Rows of coefficients that are given: units per element, gamma, shift, the factor of products; then rates, exponents,
# and weights of laws. Logarithms, rates and exponents are of powers of 2.
_UNIT, _GAMMA, _SHIFT, _FACTOR, _RATE = 0, 1, 2, 3, 4
_WEIGHT = _RATE + _SUMS
# Flags of what is used: the polynomial, the mean, extremes, logarithms, then each rate and exponent.
_USE_SUMS = 4
_AHEAD = 12
_ZERO, _ONE = np.float32(0), np.float32(1)
_SMALLEST = np.float32(1e-6)  # as in members
_LOG_LIMIT = np.float32(30 * math.log2(math.e))
_NEAREST, _FARTHEST, _HUGE = math.exp(-30), math.exp(30), 1e150


@njit(inline="always")
def _limited(t):
    t = _LOG_LIMIT if t > _LOG_LIMIT else t
    return exp2(-_LOG_LIMIT if t < -_LOG_LIMIT else t)


@njit(inline="always")
def _cut(y, limit):
    y = y if y < limit else limit
    return y if y > -limit else -limit


@compiled
def _read(x, rows, start, stop, last, unit, use_logs, z, logs, kept):
    """Reads a set in units into the cache, with its extremes, its sum, and the logarithms and their sum."""
    d = x.shape[1]
    work = np.empty((5, WIDTH), np.float32)
    for j in range(d):
        work[0, j] = unit[j]
        work[1, j] = -np.inf
        work[2, j] = np.inf
        work[3, j] = work[4, j] = _ZERO
    for i in range(stop - start):
        row = rows[start + i]
        fetch(x, rows[min(start + i + _AHEAD, last)])
        for j in range(d):
            one = x[row, j] * work[0, j]
            z[i, j] = one
            work[1, j] = one if one > work[1, j] else work[1, j]
            work[2, j] = one if one < work[2, j] else work[2, j]
            work[3, j] += one
        if use_logs:
            for j in range(d):
                one = z[i, j]
                log = log2(one if one > _SMALLEST else _SMALLEST)
                logs[i, j] = log
                work[4, j] += log
    for j in range(d):
        kept[0, j] = work[1, j]
        kept[1, j] = work[2, j]
    for j in range(d):
        kept[2, j] = work[3, j]
        kept[3, j] = work[4, j]


@compiled
def _extreme(kept, rate, is_log, d, result):
    """Writes what powers are measured from: the extreme by the sign of the rate."""
    top, bottom = kept[0], kept[1]
    for j in range(d):
        result[j] = top[j] if rate[j] > _ZERO else bottom[j]
    if is_log:
        for j in range(d):
            result[j] = log2(result[j] if result[j] > _SMALLEST else _SMALLEST)


@compiled
def _add_powers(z, size, extreme, rate, d, total):
    for j in range(d):
        total[j] = _ZERO
    for i in range(size):
        for j in range(d):
            total[j] += exp2((z[i, j] - extreme[j]) * rate[j])


@compiled
def _spread_powers(z, size, coefficients, d, result, moment):
    """Adds the gradient by elements or logarithms; coefficients are the extreme, the rate and the factor, packed."""
    for j in range(d):
        moment[j] = _ZERO
    for i in range(size):
        for j in range(d):
            t = (z[i, j] - coefficients[j]) * coefficients[WIDTH + j]
            w = coefficients[2 * WIDTH + j] * exp2(t)
            result[i, j] += w
            moment[j] += w * t


@compiled
def _multiply(z, size, d, products, work):
    """Writes partial products of factors, and the fold and its slope by gamma, by the law itself.

    Rows of ``work``, packed, are gamma, its inverse, the shift, the fold and the slope.
    """
    for j in range(d):
        work[3 * WIDTH + j] = 0.0
        work[4 * WIDTH + j] = 0.0
    products[0, :] = 1.0
    for i in range(size):
        before, after = products[i], products[i + 1]
        for j in range(d):
            fold, slope, inverse = work[3 * WIDTH + j], work[4 * WIDTH + j], work[WIDTH + j]
            u = np.float64(z[i, j]) + work[2 * WIDTH + j]
            factor = 1 + work[j] * u
            is_near = abs(factor) < 1e-6
            least = -1e-6 if factor < 0 else 1e-6
            factor = least if is_near else factor
            near = (factor - 1) * inverse
            steeper, more = -near * inverse, fold * u
            slope = slope * factor + (steeper if is_near else more)
            fold = fold * factor + (near if is_near else u)
            product = before[j] * factor
            slope = slope if slope < _HUGE else _HUGE
            fold = fold if fold < _HUGE else _HUGE
            product = product if product < _HUGE else _HUGE
            work[4 * WIDTH + j] = slope if slope > -_HUGE else -_HUGE
            work[3 * WIDTH + j] = fold if fold > -_HUGE else -_HUGE
            after[j] = product if product > -_HUGE else -_HUGE


@compiled
def _polynomial(product, work, d, result):
    for j in range(d):
        size = abs(product[j])
        size = size if size > _NEAREST else _NEAREST
        size = size if size < _FARTHEST else _FARTHEST
        size = -size if product[j] < 0 else size
        is_near = (product[j] > 0.5) & (product[j] < 2.0)
        far = (size - 1) * work[WIDTH + j]
        result[j] = (work[3 * WIDTH + j] if is_near else far) - work[2 * WIDTH + j]


@compiled
def _lower(kept, given, use, size, d, results, work):
    """Writes the result of each law that is used, from what is kept of a set."""
    count, log_count = np.float32(size), np.float32(math.log2(size))
    if use[1]:
        one, total = results[1], kept[2]
        for j in range(d):
            one[j] = total[j] / count
    if use[2]:
        results[2, :d] = kept[0, :d]
        results[3, :d] = kept[1, :d]
    if use[3]:
        one, total = results[4], kept[3]
        for j in range(d):
            one[j] = _limited(total[j] / count)
        one, factor = results[5], given[_FACTOR]
        for j in range(d):
            one[j] = _limited(total[j] + (count - _ONE) * factor[j])
    for k in range(_SUMS):
        if not use[_USE_SUMS + k]:
            continue
        is_log = k >= EXPONENTIALS
        rate, total, fold, mean = given[_RATE + k], kept[4 + k], results[6 + 2 * k], results[7 + 2 * k]
        _extreme(kept, rate, is_log, d, work)
        for j in range(d):
            fold[j] = work[j] + log2(total[j] if total[j] > TINY else TINY) / rate[j]
        for j in range(d):
            mean[j] = fold[j] - log_count / rate[j]
        if is_log:
            for j in range(d):
                fold[j] = _limited(fold[j])
            for j in range(d):
                mean[j] = _limited(mean[j])


@njit(inline="always")
def _law_is_used(use, law):
    if law < 2:
        return use[law]
    if law < 6:
        return use[2] if law < 4 else use[3]
    return use[_USE_SUMS + (law - 6) // 2]


@njit(inline="always")
def _longest(ends):
    longest = 0
    for s in range(len(ends) - 1):
        longest = max(longest, ends[s + 1] - ends[s])
    return longest


@compiled
def mix(x, rows, ends, given, use, limit, kept, result):
    """Writes the results of laws, weighted, for each set that is not empty, and what is kept for the gradient.

    Arguments:
        given: Coefficients, with shape (4 + sums + laws, d); see above.
        use: Flags of what is used.
        limit: Size beyond which results of laws are cut off.
        kept: Shape (B, KEPT, d), written.
        result: Shape (B, d), written.
    """
    d, last = x.shape[1], len(rows) - 1
    longest = _longest(ends)
    z, logs = np.empty((longest, d), np.float32), np.empty((longest, d), np.float32)
    products, work64 = np.empty((longest + 1 if use[0] else 1, d), np.float64), _packed(given, d)
    results, work = np.zeros((FORMULAS, d), np.float32), np.empty(d, np.float32)
    use_logs = use[3] | use[_USE_SUMS + EXPONENTIALS :].any()
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        size, own, mixed = stop - start, kept[s], result[s]
        mixed[:] = _ZERO
        if size == 0:
            continue
        _read(x, rows, start, stop, last, given[_UNIT], use_logs, z, logs, own)
        for k in range(_SUMS):
            if use[_USE_SUMS + k]:
                is_log = k >= EXPONENTIALS
                _extreme(own, given[_RATE + k], is_log, d, work)
                _add_powers(logs if is_log else z, size, work, given[_RATE + k], d, own[4 + k])
        if use[0]:
            _multiply(z, size, d, products, work64)
            _polynomial(products[size], work64, d, results[0])
        _lower(own, given, use, size, d, results, work)
        for law in range(FORMULAS):
            if _law_is_used(use, law):
                one, weight = results[law], given[_WEIGHT + law]
                for j in range(d):
                    mixed[j] += weight[j] * _cut(one[j], limit)


@compiled
def _share(results, weight, gradient, limit, d, own, of_weight):
    """Writes the gradient by the result of one law, and adds that by its weight."""
    for j in range(d):
        of_weight[j] += gradient[j] * _cut(results[j], limit)
    for j in range(d):
        own[j] = gradient[j] * weight[j] if abs(results[j]) <= limit else _ZERO


@compiled
def _spread_extremes(z, size, extreme, own, d, work, result):
    for j in range(d):
        work[j] = _ZERO
    for i in range(size):
        for j in range(d):
            work[j] += _ONE if z[i, j] == extreme[j] else _ZERO
    for j in range(d):
        work[j] = own[j] / work[j]
    for i in range(size):
        for j in range(d):
            result[i, j] += work[j] if z[i, j] == extreme[j] else _ZERO


@compiled
def _spread_products(z, size, products, own, d, work, result):
    """Adds the gradient by elements; rows 5 to 7 of ``work`` are the product of the rest, and sums of gradients."""
    for j in range(d):
        product = products[size, j]
        is_inside = (abs(product) >= _NEAREST) & (abs(product) <= _FARTHEST)
        limited = -_FARTHEST if product < 0 else _FARTHEST
        limited = limited if abs(product) > 1 else 0.0
        slope = work[4 * WIDTH + j] if is_inside else (1 - limited) * work[WIDTH + j] * work[WIDTH + j]
        work[5 * WIDTH + j] = own[j] if is_inside else 0.0
        work[6 * WIDTH + j] += own[j] * slope
        work[7 * WIDTH + j] -= own[j]
    for i in range(size - 1, -1, -1):
        before = products[i]
        for j in range(d):
            factor = 1 + work[j] * (np.float64(z[i, j]) + work[2 * WIDTH + j])
            is_near = abs(factor) < 1e-6
            least = -1e-6 if factor < 0 else 1e-6
            rest = work[5 * WIDTH + j]
            found = rest * before[j]
            found = 0.0 if is_near else found
            result[i, j] += found
            work[7 * WIDTH + j] += found
            work[5 * WIDTH + j] = rest * (least if is_near else factor)


@njit(inline="always")
def _packed(given, d):
    """Returns the rows by which polynomials are folded."""
    work = np.zeros(8 * WIDTH, np.float64)
    for j in range(d):
        work[j] = given[_GAMMA, j]
        work[WIDTH + j] = 1 / np.float64(given[_GAMMA, j])
        work[2 * WIDTH + j] = given[_SHIFT, j]
    return work


@compiled
def mix_gradient(x, rows, ends, given, use, limit, kept, gradient, result, of_given):
    """Writes the gradient by the rows, and adds those by the coefficients; arguments as those of :func:`mix`.

    Gradients by rates and exponents are in units of log 2, those by weights of the products with units.
    """
    d, last = x.shape[1], len(rows) - 1
    longest = _longest(ends)
    z, logs = np.empty((longest, d), np.float32), np.empty((longest, d), np.float32)
    of_z, of_logs = np.empty((longest, d), np.float32), np.empty((longest, d), np.float32)
    products, work64 = np.empty((longest + 1 if use[0] else 1, d), np.float64), _packed(given, d)
    results, work = np.zeros((FORMULAS, d), np.float32), np.empty(d, np.float32)
    own, other, moment = np.empty(d, np.float32), np.empty(d, np.float32), np.empty(d, np.float32)
    flat, again = np.empty(d, np.float32), np.empty((4, d), np.float32)
    coefficients = np.empty(3 * WIDTH, np.float32)
    use_logs = use[3] | use[_USE_SUMS + EXPONENTIALS :].any()
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        size, mine, g = stop - start, kept[s], gradient[s]
        if size == 0:
            continue
        count, log_count = np.float32(size), np.float32(math.log2(size))
        _read(x, rows, start, stop, last, given[_UNIT], use_logs, z, logs, again)
        if use[0]:
            _multiply(z, size, d, products, work64)
            _polynomial(products[size], work64, d, results[0])
        _lower(mine, given, use, size, d, results, work)
        flat[:] = _ZERO
        if use[1]:
            _share(results[1], given[_WEIGHT + 1], g, limit, d, own, of_given[_WEIGHT + 1])
            for j in range(d):
                flat[j] = own[j] / count
        for i in range(size):
            for j in range(d):
                of_z[i, j] = flat[j]
        if use[2]:
            for law in range(2, 4):
                _share(results[law], given[_WEIGHT + law], g, limit, d, own, of_given[_WEIGHT + law])
                _spread_extremes(z, size, mine[law - 2], own, d, work, of_z)
        if use[0]:
            _share(results[0], given[_WEIGHT], g, limit, d, own, of_given[_WEIGHT])
            _spread_products(z, size, products, own, d, work64, of_z)
        if use_logs:
            flat[:] = _ZERO
            if use[3]:
                _share(results[4], given[_WEIGHT + 4], g, limit, d, own, of_given[_WEIGHT + 4])
                _share(results[5], given[_WEIGHT + 5], g, limit, d, other, of_given[_WEIGHT + 5])
                factor, of_factor, total = given[_FACTOR], of_given[_FACTOR], mine[3]
                for j in range(d):
                    is_inside = abs(total[j] / count) <= _LOG_LIMIT
                    flat[j] = own[j] * results[4, j] / count if is_inside else _ZERO
                for j in range(d):
                    is_inside = abs(total[j] + (count - _ONE) * factor[j]) <= _LOG_LIMIT
                    other[j] = other[j] * results[5, j] if is_inside else _ZERO
                    flat[j] += other[j]
                    of_factor[j] += other[j] * (count - _ONE)
            for i in range(size):
                for j in range(d):
                    of_logs[i, j] = flat[j]
        for k in range(_SUMS):
            if not use[_USE_SUMS + k]:
                continue
            is_log, law = k >= EXPONENTIALS, 6 + 2 * k
            rate, total = given[_RATE + k], mine[4 + k]
            _share(results[law], given[_WEIGHT + law], g, limit, d, own, of_given[_WEIGHT + law])
            _share(results[law + 1], given[_WEIGHT + law + 1], g, limit, d, other, of_given[_WEIGHT + law + 1])
            if is_log:
                least, most = exp2(-_LOG_LIMIT), exp2(_LOG_LIMIT)
                for j in range(d):
                    y = results[law, j]
                    own[j] = own[j] * y if (y > least) & (y < most) else _ZERO
                for j in range(d):
                    y = results[law + 1, j]
                    other[j] = other[j] * y if (y > least) & (y < most) else _ZERO
            _extreme(mine, rate, is_log, d, work)
            for j in range(d):
                coefficients[j] = work[j]
                coefficients[WIDTH + j] = rate[j]
                coefficients[2 * WIDTH + j] = (own[j] + other[j]) / (total[j] if total[j] > TINY else TINY)
            if is_log:
                _spread_powers(logs, size, coefficients, d, of_logs, moment)
            else:
                _spread_powers(z, size, coefficients, d, of_z, moment)
            of_rate = of_given[_RATE + k]
            for j in range(d):
                log = log2(total[j] if total[j] > TINY else TINY)
                change = moment[j] - (own[j] + other[j]) * log + other[j] * log_count
                of_rate[j] += change / (rate[j] * rate[j])
        unit = given[_UNIT]
        for i in range(size):
            row = rows[start + i]
            if use_logs:
                for j in range(d):
                    y = z[i, j]
                    quotient = of_logs[i, j] / (y if y >= _SMALLEST else _ONE)
                    of_z[i, j] += quotient if y >= _SMALLEST else _ZERO
            for j in range(d):
                result[row, j] = of_z[i, j] * unit[j]
    for j in range(d):
        of_given[_GAMMA, j] += work64[6 * WIDTH + j]
        of_given[_SHIFT, j] += work64[7 * WIDTH + j]
