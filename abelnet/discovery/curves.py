"""Candidate curves: from the closed form in each coordinate, of magnitudes, below a cap, and smoothed."""

from __future__ import annotations

__all__ = [
    "PENALTIES",
    "capped_curves",
    "closed_form_curves",
    "curves_of_magnitudes",
    "semigroups_in_noise",
    "smooth_curves",
]

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from abelnet.discovery.candidates import Candidate, Curve, below, magnitudes
from abelnet.discovery.spectral import COORDINATES, Spectral, SpectralFit, fits_coordinate
from abelnet.discovery.stream import Stream
from abelnet.errors import AbelnetError
from abelnet.laws import Law
from abelnet.multisets import Multisets

PENALTIES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)
"""Curvature penalties tried for the closed form."""
# Capped curves are fitted to at least this many examples that are not at the bound.
_FEWEST_FREE = 5
# Elements and results on either side of the absorbing element of a curve, at least.
_FEWEST_BESIDE = 5
# The absorbing element is located with this penalty where the examples may have noise.
_PENALTY_IN_NOISE = 1e-4
# Of each kind of law, this many curves, the best ones, are smoothed.
_SMOOTHED = 2


def closed_form_curves(
    stream: Stream, fitted: Multisets, held_out: Multisets, hypotheses: Sequence[str], *, stream_has_more: bool
) -> tuple[list[Candidate], dict[str, float]]:
    """Returns the curves of the closed form, best first, with penalties chosen on held-out error; and eigenvalues.

    Arguments:
        stream: All examples.
        fitted: Examples to fit.
        held_out: Examples to choose penalties on.
        hypotheses: Kinds of laws to return curves of; eigenvalues are those of all kinds.
        stream_has_more: Whether the stream has examples that are neither fitted nor held out.
    """
    eigenvalues: dict[str, float] = {}
    found: list[Candidate] = []
    for coordinate, fit in stream.fits.items():
        if fit.count == 0:
            continue
        refined = SpectralFit(coordinate=coordinate).partial_fit(fitted).refine(fitted)
        # Semigroups from the refined fit: the poles of the stream are on a grid.
        found_at = fit.solve_sums() + refined.solve()[-1:]
        eigenvalues |= {f"{one.hypothesis}, {coordinate}": float(one.eigenvalue) for one in found_at}
        solutions = _supported(refined, fitted)
        if stream_has_more:
            streamed = fit.without(held_out)
            solutions += [(one, penalty) for penalty in PENALTIES for one in streamed.solve_sums(penalty)]
        solutions = [one for one in solutions if one[0].hypothesis in hypotheses]
        found += _best_curves(solutions, held_out)
    return sorted(found, key=lambda one: one.mse), eigenvalues


def curves_of_magnitudes(
    fitted: Multisets, held_out: Multisets, hypotheses: Sequence[str]
) -> tuple[list[Candidate], dict[str, float]]:
    """Returns the curves of laws of the magnitudes of elements, and eigenvalues."""
    fitted, coordinate = magnitudes(fitted), "log x"
    if not fits_coordinate(fitted, coordinate) or not fits_coordinate(magnitudes(held_out), coordinate):
        return [], {}
    refined = SpectralFit(coordinate=coordinate).partial_fit(fitted).refine(fitted)
    eigenvalues = {f"{one.hypothesis}, log |x|": float(one.eigenvalue) for one in refined.solve()}
    solutions = [one for one in _supported(refined, fitted) if one[0].hypothesis in hypotheses]
    return _best_curves(solutions, held_out, even=True), eigenvalues


def capped_curves(fitted: Multisets, held_out: Multisets, bound: float) -> list[Candidate]:
    """Returns the curves of capped sums: the closed form of the examples that did not reach the bound."""
    free = below(fitted, bound)
    found: list[Candidate] = []
    for coordinate in COORDINATES:
        if len(free) >= _FEWEST_FREE and fits_coordinate(fitted, coordinate):
            fit = SpectralFit(coordinate=coordinate).partial_fit(free)
            solutions = [(fit.solve_sums(penalty)[0], penalty) for penalty in PENALTIES]
            found += _best_curves(solutions, held_out, bound=bound)
    return found


def semigroups_in_noise(stream: Stream, fitted: Multisets, held_out: Multisets) -> list[Candidate]:
    """Returns curves of semigroups whose absorbing element was located with a penalty: noise would displace it."""
    found: list[Candidate] = []
    for coordinate, streamed in stream.fits.items():
        if streamed.count > 0:
            fit = SpectralFit(coordinate=coordinate).partial_fit(fitted).refine(fitted, _PENALTY_IN_NOISE)
            solutions = [one for one in _supported(fit, fitted) if one[0].absorbing is not None]
            found += _best_curves(solutions, held_out)
    return found


def smooth_curves(curves: Sequence[Candidate], fitted: Multisets, held_out: Multisets) -> list[Candidate]:
    """Returns smooth curves in place of the best curves of each kind of law."""
    found: list[Candidate] = []
    kinds: Counter[type[Law]] = Counter()
    for curve in sorted(curves, key=lambda one: one.mse):
        kinds[type(curve.operation.law)] += 1
        if isinstance(curve, Curve) and kinds[type(curve.operation.law)] <= _SMOOTHED:
            smooth = curve.smoothed(fitted, held_out)
            found += [smooth] if smooth else []
    return found


def _supported(fit: SpectralFit, examples: Multisets) -> list[tuple[Spectral, float]]:
    """Returns solutions with their penalties, without semigroups whose absorbing element the examples do not support.

    With all numbers on one side of it, a semigroup is a group of their logarithms, and the element is an invention.
    """
    numbers = torch.cat((examples.values[:, 0], examples.targets))

    def is_supported(absorbing: float | None) -> bool:
        above = 0 if absorbing is None else int((numbers > absorbing).sum())
        return absorbing is None or min(above, len(numbers) - above) >= _FEWEST_BESIDE

    solutions = ((one, penalty) for penalty in PENALTIES for one in fit.solve(penalty))
    return [one for one in solutions if is_supported(one[0].absorbing)]


def _best_curves(solutions: Sequence[tuple[Spectral, float]], held_out: Multisets, **how: Any) -> list[Candidate]:
    """Returns the curve of each title with the smallest held-out error, if that is finite."""
    found: dict[str, Candidate] = {}
    for one, penalty in solutions:
        try:
            curve = Curve(one, penalty, **how).judge(held_out)
        except AbelnetError:  # the curve is not strictly increasing
            continue
        best = found[curve.title].mse if curve.title in found else math.inf
        if curve.mse < best:
            found[curve.title] = curve
    return list(found.values())
