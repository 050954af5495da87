"""Spline bases: those of scipy, to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

from abelnet.discovery.spectral import spline_knots
from abelnet.discovery.splines import cubic_splines


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_they_are_those_of_scipy(derivative: int, scale: float) -> None:
    points = scale * np.random.default_rng(0).normal(size=500) ** 3
    edges = spline_knots(points, 20)
    reference = BSpline(edges, np.eye(len(edges) - 4), 3)
    expected = reference.derivative(derivative)(points) if derivative else reference(points)
    found = cubic_splines(edges, points, derivative)
    assert found.shape == (500, len(edges) - 4)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_they_add_to_one_up_to_both_ends() -> None:
    edges = np.array([0.0, 0, 0, 0, 1, 5, 6, 6, 6, 6])
    values = cubic_splines(edges, np.array([0.0, 1.0, 3.3, 6.0]))
    np.testing.assert_allclose(values.sum(1), 1)
    assert values[0, 0] == values[-1, -1] == 1
    assert cubic_splines(edges, np.empty(0)).shape == (0, 6)


def test_knots_may_coincide() -> None:
    low, high = 0.1, np.nextafter(0.1, 1)
    edges = spline_knots(np.array([low, high]), 20)
    values = cubic_splines(edges, np.array([low, high]))
    np.testing.assert_allclose(values.sum(1), 1)
