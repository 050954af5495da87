"""Networks that are trained where no formula fits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from abelnet import Affine, Maximum, Multisets, Operation
from abelnet.discovery.candidates import Candidate, Curve, Formula, Trained
from abelnet.discovery.entry import Entry
from abelnet.discovery.networks import train_abelian_net
from abelnet.discovery.spectral import SpectralFit
from abelnet.experiments.synthetic.data import make_dataset


def test_abelian_net_becomes_what_the_examples_are() -> None:
    for name, wanted in (("sum_plus_one", 0.0), ("shifted_product", 0.5)):
        data = make_dataset(name, 0)
        fitted, held_out = data.train, data.validation
        candidate = train_abelian_net(fitted, held_out, epochs=500).judge(held_out)
        assert candidate.rmse < 1e-2 * float(held_out.targets.std())
        # γ times the slope of φ is the coefficient of xy near the identity, whatever the units of φ.
        operation = candidate.operation
        slope = operation.bijection.log_abs_det(operation.identity()).exp()
        mixed = float((operation.law.gamma * slope).detach())  # type: ignore[operator]
        assert mixed == pytest.approx(wanted, abs=1e-2)


def cubic_sums(count: int, seed: int = 0, noise: float = 0.05) -> Multisets:
    """Noisy examples of the law with φ(x) = x + x³, which no family has."""
    generator = np.random.default_rng(seed)
    grid = np.linspace(-6, 6, 400_001)
    values = generator.uniform(-2, 2, (count, 3))
    results = np.interp((values + values**3).sum(1), grid + grid**3, grid)
    return Multisets.from_arrays(values, results + noise * generator.normal(size=count))


def mean_error(candidate: Candidate, examples: Multisets) -> float:
    return float(candidate.squared_errors(examples).mean())


def test_a_curve_is_fitted_to_all() -> None:
    examples = cubic_sums(1200)
    few = examples.take(torch.arange(150))
    fits = {"x": SpectralFit().partial_fit(examples)}
    curve = Curve(SpectralFit().partial_fit(few).solve(1e-4)[0], 1e-4)
    refitted = curve.fit_to_all(examples, fits)
    wanted = fits["x"].solve(1e-4)[0].operation()
    assert torch.equal(refitted.operation.reduce(examples), wanted.reduce(examples))
    assert mean_error(refitted, examples) < mean_error(curve, examples)
    trained = Trained.of(curve, few)
    further = trained.fit_to_all(examples, fits)
    assert mean_error(further, examples) < 0.999 * mean_error(trained, examples)
    # A fit to other examples that does worse on these is not taken.
    assert refitted.fit_to_all(examples, {"x": SpectralFit().partial_fit(few)}) is refitted


def test_a_semigroup_is_fitted_to_all() -> None:
    examples = make_dataset("shifted_product", 0).train
    few = examples.take(torch.arange(60))
    found = SpectralFit().partial_fit(few).refine(few).solve(1e-6)[2]
    refitted = Curve(found, 1e-6).fit_to_all(examples, {"x": SpectralFit().partial_fit(examples)})
    assert isinstance(refitted, Curve)
    assert refitted.found.absorbing == pytest.approx(-2, abs=1e-4)
    assert mean_error(refitted, examples) < mean_error(Curve(found, 1e-6), examples)


def test_parameters_are_counted() -> None:
    curve = Curve(SpectralFit().partial_fit(cubic_sums(300)).solve()[0], 1e-7)
    assert curve.parameters == sum(p.numel() for p in curve.operation.parameters()) > 100
    assert Formula(Entry("power", "product", (3.0,), (0.5, 2.0))).parameters == 3
    assert Candidate("maximum", Operation(Affine(1).requires_grad_(False), Maximum())).parameters == 0


def test_a_huge_set_is_not_padded_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [np.full(2 + i % 3, 0.5) for i in range(40)]
    sets[7] = np.full(2000, 0.5)
    examples = Multisets.from_arrays(sets, [one.sum() for one in sets])
    padded: list[tuple[int, ...]] = []
    original = Multisets.padded

    def recorded(self: Multisets, width: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        values, mask = original(self, width)
        padded.append(tuple(mask.shape))
        return values, mask

    monkeypatch.setattr(Multisets, "padded", recorded)
    candidate = train_abelian_net(examples, examples, epochs=2)
    assert padded == [(39, 4)] * 2
    assert len(candidate.squared_errors(examples)) == 40
