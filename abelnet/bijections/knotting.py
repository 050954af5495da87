r"""Pieces of rational-quadratic splines from their parameters, and gradients back to these, compiled by numba.

Imported on first use, by :mod:`abelnet.bijections.spline`. There are few numbers, but dozens of tensor operations on
these would cost as much as a pass over all elements. Everything is in double precision, except that knots are rounded
as elements are, so that pieces meet.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = ["knots", "knots_gradient", "pieces"]

import math

import numpy as np
from numba import njit

from abelnet.bijections.splining import ROWS
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
def _is_line(width, height):
    """Whether a bin has become a point, or flat, by rounding; it is then a tail as far as it goes."""
    return not (width > 0 and np.float32(height) > 0)


@compiled
def pieces(found):
    """Returns the rows of all pieces between knots, with shape (K + 2, ROWS, d)."""
    _, d, count = found.shape
    table = np.empty((count + 1, ROWS, d), np.float32)
    for j in range(d):
        xs, ys, slopes = found[0, j], found[1, j], found[2, j]
        for k in range(count + 1):
            i = max(k - 1, 0)
            table[k, 0, j], table[k, 1, j] = xs[i], ys[i]
            if 0 < k < count and not _is_line(xs[k] - xs[i], ys[k] - ys[i]):
                width = xs[k] - xs[i]
                table[k, 2, j], table[k, 3, j] = 1 / width, ys[k] - ys[i]
                table[k, 4, j], table[k, 5, j] = slopes[i] * width, slopes[k] * width
            else:
                table[k, 2, j], table[k, 3, j], table[k, 4, j], table[k, 5, j] = 1, 0, slopes[i], 1
    return table


@njit
def _of_pieces(sums, j, xs, ys, slopes, of_xs, of_ys, of_slopes):
    """Adds the gradients by the knots of one dimension, from the sums over pieces."""
    count = len(xs)
    for k in range(count + 1):
        i = max(k - 1, 0)
        g, of_curve, of_first, of_last = sums[k, 0, j], sums[k, 1, j], sums[k, 2, j], sums[k, 3, j]
        of_z, of_z_times_z = sums[k, 4, j], sums[k, 5, j]
        of_ys[i] += g
        if 0 < k < count and not _is_line(xs[k] - xs[i], ys[k] - ys[i]):
            width, height = xs[k] - xs[i], ys[k] - ys[i]
            # The curve of a bin does not change if its height and slopes change by one factor.
            turn = (slopes[i] * of_first - slopes[k] * of_last) * width
            of_height, of_width = of_curve - turn / height, (turn - of_z_times_z) / width
            of_xs[i] -= of_z / width + of_width
            of_xs[k] += of_width
            of_ys[i] -= of_height
            of_ys[k] += of_height
            of_slopes[i] += of_first * width
            of_slopes[k] -= of_last * width
        else:
            of_xs[i] -= of_z
            of_slopes[i] += of_first


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
def knots_gradient(widths, heights, slopes, line, bound, limit, parts, found, sums):
    """Returns the gradients by all parameters and by the line, from sums over pieces; see :func:`knots`."""
    d, bins = widths.shape
    of_widths, of_heights, of_slopes = np.empty((d, bins)), np.empty((d, bins)), np.zeros((d, bins + 1))
    of_line, of_xs, of_ys = np.zeros((2, d)), np.empty(bins + 1), np.empty(bins + 1)
    for j in range(d):
        of_xs[:], of_ys[:] = 0, 0
        _of_pieces(sums, j, found[0, j], found[1, j], found[2, j], of_xs, of_ys, of_slopes[j])
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
