"""Groups from random diffeomorphisms: sound, and learned better by larger networks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from abelnet import AbelnetError
from abelnet.experiments.universality import (
    SIZES,
    PlanarDiffeomorphism,
    draw_elements,
    random_group,
    read_universality,
    universality,
    write_universality,
)
from abelnet.verify.defects import find_counterexample


@pytest.mark.parametrize("dim", [2, 3])
def test_diffeomorphisms_are_inverted_and_their_volume_is_right(dim: int) -> None:
    generator = torch.Generator().manual_seed(dim)
    for seed in range(5):
        bijection = PlanarDiffeomorphism(dim, seed=seed)
        x = draw_elements(200, dim, generator)
        for far in (1.0, 1e6):
            torch.testing.assert_close(bijection.inverse(bijection(far * x)), far * x)
        jacobian = torch.stack([torch.autograd.functional.jacobian(bijection, row) for row in x[:20]])
        torch.testing.assert_close(bijection.log_abs_det(x[:20]), torch.linalg.slogdet(jacobian)[1])
        assert find_counterexample(random_group(dim, seed), x, trials=200) is None


def test_a_larger_network_errs_less(tmp_path: Path) -> None:
    rows = universality((2,), networks=((1, 4), (3, 16)), epochs=6, sets=2048)
    small, large, deepsets = rows
    assert large.parameters > small.parameters
    at = SIZES.index
    assert large.rmse[at(4)] < small.rmse[at(4)]
    assert large.rmse[at(50)] < deepsets.rmse[at(50)]
    write_universality(rows, tmp_path / "rows.json")
    assert read_universality(tmp_path / "rows.json") == rows


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match="dims: expected 2 or more"):
        universality((1,))
