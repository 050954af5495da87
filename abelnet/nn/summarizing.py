r"""Features of sets for the network of a gated bank, compiled by numba: a set stays in the cache until all are known.

Imported on first use, by :mod:`abelnet.nn.statistics`; see :mod:`abelnet.lanes` for how kernels are written. A location
takes many rounds, and its slopes by elements are carried along, so that the gradient need not repeat them.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["FEATURES", "GIVEN", "KEPT", "summarize", "summarize_gradient"]

import math

import numpy as np
from numba import njit

from abelnet.kernels import AHEAD, LN_2, TINY, buffer, compiled, longest, move
from abelnet.lanes import (
    LANES,
    address,
    double,
    double_zeros,
    exp2,
    fetch,
    fill,
    first,
    inverse,
    inverse_sqrt,
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

_RATES = 4
# Rows of features: the location, the mean, both extremes, a log-mean-exp for each rate, and the logarithm of the count.
FEATURES = 5 + _RATES
# Rows that are given: the factor of elements, the tilt and the squared width of locations, and the rates times log2(e).
GIVEN = 3 + _RATES
# Rows that are kept of a set: the slopes of its location by the tilt and by the width, and the sums of powers.
KEPT = 2 + _RATES
_ZERO, _ONE, _TWO, _FOUR, _HALF = (np.float32(c) for c in (0, 1, 2, 4, 0.5))
_SMALLEST = np.float32(1e-6)
_LOG2_E, _STEEP = np.float32(math.log2(math.e)), np.float32(8 * math.log2(math.e))
_MOST = np.float32(60)
# Rows, and sets, whose sum is rounded to single precision; sums of more are added in double precision.
_BLOCK = 64

_inlined = njit(forceinline=True)


@_inlined
def _tanh(rest):
    """Returns tanh(4 r)."""
    t = maximum(minimum(_STEEP * rest, _MOST), -_MOST)
    return _ONE - _TWO * inverse(_ONE + exp2(t))


@_inlined
def _read(x, rows, start, stop, last, d, column, mask, unit, z):
    """Reads a set in units into the cache; returns its extremes and its mean."""
    everything, high, low, whole = first(LANES), fill(-np.inf), fill(np.inf), double_zeros()
    for begin in range(start, stop, _BLOCK):
        part = fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, stop)):
            fetch(x, item(rows, min(i + AHEAD, last)) * d + column)
            one = load(x, item(rows, i) * d + column, mask) * unit
            store(z, (i - start) * LANES, everything, one)
            high, low, part = maximum(one, high), minimum(one, low), part + one
        whole = whole + double(part)
    return high, low, single(whole) / np.float32(stop - start)


@_inlined
def _inverse_deviation(z, number, mean):
    """Returns the inverse of the mean deviation."""
    everything, whole = first(LANES), double_zeros()
    for begin in range(0, number, _BLOCK):
        part = fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, number)):
            part = part + size(load(z, i * LANES, everything) - mean)
        whole = whole + double(part)
    return _ONE / (single(whole) / np.float32(number) + _SMALLEST)


@_inlined
def _weigh(z, number, location, scale, tilt, width, weights, changes):
    """Writes the weights of a round, and their slopes by the distance; returns the sums in which these take part.

    They are the sum of weights, the sums of distances, of slopes by the tilt and of those by the squared width; and the
    last three again with the slope of weights, each times the distance. Distances are measured from the location, so
    that sums lose nothing.
    """
    everything, zero = first(LANES), fill(_ZERO)
    whole, distance = double_zeros(), double_zeros()
    changed, tilted, widened, moment, tilted_moment, widened_moment = zero, zero, zero, zero, zero, zero
    for begin in range(0, number, _BLOCK):
        part, part_distance = zero, zero
        for i in range(begin, min(begin + _BLOCK, number)):
            rest = (load(z, i * LANES, everything) - location) * scale
            tanh, root = _tanh(rest), inverse_sqrt(rest * rest + width)
            weight, square = exp2(_LOG2_E * tilt * tanh) * root, root * root
            by_tilt, by_width = weight * tanh, weight * square
            change = _FOUR * tilt * (weight - by_tilt * tanh) - rest * by_width
            store(weights, i * LANES, everything, weight)
            store(changes, i * LANES, everything, change)
            part, part_distance = part + weight, part_distance + weight * rest
            changed, tilted, widened = changed + change, tilted + by_tilt, widened + by_width
            moment, tilted_moment = moment + change * rest, tilted_moment + by_tilt * rest
            widened_moment = widened_moment + by_width * rest
        whole, distance = whole + double(part), distance + double(part_distance)
    return (
        maximum(single(whole), TINY),
        single(distance),
        (changed, tilted, widened),
        (moment, tilted_moment, widened_moment),
    )


@_inlined
def _locate(z, number, rounds, mean, tilt, width, weights, changes, slopes):
    """Returns the location and its slopes by the tilt and the squared width; writes those by elements."""
    everything, count = first(LANES), np.float32(number)
    scale, location, of_tilt, of_width = _inverse_deviation(z, number, mean), mean, fill(_ZERO), fill(_ZERO)
    inverse_scale = _ONE / scale
    for i in range(number):
        store(slopes, i * LANES, everything, fill(_ONE / count))
    for _ in range(rounds):
        total, distance, sums, moments = _weigh(z, number, location, scale, tilt, width, weights, changes)
        share = _ONE / total
        step = distance * share
        back, by_tilt, by_width = (
            (moments[0] - step * sums[0]) * share,
            (moments[1] - step * sums[1]) * share,
            (moments[2] - step * sums[2]) * share,
        )
        for i in range(number):
            left = (load(z, i * LANES, everything) - location) * scale - step
            direct = (load(weights, i * LANES, everything) + left * load(changes, i * LANES, everything)) * share
            store(slopes, i * LANES, everything, direct - back * load(slopes, i * LANES, everything))
        of_tilt = by_tilt * inverse_scale - back * of_tilt
        of_width = -_HALF * by_width * inverse_scale - back * of_width
        location = location + step * inverse_scale
    return location, of_tilt, of_width


@_inlined
def _four_rates(given, place, stride, mask):
    """Returns the rates."""
    return (
        load(given, place, mask),
        load(given, place + stride, mask),
        load(given, place + 2 * stride, mask),
        load(given, place + 3 * stride, mask),
    )


@_inlined
def _tops(rates, high, low):
    """Returns what powers are measured from: the extreme by the sign of each rate."""
    return (
        where(rates[0] > _ZERO, high, low),
        where(rates[1] > _ZERO, high, low),
        where(rates[2] > _ZERO, high, low),
        where(rates[3] > _ZERO, high, low),
    )


@_inlined
def _exponents(one, tops, rates):
    return (
        (one - tops[0]) * rates[0],
        (one - tops[1]) * rates[1],
        (one - tops[2]) * rates[2],
        (one - tops[3]) * rates[3],
    )


@_inlined
def _add_powers(z, number, tops, rates):
    """Returns the sum of powers for each rate."""
    everything, zeros = first(LANES), double_zeros()
    totals = zeros, zeros, zeros, zeros
    for begin in range(0, number, _BLOCK):
        a, b, c, d = fill(_ZERO), fill(_ZERO), fill(_ZERO), fill(_ZERO)
        for i in range(begin, min(begin + _BLOCK, number)):
            t = _exponents(load(z, i * LANES, everything), tops, rates)
            a, b, c, d = a + exp2(t[0]), b + exp2(t[1]), c + exp2(t[2]), d + exp2(t[3])
        totals = totals[0] + double(a), totals[1] + double(b), totals[2] + double(c), totals[3] + double(d)
    return single(totals[0]), single(totals[1]), single(totals[2]), single(totals[3])


@njit
def _summarize(x, rows, ends, given, rounds, features, kept, slopes, buffers):
    d, last, everything = x.shape[1], len(rows) - 1, first(LANES)
    x, rows, given, features = address(x), address(rows), address(given), address(features)
    kept, slopes = address(kept), address(slopes)
    z, weights, changes, own = address(buffers[0]), address(buffers[1]), address(buffers[2]), address(buffers[3])
    for s in range(len(ends) - 1):
        start, number = ends[s], ends[s + 1] - ends[s]
        log_count = np.float32(math.log2(max(number, 1)))
        for c in range(0, d, LANES):
            mask, at, keep = first(d - c), s * FEATURES * d + c, s * KEPT * d + c
            if number == 0:
                for k in range(FEATURES):
                    store(features, at + k * d, mask, fill(_ZERO))
                continue
            unit, tilt, width = load(given, c, mask), load(given, d + c, mask), load(given, 2 * d + c, mask)
            high, low, mean = _read(x, rows, start, start + number, last, d, c, mask, unit, z)
            location, of_tilt, of_width = _locate(z, number, rounds, mean, tilt, width, weights, changes, own)
            for i in range(number):
                store(slopes, (start + i) * d + c, mask, load(own, i * LANES, everything))
            store(kept, keep, mask, of_tilt)
            store(kept, keep + d, mask, of_width)
            store(features, at, mask, location)
            store(features, at + d, mask, mean)
            store(features, at + 2 * d, mask, high)
            store(features, at + 3 * d, mask, low)
            rates = _four_rates(given, 3 * d + c, d, mask)
            tops = _tops(rates, high, low)
            totals = _add_powers(z, number, tops, rates)
            for k in range(_RATES):
                store(kept, keep + (2 + k) * d, mask, totals[k])
                result = tops[k] + (log2(totals[k]) - log_count) / rates[k]
                store(features, at + (4 + k) * d, mask, result)
            store(features, at + (4 + _RATES) * d, mask, fill(log_count * LN_2))


@compiled
def summarize(x, rows, ends, given, rounds, features, kept, slopes):
    """Writes the features of each set; 0 if it is empty.

    Arguments:
        given: Coefficients, with shape (GIVEN, d); see above.
        rounds: Number of rounds in which locations are found.
        features: Shape (B, FEATURES, d), written.
        kept: What gradients need of sets, with shape (B, KEPT, d), written.
        slopes: Slopes of locations by elements, in the order of sets, with shape (N, d), written.
    """
    number = longest(ends)
    buffers = buffer(4 * number).reshape(4, number, LANES)
    _summarize(x, rows, ends, given, rounds, features, kept, slopes, buffers)


@_inlined
def _read_again(x, rows, start, stop, last, d, column, mask, unit, high, low, z, result):
    """Reads a set in units into the cache; returns how many elements are at the extremes."""
    everything, at_high, at_low = first(LANES), fill(_ZERO), fill(_ZERO)
    for i in range(start, stop):
        ahead = item(rows, min(i + AHEAD, last)) * d + column
        fetch(x, ahead)
        fetch(result, ahead)
        one = load(x, item(rows, i) * d + column, mask) * unit
        store(z, (i - start) * LANES, everything, one)
        at_high, at_low = where(one == high, at_high + _ONE, at_high), where(one == low, at_low + _ONE, at_low)
    return maximum(at_high, _ONE), maximum(at_low, _ONE)


@_inlined
def _add(sums, place, mask, value):
    store(sums, place, mask, load(sums, place, mask) + value)


@njit
def _summarize_gradient(x, rows, ends, given, features, kept, gradient, slopes, result, sums, z):
    d, last, everything, zero = x.shape[1], len(rows) - 1, first(LANES), fill(_ZERO)
    x, rows, given, features, kept = address(x), address(rows), address(given), address(features), address(kept)
    gradient, slopes, result, sums, z = address(gradient), address(slopes), address(result), address(sums), address(z)
    for s in range(len(ends) - 1):
        start, number = ends[s], ends[s + 1] - ends[s]
        log_count = np.float32(math.log2(max(number, 1)))
        for c in range(0, d if number > 0 else 0, LANES):
            mask, at, keep = first(d - c), s * FEATURES * d + c, s * KEPT * d + c
            unit, of_location = load(given, c, mask), load(gradient, at, mask)
            high, low = load(features, at + 2 * d, mask), load(features, at + 3 * d, mask)
            highs, lows = _read_again(x, rows, start, start + number, last, d, c, mask, unit, high, low, z, result)
            flat = load(gradient, at + d, mask) / np.float32(number)
            of_high, of_low = load(gradient, at + 2 * d, mask) / highs, load(gradient, at + 3 * d, mask) / lows
            rates = _four_rates(given, 3 * d + c, d, mask)
            tops = _tops(rates, high, low)
            of_means = _four_rates(gradient, at + 4 * d, d, mask)
            totals = _four_rates(kept, keep + 2 * d, d, mask)
            shares = of_means[0] / totals[0], of_means[1] / totals[1], of_means[2] / totals[2], of_means[3] / totals[3]
            moments = zero, zero, zero, zero
            for i in range(number):
                one = load(z, i * LANES, everything)
                t = _exponents(one, tops, rates)
                found = flat + of_location * load(slopes, (start + i) * d + c, mask)
                found = found + where(one == high, of_high, zero) + where(one == low, of_low, zero)
                p, q = shares[0] * exp2(t[0]), shares[1] * exp2(t[1])
                v, w = shares[2] * exp2(t[2]), shares[3] * exp2(t[3])
                store(result, item(rows, start + i) * d + c, mask, (found + (p + q) + (v + w)) * unit)
                moments = moments[0] + p * t[0], moments[1] + q * t[1], moments[2] + v * t[2], moments[3] + w * t[3]
            _add(sums, d + c, mask, of_location * load(kept, keep, mask))
            _add(sums, 2 * d + c, mask, of_location * load(kept, keep + d, mask))
            for k in range(_RATES):
                change = moments[k] - of_means[k] * (log2(totals[k]) - log_count)
                _add(sums, (3 + k) * d + c, mask, change / (rates[k] * rates[k]))


@compiled
def summarize_gradient(x, rows, ends, given, features, kept, gradient, slopes, result, of_given):
    """Writes the gradient by rows, and adds those by the coefficients but the first; the deviation counts as constant.

    Arguments are those of :func:`summarize`, and the gradient by features.
    """
    z, sums = buffer(longest(ends)), np.zeros(given.shape, np.float32)
    for begin in range(0, len(ends) - 1, _BLOCK):
        end = begin + _BLOCK
        _summarize_gradient(
            x,
            rows,
            ends[begin : end + 1],
            given,
            features[begin:end],
            kept[begin:end],
            gradient[begin:end],
            slopes,
            result,
            sums,
            z,
        )
        move(sums.reshape(-1), of_given.reshape(-1))
