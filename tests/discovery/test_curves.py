"""Curves of each kind: below a cap, of magnitudes, and only with absorbing elements that examples surround."""

from __future__ import annotations

import numpy as np
import pytest
from laws_of_practice import draw

from abelnet import Multisets
from abelnet.discovery.curves import capped_curves, closed_form_curves, curves_of_magnitudes, smooth_curves
from abelnet.discovery.stream import Stream


def split(low: float, high: float, fold: object, count: int = 400) -> tuple[Multisets, Multisets]:
    return Multisets.from_arrays(*draw(low, high, fold, count)).split(0.25, 0)  # type: ignore[arg-type]


def cubic_sum(x: np.ndarray) -> float:
    grid = np.linspace(-20, 20, 400_001)
    return float(np.interp((x + x**3).sum(), grid + grid**3, grid))


def test_a_cap_is_no_equality() -> None:
    fitted, held_out = split(0, 2, lambda x: min(cubic_sum(x), 2.2))
    curves = capped_curves(fitted, held_out, 2.2)
    best = min(curves, key=lambda one: one.mse)
    assert best.rmse < 1e-3 * float(held_out.targets.std())
    assert best.title == "capped sum over a curve in x"
    plain, _ = closed_form_curves(_stream(fitted), fitted, held_out, ["group"], stream_has_more=False)
    assert min(one.rmse for one in plain) > 20 * best.rmse


def test_magnitudes_lose_signs() -> None:
    fitted, held_out = split(-2, 2, lambda x: cubic_sum(np.abs(x)))
    curves, eigenvalues = curves_of_magnitudes(fitted, held_out, ["group"])
    assert min(one.rmse for one in curves) < 0.02 * float(held_out.targets.std())
    assert eigenvalues["group, log |x|"] < 1e-3


@pytest.mark.parametrize(("low", "supported"), [(0.2, False), (-2.0, True)])
def test_an_absorbing_element_has_examples_on_both_sides(low: float, supported: bool) -> None:
    fitted, held_out = split(low, 2, np.prod)
    curves, _ = closed_form_curves(_stream(fitted), fitted, held_out, ["group", "semigroup"], stream_has_more=False)
    assert any(one.title == "semigroup over a curve in x" for one in curves) is supported


def test_smooth_curves_are_closer() -> None:
    grid = np.linspace(-30, 30, 600_001)
    fold = lambda x: np.interp((x + 0.8 * np.sin(x)).sum(), grid + 0.8 * np.sin(grid), grid)
    fitted, held_out = split(-5, 5, fold, 500)
    plain, _ = closed_form_curves(_stream(fitted), fitted, held_out, ["group"], stream_has_more=False)
    smooth = smooth_curves(plain, fitted, held_out)
    error = min(one.rmse for one in smooth)
    assert error <= 0.01 * float(held_out.targets.std())
    assert error < 0.5 * min(one.rmse for one in plain)


def _stream(examples: Multisets) -> Stream:
    stream = Stream(seed=0)
    stream.take(examples)
    return stream
