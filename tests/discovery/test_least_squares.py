"""Least squares from several initial values: the minima of MINPACK, whatever is solved beside them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import leastsq

from abelnet.discovery.least_squares import least_squares

T = np.linspace(0, 1, 30)
NOISE = 0.01 * np.random.default_rng(0).normal(size=30)


def decay(x: np.ndarray, of: np.ndarray) -> np.ndarray:
    return x[:, 1:] * np.exp(-x[:, :1] * T) - 2 * np.exp(-3 * T) - NOISE


def test_minima_are_those_of_minpack() -> None:
    starts = np.array([[1.0, 1.0], [0.0, 0.5], [8.0, 4.0]])
    found, settled = least_squares(decay, starts, evaluations=100, settled=1e-14)
    expected = leastsq(lambda x: decay(x[None], np.zeros(1))[0], starts[0], ftol=1e-14)[0]
    assert settled.all()
    np.testing.assert_allclose(found, np.tile(expected, (3, 1)), rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e6])
def test_residuals_of_any_size(scale: float) -> None:
    found, settled = least_squares(
        lambda x, of: scale * decay(x, of), np.array([[1.0, 1.0]]), evaluations=100, settled=1e-12
    )
    assert settled.all()
    assert abs(found[0, 0] - 3) < 0.1


def test_flat_directions_and_exhausted_evaluations() -> None:
    found, settled = least_squares(
        lambda x, of: x[:, :1] - T + 0 * x[:, 1:], np.array([[5.0, 7.0]]), evaluations=50, settled=1e-12
    )
    assert settled.all()
    np.testing.assert_allclose(found, [[0.5, 7.0]])
    _, settled = least_squares(decay, np.array([[40.0, 1.0]]), evaluations=1, settled=1e-14)
    assert not settled.any()


def test_others_are_given_up_for_an_exact_one() -> None:
    starts = np.array([[1.0], [-50.0]])
    found, settled = least_squares(
        lambda x, of: (x[:, :1] ** 2 - 1) * np.ones(5), starts, evaluations=50, settled=1e-14, exact=1e-6
    )
    assert found.tolist() == starts.tolist()
    assert settled.tolist() == [True, False]


def test_what_is_not_finite_is_left_where_it_is() -> None:
    def residuals(x: np.ndarray, of: np.ndarray) -> np.ndarray:
        first = np.select(
            [of == 1, of == 2], [x[:, 0] * 1e300, np.where(x[:, 0] <= 3, x[:, 0] - 3, np.inf)], x[:, 0] - 3
        )
        return np.stack((first, np.ones(len(x))), 1)

    # The residuals of the second overflow; those of the third do just beyond the point at which a step arrives.
    starts = np.array([[10.0], [1e200], [1.0]])
    with np.errstate(all="raise"):
        found, _ = least_squares(residuals, starts, evaluations=60, settled=1e-15)
    np.testing.assert_allclose(found[0], 3.0)
    assert found[1] == 1e200
    assert 1 <= found[2] <= 3
