"""Evidence against a law on vectors: what regressions that assume no law explain and the law does not."""

from __future__ import annotations

__all__ = ["check_own_law", "check_vector_law", "depends_on_others", "describe_vectors", "find_misfits"]

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.discovery.evidence import (
    EXACT,
    LEAST_EXPLAINED,
    SERIOUS,
    TOLERATED,
    Misfit,
    NoLawError,
    is_beyond_chance,
    small_sets,
)
from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.vectors.report import LearnedVectorLaw
from abelnet.discovery.yardstick import Features, compare_errors, describe_sets, standard
from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]

_MOST_COMPARED = 1_000
# Fewer say nothing beside a law and its parameters.
_FEWEST_COMPARED = 24
# Relative change of a coefficient by which derivatives are measured.
_CHANGE = 1e-6
_MOST_FEATURES = 40
# Others explain a coordinate if it leaves more than this fraction of the variance, and they more than this of the rest.
_OWN_ERROR, _DEPENDENT = 0.01, 0.6


@torch.no_grad()
def find_misfits(law: LearnedVectorLaw, examples: Multisets) -> list[Misfit | None]:
    """Returns the systematic part of the errors in each coordinate; None where they may be chance.

    Arguments:
        law: The law.
        examples: Examples, some of which it was fitted to.
    """
    some = small_sets(examples)
    found = law.operation.reduce(some)
    kept = ((some.sizes > 1) & found.isfinite().all(1)).nonzero()[:, 0][:_MOST_COMPARED]
    some, found = some.take(kept), found[kept]
    errors, spread = some.targets - found, some.targets.std(0, unbiased=False)
    none: list[Misfit | None] = [None] * examples.dim
    if len(kept) < _FEWEST_COMPARED:
        return none
    size = errors.square().mean(0).sqrt()
    inexact = [i for i in range(examples.dim) if float(size[i]) > EXACT * float(spread[i]) and float(spread[i]) > 0]
    if not inexact:
        return none
    features = describe_vectors(some, found.numpy())
    bends = _bends(law, some, found)
    for i in inexact:
        none[i] = _misfit(errors[:, i].numpy(), bends[:, i], features, float(spread[i]))
    return none


def depends_on_others(examples: Multisets, coordinate: int) -> bool:
    """Returns whether other coordinates explain most of what a coordinate of the elements leaves of its results.

    Arguments:
        examples: Multisets of vectors with their results.
        coordinate: Index of the coordinate.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> sets = generator.uniform(1, 3, (100, 2, 2))
        >>> results = np.stack((sets[..., 0].sum(1), sets.prod(2).sum(1)), 1)
        >>> examples = Multisets.from_arrays(sets, results)
        >>> depends_on_others(examples, 0), depends_on_others(examples, 1)
        (False, True)
    """
    some = small_sets(examples)
    some = some.take((some.sizes > 1).nonzero()[:, 0][:_MOST_COMPARED])
    if len(some) < _FEWEST_COMPARED:
        return False
    alone = some.column(coordinate)
    target = alone.targets.numpy()
    total = np.add.reduceat(alone.values[:, 0].numpy(), alone.ptr[:-1].numpy())
    own = describe_sets(alone, total)
    linear = np.concatenate((own.symmetric, own.ordered, own.of_size), 1)
    columns = np.concatenate((linear, *(linear[:, [k]] * linear[:, k:] for k in range(linear.shape[1]))), 1)
    columns = standard(columns)
    columns /= np.linalg.norm(columns, axis=0)
    errors = target - target.mean()
    found = compare_errors(errors, columns, describe_vectors(some, np.zeros((len(some), 0))))
    left = float(np.mean(found.bent**2)) / max(float(np.mean(errors**2)), 1e-300)
    return left > _OWN_ERROR and found.gain > _DEPENDENT and is_beyond_chance(found)


@torch.no_grad()
def check_own_law(law: LearnedLaw, coordinate: int, examples: Multisets, name: str) -> None:
    """Raises :class:`NoLawError` if errors of the law of one coordinate depend on the other coordinates.

    Arguments:
        law: The law.
        coordinate: Index of the coordinate.
        examples: Multisets of vectors with their results.
        name: Name of the coordinate, for the message.
    """
    some = small_sets(examples)
    found = law.operation.reduce(some.column(coordinate))[:, 0]
    agree = torch.ones(len(some), dtype=torch.bool)
    if law.outliers and len(some) == len(examples):
        agree[list(law.outliers)] = False
    kept = ((some.sizes > 1) & found.isfinite() & agree).nonzero()[:, 0][:_MOST_COMPARED]
    some, found = some.take(kept), found[kept]
    errors = (some.targets[:, coordinate] - found).numpy()
    spread = float(some.targets[:, coordinate].std(unbiased=False))
    if len(errors) < _FEWEST_COMPARED or not np.sqrt(np.mean(errors**2)) > EXACT * spread > 0:
        return
    misfit = _misfit(errors, np.zeros((len(errors), 0)), describe_vectors(some, found[:, None].numpy()), spread)
    if misfit is not None and misfit.contradicts:
        raise NoLawError(
            f"no law: the results of {name} depend on the other coordinates besides {law.formula}, and no functions of "
            "all of them add up; look for a coordinate that is missing, such as a weight, or learn fewer of them",
            [f"error: {misfit.law:.3g}; that of a regression on all coordinates: {misfit.plain:.3g}"],
        )


def _misfit(errors: Array, bends: Array, features: Features, spread: float) -> Misfit | None:
    lengths = np.linalg.norm(bends, axis=0)
    bends = bends[:, lengths > 0] / lengths[lengths > 0]
    if bends.shape[1] == 0:  # a law without parameters has none to bend
        bends = np.zeros((len(errors), 1))
    found = compare_errors(errors, bends, features)
    if not is_beyond_chance(found):
        return None
    bent, plain = (float(np.linalg.norm(one / spread)) / math.sqrt(len(one)) for one in (found.bent, found.plain))
    part = math.sqrt(max(bent**2 - plain**2, 0.0))
    if part < TOLERATED:
        return None
    return Misfit(part * spread, part, bent * spread, plain * spread, part > SERIOUS)


def check_vector_law(law: LearnedVectorLaw) -> None:
    """Raises :class:`NoLawError` if a law explains little of a coordinate, or if a misfit contradicts it.

    Arguments:
        law: The law, with its errors on held-out examples and its misfits.
    """
    parts = []
    for name, explained, misfit in zip(law.names, law.explained, law.misfits, strict=True):
        if not explained >= LEAST_EXPLAINED:
            parts.append(f"{name}: it explains {100 * explained:.3g} % of the variance of held-out results")
        elif misfit is not None and misfit.contradicts:
            parts.append(
                f"{name}: its error is {misfit.law:.3g}, that of a regression without a law {misfit.plain:.3g}"
            )
    if parts:
        raise NoLawError(f"no law on vectors: the best invariants are {law.describe_invariants()}; {'; '.join(parts)}")


def describe_vectors(examples: Multisets, found: Array) -> Features:
    """Returns features of multisets of vectors, and of the results of a law on them.

    Arguments:
        examples: Multisets of vectors, none of them empty.
        found: Results of the law, with shape :math:`(R, d)`.
    """
    x = examples.values.numpy()
    x = x / np.maximum(np.abs(x).max(0), 1e-300)
    begins, sizes = examples.ptr[:-1].numpy(), examples.sizes.numpy()

    def total(values: Array) -> Array:
        return np.asarray(np.add.reduceat(values, begins))

    symmetric = [*found.T, sizes.astype(np.float64)]
    for one in x.T:
        symmetric += [total(one), total(one**2), np.minimum.reduceat(one, begins), np.maximum.reduceat(one, begins)]
        if (one > 0).all():
            symmetric += [total(np.log(np.maximum(one, 1e-12))), total(1 / np.maximum(one, 1e-6))]
    for i, j in itertools.permutations(range(x.shape[1]), 2):
        if i < j:
            symmetric.append(total(x[:, i] * x[:, j]))
        if (x[:, i] > 0).all():  # means weighted by a coordinate, and by its square
            symmetric += [total(x[:, i] ** p * x[:, j]) / total(x[:, i] ** p) for p in (1, 2)]
    ordered = []
    for one in x.T:
        ordered += [one[begins], one[begins + sizes - 1]]
    kinds = [size for size, count in zip(*np.unique(sizes, return_counts=True), strict=True) if count >= 12][:5]
    of_size = (sizes[:, None] == np.array(kinds or [sizes[0]])).astype(np.float64)
    return Features(standard(np.stack(symmetric[:_MOST_FEATURES], 1)), standard(np.stack(ordered, 1)), of_size)


def _bends(law: LearnedVectorLaw, examples: Multisets, found: Tensor) -> Array:
    """Returns how results change with each coefficient, with shape :math:`(R, d, p)`."""
    columns = []
    for coefficients in law.operation.bijection.parameters():
        for k in range(1, len(coefficients)):  # the first is 1
            kept = float(coefficients[k])
            coefficients[k] = kept + _CHANGE * (abs(kept) or 1.0)
            columns.append((law.operation.reduce(examples) - found).nan_to_num(0.0, 0.0, 0.0).numpy())
            coefficients[k] = kept
    return np.stack(columns, 2) if columns else np.zeros((*found.shape, 0))
