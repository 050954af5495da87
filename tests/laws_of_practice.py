"""Laws that people meet, with the formula that is to be found, and examples drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

Fold = Callable[[np.ndarray[Any, Any]], Any]


def draw(
    low: float, high: float, fold: Fold, count: int = 300, seed: int = 0
) -> tuple[list[Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    sets = [generator.uniform(low, high, generator.integers(2, 5)) for _ in range(count)]
    return sets, np.array([fold(one) for one in sets])


LAWS: dict[str, tuple[float, float, Fold, str]] = {
    "noisy or": (0, 1, lambda x: 1 - np.prod(1 - x), "x∘y = x + y − x·y"),
    "odds": (
        0.02,
        0.98,
        lambda x: reduce(lambda a, b: a * b / (a * b + (1 - a) * (1 - b)), x),
        "x∘y = g⁻¹(g(x) + g(y)), g(x) = log(x / (1 − x))",
    ),
    "velocities": (-0.9, 0.9, lambda x: np.tanh(np.arctanh(x).sum()), "x∘y = (x + y) / (1 + x·y)"),
    "resistors": (1, 1e4, lambda x: 1 / np.sum(1 / x), "x∘y = (x^(−1) + y^(−1))^(−1)"),
    "lengths": (0, 5, lambda x: np.sqrt(np.sum(x**2)), "x∘y = (x^2 + y^2)^(1/2)"),
    "large sums": (-1e6, 1e6, np.sum, "x∘y = x + y"),
    "around a million": (0.9e6, 1.1e6, np.sum, "x∘y = x + y"),
    "large products": (-1e6, 1e6, np.prod, "x∘y = x·y"),
    "log-sum-exp": (-5, 5, lambda x: np.log(np.exp(x).sum()), "x∘y = log(exp(x) + exp(y))"),
    "returns": (-0.3, 0.5, lambda x: np.prod(1 + x) - 1, "x∘y = x + y + x·y"),
    "arcsinh": (-5, 5, lambda x: np.sinh(np.arcsinh(x).sum()), "x∘y = g⁻¹(g(x) + g(y)), g(x) = arcsinh(x)"),
    "tiny sums": (1e-30, 1e-28, np.sum, "x∘y = x + y"),
    "exclusive or": (0, 1, lambda x: (1 - np.prod(1 - 2 * x)) / 2, "x∘y = x + y − 2·x·y"),
    "largest": (-5, 5, np.max, "x∘y = max(x, y)"),
    "smallest": (-5, 5, np.min, "x∘y = min(x, y)"),
}

MEANS: dict[str, tuple[float, float, Fold, str]] = {
    "arithmetic mean": (-5, 5, np.mean, "Σ x / n"),
    "geometric mean": (0.1, 5, lambda x: np.exp(np.log(x).mean()), "exp(Σ log(x) / n)"),
    "harmonic mean": (0.1, 5, lambda x: 1 / np.mean(1 / x), "n / Σ x^(−1)"),
    "root mean square": (0, 5, lambda x: np.sqrt(np.mean(x**2)), "(Σ x^2 / n)^(1/2)"),
    "root mean square of both signs": (-5, 5, lambda x: np.sqrt(np.mean(x**2)), "(Σ x^2 / n)^(1/2)"),
    "log-mean-exp": (-5, 5, lambda x: np.log(np.mean(np.exp(x))), "log(Σ exp(x) / n)"),
    "power mean −3": (0.1, 5, lambda x: np.mean(x**-3.0) ** (-1 / 3), "(Σ x^(−3) / n)^(−1/3)"),
    "power mean 1/2": (0, 5, lambda x: np.mean(x**0.5) ** 2, "(Σ x^0.5)^2 / n^2"),
    "power mean 4": (0, 5, lambda x: np.mean(x**4) ** 0.25, "(Σ x^4 / n)^(1/4)"),
    "mean log odds": (
        0.02,
        0.98,
        lambda x: 1 / (1 + np.exp(-np.mean(np.log(x / (1 - x))))),
        "g⁻¹(Σ g(x) / n), g(x) = log(x / (1 − x))",
    ),
    "z-scores": (-3, 3, lambda x: x.sum() / np.sqrt(len(x)), "Σ x / n^0.5"),
}

# With the fold, the cap or the floor.
CAPPED: dict[str, tuple[float, float, Fold, str]] = {
    "capped sum": (0, 8, lambda x: min(x.sum(), 15.0), "min(x + y, 15)"),
    "Łukasiewicz": (0.3, 1, lambda x: max(0.0, x.sum() - len(x) + 1), "max(x + y − 1, 0)"),
    "capped norm": (0, 5, lambda x: min(np.sqrt((x**2).sum()), 6.0), "min(x^2 + y^2, 36)^0.5"),
    "floor under a sum": (-8, 0, lambda x: max(x.sum(), -12.0), "max(x + y, −12)"),
}
