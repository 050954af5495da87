"""Which results are suspected, and which noise is found, before any law is assumed."""

from __future__ import annotations

import numpy as np
import pytest
from laws_of_practice import LAWS, Fold, draw

from abelnet import Multisets
from abelnet.discovery.screening import Noise, choose_noise, log_likelihood, scale_of, screen

# Results that no feature of the regression equals.
OTHERS: dict[str, tuple[float, float, Fold]] = {
    "power 1.7": (0, 5, lambda x: (x**1.7).sum() ** (1 / 1.7)),
    "in order": (-5, 5, lambda x: x[0] - x[1:].sum()),
    "range": (-5, 5, np.ptp),
}
CASES = {name: LAWS[name][:3] for name in ("velocities", "large products", "resistors", "tiny sums")} | OTHERS


@pytest.mark.parametrize("name", CASES)
def test_gross_outliers_are_suspected(name: str) -> None:
    sets, target = draw(*CASES[name])
    wrong = np.random.default_rng(0).permutation(300)[:15]
    target[wrong] += 8 * target.std() * np.where(np.arange(15) % 2, 1, -1)
    suspects = screen(Multisets.from_arrays(sets, target)).suspects
    assert suspects[wrong].all()
    assert suspects.mean() <= 0.3


@pytest.mark.parametrize("name", CASES)
def test_gaussian_noise_is_not_suspected(name: str) -> None:
    sets, target = draw(*CASES[name])
    target += 0.1 * target.std() * np.random.default_rng(1).normal(size=300)
    screening = screen(Multisets.from_arrays(sets, target))
    assert screening.noise == Noise()
    assert screening.suspects.sum() <= 3  # where the regression is no good approximation


@pytest.mark.parametrize(("low", "high", "fold"), [(1, 5, np.sum), (-5, 5, np.prod), (1, 1e4, LAWS["resistors"][2])])
def test_proportional_noise(low: float, high: float, fold: Fold) -> None:
    sets, target = draw(low, high, fold, 500)
    noisy = target * (1 + 0.1 * np.random.default_rng(1).normal(size=500))
    screening = screen(Multisets.from_arrays(sets, noisy))
    assert not screening.noise.is_constant
    assert np.corrcoef(screening.units, np.abs(target))[0, 1] > 0.9
    assert not screening.suspects.any()


def test_rare_sizes_share_a_regression() -> None:
    generator = np.random.default_rng(0)
    sets = [generator.uniform(0, 1, 2 + i) for i in range(40)] + [generator.uniform(0, 1, 3) for _ in range(40)]
    target = np.array([one.sum() for one in sets])
    target[7] = -5.0
    assert screen(Multisets.from_arrays(sets, target)).suspects.nonzero()[0].tolist() == [7]


@pytest.mark.parametrize(
    ("sets", "target"),
    [
        ([[1.0, 2.0]] * 5, [3.0] * 5),
        ([[0.0, 0.0], [0.0], [0.0, 0.0, 0.0]], [0.0, 0.0, 1e-90]),
        ([[1e99, -1e99], [1e-99, 1e99], [1e99, 1e99], [1.0]], [0.0, 1e99, 1e99, 1.0]),
        ([[1.0]], [1.0]),
    ],
)
def test_extremes(sets: list[list[float]], target: list[float]) -> None:
    screening = screen(Multisets.from_arrays(sets, target))
    assert np.isfinite(screening.residuals).all()
    assert np.isfinite(screening.features).all()


def test_few_examples_are_not_suspected() -> None:
    sets, target = draw(0, 1, np.sum, 29)
    target[0] = 1e3
    assert not screen(Multisets.from_arrays(sets, target)).suspects.any()


def test_rounding_errors_are_no_noise() -> None:
    predicted = np.geomspace(1, 1e12, 200)
    assert choose_noise(1e-16 * predicted, predicted).is_constant


def test_outliers_do_not_choose_the_noise() -> None:
    generator = np.random.default_rng(0)
    residuals, predicted = generator.normal(size=500), generator.uniform(-5, 5, 500)
    residuals[:25] = 1e3
    assert choose_noise(residuals, predicted).is_constant
    assert scale_of(residuals) == pytest.approx(1, rel=0.2)
    units = np.full(500, 2.0)
    assert log_likelihood(residuals, units) == pytest.approx(log_likelihood(residuals, np.ones(500)))
