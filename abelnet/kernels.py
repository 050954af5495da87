r"""Folds of sets of rows compiled by numba: each set is read once into the cache, and only its result is written.

Imported on first use, by :func:`abelnet.segments.kernels_for`. Rows :math:`(N, d)` are given in float32 with their
order by sets, and the ends of the sets in that order, :math:`(B + 1)`. Loops over dimensions are innermost and
branch-free, so that they become vector instructions; exponentials and logarithms are therefore polynomials of our own.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = [
    "LN_2",
    "compiled",
    "exp2",
    "extreme",
    "extreme_gradient",
    "log2",
    "log_sum",
    "log_sum_exp",
    "log_sum_exp_gradient",
    "log_sum_gradient",
    "order_by_set",
    "polynomial",
    "polynomial_gradient",
]

import math

import numpy as np
from llvmlite import ir
from numba import int32, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LN_2 = np.float32(math.log(2))
_ZERO, _ONE = np.float32(0), np.float32(1)
TINY = np.float32(np.finfo(np.float32).tiny)
_FAR = np.float32(math.sqrt(np.finfo(np.float32).max))
# Rows whose sum is rounded to single precision; sums of more are added in double precision.
_BLOCK = 32
# Sums of powers from which they are measured from the extreme of a set.
_DISTANT = np.float32(2**16)
# Largest number of dimensions, and the length of a row of numbers that a kernel works with: a constant, so that the
# compiler knows that rows do not overlap, and no power of 2, by which they would compete for the same cache lines.
LARGEST_DIM = 1024
WIDTH = LARGEST_DIM + 16
# Rows that are fetched ahead.
_AHEAD = 12
# Partial products within these limits neither overflow nor vanish, and nor do the products of all others.
_LEAST, _MOST = 1e-100, 1e100
# Partial products within these are differences from 1 without loss.
_MILD = 16.0


def compiled(function):
    """Compiles a kernel: it releases the interpreter, and is kept in a cache if there is a folder to write to."""
    options = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no folder can be written to
        return njit(**options)(function)


@intrinsic
def _bits(_, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int32))

    return types.int32(types.float32), generate


@intrinsic
def _number(_, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


@intrinsic
def fetch(_, x, row):
    """Tells the processor that a row is needed soon, which it cannot guess if rows are in any order."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(x)(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        start = builder.gep(builder.bitcast(array.data, byte), [builder.mul(arguments[1], stride)])
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        for line in (0, 64):
            place = builder.gep(start, [ir.Constant(ir.IntType(64), line)])
            builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(x, types.int64), generate


# 2^f for |f| <= 1/2 with the least relative error, and log2(1 + f) / f for 1 + f from 1/sqrt(2) to sqrt(2) with the
# least absolute error of the logarithm.
_E1, _E2, _E3 = (np.float32(c) for c in (0.6931472057372509, 0.24022646890595492, 0.055503287769918586))
_E4, _E5, _E6 = (np.float32(c) for c in (0.009618488961272108, 0.0013399931210750732, 0.00015345810888344513))
_L0, _L1, _L2 = (np.float32(c) for c in (1.442694868553704, -0.7213471284772697, 0.480922529128798))
_L3, _L4, _L5 = (np.float32(c) for c in (-0.3607211945325572, 0.2876566693135659, -0.23851945384552903))
_L6, _L7, _L8 = (np.float32(c) for c in (0.21737944793430466, -0.2103032470474037, 0.12541215419869853))
# Adding the first rounds to an integer, in the last bits; exponents between the others are those of normal numbers.
_ROUNDING, _LOWEST, _HIGHEST = (np.float32(c) for c in (1.5 * 2**23, -126, 126))
_SQRT_HALF, _SHIFT = int32(0x3F3504F3), int32(23)


@njit(inline="always")
def exp2(t):
    """Returns 2^t within 2 units in the last place for t < 127, from 2^-126 on."""
    t = _LOWEST if t < _LOWEST else t
    rounded = t + _ROUNDING
    f = t - (rounded - _ROUNDING)
    p = _E6 * f + _E5
    p = p * f + _E4
    p = p * f + _E3
    p = p * f + _E2
    p = p * f + _E1
    p = p * f + _ONE
    return _number(int32(_bits(p) + int32(_bits(rounded) << _SHIFT)))


@njit(inline="always")
def log2(x):
    """Returns the binary logarithm of a positive number that is not subnormal, within the precision of 1."""
    bits = _bits(x)
    exponent = int32(int32(bits - _SQRT_HALF) >> _SHIFT)
    f = _number(int32(bits - int32(exponent << _SHIFT))) - _ONE
    p = _L8 * f + _L7
    p = p * f + _L6
    p = p * f + _L5
    p = p * f + _L4
    p = p * f + _L3
    p = p * f + _L2
    p = p * f + _L1
    p = p * f + _L0
    return np.float32(exponent) + p * f


@njit(inline="always")
def move(part, whole, is_first, d):
    """Adds the sum of a block to that of a set, in double precision, and starts the next block."""
    for j in range(d):
        whole[j] = part[j] if is_first else whole[j] + part[j]
        part[j] = _ZERO


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
    """Writes the largest number of each set if ``sign`` is 1, the smallest if it is -1; infinite if it is empty."""
    d, last = x.shape[1], len(rows) - 1
    top = np.empty(d, np.float32)
    for s in range(len(ends) - 1):
        top[:] = -np.inf
        for i in range(ends[s], ends[s + 1]):
            row = rows[i]
            fetch(x, rows[min(i + _AHEAD, last)])
            for j in range(d):
                y = sign * x[row, j]
                top[j] = y if (y > top[j]) | (y != y) else top[j]  # NaN stays
        for j in range(d):
            result[s, j] = sign * top[j]


@compiled
def extreme_gradient(x, rows, ends, extremes, gradient, result):
    """Writes the gradient by the rows, which those at the extreme share."""
    d, last = x.shape[1], len(rows) - 1
    work = np.empty((3, WIDTH), np.float32)  # extreme, count of those at it, share of each
    for s in range(len(ends) - 1):
        for j in range(d):
            work[0, j] = extremes[s, j]
            work[1, j] = _ZERO
        for i in range(ends[s], ends[s + 1]):
            row = rows[i]
            fetch(x, rows[min(i + _AHEAD, last)])
            fetch(result, rows[min(i + _AHEAD, last)])
            for j in range(d):
                work[1, j] += _ONE if x[row, j] == work[0, j] else _ZERO
        for j in range(d):
            work[2, j] = gradient[s, j] / (work[1, j] if work[1, j] > _ONE else _ONE)
        for i in range(ends[s], ends[s + 1]):
            row = rows[i]
            for j in range(d):
                result[row, j] = work[2, j] if x[row, j] == work[0, j] else _ZERO


@compiled
def log_sum_exp(x, rows, ends, given, logs, top, total, result):
    r"""Writes :math:`\frac{1}{k} \log \sum_i e^{k u_i}` of each set, with u = x, or u = log max(x, least) if ``logs``.

    Arguments:
        given: Rows of the sign of k, of k (times log2(e) unless ``logs``: powers of 2 are what is added), and of the
            least number of which a logarithm is taken, which is positive and not subnormal.
        top: What elements of each set are measured from; a binary logarithm if ``logs``. Written.
        total: Sum of the powers of 2. Written.
    """
    d, last = x.shape[1], len(rows) - 1
    work = np.empty((5, WIDTH), np.float32)  # sign, rate, least, extreme, sum
    whole, unit = np.empty(d, np.float64), LN_2 if logs else _ONE
    for j in range(d):
        work[0, j], work[1, j], work[2, j] = given[0, j], given[1, j], given[2, j]
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        # Measured from the first element, and again from the extreme if that is far away.
        for attempt in range(2):
            if attempt == 0 and stop > start:
                row = rows[start]
                for j in range(d):
                    work[3, j] = x[row, j]
                    work[4, j] = _ZERO
            else:
                for j in range(d):
                    # A set of zeros, or of nothing, has a logarithm that is as good as -inf, but finite.
                    work[3, j] = -_FAR
                    work[4, j] = _ZERO
                for i in range(start, stop):
                    row = rows[i]
                    for j in range(d):
                        y = work[0, j] * x[row, j]
                        work[3, j] = y if y > work[3, j] else work[3, j]
                for j in range(d):
                    work[3, j] *= work[0, j]
            if logs:
                for j in range(d):
                    u = work[3, j]
                    work[3, j] = log2(u if u > work[2, j] else work[2, j])
            for first in range(start, stop, _BLOCK):
                if logs:
                    for i in range(first, min(first + _BLOCK, stop)):
                        row = rows[i]
                        fetch(x, rows[min(i + _AHEAD, last)])
                        for j in range(d):
                            u = x[row, j]
                            u = log2(u if u > work[2, j] else work[2, j])
                            t = (u - work[3, j]) * work[1, j]
                            work[4, j] += exp2(t if t < _HIGHEST else _HIGHEST)
                else:
                    for i in range(first, min(first + _BLOCK, stop)):
                        row = rows[i]
                        fetch(x, rows[min(i + _AHEAD, last)])
                        for j in range(d):
                            t = (x[row, j] - work[3, j]) * work[1, j]
                            work[4, j] += exp2(t if t < _HIGHEST else _HIGHEST)
                if stop - start > _BLOCK:
                    move(work[4], whole, first == start, d)
            if stop - start > _BLOCK:
                for j in range(d):
                    work[4, j] = whole[j]
            near = 0
            for j in range(d):
                near += 1 if work[4, j] < _DISTANT else 0
            if near == d:
                break
        for j in range(d):
            work[4, j] = work[4, j] if work[4, j] > TINY else TINY
            top[s, j] = work[3, j]
        for j in range(d):
            total[s, j] = work[4, j]
            result[s, j] = unit * (work[3, j] + log2(work[4, j]) / work[1, j])


@compiled
def log_sum_exp_gradient(x, rows, ends, given, logs, top, total, gradient, result, of_rate):
    """Writes the gradient by the rows, and adds that by k, times k^2 / log 2; see :func:`log_sum_exp`."""
    d, last = x.shape[1], len(rows) - 1
    work = np.empty((6, WIDTH), np.float32)  # sign, rate, least, extreme, factor, sum of exponents
    for j in range(d):
        work[0, j], work[1, j], work[2, j] = given[0, j], given[1, j], given[2, j]
    for s in range(len(ends) - 1):
        for j in range(d):
            work[3, j] = top[s, j]
            work[4, j] = gradient[s, j] / total[s, j]
            work[5, j] = _ZERO
        for i in range(ends[s], ends[s + 1]):
            row = rows[i]
            fetch(x, rows[min(i + _AHEAD, last)])
            fetch(result, rows[min(i + _AHEAD, last)])
            if logs:
                for j in range(d):
                    v = x[row, j]
                    u = v if v > work[2, j] else work[2, j]
                    t = (log2(u) - work[3, j]) * work[1, j]
                    w = work[4, j] * exp2(t)
                    result[row, j] = w / u if v >= work[2, j] else _ZERO
                    work[5, j] += w * t
            else:
                for j in range(d):
                    t = (x[row, j] - work[3, j]) * work[1, j]
                    w = work[4, j] * exp2(t)
                    result[row, j] = w
                    work[5, j] += w * t
        if ends[s + 1] > ends[s]:
            for j in range(d):
                of_rate[j] += work[5, j] - gradient[s, j] * log2(total[s, j])


@compiled
def log_sum(x, rows, ends, given, result):
    """Writes the sum of log max(x + offset, least) of each set; these are the two rows that are given."""
    d, last = x.shape[1], len(rows) - 1
    work = np.empty((3, WIDTH), np.float32)  # offset, least, sum
    whole = np.empty(d, np.float64)
    for j in range(d):
        work[0, j], work[1, j] = given[0, j], given[1, j]
    for s in range(len(ends) - 1):
        start, stop = ends[s], ends[s + 1]
        for j in range(d):
            work[2, j] = _ZERO
        for first in range(start, stop, _BLOCK):
            for i in range(first, min(first + _BLOCK, stop)):
                row = rows[i]
                fetch(x, rows[min(i + _AHEAD, last)])
                for j in range(d):
                    u = x[row, j] + work[0, j]
                    work[2, j] += log2(u if u > work[1, j] else work[1, j])
            if stop - start > _BLOCK:
                move(work[2], whole, first == start, d)
        for j in range(d):
            result[s, j] = LN_2 * (work[2, j] if stop - start <= _BLOCK else np.float32(whole[j]))


@compiled
def log_sum_gradient(x, rows, ends, given, gradient, result, of_offset):
    """Writes the gradient by the rows, and adds that by the offset, as if rows were moved to keep what is least."""
    d, last = x.shape[1], len(rows) - 1
    work = np.empty((4, WIDTH), np.float32)  # offset, least, gradient, sum
    for j in range(d):
        work[0, j], work[1, j] = given[0, j], given[1, j]
    for s in range(len(ends) - 1):
        for j in range(d):
            work[2, j] = gradient[s, j]
            work[3, j] = _ZERO
        for i in range(ends[s], ends[s + 1]):
            row = rows[i]
            fetch(x, rows[min(i + _AHEAD, last)])
            fetch(result, rows[min(i + _AHEAD, last)])
            for j in range(d):
                u = x[row, j] + work[0, j]
                quotient = work[2, j] / (u if u > work[1, j] else work[1, j])
                result[row, j] = quotient if u >= work[1, j] else _ZERO
                work[3, j] += quotient
        for j in range(d):
            of_offset[j] += work[3, j]


@compiled
def polynomial(x, rows, ends, given, result):
    r"""Writes the fold of each set by :math:`u * v = \beta (u + v + s) + \gamma u v`, in double precision.

    By the law itself, one element after the other, where no partial product is far from 1, else by the product of the
    factors. Returns whether all are within limits, where nothing overflows or vanishes on the way; else the result
    must not be used. The rows that are given are gamma, beta and the shift.
    """
    d, last = x.shape[1], len(rows) - 1
    work = np.empty((7, WIDTH), np.float64)  # the coefficients, fold, product, its least and largest size
    for j in range(d):
        work[0, j], work[1, j], work[2, j] = given[0, j], given[1, j], given[2, j]
    fine = True
    for s in range(len(ends) - 1):
        for j in range(d):
            work[3, j], work[4, j], work[5, j], work[6, j] = 0.0, 1.0, 1.0, 1.0
        for i in range(ends[s], ends[s + 1]):
            row = rows[i]
            fetch(x, rows[min(i + _AHEAD, last)])
            for j in range(d):
                u = np.float64(x[row, j])
                factor = work[1, j] + work[0, j] * u
                work[3, j] = work[3, j] * factor + (u + work[2, j])
                product = work[4, j] * factor
                work[4, j] = product
                size = abs(product)
                work[5, j] = size if size < work[5, j] else work[5, j]
                work[6, j] = size if size > work[6, j] else work[6, j]
        for j in range(d):
            is_mild = work[5, j] * _MILD > 1 and work[6, j] < _MILD
            fine &= work[5, j] > _LEAST and work[6, j] < _MOST
            result[s, j] = work[3, j] - work[2, j] if is_mild else (work[4, j] - work[1, j]) / work[0, j]
    return fine


@compiled
def polynomial_gradient(x, rows, ends, given, gradient, result, of_gamma, of_shift):
    """Writes the gradient by the rows, and adds those by the coefficients; arguments as those of :func:`polynomial`."""
    d, last = x.shape[1], len(rows) - 1
    longest = 0
    for s in range(len(ends) - 1):
        longest = max(longest, ends[s + 1] - ends[s])
    products = np.empty((longest + 1, d), np.float64)
    products[0] = 1.0
    work = np.empty((8, WIDTH), np.float64)  # the coefficients, product of the rest, fold, its slope by gamma, two sums
    for j in range(d):
        work[0, j], work[1, j], work[2, j] = given[0, j], given[1, j], given[2, j]
        work[6, j] = work[7, j] = 0.0
    for s in range(len(ends) - 1):
        start, size = ends[s], ends[s + 1] - ends[s]
        for j in range(d):
            work[3, j], work[4, j], work[5, j] = gradient[s, j], 0.0, 0.0
        for i in range(size):
            row = rows[start + i]
            fetch(x, rows[min(start + i + _AHEAD, last)])
            fetch(result, rows[min(start + i + _AHEAD, last)])
            for j in range(d):
                u = np.float64(x[row, j])
                factor, w = work[1, j] + work[0, j] * u, u + work[2, j]
                work[5, j] = work[5, j] * factor + work[4, j] * w
                work[4, j] = work[4, j] * factor + w
                products[i + 1, j] = products[i, j] * factor
        for j in range(d):
            work[6, j] += work[3, j] * work[5, j]
            work[7, j] -= work[3, j]
        for i in range(size - 1, -1, -1):
            row = rows[start + i]
            for j in range(d):
                found = work[3, j] * products[i, j]
                result[row, j] = found
                work[7, j] += found
                work[3, j] *= work[1, j] + work[0, j] * np.float64(x[row, j])
    for j in range(d):
        of_gamma[j] += work[6, j]
        of_shift[j] += work[7, j]
