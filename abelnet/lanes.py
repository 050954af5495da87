r"""Sixteen numbers at a time in kernels that numba compiles: values of vector registers, with the usual operators.

Kernels that are written with these need not hope that the compiler recognizes their loops: all that they compute stays
in registers, whatever the number of rows. Imported on first use, with :mod:`abelnet.kernels`.

Numbers that are mixed with lanes are repeated in all of them. Lanes compare to masks, of which :func:`where` chooses.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

__all__ = [
    "LANES",
    "address",
    "any_of",
    "double",
    "double_zeros",
    "exp2",
    "fetch",
    "fill",
    "first",
    "inverse",
    "inverse_sqrt",
    "item",
    "load",
    "log2",
    "maximum",
    "minimum",
    "put",
    "single",
    "size",
    "sqrt",
    "store",
    "where",
]

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

LANES = 16
_SINGLE, _DOUBLE, _INT, _BIT = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(1)
# Products and sums may be fused.
_FLAGS = ("contract",)


class Lanes(types.Type):
    """Numba's type of sixteen numbers: of single or double precision, or a mask."""

    def __init__(self, element) -> None:
        self.element = element
        super().__init__(name=f"Lanes({element})")


SINGLE, DOUBLE, MASK = Lanes(_SINGLE), Lanes(_DOUBLE), Lanes(_BIT)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, ir.VectorType(kind.element, LANES))


def _repeated(builder, number, element):
    vector = ir.VectorType(element, LANES)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(_INT, 0))
    zeros = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


def _constant(value, element=_SINGLE):
    return ir.Constant(ir.VectorType(element, LANES), [value] * LANES)


def _call(builder, name, kind, *arguments, flags=()):
    function = ir.FunctionType(kind, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), arguments, fastmath=flags)


def _operands(context, builder, signature, arguments):
    """Returns two vectors of one type: a number is repeated."""
    kind = next(one for one in signature.args if isinstance(one, Lanes))
    number = types.float32 if kind is SINGLE else types.float64
    return [
        value if isinstance(one, Lanes) else _repeated(builder, context.cast(builder, value, one, number), kind.element)
        for one, value in zip(signature.args, arguments, strict=True)
    ]


def _define(symbol, generate, result=None) -> None:
    """Defines an operator of lanes, and of lanes and numbers."""

    @type_callable(symbol)
    def typed(context):
        def of(left, right):
            kinds = [one for one in (left, right) if isinstance(one, Lanes)]
            others = [one for one in (left, right) if not isinstance(one, Lanes)]
            if kinds and kinds[0] is kinds[-1] and all(isinstance(one, types.Number) for one in others):
                return kinds[0] if result is None else result
            return None

        return of

    for left, right in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):

        @lower_builtin(symbol, left, right)
        def lower(context, builder, signature, arguments):
            return generate(builder, *_operands(context, builder, signature, arguments))


_define(operator.add, lambda builder, a, b: builder.fadd(a, b, flags=_FLAGS))
_define(operator.sub, lambda builder, a, b: builder.fsub(a, b, flags=_FLAGS))
_define(operator.mul, lambda builder, a, b: builder.fmul(a, b, flags=_FLAGS))
_define(operator.truediv, lambda builder, a, b: builder.fdiv(a, b, flags=_FLAGS))
_define(operator.ne, lambda builder, a, b: builder.fcmp_unordered("!=", a, b), MASK)
_define(operator.and_, lambda builder, a, b: builder.and_(a, b), MASK)
_define(operator.or_, lambda builder, a, b: builder.or_(a, b), MASK)
for _symbol, _name in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
):
    _define(_symbol, lambda builder, a, b, name=_name: builder.fcmp_ordered(name, a, b), MASK)


@intrinsic
def where(_, mask, a, b):
    """Returns the one or the other, by a mask."""
    kind = a if isinstance(a, Lanes) else b

    def generate(context, builder, signature, arguments):
        both = _operands(context, builder, kind(*signature.args[1:]), arguments[1:])
        return builder.select(arguments[0], *both)

    return kind(mask, a, b), generate


def _choice(name):
    @intrinsic
    def choose(_, a, b):
        kind = a if isinstance(a, Lanes) else b

        def generate(context, builder, signature, arguments):
            a, b = _operands(context, builder, signature, arguments)
            return builder.select(builder.fcmp_ordered(name, a, b), a, b)

        return kind(a, b), generate

    return choose


maximum, minimum = _choice(">"), _choice("<")


def _elementwise(name):
    @intrinsic
    def apply(_, a):
        def generate(context, builder, signature, arguments):
            suffix = "f32" if a is SINGLE else "f64"
            return _call(builder, f"llvm.{name}.v{LANES}{suffix}", arguments[0].type, arguments[0])

        return a(a), generate

    return apply


size, sqrt = _elementwise("fabs"), _elementwise("sqrt")


@intrinsic
def inverse(_, x):
    """Returns 1/x within a few units in the last place, of numbers whose inverse is not subnormal."""

    def generate(context, builder, signature, arguments):
        return builder.fdiv(_constant(1.0), arguments[0], flags=("fast",))

    return SINGLE(x), generate


@intrinsic
def inverse_sqrt(_, x):
    """Returns the inverse square root of positive numbers within a few units in the last place."""

    def generate(context, builder, signature, arguments):
        root = _call(builder, f"llvm.sqrt.v{LANES}f32", arguments[0].type, arguments[0], flags=("fast",))
        return builder.fdiv(_constant(1.0), root, flags=("fast",))

    return SINGLE(x), generate


@intrinsic
def fill(_, number):
    """Returns the same number in all lanes."""

    def generate(context, builder, signature, arguments):
        return _repeated(builder, context.cast(builder, arguments[0], number, types.float32), _SINGLE)

    return SINGLE(number), generate


@intrinsic
def double_zeros(_):
    """Returns zeros of double precision."""

    def generate(context, builder, signature, arguments):
        return _constant(0.0, _DOUBLE)

    return DOUBLE(), generate


@intrinsic
def double(_, a):
    def generate(context, builder, signature, arguments):
        return builder.fpext(arguments[0], ir.VectorType(_DOUBLE, LANES))

    return DOUBLE(a), generate


@intrinsic
def single(_, a):
    def generate(context, builder, signature, arguments):
        return builder.fptrunc(arguments[0], ir.VectorType(_SINGLE, LANES))

    return SINGLE(a), generate


@intrinsic
def first(_, count):
    """Returns the mask of so many lanes from the first."""

    def generate(context, builder, signature, arguments):
        count = _repeated(builder, context.cast(builder, arguments[0], signature.args[0], types.int32), _INT)
        return builder.icmp_signed("<", ir.Constant(ir.VectorType(_INT, LANES), list(range(LANES))), count)

    return MASK(count), generate


@intrinsic
def any_of(_, mask):
    """Returns whether the mask is set in any lane."""

    def generate(context, builder, signature, arguments):
        bits = builder.bitcast(arguments[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(mask), generate


@intrinsic
def address(_, array):
    """Returns where a contiguous array begins, for functions that are called often: arrays would be counted there."""

    def generate(context, builder, signature, arguments):
        return context.make_array(array)(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def item(_, start, place):
    """Returns one number of an array."""

    def generate(context, builder, signature, arguments):
        return builder.load(builder.gep(arguments[0], [arguments[1]]))

    return start.dtype(start, types.intp), generate


@intrinsic
def put(_, start, place, value):
    """Writes one number of an array."""

    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], builder.gep(arguments[0], [arguments[1]]))
        return context.get_dummy_value()

    return types.void(start, types.intp, start.dtype), generate


def _vector(builder, start, place, kind):
    return builder.bitcast(builder.gep(start, [place]), ir.VectorType(kind.element, LANES).as_pointer())


@intrinsic
def load(_, start, place, mask):
    """Returns numbers of an array from a place on, where there is a mask; 0 elsewhere."""
    kind = SINGLE if start.dtype == types.float32 else DOUBLE

    def generate(context, builder, signature, arguments):
        name = f"llvm.masked.load.v{LANES}f{start.dtype.bitwidth}.p0"
        vector, align = ir.VectorType(kind.element, LANES), ir.Constant(_INT, start.dtype.bitwidth // 8)
        where = _vector(builder, arguments[0], arguments[1], kind)
        return _call(builder, name, vector, where, align, arguments[2], _constant(0.0, kind.element))

    return kind(start, types.intp, MASK), generate


@intrinsic
def store(_, start, place, mask, value):
    """Writes numbers to an array from a place on, where there is a mask."""
    kind = SINGLE if start.dtype == types.float32 else DOUBLE

    def generate(context, builder, signature, arguments):
        name = f"llvm.masked.store.v{LANES}f{start.dtype.bitwidth}.p0"
        align = ir.Constant(_INT, start.dtype.bitwidth // 8)
        where = _vector(builder, arguments[0], arguments[1], kind)
        _call(builder, name, ir.VoidType(), arguments[3], where, align, arguments[2])
        return context.get_dummy_value()

    return types.void(start, types.intp, MASK, kind), generate


@intrinsic
def fetch(_, start, place):
    """Tells the processor that numbers are needed soon, which it cannot guess if rows are in any order."""

    def generate(context, builder, signature, arguments):
        where = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(8).as_pointer())
        _call(builder, "llvm.prefetch.p0", ir.VoidType(), where, _INT(0), _INT(3), _INT(1))
        return context.get_dummy_value()

    return types.void(start, types.intp), generate


# 2^f for |f| <= 1/2 with the least relative error, exact at 0, and log2(1 + f) / f for 1 + f from 1/sqrt(2) to sqrt(2)
# with the least absolute error of the logarithm, from the highest degree on.
_POWER = (
    0.0013264720366442562,
    0.009671513022324617,
    0.05550733777650107,
    0.2402224207698383,
    0.6931469775578212,
    1.0,
)
_LOGARITHM = (
    0.12541215419869853,
    -0.2103032470474037,
    0.21737944793430466,
    -0.23851945384552903,
    0.2876566693135659,
    -0.3607211945325572,
    0.480922529128798,
    -0.7213471284772697,
    1.442694868553704,
)
# Adding it rounds to an integer, in the last bits; from the exponent on numbers are normal.
_ROUNDING, _LOWEST = 1.5 * 2**23, -126.0
_SQRT_HALF = 0x3F3504F3


def _polynomial(builder, f, coefficients):
    highest, *others = (_constant(float(np.float32(coefficient))) for coefficient in coefficients)
    for coefficient in others:
        highest = builder.fadd(builder.fmul(highest, f, flags=_FLAGS), coefficient, flags=_FLAGS)
    return highest


def _long_polynomial(builder, f, coefficients):
    """Returns a polynomial of even degree by its even and odd terms, which need not wait for each other."""
    square = builder.fmul(f, f, flags=_FLAGS)
    even, odd = _polynomial(builder, square, coefficients[::2]), _polynomial(builder, square, coefficients[1::2])
    return builder.fadd(builder.fmul(odd, f, flags=_FLAGS), even, flags=_FLAGS)


@intrinsic
def exp2(_, t):
    """Returns 2^t within 2 units in the last place for t < 127, from 2^-126 on."""

    def generate(context, builder, signature, arguments):
        integers = ir.VectorType(_INT, LANES)
        low = _constant(_LOWEST)
        t = builder.select(builder.fcmp_ordered("<", arguments[0], low), low, arguments[0])
        rounded = builder.fadd(t, _constant(_ROUNDING))
        f = builder.fsub(t, builder.fsub(rounded, _constant(_ROUNDING)))
        value = builder.bitcast(_polynomial(builder, f, _POWER), integers)
        exponent = builder.shl(builder.bitcast(rounded, integers), _constant(23, _INT))
        return builder.bitcast(builder.add(value, exponent), t.type)

    return SINGLE(t), generate


@intrinsic
def log2(_, x):
    """Returns the binary logarithm of positive numbers that are not subnormal, within the precision of 1."""

    def generate(context, builder, signature, arguments):
        integers, vector = ir.VectorType(_INT, LANES), arguments[0].type
        bits = builder.bitcast(arguments[0], integers)
        exponent = builder.ashr(builder.sub(bits, _constant(_SQRT_HALF, _INT)), _constant(23, _INT))
        mantissa = builder.sub(bits, builder.shl(exponent, _constant(23, _INT)))
        f = builder.fsub(builder.bitcast(mantissa, vector), _constant(1.0))
        value = builder.fmul(_long_polynomial(builder, f, _LOGARITHM), f, flags=_FLAGS)
        return builder.fadd(builder.sitofp(exponent, vector), value, flags=_FLAGS)

    return SINGLE(x), generate
