"""Errors of a law that the coordinates explain contradict it."""

from __future__ import annotations

import numpy as np
import pytest
from vector_laws import CORE, NON_LAWS, draw, spoil

from abelnet import LawRegressor, Multisets, NoLawError
from abelnet.discovery.vectors.evidence import describe_vectors, find_misfits


def test_noise_is_no_misfit() -> None:
    law = CORE["center of mass"]
    sets, target = spoil(*draw(law, 300, seed=2), 0.05, 0.0, 0.0, seed=2)
    (found,) = LawRegressor(polish=False).fit(sets, target, names=law.names).laws_
    assert find_misfits(found, Multisets.from_arrays(sets, target)) == [None, None]


def test_a_wrong_law_has_a_misfit() -> None:
    """The center of mass, tested on centers that are weighted by the square of the mass."""
    law, wrong = CORE["center of mass"], NON_LAWS["center weighted by m²"]
    (found,) = LawRegressor(polish=False).fit(*draw(law, 300, seed=2), names=law.names).laws_
    own, other = find_misfits(found, Multisets.from_arrays(*draw(wrong, 300, seed=2)))
    assert own is None
    assert other is not None
    assert other.contradicts


def test_a_law_of_one_coordinate_does_not_depend_on_others() -> None:
    generator = np.random.default_rng(0)
    sets = [generator.normal(size=(n, 2)) for n in generator.integers(2, 5, 300)]
    target = np.array([(s[:, 0].sum(), s[:, 1].sum() + 0.3 * np.sin(s[:, 0].sum())) for s in sets])
    with pytest.raises(NoLawError, match="depend on the other coordinates"):
        LawRegressor(polish=False).fit(sets, target)


def test_features_are_finite_and_do_not_depend_on_the_order() -> None:
    sets, target = draw(CORE["pooled variance"], 50, seed=1)
    one = describe_vectors(Multisets.from_arrays(sets, target), target)
    other = describe_vectors(Multisets.from_arrays([s[::-1].copy() for s in sets], target), target)
    assert np.isfinite(one.symmetric).all()
    np.testing.assert_allclose(one.symmetric, other.symmetric, atol=1e-9)
