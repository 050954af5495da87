"""What is no law is refused with the reason; noise and curves are not; a small misfit is reported."""

from __future__ import annotations

import pickle
from functools import reduce

import numpy as np
import pytest
import torch
from laws_of_practice import LAWS, Fold, draw
from non_laws import NON_LAWS

import abelnet
from abelnet import AbelianGroup, AbelianSemigroup, Generator, LawRegressor, Maximum, Multisets, NoLawError, Operation
from abelnet.discovery import LearnedLaw, evidence
from abelnet.discovery.candidates import Candidate
from abelnet.discovery.evidence import Misfit, check_cap, check_law, find_misfit


def noisy(target: np.ndarray, part: float, seed: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    return np.asarray(target + part * target.std() * np.random.default_rng(seed).normal(size=len(target)))


def misfit_of(operation: Operation, examples: Multisets) -> Misfit | None:
    fitted, held_out = examples.split(0.25, 0)
    return find_misfit(Candidate("law", operation).judge(held_out), fitted, held_out)


def over(kind: str, *parameters: float) -> Operation:
    return AbelianGroup(Generator(1, kind, parameters, dtype=torch.float64))


SUM = over("affine")
TRUE = {
    "large sums": SUM,
    "odds": over("logit"),
    "resistors": over("positive power", -1.0),
    "lengths": over("positive power", 2.0),
    "log-sum-exp": over("exponential", 1.0),
    "large products": AbelianSemigroup(Generator(1, "affine", dtype=torch.float64)),
    "largest": Operation(Generator(1, "affine", dtype=torch.float64), Maximum()),
}

EIGENVALUES = "eigenvalues (0 for a law, about 1 for none)"
# Those that earlier rules accepted, or that a law explains best.
CLOSEST = (
    "fold of x + y + 0.1 x² y",
    "sum + 1",
    "square of the sum, positive",
    "sum, and half the largest",
)


@pytest.mark.parametrize("name", CLOSEST)
def test_the_closest_non_laws_are_refused(name: str) -> None:
    low, high, fold = NON_LAWS[name]
    sets, target = draw(low, high, fold, 500)
    with pytest.raises(NoLawError, match=r"^no law: (at each size )?the results .* \(the nearest law .*\); ") as error:
        LawRegressor(polish=False).fit(sets, noisy(target, 0.05))
    assert [line.partition(":")[0] for line in error.value.details] == ["nearest law", "error", EIGENVALUES]


def test_a_law_that_only_a_bend_would_repair_is_refused() -> None:
    # Squares would be a curve that falls back beyond the elements; monotonic curves explain 88 %.
    low, high, fold = NON_LAWS["sum of squares, positive"]
    sets, target = draw(low, high, fold, 500, seed=5)
    with pytest.raises(NoLawError, match=r"^no law: the results are .*explains 8\d % of their variance") as error:
        LawRegressor(polish=False).fit(sets, target)
    assert "that of a regression without a law: " in error.value.details[1]


@pytest.mark.parametrize("name", TRUE)
def test_true_laws_have_no_misfit(name: str) -> None:
    low, high, fold, _ = LAWS[name]
    for count, part in ((60, 0.1), (200, 0.05)):
        sets, target = draw(low, high, fold, count, seed=2)
        assert misfit_of(TRUE[name], Multisets.from_arrays(sets, noisy(target, part))) is None
    assert misfit_of(TRUE[name], Multisets.from_arrays(sets, target)) is None


def test_noise_of_other_kinds_is_no_misfit() -> None:
    sets, target = draw(0, 5, np.sum, 200)
    generator = np.random.default_rng(1)
    for errors in (0.1 * target * generator.normal(size=200), 0.3 * generator.standard_t(3, size=200)):
        assert misfit_of(SUM, Multisets.from_arrays(sets, target + errors)) is None


SLIGHT: Fold = lambda x: reduce(lambda a, b: a + b + 0.01 * a * b * b, x.tolist())


def test_a_small_misfit_is_reported_with_its_size() -> None:
    sets, target = draw(-2, 2, SLIGHT, 500)
    (law,) = LawRegressor(polish=False).fit(sets, noisy(target, 0.02)).laws_
    assert law.misfit is not None
    truth = np.std([SLIGHT(one) - one.sum() for one in sets]) / target.std()
    # Of the distance to the sum, the best law removes a part.
    assert 0.5 * truth < law.misfit.part < truth
    assert not law.misfit.contradicts
    assert law.summary().splitlines()[-1] == law.misfit.describe()


def test_findings_are_saved(tmp_path: object) -> None:
    misfit = Misfit(0.02, 0.01, 0.05, 0.046, False)
    abelnet.save(LearnedLaw(SUM, "sum", 0.05, 0.99, misfit=misfit), tmp_path)  # type: ignore[arg-type]
    assert abelnet.load(tmp_path).misfit == misfit  # type: ignore[arg-type]


def test_little_explained_is_refused_whatever_the_misfit() -> None:
    law = Candidate("sum", SUM)
    check_law(law, 0.81, None, {})
    check_law(law, 0.99, Misfit(0.02, 0.01, 0.05, 0.046, False), {})
    for explained in (0.79, -np.inf, np.nan):
        with pytest.raises(NoLawError, match=r"^no law: the results are noisy, or depend on something") as error:
            check_law(law, explained, None, {"group, x": 0.5})
        assert error.value.details[0].startswith("nearest law: sum, explains ")
        assert error.value.details[1] == f"{EIGENVALUES}: group, x: 0.5"
        again = pickle.loads(pickle.dumps(error.value))  # as it comes from another process
        assert (str(again), again.details) == (str(error.value), error.value.details)


def test_few_or_impossible_examples_have_no_misfit() -> None:
    few = Multisets.from_arrays(*draw(-5, 5, np.max, 10))
    assert misfit_of(SUM, few) is None
    fitted, held_out = Multisets.from_arrays(*draw(-5, 5, np.max, 60)).split(0.25, 0)
    impossible = Candidate("law", SUM)
    impossible.errors = torch.full((len(held_out),), torch.inf)
    assert find_misfit(impossible, fitted, held_out) is None


def test_exact_laws_are_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(evidence, "compare")
    assert misfit_of(SUM, Multisets.from_arrays(*draw(-5, 5, np.sum, 60))) is None


def test_caps() -> None:
    sets, target = draw(0, 5, np.sum)
    check_cap(Multisets.from_arrays(sets, target))
    for capped, name in ((np.minimum(target, 10), "largest, 10"), (np.maximum(target, 4), "smallest, 4")):
        with pytest.raises(NoLawError, match=name):
            check_cap(Multisets.from_arrays(sets, capped))
