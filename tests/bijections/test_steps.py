"""Which invariants are inverted in closed form, and in which order."""

from __future__ import annotations

import pytest
from cases import POOLED, monomial

from abelnet.bijections.steps import plan
from abelnet.bijections.terms import Exponential, Logarithm, Planar, Power, Term

POLAR = [[Planar("polar", part, 0, 1)] for part in (0, 1)]


@pytest.mark.parametrize(
    ("invariants", "signs", "places"),
    [
        (POOLED, [1, 0, 1], [(0,), (1,), (2,)]),
        (POOLED[::-1], [1, 0, 1], [(2,), (1,), (0,)]),
        (POLAR, [0, 0], [(0, 1)]),
        (POLAR[::-1], [0, 0], [(1, 0)]),
        ([[monomial(Power(0, 2.0))]], [-1], [(0,)]),
        ([[monomial(0), monomial(0, 1)], [monomial(1)]], [1, 1], [(1,), (0,)]),
        ([[monomial(Power(0, 2.0))], [monomial(1), monomial(Logarithm(0))]], [0, 0], [(0,), (1,)]),
    ],
)
def test_plans(invariants: list[list[Term]], signs: list[int], places: list[tuple[int, ...]]) -> None:
    steps = plan(invariants, signs)
    assert steps is not None
    assert [step.places for step in steps] == places
    assert sorted(i for step in steps for i in step.coordinates) == list(range(len(signs)))


@pytest.mark.parametrize(
    "invariants",
    [
        [[monomial(Power(0, 2.0))]],  # either sign
        [[monomial(0), monomial(Power(0, 3.0))]],  # no root in closed form
        [[monomial(0, Exponential(0))]],
        [[monomial(0), monomial(1)], [monomial(0, 1)]],  # both at once
        [[monomial(0)], [monomial(0)]],  # nothing new
        [POLAR[0], POLAR[0]],
        [POLAR[0], [Planar("inversion", 1, 0, 1)]],
        [POLAR[0], [monomial(0)]],
        [[monomial()]],
    ],
)
def test_no_plan(invariants: list[list[Term]]) -> None:
    assert plan(invariants, [0] * len(invariants)) is None
