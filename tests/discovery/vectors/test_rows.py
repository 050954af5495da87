"""Errors of invariants in units of the results."""

from __future__ import annotations

import numpy as np
import torch
from vector_laws import CORE, draw

from abelnet import Multisets
from abelnet.bijections.terms import Monomial, Power
from abelnet.discovery.vectors.rows import Rows, Solution

MASS, MOMENT, PLACE = Monomial((Power(0),)), Monomial((Power(0), Power(1))), Monomial((Power(1),))


def rows(noise: float = 0.0, wrong: int = 0) -> Rows:
    sets, target = draw(CORE["center of mass"], 300, seed=0)
    generator = np.random.default_rng(1)
    target = target + noise * target.std(0) * generator.normal(size=target.shape)
    target[:wrong] = target[:wrong][::-1] + 5
    examples = Multisets.from_arrays(sets, target)
    return Rows(examples, [MASS, MOMENT, PLACE], examples.targets, examples.targets.std(0))


def test_an_invariant_has_no_error() -> None:
    for columns in ((0,), (1,)):
        (found,) = rows().solve(np.array([columns]))
        assert found.error < 1e-12
    (found,) = rows().solve(np.array([[2]]))
    assert found.error > 0.3


def test_the_error_is_the_noise() -> None:
    for noise in (0.01, 0.05):
        for found in rows(noise).solve(np.array([[0], [1]])):
            assert 0.8 * noise < found.error < 1.2 * noise


def test_outliers_have_limited_influence() -> None:
    spoiled = rows(noise=0.01, wrong=9)
    for found in spoiled.solve(np.array([[0], [1]])):
        assert found.error < 0.02


def test_refined_coefficients_are_exact() -> None:
    table = rows()
    # 2 m − m x: both add up, so any combination does; the refined one stays there.
    start = np.array([2.0, -1.0]) * table.scale[:2]
    found = table.refine((0, 1), start + 1e-4)
    assert found.error < 1e-13


def test_what_is_known_is_not_new() -> None:
    sets, target = draw(CORE["center of mass"], 100, seed=0)
    examples = Multisets.from_arrays(sets, target)
    normals = np.tile(np.diag([1.0, 0.0]), (len(examples), 1, 1))  # the gradient of the mass
    table = Rows(examples, [MASS, MOMENT], examples.targets, examples.targets.std(0), normals)
    found = [Solution((k,), np.ones(1), 0.0) for k in (0, 1)]
    assert table.new(found, 1e-9) == table.new(found, 0.1) == found[1:]


def test_angles_are_equal_up_to_whole_turns() -> None:
    from abelnet.bijections.terms import Planar

    sets, target = draw(CORE["complex product"], 100, seed=0)
    examples = Multisets.from_arrays(sets, target)
    table = Rows(examples, [Planar("polar", 1, 0, 1)], examples.targets, torch.ones(2).double())
    assert np.abs(table.a).max() < 1e-12
