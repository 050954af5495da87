"""Search for laws on vectors: invariants, blocks of coordinates that mix, and the evidence for each block."""

from __future__ import annotations

__all__ = ["MOST_COORDINATES", "learn_vector_laws"]

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import Implicit, Invariants, Triangular
from abelnet.bijections.steps import plan
from abelnet.discovery.evidence import NoLawError
from abelnet.discovery.intervals import Ensemble, sigma_points
from abelnet.discovery.search import distinct
from abelnet.discovery.seen import Seen
from abelnet.discovery.vectors.dictionary import signs_of
from abelnet.discovery.vectors.evidence import check_vector_law, find_misfits
from abelnet.discovery.vectors.invariants import Invariant, find_invariants, refit
from abelnet.discovery.vectors.report import LearnedVectorLaw
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.operation import AbelianGroup, Operation

MOST_COORDINATES = 4
"""Joint laws are searched for up to this many coordinates."""
# Invariants are searched on at most this many examples.
_FITTED = 2_000
_HELD_OUT = 0.25
# Fewer examples do not tell a joint law.
_FEWEST = 12
# Errors of outliers, in standard deviations estimated from the median, and the most of them.
_CUT, _MEDIAN, _MOST_LEFT_OUT = 6.0, 0.6745, 0.2
_ROUNDING = 1e-9
_ROUNDS = 3

Block = tuple[int, ...]


def learn_vector_laws(
    examples: Multisets,
    names: Sequence[str],
    seen: Sequence[Seen],
    *,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[dict[Block, LearnedVectorLaw], str]:
    """Returns the laws of blocks of two or more coordinates that mix, and why others were refused.

    Coordinates that are in no block have a law of their own, or none.

    Arguments:
        examples: Multisets of vectors with their results.
        names: Names of the coordinates.
        seen: Ranges of all examples, for each coordinate.
        seed: Random seed of the held-out examples.
        say: Called with the name of each step.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> sets = [np.exp(generator.normal(size=(3, 2))) for _ in range(100)]
        >>> results = np.array([(one[:, 0].sum(), one.prod(1).sum() / one[:, 0].sum()) for one in sets])
        >>> examples = Multisets.from_arrays(sets, results)
        >>> laws, _ = learn_vector_laws(examples, ["m", "x"], [Seen.of(examples.column(i)) for i in (0, 1)])
        >>> {block: law.invariants for block, law in laws.items()}
        {(0, 1): ['m', 'm·x']}
    """
    several = (examples.sizes > 1).nonzero()[:, 0]
    if len(several) < _FEWEST or bool((examples.targets.std(0) == 0).any()):
        return {}, f"expected at least {_FEWEST} sets of several elements whose results differ"
    # Duplicates would leak from the fitted into the held-out examples.
    rest, held_out = distinct(examples.take(several)).split(_HELD_OUT, seed)
    fitted = rest.take(torch.arange(min(len(rest), _FITTED)))
    invariants = find_invariants(fitted, say=say)
    reason = "no function of the coordinates adds up"
    refused: list[list[Invariant]] = []
    for count in range(len(invariants), 1, -1):
        found: dict[Block, LearnedVectorLaw] = {}
        closed = list(_closed(invariants[:count]))
        if count == len(invariants) and all(len(block) == 1 for block, _ in closed) and len(closed) == examples.dim:
            return {}, ""
        for block, own in closed:
            if len(block) == 1 or own in refused:
                continue
            say(f"evidence for {', '.join(names[i] for i in block)}")
            part = examples.columns(block)
            try:
                law = _judged(part, held_out.columns(block), own, block, names)
            except AbelnetError as error:
                reason = str(error)
                refused.append(own)
                continue
            law.seen = [seen[i] for i in block]
            found[block] = law
        if found:
            return found, reason
    return {}, reason


def _closed(invariants: Sequence[Invariant]) -> Iterator[tuple[Block, list[Invariant]]]:
    """Yields sets of coordinates that are connected by invariants, as many as there are coordinates."""
    left = list(invariants)
    while left:
        own = [left.pop(0)]
        block = own[0].coordinates
        while True:
            more = [one for one in left if one.coordinates & block]
            if not more:
                break
            own += more
            block = block.union(*(one.coordinates for one in more))
            left = [one for one in left if one not in more]
        if len(own) == len(block):
            yield tuple(sorted(block)), own


def _judged(
    examples: Multisets,
    held_out: Multisets,
    invariants: Sequence[Invariant],
    block: Block,
    names: Sequence[str],
) -> LearnedVectorLaw:
    """Returns the law of a block, refitted to all examples but outliers, with its errors on held-out examples."""
    own = [_moved(one, block) for one in invariants]
    operation = _operation(own, examples)
    errors = _errors(operation, held_out)
    agree = _agree(errors, held_out)
    target = held_out.targets[agree]
    mse = errors[agree].square().mean(0).nan_to_num(math.inf)
    explained = (1 - mse / target.var(0, unbiased=False).clamp(min=1e-300)).tolist()
    law = LearnedVectorLaw(
        operation, [names[i] for i in block], mse.sqrt().tolist(), explained, [one.error for one in own]
    )
    check_vector_law(law)
    sound = _agree(_errors(operation, examples), examples)
    if float(sound.double().mean()) < 1 - _MOST_LEFT_OUT:
        part = 100 * (1 - float(sound.double().mean()))
        raise NoLawError(f"no law on vectors: {part:.0f} % of the examples disagree with the best one")
    for _ in range(_ROUNDS):
        kept = examples.take(sound.nonzero()[:, 0])
        own = refit(kept.take(torch.arange(min(len(kept), 10 * _FITTED))), own)
        operation = _operation(own, kept)
        before, sound = sound, _agree(_errors(operation, examples), examples)
        if bool((before == sound).all()):
            break
    kept = examples.take(sound.nonzero()[:, 0])
    law = LearnedVectorLaw(
        operation,
        [names[i] for i in block],
        mse.sqrt().tolist(),
        explained,
        [one.error for one in own],
        outliers=(~sound).nonzero()[:, 0].tolist(),
    )
    law.misfits = find_misfits(law, kept)
    check_vector_law(law)
    law.ensemble = _ensemble(law, kept)
    return law


def _moved(one: Invariant, block: Block) -> Invariant:
    """Returns an invariant in terms of the coordinates of a block."""
    places = {coordinate: place for place, coordinate in enumerate(block)}
    return Invariant(tuple(term.renamed(places) for term in one.terms), one.coefficients, one.error)


def _operation(invariants: Sequence[Invariant], examples: Multisets) -> Operation:
    """Returns the group with these invariants, in the order of the coordinates that they bring in."""
    terms, coefficients = [one.terms for one in invariants], [one.coefficients for one in invariants]
    dim = len(invariants)
    needed = _signs(invariants, examples)
    bijection: Invariants
    if plan(terms, needed) is not None:
        bijection = _centered(Triangular(dim, terms, coefficients, needed, dtype=torch.float64), examples.values)
    else:
        known = examples.targets[_is_defined(invariants, examples.targets)]
        if len(known) == 0:
            raise NoLawError("no law on vectors: no result is in the domain of the invariants")
        bijection = Implicit(dim, terms, coefficients, needed, known=known, dtype=torch.float64)
    return AbelianGroup(bijection.requires_grad_(False))


def _centered(bijection: Triangular, elements: Tensor) -> Triangular:
    """Returns the same law with coordinates measured from the middle of elements that are far from 0.

    Then sums of squares, say, do not cancel: a variance is small beside the square of a mean far from 0.
    """
    middle, spread = elements.median(0).values, elements.std(0, unbiased=False)
    far = (middle.abs() > spread) & torch.tensor(bijection.translatable())
    # Rounded, so that differences from it have no digits that the data have not.
    origin = [float(f"{value:.2g}") if one else 0.0 for value, one in zip(middle.tolist(), far.tolist(), strict=True)]
    return bijection.with_origin(origin)


def _signs(invariants: Sequence[Invariant], examples: Multisets) -> list[int]:
    """Returns the signs of coordinates that an even power does not tell; 0 for all others."""
    seen = signs_of(examples.values)
    even = {
        factor.coordinate
        for one in invariants
        for term in one.terms
        for factor in getattr(term, "factors", ())
        if not factor.is_injective
    }
    # A coordinate of both signs in the results, as a variance with noise, is that of the elements.
    return [sign if i in even else 0 for i, sign in enumerate(seen)]


def _is_defined(invariants: Sequence[Invariant], points: Tensor) -> Tensor:
    defined = torch.ones(len(points), dtype=torch.bool)
    for one in invariants:
        for term in one.terms:
            defined &= term.is_defined(points)
    return defined


@torch.no_grad()
def _errors(operation: Operation, examples: Multisets) -> Tensor:
    return operation.reduce(examples) - examples.targets


def _agree(errors: Tensor, examples: Multisets) -> Tensor:
    """Returns which examples have errors of the distribution of most of them, in every coordinate."""
    errors = errors.nan_to_num(math.inf, math.inf, math.inf).abs()
    scale = errors.median(0).values / _MEDIAN
    size = examples.targets.abs() + examples.targets.median(0).values.abs()
    agree: Tensor = (errors <= _CUT * scale + _ROUNDING * size).all(1)
    return agree


@torch.no_grad()
def _ensemble(law: LearnedVectorLaw, examples: Multisets) -> Ensemble:
    """Returns laws with other coefficients, as far as the examples allow them."""
    bijection = law.bijection
    places = [(j, k) for j, one in enumerate(bijection.coefficients) for k in range(1, len(one))]
    if not places:
        return Ensemble.even([law.operation], len(examples))
    some = examples.take(torch.arange(min(len(examples), _FITTED)))
    units = some.targets.std(0, unbiased=False).clamp(min=1e-300)
    fit = np.array([float(bijection.coefficients[j][k]) for j, k in places])

    def at(theta: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Operation:
        coefficients = [one.clone() for one in bijection.coefficients]
        for (j, k), value in zip(places, theta.tolist(), strict=True):
            coefficients[j][k] = value
        return AbelianGroup(bijection.with_coefficients(coefficients).requires_grad_(False))

    points = sigma_points(
        lambda theta: (at(theta).reduce(some) / units).reshape(-1).numpy(),
        fit,
        (some.targets / units).reshape(-1).numpy(),
    )
    return Ensemble.even([at(one) for one in points], len(examples) - len(fit))
