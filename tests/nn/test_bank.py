"""The gated bank: finite everywhere, one law per channel in the end, and exact operations from it."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import pytest
import torch
from cases import chosen
from torch import Tensor, nn

import abelnet
from abelnet import AbelnetError, Multisets
from abelnet.nn import GatedBank

PTR = torch.tensor([0, 1, 1, 4, 9])


def train(bank: GatedBank, fold: object, steps: int, seed: int = 0, low: float = 0.2, high: float = 3.0) -> float:
    """Trains a bank on pairs to quadruples, and returns its relative error on sets of 30."""
    generator = torch.Generator().manual_seed(seed)

    def draw(sets: int, least: int, most: int) -> tuple[Multisets, Tensor]:
        sizes = torch.randint(least, most + 1, (sets,), generator=generator)
        x = low + (high - low) * torch.rand(int(sizes.sum()), bank.channels, generator=generator)
        rows = torch.split(x, sizes.tolist())
        return Multisets(rows, bank.channels), torch.stack([fold(one) for one in rows])  # type: ignore[operator]

    batches = [draw(32, 2, 4) for _ in range(10)]
    spread = torch.cat([y for _, y in batches]).std(0)
    others = [p for name, p in bank.named_parameters() if name != "logits"]
    optimizer = torch.optim.Adam([{"params": others, "lr": 0.02}, {"params": [bank.logits], "lr": 0.03}])
    last = None
    for step in range(steps):
        bank.anneal(step / steps, last)
        x, y = batches[step % len(batches)]
        error = ((bank(x) - y) / spread).square()
        loss = torch.log1p(error).mean() if 2 * step < steps else error.mean()
        if not loss.requires_grad:
            break
        last = loss.item()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(bank.parameters(), 1.0)
        if 2 * step >= steps:
            for group, rate in zip(optimizer.param_groups, (0.02, 0.03), strict=True):
                group["lr"] = rate * (1 + math.cos(math.pi * (2 * step / steps - 1))) / 2
        optimizer.step()
    bank.anneal(1.0)
    bank.eval()
    x, y = draw(100, 30, 30)
    return float(((bank(x) - y) / y.abs().mean(0)).square().mean().sqrt().detach())


FOLDS = {
    "noisy or": (lambda x: 1 - (1 - x / 4).prod(0), "x∘y = x + y − 0.25·x·y", 4.0),
    "root mean square": (lambda x: x.square().mean(0).sqrt(), "M(x₁, …, xₙ) = (Σ x^2 / n)^(1/2)", 1.0),
}


@pytest.mark.parametrize("name", FOLDS)
def test_it_finds_the_law_and_applies_it_to_larger_sets(name: str) -> None:
    fold, formula, factor = FOLDS[name]
    bank = GatedBank(1, seed=0)
    error = train(bank, lambda x: factor * fold(x), 1200)
    assert bank.laws() == [formula]
    assert error < 1e-3


def test_each_channel_finds_its_own_law() -> None:
    bank = GatedBank(2, seed=0)
    fold = lambda x: torch.stack((x[:, 0].amax(), x[:, 1].log().mean().exp()))
    assert train(bank, fold, 1200) < 1e-5
    assert bank.laws() == ["x∘y = max(x, y)", "M(x₁, …, xₙ) = exp(Σ log(x) / n)"]


def test_what_is_no_law_becomes_a_network() -> None:
    bank = GatedBank(1, seed=0)
    error = train(bank, lambda x: x.quantile(0.5, 0), 800)
    assert bank.laws() == ["no law"]
    assert error < 0.1
    with pytest.raises(AbelnetError, match="harden: expected a law in each channel, got none"):
        bank.harden()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hardened_it_is_the_bank_and_each_operation_is_exact(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    names = GatedBank(1).names
    bank = GatedBank(len(names)).to(dtype)
    with torch.no_grad():
        for name, parameter in bank.named_parameters():
            if "network" not in name and name != "logits":
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator, dtype=dtype)
    x = 0.5 + torch.rand(9, len(names), generator=generator, dtype=dtype)
    bank(x, ptr=PTR)  # takes the units of the elements
    chosen(bank, *names)
    hard = bank.harden()
    tolerance = {torch.float32: 1e-4, torch.float64: 1e-6}[dtype]
    expected = bank(x, ptr=PTR)
    torch.testing.assert_close(hard(x, ptr=PTR)[[0, 2, 3]], expected[[0, 2, 3]], rtol=tolerance, atol=tolerance)
    for channel in range(len(names)):
        one = bank.operation(channel).reduce(x[4:, channel : channel + 1])
        torch.testing.assert_close(one, expected[3, channel : channel + 1], rtol=tolerance, atol=tolerance)


def test_an_empty_set_gives_the_fill_value() -> None:
    x = torch.rand(9, 2)
    for bank in (GatedBank(2, fill=7.0), chosen(GatedBank(2, fill=7.0), "maximum", "power sum -1")):
        assert bank(x, ptr=PTR)[1].tolist() == [7.0, 7.0]
        assert bank(x[:0], index=torch.empty(0, dtype=torch.long), dim_size=3).shape == (3, 2)
    assert bank.harden()(x, ptr=PTR)[1].tolist() == [7.0, 7.0]


def test_the_result_of_a_set_does_not_depend_on_others_or_on_padding() -> None:
    bank = GatedBank(3).eval()
    x = torch.rand(2, 4, 3)
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])
    both = bank(x, mask=mask)
    torch.testing.assert_close(both[0], bank(x[0, :2]))
    torch.testing.assert_close(both[1], bank(x[1].flip(0)))


BANKS = int(os.environ.get("ABELNET_BANKS", "0"))
"""Number of random banks; many only if asked for, as ``make fuzz`` does."""


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_random_banks_stay_finite(scale: float) -> None:
    for seed in range(2):
        train_random_bank(seed, scale, 100)


def test_many_random_banks_stay_finite() -> None:
    for seed in range(max(2, BANKS)):
        scale = 10 ** (12 * float(torch.rand((), generator=torch.Generator().manual_seed(seed))) - 6)
        train_random_bank(seed, scale, 1000 if BANKS else 50)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_with_drawn_laws_it_stays_finite(scale: float) -> None:
    train_random_bank(0, scale, 50, draws=2)


def train_random_bank(seed: int, scale: float, steps: int, draws: int | None = None) -> None:
    """Trains a bank on random data, in which no law is, and fails at the first number that is not finite."""
    generator = torch.Generator().manual_seed(seed)
    channels = int(torch.randint(1, 5, (), generator=generator))
    bank = GatedBank(channels, gates=("channel", "shared")[seed % 2], draws=draws, seed=seed)
    optimizer = torch.optim.Adam(bank.parameters(), lr=0.03)
    last = None
    for step in range(steps):
        bank.anneal(step / steps, last)
        x = torch.randn(40, channels, generator=generator) ** int(torch.randint(1, 6, (), generator=generator))
        x = (scale * x).requires_grad_()
        index = torch.randint(0, 12, (40,), generator=generator)
        out = bank(x, index=index, dim_size=12)
        loss = torch.log1p(((out - scale * torch.randn(out.shape, generator=generator)) / scale).square()).mean()
        assert out.isfinite().all(), (seed, step)
        last = loss.item()
        optimizer.zero_grad()
        loss.backward()
        gradients = [x.grad, *(p.grad for p in bank.parameters())]
        assert all(one is None or one.isfinite().all() for one in gradients), (seed, step)
        optimizer.step()


def test_drawn_laws_are_found_as_well() -> None:
    fold, formula, factor = FOLDS["noisy or"]
    bank = GatedBank(1, draws=2, seed=0)
    assert train(bank, lambda x: factor * fold(x), 1200) < 1e-3
    assert bank.laws() == [formula]


def test_parameters_are_printed_with_the_digits_that_are_known() -> None:
    bank = GatedBank(1, curves=False)
    with torch.no_grad():
        bank.logits[:, bank.names.index("log-sum-exp +1")] = 1.0
        for parameter in bank.members.parameters():
            parameter.add_(0.2107)
    assert set(re.findall(r"\d\.\d+", bank.laws()[0])) == {f"{math.exp(0.2107):.5g}"}


def test_a_seed_draws_the_same_laws() -> None:
    x, index = torch.rand(60, 3), torch.randint(0, 20, (60,))

    def results(seed: int, *, steps: int = 4) -> Tensor:
        bank, found = GatedBank(3, draws=2, seed=seed), []
        for step in range(steps):
            bank.anneal(step / 100)
            found.append(bank(x, index=index, dim_size=20))
        return torch.stack(found)

    assert torch.equal(results(1), results(1))
    assert not torch.equal(results(1), results(2))
    first, second, *_ = results(1)
    assert not torch.equal(first, second)  # drawn anew


def test_evaluated_it_is_the_mixture_of_all_laws() -> None:
    x = 0.5 + torch.rand(9, 2)
    assert torch.equal(GatedBank(2, draws=2).eval()(x, ptr=PTR), GatedBank(2).eval()(x, ptr=PTR))


def test_saved_and_loaded(tmp_path: Path) -> None:
    bank = GatedBank(2, draws=2, seed=5)
    x = torch.rand(9, 2) * 5
    bank(x, ptr=PTR)
    chosen(bank, "polynomial", "log-sum-exp +6")
    abelnet.save(bank, tmp_path / "bank")
    loaded = abelnet.load(tmp_path / "bank")
    assert torch.equal(loaded(x, ptr=PTR), bank(x, ptr=PTR))
    assert loaded.laws() == bank.laws()
    assert (loaded.draws, loaded.seed) == (2, 5)  # later steps draw what they would have drawn
    other = GatedBank(2)
    other.load_state_dict(bank.state_dict())
    assert torch.equal(other(x, ptr=PTR), bank(x, ptr=PTR))


def test_reset() -> None:
    bank = chosen(GatedBank(1), "maximum")
    bank.reset_parameters()
    assert not bank.is_hard
    assert bank.laws() == GatedBank(1).laws()


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match="channels: expected at least 1, got 0"):
        GatedBank(0)
    with pytest.raises(AbelnetError, match='gates: expected "channel" or "shared", got 1'):
        GatedBank(1, gates=1)  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match="progress: expected a number at least 0 and at most 1, got 2"):
        GatedBank(1).anneal(2)
