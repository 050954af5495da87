"""The training loop: any module, resumed bit for bit, and many models as if each were alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from abelnet import AbelianGroup, AbelianSemigroup, AbelnetError, Monotonic
from abelnet.nn.baselines import DeepSets
from abelnet.nn.stacks import DeepSetsStack
from abelnet.training.loop import Settings, TrainingResult, train
from abelnet.training.optimizer import FlatAdam
from abelnet.training.stacks import OperationStack

X = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
Y = X @ torch.tensor([[1.0], [-2.0], [0.5]])


def squared(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    result: Tensor = (model(batch[0]) - batch[1]).square().mean()
    return result


def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(3, 1)


class Killed(Exception):
    pass


def test_learns_and_same_seed_gives_the_same() -> None:
    first, second, other = linear(), linear(), linear()
    settings = Settings(epochs=60, lr=0.05, batch_size=8)
    assert train(first, (X, Y), squared, settings=settings, seed=1).loss < 1e-4
    train(second, (X, Y), squared, settings=settings, seed=1)
    train(other, (X, Y), squared, settings=settings, seed=2)
    assert torch.equal(first.weight, second.weight)
    assert first.weight.untyped_storage().nbytes() == first.weight.nbytes  # no part of a larger tensor any more
    assert not torch.equal(first.weight, other.weight)


def test_every_epoch_has_an_order_of_its_own() -> None:
    seen: list[Tensor] = []

    def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        seen.append(batch[0])
        return squared(model, batch)

    train(linear(), (X, Y), loss, settings=Settings(epochs=2, batch_size=None))
    assert not torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0].sort(0).values, seen[1].sort(0).values)


@pytest.mark.parametrize(("patience", "average"), [(None, None), (30, None), (None, 0.9), (30, 0.9)])
def test_resumes_from_a_checkpoint_bit_for_bit(tmp_path: Path, patience: int | None, average: float | None) -> None:
    settings = Settings(epochs=23, lr=0.05, batch_size=8, schedule="cosine", patience=patience, average=average)
    options = {"settings": settings, "validation": (X[:9], Y[:9])}
    whole, history = linear(), tmp_path / "whole.jsonl"
    result = train(whole, (X, Y), squared, history=history, **options)  # type: ignore[arg-type]

    def kill(epoch: int, *_: object) -> None:
        if epoch in deaths:
            deaths.remove(epoch)
            raise Killed

    deaths = [4, 13, 14, 22]
    parts = tmp_path / "parts.jsonl"
    while True:
        model = linear()
        try:
            again = train(
                model,
                (X, Y),
                squared,
                checkpoint=tmp_path / "run.safetensors",
                checkpoint_every=3,
                history=parts,
                on_epoch=kill,
                **options,  # type: ignore[arg-type]
            )
            break
        except Killed:
            continue
    assert not deaths
    assert torch.equal(model.weight, whole.weight)
    assert torch.equal(again.loss, result.loss)
    assert parts.read_text() == history.read_text()
    assert [json.loads(line)["epoch"] for line in parts.read_text().splitlines()] == list(range(1, 24))
    assert not list(tmp_path.glob("*.tmp"))

    finished = linear()
    train(finished, (X, Y), squared, checkpoint=tmp_path / "run.safetensors", **options)  # type: ignore[arg-type]
    assert torch.equal(finished.weight, whole.weight)
    with pytest.raises(
        AbelnetError, match=r"checkpoint: expected the same settings and seeds .* got .*\"seeds\": \[0\]"
    ):
        train(linear(), (X, Y), squared, checkpoint=tmp_path / "run.safetensors", seed=9, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "missing"])
def test_a_damaged_checkpoint_is_one_line(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    settings = Settings(epochs=2)
    train(linear(), (X, Y), squared, settings=settings, checkpoint=path)
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        content = content[:-1]
    elif damage == "changed":
        content[-1] ^= 1
    elif damage == "empty":
        content = bytearray()
    else:
        content = content.replace(b"adam.step.0", b"adam.stop.0")
    path.write_bytes(content)
    with pytest.raises(
        AbelnetError, match=r"checkpoint: expected one of .*run\.safetensors, got a damaged file \(.*remove"
    ):
        train(linear(), (X, Y), squared, settings=settings, checkpoint=path)


def test_patience_brings_the_best_back() -> None:
    model = linear()
    losses: list[float] = []
    result = train(
        model,
        (X, Y),
        squared,
        settings=Settings(epochs=500, lr=0.5, patience=5),
        validation=(X, Y),
        on_epoch=lambda epoch, loss, validation: losses.append(float(validation)),  # type: ignore[arg-type]
    )
    assert result.epochs < 500
    assert result.validation is not None
    assert result.validation.item() == min(losses)
    assert squared(model, (X, Y)).item() == pytest.approx(min(losses), rel=1e-5)


def test_average_of_the_parameters_is_what_is_validated_and_kept() -> None:
    model, seen, validated = linear(), [], []

    def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        if len(batch[0]) == 25:  # not the data for validation
            seen.append(model.weight.detach().clone())
        else:
            validated.append(model.weight.detach().clone())
        return squared(model, batch)

    settings = Settings(epochs=3, lr=0.05, batch_size=25, average=0.75)
    train(model, (X, Y), loss, settings=settings, validation=(X, Y))
    plain = linear()
    train(plain, (X, Y), squared, settings=Settings(epochs=3, lr=0.05, batch_size=25))
    after = [*seen[1:], plain.weight.detach()]  # what each step came to
    expected = torch.zeros_like(after[0])
    for step, weight in enumerate(after, 1):
        expected.lerp_(weight, max(0.25, 1 / step))
    assert torch.allclose(model.weight, expected, atol=1e-6)
    assert torch.equal(validated[-1], model.weight)


def test_a_validation_that_raises_leaves_the_parameters_of_the_last_step() -> None:
    def raises(model: nn.Module) -> Tensor:
        raise RuntimeError("no answer")

    model, plain = linear(), linear()
    settings = Settings(epochs=3, lr=0.05, batch_size=5, average=0.9, validate_every=2)
    with pytest.raises(RuntimeError, match="no answer"):
        train(model, (X, Y), squared, settings=settings, validation=raises)
    train(plain, (X, Y), squared, settings=Settings(epochs=2, lr=0.05, batch_size=5))
    assert torch.equal(model.weight, plain.weight)


def test_decoupled_weight_decay_is_that_of_adamw() -> None:
    model, other = linear(), linear()
    settings = Settings(epochs=5, lr=0.05, batch_size=None, weight_decay=0.1, decoupled=True)
    train(model, (X, Y), squared, settings=settings)
    optimiser = torch.optim.AdamW(other.parameters(), lr=0.05, weight_decay=0.1)
    for _ in range(5):
        optimiser.zero_grad()
        squared(other, (X, Y)).backward()
        optimiser.step()
    assert torch.allclose(model.weight, other.weight, atol=1e-6)


def test_validation_may_be_a_function() -> None:
    model, calls = linear(), []

    def score(model: nn.Module) -> Tensor:
        calls.append(model.training)
        return torch.tensor([3.0, 1.0, 2.0, 2.0][len(calls) - 1])

    result = train(model, (X, Y), squared, settings=Settings(epochs=9, patience=2), validation=score)
    assert calls == [False] * 4
    assert result.validation == 1
    assert result.epochs == 4
    with pytest.raises(AbelnetError, match=r"validation: expected shape \(\), got \(2,\)"):
        train(model, (X, Y), squared, validation=lambda model: torch.zeros(2))


def test_clipping_bounds_the_first_step() -> None:
    gradients = []

    def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return 1e6 * squared(model, batch)

    step = FlatAdam.step

    def record(self: FlatAdam) -> None:
        gradients.append(sum(p.grad.square().sum() for p in model.parameters()).sqrt().item())
        step(self)

    model = linear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlatAdam, "step", record)
        train(model, (X, Y), loss, settings=Settings(epochs=1, clip_norm=0.1))
    assert max(gradients) <= 0.1001


def multisets(models: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = 10 * torch.rand(models, 40, 4, generator=generator) - 5
    mask = torch.rand(models, 40, 4, generator=generator) > 0.3
    mask[..., 0] = True
    x = x * mask
    return x, mask, x.sum(-1)


def many_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    result: Tensor = (model(batch[0], batch[1]) - batch[2]).square().mean(-1)
    return result


BUILD = {
    "deepsets": (lambda i: DeepSets(1, (6, 4, 4, 2)[i], middle=3 + i, hidden=9 - i, seed=i), DeepSetsStack),
    "agn": (lambda i: AbelianGroup(Monotonic(1, 2 + i, 6 - i, seed=i)), OperationStack),
    "asn": (lambda i: AbelianSemigroup(Monotonic(1, 2 + i, 6 - i, seed=i)), OperationStack),
}


@pytest.mark.parametrize("kind", sorted(BUILD))
@pytest.mark.parametrize("clip", [None, 0.5])
def test_many_at_once_equal_each_alone(kind: str, clip: float | None) -> None:
    build, stacked = BUILD[kind]
    data = multisets(4)
    settings = Settings(epochs=5, batch_size=16, clip_norm=clip)
    together = [build(i) for i in range(4)]
    stack = stacked(together)  # type: ignore[arg-type]
    result = train(stack, data, many_loss, settings=settings, seed=[10, 11, 12, 13])
    stack.unstack(together)  # type: ignore[operator]
    for i, trained in enumerate(together):
        alone = build(i)
        single = stacked([alone])  # type: ignore[arg-type]
        own = tuple(x[i : i + 1] for x in data)
        loss = train(single, own, many_loss, settings=settings, seed=[10 + i]).loss
        single.unstack([alone])  # type: ignore[operator]
        torch.testing.assert_close(result.loss[i], loss[0], rtol=1e-4, atol=1e-6)
        for mine, theirs in zip(trained.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_single_model_in_the_ordinary_way_is_the_same_too() -> None:
    model, twin = DeepSets(1, 3, 4, 5, seed=0), DeepSets(1, 3, 4, 5, seed=0)
    x, mask, y = multisets(1)
    settings = Settings(epochs=5, batch_size=16)
    stack = DeepSetsStack([twin])
    train(stack, (x, mask, y), many_loss, settings=settings, seed=[3])
    stack.unstack([twin])
    loss = lambda model, batch: (model(batch[0][..., None], batch[1])[..., 0] - batch[2]).square().mean()
    train(model, (x[0], mask[0], y[0]), loss, settings=settings, seed=3)
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", sorted(BUILD))
def test_a_diverging_model_disturbs_no_other(kind: str) -> None:
    build, stacked = BUILD[kind]
    settings = Settings(epochs=3, batch_size=16)
    states = []
    for poison in (False, True):
        x, mask, y = multisets(3)
        if poison:
            y[1] = float("nan")
        stack = stacked([build(i) for i in range(3)])  # type: ignore[arg-type]
        result = train(stack, (x, mask, y), many_loss, settings=settings, seed=[1, 2, 3])
        assert result.loss.isnan().tolist() == [False, poison, False]
        states.append([p.detach()[[i for i in (0, 2) if i < len(p)]] for p in stack.parameters()])
    for clean, beside in zip(*states, strict=True):
        assert torch.equal(clean, beside)


def test_bad_input() -> None:
    with pytest.raises(AbelnetError, match=r"data: expected tensors of shape \(S, \*\) with S > 0"):
        train(linear(), (X, Y[:-1]), squared)
    with pytest.raises(AbelnetError, match=r"data: expected tensors of shape \(2, S, \*\)"):
        train(linear(), (X, Y), squared, seed=[1, 2])
    with pytest.raises(AbelnetError, match=r"loss: expected shape \(\), got \(8, 1\)"):
        train(linear(), (X, Y), lambda m, b: (m(b[0]) - b[1]).square(), settings=Settings(batch_size=8))
    with pytest.raises(AbelnetError, match="loss: expected finite values, got nan in epoch 1"):
        train(linear(), (X, Y / 0), squared)
    with pytest.raises(AbelnetError, match="validation: expected data for patience=3, got None"):
        train(linear(), (X, Y), squared, settings=Settings(patience=3))
    with pytest.raises(AbelnetError, match="model: expected at least one trainable parameter"):
        train(nn.ReLU(), (X, Y), squared)
    with pytest.raises(AbelnetError, match=r"validation: expected tensors of shape \(S, \*\) with S > 0"):
        train(linear(), (X, Y), squared, validation=(X, Y[:-1]))
    with pytest.raises(AbelnetError, match="checkpoint_every: expected at least 1, got 0"):
        train(linear(), (X, Y), squared, checkpoint_every=0)
    with pytest.raises(AbelnetError, match="prune: expected a model that is a ModelStack, got Linear"):
        train(linear(), (X, Y), squared, prune=lambda epoch, losses: losses > 0)


@pytest.mark.parametrize("kind", sorted(BUILD))
def test_pruning_leaves_the_others_as_they_would_be(kind: str, tmp_path: Path) -> None:
    build, stacked = BUILD[kind]
    settings = Settings(epochs=6, batch_size=16, validate_every=2, clip_norm=1.0)
    data = multisets(4)
    whole = stacked([build(i) for i in range(4)])  # type: ignore[arg-type]
    expected = train(whole, data, many_loss, settings=settings, seed=[1, 2, 3, 4], validation=data)

    def prune(epoch: int, losses: Tensor) -> Tensor:
        return torch.tensor([True, epoch != 2, True, True][: len(losses)]) if epoch == 2 else losses == losses.min()

    def stop(epoch: int, losses: Tensor, _: Tensor | None) -> None:
        if epoch == 3:
            raise Killed

    def run(on_epoch: object = None, checkpoint: Path | None = None) -> tuple[nn.Module, TrainingResult]:
        stack = stacked([build(i) for i in range(4)])  # type: ignore[arg-type]
        return stack, train(
            stack,
            data,
            many_loss,
            settings=settings,
            seed=[1, 2, 3, 4],
            validation=data,
            prune=prune,
            checkpoint=checkpoint,
            checkpoint_every=1,
            on_epoch=on_epoch,  # type: ignore[arg-type]
        )

    stack, result = run()
    assert result.pruned[1] == 2
    assert sorted(result.pruned.values()) == [2, 4, 4]
    (kept,) = set(range(4)) - set(result.pruned)
    assert result.loss[kept] == pytest.approx(expected.loss[kept].item(), rel=1e-5)
    for p, q in zip(stack.parameters(), whole.parameters(), strict=True):
        if kept < len(q):
            torch.testing.assert_close(p[0], q[kept])
    with pytest.raises(Killed):
        run(stop, tmp_path / "checkpoint")
    again, resumed = run(None, tmp_path / "checkpoint")
    assert resumed.pruned == result.pruned
    assert torch.equal(resumed.loss, result.loss)
    for p, q in zip(again.parameters(), stack.parameters(), strict=True):
        assert torch.equal(p, q)
