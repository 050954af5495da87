r"""Bins of rational-quadratic splines from their parameters, and gradients back to these, compiled by numba.

Imported on first use, by :mod:`abelnet.bijections.spline`. There are few numbers, but dozens of tensor operations on
these would cost as much as a pass over all elements. Everything is in double precision, except that knots are rounded
as elements are, so that bins meet.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["knots", "knots_gradient", "tables"]

import math

import numpy as np
from numba import njit

from abelnet.bijections.splining import ENDS, ROWS
from abelnet.kernels import compiled


@njit
def _softened(raw, limit):
    return raw / (1 + abs(raw) / limit)


@njit
def _divide(raw, limit, bound, parts, places):
    """Writes the parts of an interval, and the places between them."""
    most, total = -math.inf, 0.0
    for k in range(len(raw)):
        parts[k] = _softened(raw[k], limit)
        most = max(most, parts[k])
    for k in range(len(raw)):
        parts[k] = math.exp(parts[k] - most)
        total += parts[k]
    place = 0.0
    places[0] = -bound
    for k in range(len(raw)):
        parts[k] /= total
        place += parts[k]
        places[k + 1] = bound * (2 * place - 1)


@compiled
def knots(widths, heights, slopes, line, bound, limit):
    """Returns widths and heights as parts of a whole, with shape (2, d, K), and the knots, with shape (3, d, K + 1).

    Arguments:
        widths: Parameters of the widths, with shape (d, K).
        heights: Parameters of the heights, likewise.
        slopes: Parameters of the slopes, with shape (d, K + 1).
        line: Scale and shift of each dimension that come before the spline, with shape (2, d).
        bound: Half-width of the interval on both axes.
        limit: Limit of the logarithms of slopes.
    """
    d, bins = widths.shape
    parts, found = np.empty((2, d, bins)), np.empty((3, d, bins + 1))
    for j in range(d):
        _divide(widths[j], limit / 2, bound, parts[0, j], found[0, j])
        _divide(heights[j], limit / 2, bound, parts[1, j], found[1, j])
        scale, shift = np.float64(line[0, j]), np.float64(line[1, j])
        for k in range(bins + 1):
            found[0, j, k] = np.float32((found[0, j, k] - shift) / scale)
            found[1, j, k] = np.float32(found[1, j, k])
            found[2, j, k] = math.exp(_softened(slopes[j, k], limit)) * scale
    return parts, found


@njit
def _is_point(width, height):
    """Whether rounding has left nothing of a bin."""
    return not (np.float32(width) > 0 and np.float32(height) > 0)


@compiled
def tables(found):
    """Returns the bins between knots as kernels read them, and the ends: for values, inverses and gradients.

    Shapes are (3, K, ROWS, d) and (3, ENDS, d).
    """
    _, d, count = found.shape
    table, ends = np.empty((3, count - 1, ROWS, d), np.float32), np.empty((3, ENDS, d), np.float32)
    for j in range(d):
        xs, ys, slopes = found[0, j], found[1, j], found[2, j]
        for k in range(count - 1):
            width, height = xs[k + 1] - xs[k], ys[k + 1] - ys[k]
            if _is_point(width, height):
                width, height, per_width, per_height, mean = 0.0, 0.0, 0.0, 0.0, slopes[k]
            else:
                per_width, per_height, mean = 1 / width, 1 / height, height / width
            table[0, k, 0, j], table[0, k, 1, j], table[0, k, 2, j], table[0, k, 3, j] = xs[k], per_width, ys[k], height
            table[1, k, 0, j], table[1, k, 1, j], table[1, k, 2, j], table[1, k, 3, j] = ys[k], per_height, xs[k], width
            table[2, k, 0, j], table[2, k, 1, j], table[2, k, 2, j], table[2, k, 3, j] = xs[k], per_width, mean, 0
            for kind in range(3):
                table[kind, k, 4, j], table[kind, k, 5, j] = slopes[k] / mean, slopes[k + 1] / mean
        for side in range(2):
            end = side * (count - 1)
            for kind in range(3):
                ends[kind, side, j], ends[kind, 2 + side, j], ends[kind, 4 + side, j] = xs[end], ys[end], slopes[end]
            ends[1, side, j], ends[1, 2 + side, j], ends[1, 4 + side, j] = ys[end], xs[end], 1 / slopes[end]
    return table, ends


@njit
def _of_knots(sums, j, xs, ys, slopes, of_xs, of_ys, of_slopes):
    """Adds the gradients by the knots of one dimension, from the sums over bins."""
    for k in range(len(xs) - 1):
        a, b, c, d, e = sums[k, 0, j], sums[k, 1, j], sums[k, 2, j], sums[k, 3, j], sums[k, 4, j]
        width, height = xs[k + 1] - xs[k], ys[k + 1] - ys[k]
        if _is_point(width, height):
            of_ys[k] += a
            of_xs[k] -= a * slopes[k]
            continue
        p, q = slopes[k] * width / height, slopes[k + 1] * width / height
        both = p + q
        # Numerators of derivatives, multiplied by (r + z)^2 or by r + z = 1 where their degree is less than 4.
        total = a + 2 * both * b + (both * both + 2) * c + 2 * both * d + e
        of_curve = p * b + (p * both + 1) * c + both * d + p * d + e
        of_first, of_last = b + q * c, -(p * c + d)
        of_z = height * (p * a + (2 * p + 2) * b + (both + 4) * c + (2 * q + 2) * d + q * e)
        of_z_times_z = height * (p * b + (p + 2) * c + (q + 2) * d + q * e)
        # The curve of a bin does not change if its height and slopes change by one factor.
        turn = height * (p * of_first + q * of_last)
        of_height, of_width = of_curve - turn / height, (turn - of_z_times_z) / width
        of_xs[k] -= of_z / width + of_width
        of_xs[k + 1] += of_width
        of_ys[k] += total - of_height
        of_ys[k + 1] += of_height
        of_slopes[k] += of_first * width
        of_slopes[k + 1] += of_last * width


@njit
def _of_parts(raw, limit, bound, parts, of_places, of_raw):
    """Writes the gradient by parameters, from that by the places between parts."""
    total, mean = 0.0, 0.0
    for k in range(len(raw) - 1, -1, -1):
        total += 2 * bound * of_places[k + 1]
        of_raw[k] = total
        mean += total * parts[k]
    for k in range(len(raw)):
        of_raw[k] = parts[k] * (of_raw[k] - mean) / (1 + abs(raw[k]) / limit) ** 2


@compiled
def knots_gradient(widths, heights, slopes, line, bound, limit, parts, found, sums, of_ends):
    """Returns the gradients by all parameters and by the line, from those by bins and by slopes beyond all bins."""
    d, bins = widths.shape
    of_widths, of_heights, of_slopes = np.empty((d, bins)), np.empty((d, bins)), np.zeros((d, bins + 1))
    of_line, of_xs, of_ys = np.zeros((2, d)), np.empty(bins + 1), np.empty(bins + 1)
    for j in range(d):
        of_xs[:], of_ys[:] = 0, 0
        _of_knots(sums, j, found[0, j], found[1, j], found[2, j], of_xs, of_ys, of_slopes[j])
        of_slopes[j, 0] += of_ends[0, j]
        of_slopes[j, bins] += of_ends[1, j]
        scale = np.float64(line[0, j])
        for k in range(bins + 1):
            of_log_slope = of_slopes[j, k] * found[2, j, k]
            of_xs[k] /= scale
            of_line[0, j] += of_log_slope / scale - of_xs[k] * found[0, j, k]
            of_line[1, j] -= of_xs[k]
            of_slopes[j, k] = of_log_slope / (1 + abs(slopes[j, k]) / limit) ** 2
        _of_parts(widths[j], limit / 2, bound, parts[0, j], of_xs, of_widths[j])
        _of_parts(heights[j], limit / 2, bound, parts[1, j], of_ys, of_heights[j])
    return of_widths, of_heights, of_slopes, of_line
