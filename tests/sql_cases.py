"""Multisets that every query is tested with, how they are written into a table, and how results are compared."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from abelnet import (
    AbelianGroup,
    AbelnetError,
    CappedSum,
    Constant,
    Even,
    Generator,
    Maximum,
    Mean,
    Minimum,
    Multisets,
    Polynomial,
    Product,
)
from abelnet.operation import Operation
from abelnet.sql import select

Array = np.ndarray[Any, np.dtype[np.float64]]
# Runs a query over rows of a set and its values, in columns "set" and "v1", "v2", …, and returns all rows.
Run = Callable[[str, list[tuple[Any, ...]]], list[Sequence[Any]]]
SIZES = (1, 1, 2, 3, 7, 100)
SMALLEST = float(np.finfo(np.float64).tiny)  # normal number


def multisets(
    elements: Callable[[np.random.Generator, int], Array], special: Sequence[float] = (), largest: int = 10_000
) -> list[Array]:
    """Draws sets of each size, and sets with special elements such as 0."""
    generator = np.random.default_rng(0)
    sets = [elements(generator, size).reshape(size, -1) for size in (*SIZES, largest)]
    for number in special:
        row = np.full((1, sets[0].shape[1]), number)
        sets += [row, np.concatenate((row, elements(generator, 2).reshape(2, -1), row))]
    return sets


def rows_of(sets: Sequence[Array]) -> list[tuple[Any, ...]]:
    """Returns the rows of a table, those of different sets mixed."""
    rows = [(i, *map(float, element)) for i, one in enumerate(sets) for element in one]
    order = np.random.default_rng(1).permutation(len(rows))
    return [rows[i] for i in order]


def limits(operation: Operation, sets: Multisets, got: Array) -> Array:
    """Returns by how much results may differ: by 1e-9 of each, or by what rounding makes of it.

    That is by how much it changes if all elements do by 1e-14 of their sizes, in each coordinate, which may be more
    than 1e-9 where numbers of different signs cancel; and by how much either result differs from that of a set of
    itself alone, as log(1 + x) loses x where it is small. Below the smallest normal number digits are lost as well.
    """
    expected = operation.reduce(sets)
    limit = 1e-9 * expected.abs() + SMALLEST
    for i in range(expected.shape[1]):
        for size in (-1e-14, 1e-14):
            moved = sets.values.clone()
            moved[:, i] += size * moved[:, i].abs()
            inside = torch.minimum(torch.maximum(moved, sets.values.amin(0)), sets.values.amax(0))
            limit += (operation.reduce(sets.with_values(inside)) - expected).abs().nan_to_num(0, 0)
    for result in (expected, torch.from_numpy(got)):
        with contextlib.suppress(AbelnetError):  # outside the domain
            rows = torch.where(result.isfinite(), result, sets.values[0])
            limit += (operation.reduce(rows[:, None]) - rows).abs().nan_to_num(0, 0)
    return limit.numpy()


def check(run: Run, laws: Sequence[tuple[Operation, Sequence[int]]], sets: Sequence[Array], dialect: str) -> None:
    """Checks that a query gives what operations do, to 1e-9 of each result, or to rounding of the elements."""
    values = [f"v{i + 1}" for i in range(sets[0].shape[1])]
    query = select(laws, table="t", set="set", value=values, dialect=dialect)
    found = {int(row[0]): row[1:] for row in run(query, rows_of(sets))}
    assert sorted(found) == list(range(len(sets)))
    results = np.array([[np.nan if x is None else float(x) for x in found[i]] for i in range(len(sets))])
    batch = Multisets.from_arrays(list(sets) if sets[0].shape[1] > 1 else [one[:, 0] for one in sets])
    with torch.no_grad():
        for operation, block in laws:
            own = batch.columns(block)
            expected, got = operation.reduce(own).numpy(), results[:, list(block)]
            # Where the latent result overflows, an operation has no result, and a query may have its limit.
            latent = operation.law.reduce(operation.bijection(own.values), own)
            finite = latent.isfinite().numpy() | np.isfinite(expected)
            with np.errstate(invalid="ignore"):
                near = np.abs(got - expected) <= limits(operation, own, got)
            lost = ~np.isfinite(got) & ~np.isfinite(expected).all(1, keepdims=True)
            same = (got == expected) | near | lost | ~finite
            assert same.all(), (query[:3000], expected[~same], got[~same])


ODD_NAMES = [
    '"; DROP TABLE t; --',
    "it's",
    'a "quoted" name',
    "größe ∑ 名",
    "x1",
    "result",
    "select",
    "a\\b",
    "%s {x} $1",
]


def generator(kind: str, *parameters: float) -> Generator:
    return Generator(1, kind, parameters, dtype=torch.float64)


# Every law: products with signs and zeros, caps, extremes, and exponents far beyond the range of doubles.
SCALAR: dict[str, tuple[Operation, float, float]] = {
    "sum": (AbelianGroup(generator("affine")), -1e6, 1e6),
    "product": (Operation(generator("affine"), Product()), -1.5, 1.5),
    "returns": (Operation(generator("affine"), Polynomial(1.0)), -0.3, 0.5),
    "returns below −1": (Operation(generator("affine"), Polynomial(1.0)), -2.0, 0.5),
    "tiny returns": (Operation(generator("affine"), Polynomial(1.0)), -1e-9, 1e-9),
    "noisy or": (Operation(generator("affine"), Polynomial(-1.0)), 0.0, 1.0),
    "exclusive or": (Operation(generator("affine"), Polynomial(-2.0)), 0.0, 1.0),
    "maximum": (Operation(generator("affine"), Maximum()), -5, 5),
    "minimum": (Operation(generator("affine"), Minimum()), -5, 5),
    "minimum by a falling curve": (Operation(generator("exponential", -1.0), Maximum()), -5, 5),
    "constant": (Operation(generator("affine"), Constant(2.5)), -5, 5),
    "mean": (Operation(generator("affine"), Mean()), -5, 5),
    "z-scores": (Operation(generator("affine"), Mean(0.5)), -5, 5),
    "capped sum": (Operation(generator("affine"), CappedSum(15.0)), 0, 8),
    "Łukasiewicz": (Operation(generator("affine"), CappedSum(-1.0, -1.0)), 0.3, 1),
    "capped norm": (Operation(generator("positive power", 2.0), CappedSum(36.0)), 0, 5),
    "norm of both signs": (AbelianGroup(Even(generator("positive power", 2.0))), -5, 5),
    "log-sum-exp far out": (AbelianGroup(generator("exponential", 2.5)), -4000, 4000),
    "log-mean-exp, falling": (Operation(generator("exponential", -0.3), Mean()), -1e5, 1e5),
    "odds": (AbelianGroup(generator("logit")), 0.02, 0.98),
    "velocities": (AbelianGroup(generator("arctanh", 1.0)), -0.9, 0.9),
    "arcsinh": (AbelianGroup(generator("arcsinh", 1.0)), -5, 5),
    "products of logarithms": (Operation(generator("logarithm", 1.0), Product()), -0.9, 3),
}
