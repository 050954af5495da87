"""Certificates of learned operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from abelnet import AbelianGroup, AbelnetError, Affine, LawRegressor
from abelnet.experiments.certify import TRUTHS, certify, certify_model, train_synthetic
from abelnet.experiments.synthetic.data import OPERATIONS


@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_truths_are_the_synthetic_operations(name: str) -> None:
    x = 10 * torch.rand(7, dtype=torch.float64) - 5
    torch.testing.assert_close(TRUTHS[name].reduce(x[:, None])[0].detach(), OPERATIONS[name].fold(x))
    assert TRUTHS[name].is_group == OPERATIONS[name].is_group


@pytest.mark.parametrize("name", ["cbrt", "product"])
def test_measured_errors_are_below_the_bounds(name: str) -> None:
    certificate = certify(train_synthetic(name, groups=6, units=6, epochs=20), TRUTHS[name], size=10, sets=300)
    assert [row.size for row in certificate.rows] == [2, 3, 4, 6, 10]
    for row in certificate.rows:
        assert row.measured is not None
        assert row.measured <= row.ours
        if OPERATIONS[name].is_group:
            assert row.paper is not None
            assert row.ours <= row.paper
    assert any("nothing is sampled" in note for note in certificate.notes)
    assert any("a sample" in note for note in certificate.notes)


def test_certify_a_law_learned_from_a_table(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    sets = [generator.uniform(-5, 5, n) for n in generator.integers(2, 5, 40)]
    LawRegressor().fit(sets, [one.sum() + len(one) - 1 for one in sets]).save(tmp_path / "law")
    (certificate,) = certify_model(tmp_path / "law", "sum_plus_one", size=6, sets=50)
    assert all(row.measured is not None and row.measured <= row.ours for row in certificate.rows)
    (assumed,) = certify_model(tmp_path / "law", size=10)
    assert all(row.measured is None and row.paper is not None and row.ours <= row.paper for row in assumed.rows)
    assert "an estimate, not a worst case" in assumed.notes[-1]


def test_certify_a_synthetic_operation_by_name() -> None:
    (certificate,) = certify_model("sum", size=3, sets=20, epochs=1)
    assert certificate.title == "x + y, min-max network"


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match="model: expected a folder, or one of sum"):
        certify_model("nowhere")
    with pytest.raises(AbelnetError, match="truth: expected one of sum"):
        certify_model("sum", truth="minus")
    with pytest.raises(AbelnetError, match="epsilon: expected the error up to size 4"):
        certify(AbelianGroup(Affine(1)))
    with pytest.raises(AbelnetError, match="got None; there is no bound for a semigroup without it"):
        certify(TRUTHS["product"], epsilon=0.1)
    with pytest.raises(AbelnetError, match="truth: expected a semigroup"):
        certify(TRUTHS["product"], TRUTHS["sum"])
    with pytest.raises(AbelnetError, match=r"some with .* above 1"):
        certify(TRUTHS["product"], TRUTHS["product"], elements=(-0.5, 0.5))
