"""The closed form: eigenvalues tell the kind of law, and sums come in parts."""

from __future__ import annotations

import pytest

from abelnet.discovery.spectral import SpectralFit
from abelnet.experiments.synthetic.data import OPERATIONS, make_dataset


def test_eigenvalues_tell_group_from_semigroup() -> None:
    for name, operation in OPERATIONS.items():
        data = make_dataset(name, 5).train
        group, semigroup, _ = SpectralFit().partial_fit(data).refine(data).solve()
        if operation.is_group:
            assert group.eigenvalue < 1e-5
        else:
            assert group.eigenvalue > 1e-2 > 1e-5 > semigroup.eigenvalue
            assert semigroup.absorbing == pytest.approx({"product": 0.0}.get(name, -2.0), abs=1e-4)
