"""Intervals: the spread of laws that the examples hardly tell apart, in the fold, in parts, saved, and at bounds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import stdtrit

from abelnet import (
    AbelianGroup,
    AbelianSemigroup,
    AbelnetError,
    CappedSum,
    ExtrapolationWarning,
    Generator,
    LawRegressor,
    Multisets,
    Operation,
)
from abelnet.discovery.candidates import Candidate, Curve, Formula, Trained
from abelnet.discovery.entry import Entry
from abelnet.discovery.intervals import Ensemble, sigma_points, student_quantile
from abelnet.discovery.networks import train_abelian_net
from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.seen import Seen
from abelnet.discovery.spectral import SpectralFit


def power(p: float) -> Operation:
    return AbelianGroup(Generator(1, "positive power", [p], dtype=torch.float64))


def examples_of(
    seed: int, p: float = 2.3719, count: int = 100, noise: float = 0.1, size: int = 3, high: float = 3
) -> Multisets:
    generator = np.random.default_rng(seed)
    values = generator.uniform(0.12, high, (count, size))
    return Multisets.from_arrays(values, (values**p).sum(1) ** (1 / p) + noise * generator.normal(size=count))


def learned(candidate: Candidate, examples: Multisets) -> LearnedLaw:
    seen, ensemble = Seen.of(examples), candidate.ensemble(examples, 0)
    return LearnedLaw(candidate.operation, candidate.title, 0.0, 1.0, seen=seen, ensemble=ensemble)


def inside(law: LearnedLaw, truth: Multisets) -> tuple[float, float]:
    """The fraction of true results in their intervals, and the mean half-width, of those in the range of examples."""
    with torch.no_grad():
        results = law.operation.reduce(truth)[:, 0]
    known = ~law.extrapolated(truth, results)
    low, high = (end[known] for end in law.interval(results, law.std(truth, results)))
    wanted = truth.targets[known]
    return float(((low <= wanted) & (wanted <= high)).double().mean()), float((high - low).mean()) / 2


@pytest.mark.parametrize("uneven", [False, True])
def test_sigma_points_have_the_covariance_of_least_squares(uneven: bool) -> None:
    generator = np.random.default_rng(0)
    design = np.stack((np.ones(5000), 1e6 * generator.normal(size=5000)), 1)
    noise = 0.1 * (1 + uneven * np.abs(design[:, 1]) / 1e6)
    targets = design @ [2.0, 3e-6] + noise * generator.normal(size=5000)
    fit = np.linalg.lstsq(design, targets, rcond=None)[0]
    points = np.array(sigma_points(lambda theta: design @ theta, fit, targets))
    assert points.shape == (4, 2)
    inverse = np.linalg.inv(design.T @ design)
    wanted = inverse @ (design.T * noise**2) @ design @ inverse
    found = (points - fit).T @ (points - fit) / len(points)
    np.testing.assert_allclose(np.diag(found), np.diag(wanted), rtol=0.1)


def test_sigma_points_of_parameters_that_nothing_depends_on() -> None:
    x = np.linspace(0, 1, 50)
    noisy = x + 0.1 * np.random.default_rng(0).normal(size=50)
    points = np.array(sigma_points(lambda theta: (theta[0] + theta[1]) * x, np.array([0.5, 0.5]), noisy))
    assert np.abs(points - 0.5).max() < 0.2
    (alone,) = sigma_points(lambda theta: x, np.array([7.0]), noisy)
    assert alone.tolist() == [7.0]


def test_sigma_points_stay_where_there_are_results() -> None:
    x = np.linspace(0.1, 1, 20)

    def predict(theta: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.log(theta[0]) * x if theta[0] > 0 else np.full(20, math.nan)

    points = sigma_points(predict, np.array([0.01]), np.log(0.01) * x + 100 * np.random.default_rng(0).normal(size=20))
    assert all(0 < point[0] < 100 for point in points)


def test_intervals_of_formulas_contain_the_truth() -> None:
    # A law of one parameter is right for all sets or for none, so what counts are the seeds.
    small, large = [], []
    for seed in range(40):
        examples = examples_of(seed)
        law = learned(Formula(Entry("positive power", "sum", (2.0,), ())).fit_to_all(examples, {}), examples)
        small.append(inside(law, examples_of(1, count=20, noise=0)))
        large.append(inside(law, examples_of(1, count=20, noise=0, size=12, high=1.0)))
    for found in (small, large):
        assert 0.88 <= np.mean([fraction for fraction, _ in found]) <= 1
    # Larger sets are less certain, and both are more so than one observation.
    assert np.mean([width for _, width in small]) < np.mean([width for _, width in large]) < 0.1


def test_rounding_of_parameters_is_part_of_the_uncertainty() -> None:
    examples = examples_of(0)
    formula = Formula(Entry("positive power", "sum", (2.0,), ())).fit_to_all(examples, {})
    assert isinstance(formula, Formula)
    p = float(formula.entry.theta[0])
    of_ensemble = [next(one.parameters()).item() for one in formula.ensemble(examples, 0).operations]
    assert p == round(p, 2)
    assert np.mean(of_ensemble) != pytest.approx(p, abs=1e-6)


def test_intervals_of_curves_contain_the_truth() -> None:
    def draw(count: int, size: int, noise: float, seed: int) -> Multisets:
        generator = np.random.default_rng(seed)
        grid = np.linspace(-6, 6, 400_001)
        values = generator.uniform(-2, 2, (count, size)) * min(1, 4 / size)
        results = np.interp((values + values**3).sum(1), grid + grid**3, grid)
        return Multisets.from_arrays(values, results + noise * generator.normal(size=count))

    for noise in (0.0, 0.05):
        examples = draw(300, 3, noise, 0)
        penalty = 1e-2 if noise else 1e-9
        curve = Curve(SpectralFit().partial_fit(examples).solve(penalty)[0], penalty)
        law = learned(curve, examples)
        assert law.ensemble is not None
        assert law.ensemble.freedom == len(law.ensemble.operations) >= 6
        for size in (3, 12):
            fraction, width = inside(law, draw(200, size, 0.0, 1))
            # Without noise all that is left is how well a spline follows the curve, much the same with all knots.
            assert fraction >= (0.9 if noise else 0.8)
            assert width < (0.3 if noise else 1e-5)
    # A trained curve has the uncertainty of the one that it started from.
    assert len(Trained.of(curve, examples).ensemble(examples, 0).operations) == len(law.ensemble.operations)


def test_a_network_has_the_uncertainty_of_its_parameters() -> None:
    examples = examples_of(0, p=1.0)
    network = train_abelian_net(examples, examples, epochs=30)
    ensemble = network.ensemble(examples, 0)
    assert len(ensemble.operations) > 6
    with torch.no_grad():
        results = network.operation.reduce(examples)[:, 0]
    assert bool((ensemble.std(examples, results) > 0).all())


def test_a_law_without_a_result_or_without_the_domain() -> None:
    logarithm = AbelianGroup(Generator(1, "logarithm", [0.0], dtype=torch.float64))
    ensemble = Ensemble([power(1.0), logarithm], [0.5, 0.5], 9)
    sets = Multisets.from_arrays([[1.0, 3.0], [0.0, 3.0]])
    results = torch.tensor([4.0, 3.0], dtype=torch.float64)
    assert ensemble.std(sets, results).tolist() == pytest.approx([math.sqrt(0.5), math.inf])
    limits = torch.tensor([0.5, 10.0], dtype=torch.float64)
    assert ensemble.std(sets, results, limits).tolist() == pytest.approx([math.sqrt(0.125), math.sqrt(50)])


def test_in_parts_as_at_once() -> None:
    ensemble = Ensemble([power(1.9), power(2.2)], [0.25, 0.75], 9)
    sets = examples_of(0, count=7)
    results = sets.targets
    accumulator = ensemble.accumulator()
    for row in torch.randperm(len(sets.values)).tolist():
        index = sets.index[row : row + 1]
        accumulator.grow(7)
        accumulator.add_at(index, sets.values[row : row + 1])
    torch.testing.assert_close(accumulator.std(results), ensemble.std(sets, results))


def test_at_the_cap_the_interval_is_the_cap() -> None:
    def capped(p: float) -> Operation:
        return Operation(Generator(1, "positive power", [p], dtype=torch.float64), CappedSum(4.0**p))

    law = LearnedLaw(capped(2.0), "capped", 0.0, 1.0, ensemble=Ensemble([capped(1.9), capped(2.1)], [0.5, 0.5], 99))
    sets = Multisets.from_arrays([[3.0, 3.0], [2.0, 3.46], [1.0, 1.0]])
    with torch.no_grad():
        results = law.operation.reduce(sets)[:, 0]
    low, high = law.interval(results, law.std(sets, results))
    assert (float(low[0]), float(high[0])) == pytest.approx((4.0, 4.0))
    assert 3.7 < float(low[1]) < float(results[1]) < float(high[1]) == pytest.approx(4.0)
    assert float(low[2]) < 1.4 < 1.43 < float(high[2])


def test_intervals_stay_in_the_domain() -> None:
    for operation, value, ends in (
        (power(2.0), 0.1, (0.0, 1.1)),
        (AbelianGroup(Generator(1, "logit", dtype=torch.float64)), 0.5, (0.0, 1.0)),
        (AbelianSemigroup(Generator(1, "affine", dtype=torch.float64)), 0.5, (-0.5, 1.5)),
    ):
        law = LearnedLaw(operation, "law", 0.0, 1.0, ensemble=Ensemble([operation], [1.0], 1e9))
        one = torch.ones(1, dtype=torch.float64)
        low, high = law.interval(value * one, one, level=math.erf(1 / math.sqrt(2)))
        assert (float(low), float(high)) == pytest.approx(ends)


def test_exact_laws_are_exact() -> None:
    pairs = np.random.default_rng(0).uniform(0, 5, (60, 2))
    model = LawRegressor().fit(pairs, np.hypot(*pairs.T))
    result, std = model.predict(pairs[:5], return_std=True)
    np.testing.assert_array_equal(result, model.predict(pairs[:5]))
    assert (std > 0).all()
    assert (std < 1e-10).all()
    low, high = model.predict_interval([[3.0, 4.0]])
    assert low[0] < 5 < high[0]


def test_loaded_intervals_are_those_of_the_fitted_bit_for_bit(tmp_path: Path) -> None:
    examples = examples_of(0, count=40)
    laws = [
        learned(Formula(Entry("positive power", "sum", (2.0,), ())).fit_to_all(examples, {}), examples),
        learned(Curve(SpectralFit().partial_fit(examples).solve(1e-2)[0], 1e-2), examples),
    ]
    model = LawRegressor.from_config(LawRegressor().get_params() | {"flat": False, "laws": laws})
    X = [np.stack((one, one), 1) for one in np.random.default_rng(1).uniform(0.2, 0.9, (30, 5))]
    model.save(tmp_path)
    again = LawRegressor.load(tmp_path)
    for found, wanted in zip(again.predict_interval(X), model.predict_interval(X), strict=True):
        assert found.shape == (30, 2)
        assert found.tobytes() == wanted.tobytes()
    assert again.predict(X, return_std=True)[1].tobytes() == model.predict(X, return_std=True)[1].tobytes()


def test_extrapolated_intervals_warn() -> None:
    pairs = np.random.default_rng(0).uniform(0, 5, (60, 2))
    model = LawRegressor().fit(pairs, np.hypot(*pairs.T))
    with pytest.warns(ExtrapolationWarning, match="predict_interval: 1 of 1 sets"):
        model.predict_interval([[30.0, 40.0]])


def test_errors() -> None:
    model = LawRegressor.from_config(
        LawRegressor().get_params() | {"flat": True, "laws": [LearnedLaw(power(2.0), "of before", 0.0, 1.0)]}
    )
    assert model.predict([[3.0, 4.0]]).tolist() == [5.0]
    with pytest.raises(AbelnetError, match="law: expected one that was learned with intervals, got one without"):
        model.predict([[3.0, 4.0]], return_std=True)
    with pytest.raises(AbelnetError, match="level: expected a probability between 0 and 1, got 95"):
        Ensemble([power(2.0)], [1.0], 9).quantile(95)
    with pytest.raises(AbelnetError, match="weights: expected 1 numbers of at least 0, got 2"):
        Ensemble([power(2.0)], [1.0, 0.0], 9)
    with pytest.raises(AbelnetError, match="freedom: expected a number of at least 1, got 0"):
        Ensemble([power(2.0)], [1.0], 0)


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 10, 999, 1001, 1e6, 1e15])
def test_quantiles_of_student(freedom: float) -> None:
    levels = [1e-6, 0.5, 0.9, 0.95, 0.999]
    expected = stdtrit(freedom, [(1 + level) / 2 for level in levels])
    assert [student_quantile(freedom, level) for level in levels] == pytest.approx(expected, rel=1e-6)
