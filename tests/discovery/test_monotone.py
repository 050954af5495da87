"""Monotone smoothing: curves of many knots that increase, whatever the examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from abelnet import AbelnetError, Multisets
from abelnet.discovery.candidates import Curve, SmoothCurve
from abelnet.discovery.monotone import MonotoneFit
from abelnet.discovery.spectral import Spectral, SpectralFit

Array = np.ndarray[Any, np.dtype[np.float64]]
GRID = np.linspace(-40, 40, 800_001)
ENDS = np.array([-100.0, 100.0])
LINE = Spectral("semigroup", 1.0, 0.0, ENDS, ENDS, np.ones(2))


def wave(x: Array) -> Array:
    return x + 0.8 * np.sin(x)


def draw(count: int, fold: Callable[[Array], float], *, width: float = 5.0, noise: float = 0.0, seed: int) -> Multisets:
    """Examples of 2 to 4 elements of the law over φ(x) = x + 0.8 sin x, which no family has."""
    generator = np.random.default_rng(seed)
    sets = [generator.uniform(-width, width, size) for size in generator.integers(2, 5, count)]
    results = np.interp([fold(wave(one)) for one in sets], wave(GRID), GRID)
    return Multisets.from_arrays(sets, results + noise * results.std() * generator.normal(size=count))


def closed_form(examples: Multisets, hypothesis: str) -> Spectral:
    solutions = SpectralFit().partial_fit(examples).refine(examples, 1e-4).solve(1e-4)
    return next(one for one in solutions if one.hypothesis == hypothesis)


def error(curve: Curve, examples: Multisets) -> float:
    """Root mean squared error in standard deviations of the results."""
    return float(curve.squared_errors(examples).mean().sqrt() / examples.targets.std())


def smoothed(examples: Multisets, hypothesis: str) -> SmoothCurve:
    rest, held_out = examples.split(0.25, 0)
    curve = Curve(closed_form(rest, hypothesis), 1e-4).smoothed(rest, held_out)
    assert curve is not None
    return curve


@pytest.mark.parametrize(
    ("hypothesis", "fold", "width", "noise", "reached"),
    [("group", np.sum, 5.0, 0.0, 1e-3), ("mean", np.mean, 5.0, 0.0, 1e-4), ("semigroup", np.prod, 1.5, 0.05, 0.1)],
)
def test_smooth_curves_are_closer_than_the_closed_form(
    hypothesis: str, fold: Callable[[Array], float], width: float, noise: float, reached: float
) -> None:
    examples, fresh = draw(500, fold, width=width, noise=noise, seed=0), draw(1000, fold, width=width, seed=1)
    curve = smoothed(examples, hypothesis)
    assert curve.title == f"{hypothesis} over a smooth curve in x"
    assert error(curve, fresh) < reached
    assert error(curve, fresh) < 0.5 * error(Curve(closed_form(examples, hypothesis), 1e-4), fresh)


def test_more_examples_gain() -> None:
    fresh = draw(1000, np.sum, seed=1)
    few, many = (error(smoothed(draw(count, np.sum, noise=0.05, seed=0), "group"), fresh) for count in (300, 2000))
    assert many < 0.6 * few


@pytest.mark.parametrize("hypothesis", ["group", "mean", "semigroup"])
def test_curves_increase_whatever_the_examples(hypothesis: str) -> None:
    generator = np.random.default_rng(0)
    examples = Multisets.from_arrays(generator.normal(size=(60, 3)), generator.normal(size=60))
    fit = MonotoneFit(examples, LINE if hypothesis == "semigroup" else closed_form(examples, hypothesis))
    for penalty in (1.0, 1e-6, 1e-12):
        found = fit.solve(penalty)
        assert (np.diff(found.curve) > 0).all()
        assert (found.slopes > 0).all()
        assert len(found.operation().reduce(examples)) == 60


def test_a_large_penalty_makes_a_line() -> None:
    examples = draw(200, np.sum, seed=0)
    found = MonotoneFit(examples, closed_form(examples, "group")).solve(1e6)
    np.testing.assert_allclose(found.slopes, found.slopes.mean(), rtol=1e-4)


@pytest.mark.parametrize("unit", [1e-30, 1e6])
def test_units_do_not_matter(unit: float) -> None:
    examples = draw(200, np.sum, noise=0.05, seed=0)
    scaled = Multisets(examples.values * unit, 1, ptr=examples.ptr, targets=examples.targets * unit)
    group = closed_form(examples, "group")
    one, other = (MonotoneFit(each, group).solve(1e-6) for each in (examples, scaled))
    np.testing.assert_allclose(other.points, one.points * unit, rtol=1e-9, atol=1e-9 * unit)
    np.testing.assert_allclose(other.curve, one.curve, rtol=1e-4, atol=1e-4)


def test_products_may_overflow() -> None:
    generator = np.random.default_rng(0)
    sets = [generator.uniform(-30, 30, size) for size in (2, 3, 2, 4, 2, 3, 400)]
    examples = Multisets.from_arrays(sets, [float(np.prod(one[:2])) for one in sets])
    found = MonotoneFit(examples, LINE).solve(1e-6)
    assert (np.diff(found.curve) > 0).all()


def test_a_curve_that_is_almost_flat_is_no_start() -> None:
    examples = draw(50, np.prod, seed=0)
    flat = Spectral("semigroup", 1.0, 0.0, ENDS, 1e-9 * ENDS, np.ones(2))
    assert (np.diff(MonotoneFit(examples, flat).solve(1e-2).curve) > 0).all()
    steep = replace(
        flat, points=np.array([-100.0, -99, 99, 100]), curve=np.array([-1e9, -1, 1, 1e9]), slopes=np.ones(4)
    )
    with pytest.raises(AbelnetError, match="found: expected a curve that rises by at most"):
        MonotoneFit(examples, steep)
    assert Curve(steep, 1e-2).smoothed(examples, examples) is None


def test_a_smooth_curve_is_fitted_to_all() -> None:
    examples = draw(600, np.sum, noise=0.05, seed=0)
    rest, held_out = examples.split(0.75, 0)
    curve = Curve(closed_form(rest, "group"), 1e-4).smoothed(rest, held_out)
    assert curve is not None
    refitted = curve.fit_to_all(examples, {})
    assert isinstance(refitted, SmoothCurve)
    assert refitted.penalty == curve.penalty
    assert error(refitted, draw(1000, np.sum, seed=1)) < error(curve, draw(1000, np.sum, seed=1))
