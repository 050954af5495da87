"""What is no law is named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from laws_of_practice import Fold, draw

from abelnet import Multisets
from abelnet.discovery.nearest import STATISTICS, left_out, nearest


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name: str) -> None:
    sets, target = draw(-5, 5, lambda x: float(STATISTICS[name](x[None])[0]))
    for part in (0.0, 0.05):
        noise = part * target.std() * np.random.default_rng(0).normal(size=len(target))
        text = nearest(Multisets.from_arrays(sets, target + noise), 1.3 * part**2 + 1e-20)
        # With noise, a statistic of which it is nearly a function may do as well.
        assert f"the results are the {name}, " in text or (part > 0 and "the results are " in text)


@pytest.mark.parametrize(
    ("low", "fold", "words"),
    [
        (-5, lambda x: x.sum() ** 2, "a function of Σ x that"),
        (-5, lambda x: (x**2).sum(), r"a function of Σ x^2 that"),
        (0.1, lambda x: 3 + np.log(x).sum(), "take log(x) as elements"),
        (0, lambda x: x.mean() ** 2, "a function of the mean of x that"),
        (-5, lambda x: 3 * np.median(x) - 1, "an affine function of the median"),
        (-5, lambda x: float(np.clip(x.sum(), -4, 4)), "clipped on both sides"),
        (-5, lambda x: x.max() + 0.3 * x.min(), "a weighted sum of the sorted elements"),
        (-2, lambda x: x.sum() + x.prod(), "a polynomial of Σ x"),
        (-5, lambda x: math.sin(1e3 * x[0]), "look for a column besides the elements"),
    ],
)
def test_functions(low: float, fold: Fold, words: str) -> None:
    sets, target = draw(low, 5, fold)
    assert words in nearest(Multisets.from_arrays(sets, target), 1e-3)


def test_the_order() -> None:
    sets, target = draw(-5, 5, lambda x: x[0] - x[1:].sum())
    examples = Multisets.from_arrays(sets, target)
    assert "the order of the elements" in nearest(examples, 1e-9, by_order=True)
    assert "look for a column besides the elements" in nearest(examples, 1e-9)


@pytest.mark.parametrize("scale", [1e-160, 1e120, 1e200])
def test_extreme_numbers(scale: float) -> None:
    sets, target = draw(-scale, scale, np.median, 60)
    assert "the results are the median, " in nearest(Multisets.from_arrays(sets, target), 1e-9)


def test_a_set_far_larger_than_the_others() -> None:
    sets, target = draw(-1, 1, np.median, 60)
    examples = Multisets.from_arrays([*sets, np.linspace(-1, 1, 200_001)], [*target, 0.0])
    assert "the results are the median, " in nearest(examples, 1e-9)


def test_leaving_one_out_is_refitting() -> None:
    generator = np.random.default_rng(0)
    columns, y = generator.normal(size=(20, 3)), generator.normal(size=20)
    rest = np.arange(20) != 4
    wanted = y[4] - columns[4] @ np.linalg.lstsq(columns[rest], y[rest])[0]
    assert left_out(columns, y)[4] == pytest.approx(wanted)
