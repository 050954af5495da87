"""Annealing of a gated bank: what each step trains, what is kept, and files of former versions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from cases import chosen

import abelnet
from abelnet import AbelnetError
from abelnet.nn import GatedBank

SCOUTED = 7, 8  # ways of single formulas in all channels
MIXTURE, FIRST, NETWORK, SLOW = 0, 1, 6, 9  # ways
PTR = torch.tensor([0, 1, 1, 4, 9])


def test_a_formula_that_the_gates_underrate_is_scouted_and_kept() -> None:
    bank = GatedBank(2, seed=0)
    minimum = bank.names.index("minimum")
    with torch.no_grad():
        bank.logits[:, minimum] = -5.0
    scouted, loss = set(), None
    for step in range(1000):
        bank.anneal(step / 1000, loss)
        law = bank.weights().argmax(-1).tolist()
        if step < 250 and int(bank.way) in SCOUTED:
            scouted.add(law[0])
        loss = 0.0 if int(bank.way) in SCOUTED and law == [minimum, minimum] else 1.0
    formulas = [name for name in bank.names if "curve" not in name]
    assert len(scouted) == len(formulas) - 3  # the best three by the gates are tried anyway
    assert minimum in scouted
    assert bank.laws() == ["x∘y = min(x, y)"] * 2


def test_scouting_ends_with_the_first_formulas_if_steps_are_few() -> None:
    bank = GatedBank(1, seed=0)
    minimum = bank.names.index("minimum")
    with torch.no_grad():
        bank.logits[:, minimum] = 0.5
        bank.logits[:, [0, 1, 2]] = 1.0
    for progress in (0.0, 0.21, 0.3):
        bank.anneal(progress, 1.0)
    assert int(bank.scouted[0]) == minimum


@pytest.mark.parametrize("learned", [True, False])
def test_slow_growth_is_kept_without_a_trial_if_elements_are_learned(learned: bool) -> None:
    bank, ways = GatedBank(5, seed=0), set()
    for step in range(100):
        bank.anneal(step / 100, 1.0)
        bank(torch.rand(9, 5).requires_grad_(learned), ptr=PTR)
        if step >= 20:
            ways.add(int(bank.way))
    assert (ways == {SLOW}) == learned
    if learned:
        x = 0.5 + torch.rand(9, 5)
        plain = bank.eval()(x, ptr=PTR)
        assert torch.allclose(plain, bank.harden()(x, ptr=PTR), atol=1e-6)
        units = bank.unit
        first = (x[4:] / units).logsumexp(0) * units
        assert torch.allclose(plain[3, [0, 4]], first[[0, 4]])
        assert torch.allclose(plain[3, 2], first[2] - math.log(5) * units[2])
        assert [law.split()[0] for law in bank.laws()] == ["x∘y", "x∘y", "M(x₁,", "M(x₁,", "x∘y"]


def test_slow_growth_has_a_trial_if_a_network_is_far_better() -> None:
    bank, ways, loss = GatedBank(1, seed=0), set(), None
    for step in range(100):
        bank.anneal(step / 100, loss)
        bank(torch.rand(9, 1).requires_grad_(), ptr=PTR)
        ways.add(int(bank.way))
        loss = 0.1 if int(bank.way) == NETWORK else 1.0
    assert len(ways) > 5
    assert int(bank.way) == NETWORK


@pytest.mark.parametrize(("learned", "kept"), [(True, SLOW), (False, FIRST)])
def test_a_law_of_learned_elements_must_be_far_better_than_slow_growth(learned: bool, kept: int) -> None:
    bank, loss = GatedBank(1, seed=0), None
    for step in range(100):
        bank.anneal(step / 100, loss)
        bank(torch.rand(9, 1).requires_grad_(learned), ptr=PTR)
        loss = {MIXTURE: 0.01, FIRST: 0.5}.get(int(bank.way), 1.0)
    assert int(bank.way) == kept


def test_state_of_a_bank_that_did_not_scout() -> None:
    state = chosen(GatedBank(1), "maximum").state_dict()
    del state["scouted"]
    state["losses"] = state["losses"][:7]
    bank = GatedBank(1)
    bank.load_state_dict(state)
    assert bank.laws() == ["x∘y = max(x, y)"]
    state["way"] = torch.tensor(5)  # it had settled on log-sum-exp
    growing = GatedBank(1)
    growing.load_state_dict(state)
    assert growing.laws() == ["x∘y = log(exp(x) + exp(y))"]
    state["losses"] = state["losses"][:3]
    with pytest.raises(RuntimeError, match="scouted"):
        GatedBank(1).load_state_dict(state)


@pytest.mark.parametrize(("name", "number"), [("way", 99), ("scouted", -1)])
def test_a_file_with_a_number_out_of_range_is_refused(tmp_path: Path, name: str, number: int) -> None:
    bank = GatedBank(1)
    bank.get_buffer(name).fill_(number)
    abelnet.save(bank, tmp_path / "bank")
    with pytest.raises(AbelnetError):
        abelnet.load(tmp_path / "bank")
