"""Gram matrices over parts are those over all examples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from vector_laws import CORE, NON_LAWS, draw, spoil

from abelnet import AbelnetError, Multisets
from abelnet.bijections.terms import Logarithm, Monomial
from abelnet.discovery.vectors.gram import InvariantFit


def examples(name: str = "pooled variance", count: int = 300, noise: float = 0.0) -> Multisets:
    return Multisets.from_arrays(*spoil(*draw((CORE | NON_LAWS)[name], count, seed=1), noise, 0.0, 0.0, seed=1))


def parts(whole: Multisets, count: int) -> list[Multisets]:
    return [whole.take(part) for part in torch.arange(len(whole)).chunk(count)]


def test_in_parts_as_at_once() -> None:
    whole = examples(noise=0.01)
    once = InvariantFit().partial_fit(whole)
    fit = once.empty_copy()
    for part in parts(whole, 3):
        fit.partial_fit(part)
    np.testing.assert_allclose(fit.distances(5), once.distances(5), rtol=1e-6)
    assert fit.count == once.count == 300


def test_merged_as_at_once() -> None:
    whole = examples(noise=0.01)
    once = InvariantFit().partial_fit(whole)
    fits = [once.empty_copy().partial_fit(part) for part in parts(whole, 4)]
    np.testing.assert_allclose(
        fits[2].merge(fits[0].merge(fits[3])).merge(fits[1]).distances(5), once.distances(5), rtol=1e-6
    )
    with pytest.raises(AbelnetError, match="same units"):
        fits[0].merge(InvariantFit().partial_fit(examples(count=50)))


def test_a_law_has_a_gap_that_a_non_law_has_not() -> None:
    *own, after = InvariantFit().partial_fit(examples()).distances(4)
    assert max(own) < 1e-3
    assert after > 0.05
    distances = InvariantFit().partial_fit(examples("center weighted by m²")).distances(2)
    assert distances[0] < 1e-3 < 0.01 < distances[1]


def test_distances_read_the_noise() -> None:
    for noise in (0.01, 0.03):
        own = InvariantFit().partial_fit(examples("center of mass", 2000, noise)).distances(2)
        assert 0.3 * noise < own[0] < 1.2 * noise


def test_terms_outside_their_domain_are_left_out() -> None:
    whole = examples("center of mass")
    fit = InvariantFit().partial_fit(whole)
    log = Monomial((Logarithm(0),))
    assert log in fit.terms
    moved = Multisets(whole.values * torch.tensor([-1.0, 1.0]), 2, ptr=whole.ptr, targets=whole.targets)
    assert log not in fit.partial_fit(moved).terms
    assert len(fit.distances(2)) == 2
