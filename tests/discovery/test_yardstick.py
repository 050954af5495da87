"""The yardstick sees what a law leaves, and nothing in noise or in a curve that is slightly off."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from laws_of_practice import draw

from abelnet import AbelianGroup, AbelianSemigroup, Generator, Multisets, Operation
from abelnet.discovery.yardstick import compare, describe_sets


def results(operation: Operation):  # type: ignore[no-untyped-def]
    return lambda sets: operation.reduce(sets)[:, 0]


SUM = AbelianGroup(Generator(1, "affine", dtype=torch.float64))
POWER = AbelianGroup(Generator(1, "positive power", [2.0], dtype=torch.float64))


@pytest.mark.parametrize("count", [40, 300])
def test_noise_is_not_predicted(count: int) -> None:
    sets, target = draw(-5, 5, np.sum, count)
    noise = 0.1 * target.std() * np.random.default_rng(0).normal(size=count)
    found = compare(Multisets.from_arrays(sets, target + noise), results(SUM))
    assert found.gain < found.by_chance.max()
    assert np.mean(found.law**2) == pytest.approx(np.mean(noise**2))


def test_a_wrong_exponent_is_a_bend() -> None:
    sets, target = draw(0.5, 5, lambda x: (x**2.1).sum() ** (1 / 2.1))
    found = compare(Multisets.from_arrays(sets, target), results(POWER))
    assert np.mean(found.bent**2) < 1e-3 * np.mean(found.law**2)


def test_what_no_bend_explains_is_predicted() -> None:
    sets, target = draw(-5, 5, lambda x: x.sum() + 0.2 * np.ptp(x))
    noise = 0.02 * target.std() * np.random.default_rng(0).normal(size=len(target))
    found = compare(Multisets.from_arrays(sets, target + noise), results(SUM))
    assert found.gain > 0.8 > 0.2 > found.by_chance.max()
    assert np.mean(found.plain**2) < 2 * np.mean(noise**2)


def test_leaving_one_out_in_closed_form() -> None:
    # An outlier is not predicted from itself: its error is the whole of it.
    sets, target = draw(-5, 5, np.sum, 80)
    target[7] += 1.0
    found = compare(Multisets.from_arrays(sets, target), results(SUM))
    assert abs(found.bent[7]) >= 0.9
    assert abs(found.plain[7]) >= 0.9


def test_elements_of_any_size() -> None:
    product = AbelianSemigroup(Generator(1, "affine", dtype=torch.float64))
    for scale in (1e-30, 1e6):
        sets, target = draw(-scale, scale, np.prod, 60)
        found = compare(Multisets.from_arrays(sets, 1.1 * target), results(product))
        assert np.isfinite(found.gain)
    with_zero = Multisets.from_arrays([[0.0, 1.0], [0.0, 0.0], [2.0, 1.0, 3.0]], [1.0, 0.0, 6.0])
    features = describe_sets(with_zero, np.array([1.0, 0.0, 6.0]))
    assert np.isfinite(features.symmetric).all()
    assert np.isfinite(features.ordered).all()


def test_columns_that_depend_on_each_other() -> None:
    # The results of the law are a feature, and so is the sum; with pairs only, so are most of the others.
    for size in (2, 3):
        values = np.random.default_rng(0).uniform(-3, 3, (200, size))
        found = compare(Multisets.from_arrays(values, values.sum(1) ** 2), results(SUM))
        assert found.gain > 0.99
