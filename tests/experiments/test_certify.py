"""Certificates of learned operations."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from laws_of_practice import CAPPED, LAWS, MEANS, Fold, draw

from abelnet import AbelianGroup, AbelnetError, Affine, Chain, LawRegressor, Operation
from abelnet.experiments.certify import TRUTHS, certify, certify_model, train_synthetic
from abelnet.experiments.synthetic.data import OPERATIONS
from abelnet.verify.certificates import assumed_bound


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


@pytest.mark.parametrize("name", [*LAWS, "norm", "constant", "curve", "root mean square", "capped sum"])
def test_every_law_that_can_be_learned_is_certified(name: str, tmp_path: Path) -> None:
    extra: dict[str, tuple[float, float, Fold]] = {
        "norm": (-5, 5, lambda x: np.sqrt((x**2).sum())),
        "constant": (-5, 5, lambda x: 7.0),
        "curve": (-2, 2, lambda x: np.tan(np.clip(np.arctan(0.1 * x).sum(), -1.5, 1.5)) / 0.1),
    }
    low, high, fold = extra[name] if name in extra else (LAWS | MEANS | CAPPED)[name][:3]
    model = LawRegressor(refuse=name != "curve").fit(*draw(low, high, fold, 60))
    model.save(tmp_path / "law")
    (certificate,) = certify_model(tmp_path / "law", size=8, epsilon=1e-3)
    assert all(row.ours >= 1e-3 for row in certificate.rows)
    assert certificate.rows[0].ours == pytest.approx(1e-3)
    assert all(a.ours <= b.ours for a, b in pairwise(certificate.rows))


@pytest.mark.parametrize("name", ["noisy or", "returns", "largest", "exclusive or", "geometric mean", "capped sum"])
def test_bounds_without_the_truth_hold(name: str) -> None:
    """Operations that differ by at most ε up to size 4 differ by at most the bound at larger sizes."""
    low, high, fold, _ = (LAWS | MEANS | CAPPED)[name]
    (law,) = LawRegressor().fit(*draw(low, high, fold, 60)).laws_
    learned = Operation(Chain(Affine(1, dtype=torch.float64), law.operation.bijection), law.operation.law)
    torch.nn.init.constant_(learned.bijection.bijections[0].shift, -1e-4 if name != "largest" else 1e-4)
    generator = np.random.default_rng(1)

    def worst(size: int) -> float:
        sets = generator.uniform(low + 1e-3, high - 1e-3, (4000, size, 1))
        with torch.no_grad():
            found, true = (one.reduce(torch.from_numpy(sets)) for one in (learned, law.operation))
        return float((found - true).abs().max())

    epsilon = max(worst(size) for size in (2, 3, 4))
    for size in (8, 16, 64):
        assert worst(size) <= assumed_bound(learned, 1.05 * epsilon, 4, size, (low, high))


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
    with pytest.raises(AbelnetError, match="truth: expected a semigroup"):
        certify(TRUTHS["product"], TRUTHS["sum"])
    with pytest.raises(AbelnetError, match=r"some with .* above 1"):
        certify(TRUTHS["product"], TRUTHS["product"], elements=(-0.5, 0.5))


def test_a_law_on_vectors(tmp_path: Path) -> None:
    """Bounds of the center of mass hold for laws whose error up to size 4 is as assumed."""
    from vector_laws import CORE, draw

    law = CORE["center of mass"]
    sets, target = draw(law, 100, seed=0)
    LawRegressor(polish=False).fit(sets, target, names=law.names).save(tmp_path)
    (certificate,) = certify_model(tmp_path, size=8, epsilon=0.01)
    bounds = [row.ours for row in certificate.rows]
    assert 0.01 <= bounds[0] <= bounds[-1] < math.inf
    assert certificate.title == "m = Σ m, x = Σ(m·x) / m"
    assert any("≤ m ≤" in note for note in certificate.notes)
