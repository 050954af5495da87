r"""The one training loop: for a single module, and for many models that are trained side by side as one.

Many models at once are one module whose parameters all have a leading dimension :math:`M`, or less if only the first
models have them, and whose loss is a tensor :math:`(M)`, one number a model. Their losses are added, and since no
model's loss depends on another's parameters, each is trained as if it were alone: a model that diverges takes none of
the others with it.
"""

from __future__ import annotations

__all__ = ["Settings", "TrainingResult", "train"]

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from abelnet.errors import AbelnetError
from abelnet.files import replacing
from abelnet.training.progress import Bar, History

Data = tuple[Tensor, ...]
Loss = Callable[[nn.Module, Data], Tensor]
Validate = Callable[[nn.Module], Tensor]
Prune = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class Settings:
    """How to train. The defaults are the paper's.

    Attributes:
        epochs: Number of passes through the data.
        batch_size: Examples in a step; None takes all.
        lr: Learning rate of Adam at the start.
        betas: Its decay rates.
        weight_decay: L2 penalty added to the gradient.
        decoupled: Whether the weights decay by themselves instead, as in AdamW.
        average: Decay of a running average of the parameters, over about :math:`1 / (1 - decay)` steps, which is then
            what is validated and kept; None keeps the parameters themselves.
        schedule: Whether the learning rate stays constant or falls to 0 along a cosine.
        clip_norm: Largest norm of the gradient of a model; larger ones are scaled down.
        validate_every: Epochs from one validation to the next.
        patience: Validations without improvement after which training stops and the best parameters come back; None
            trains to the end and keeps the last.
    """

    epochs: int = 1000
    batch_size: int | None = 32
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    decoupled: bool = False
    average: float | None = None
    schedule: Literal["constant", "cosine"] = "constant"
    clip_norm: float | None = None
    validate_every: int = 1
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.validate_every < 1 or (self.batch_size is not None and self.batch_size < 1):
            raise AbelnetError("epochs, batch_size, validate_every: expected at least 1 of each")
        if self.lr <= 0 or self.weight_decay < 0 or (self.clip_norm is not None and self.clip_norm <= 0):
            raise AbelnetError("lr, clip_norm: expected above 0; weight_decay: expected 0 or more")
        if self.average is not None and not 0 < self.average < 1:
            raise AbelnetError(f"average: expected between 0 and 1, got {self.average}")
        if self.schedule not in ("constant", "cosine"):
            raise AbelnetError(f'schedule: expected "constant" or "cosine", got {self.schedule!r}')


@dataclass
class TrainingResult:
    """What training came to.

    Attributes:
        loss: Mean training loss of the last epoch, with shape :math:`()` or :math:`(M)`.
        validation: Last validation loss, or the best one with ``patience``; None without validation data.
        epochs: Number of epochs trained.
        pruned: For many models, those that were given up, with the number of epochs that each was trained for; their
            ``loss`` and ``validation`` are of that moment.
    """

    loss: Tensor
    validation: Tensor | None
    epochs: int
    pruned: dict[int, int]


def train(
    model: nn.Module,
    data: Data,
    loss: Loss,
    *,
    settings: Settings | None = None,
    seed: int | Sequence[int] = 0,
    validation: Data | Validate | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    history: str | Path | None = None,
    prune: Prune | None = None,
    on_epoch: Callable[[int, Tensor, Tensor | None], None] | None = None,
    progress: str | None = None,
) -> TrainingResult:
    r"""Trains a module in place with Adam, or AdamW.

    Arguments:
        model: The module.
        data: Tensors whose first dimension counts examples, :math:`(S, *)`; for many models, :math:`(M, S, *)`.
        loss: Gives the loss of the module on a batch of such tensors: :math:`()`, or :math:`(M)` for many models.
        settings: How to train.
        seed: Fixes the order of the examples; a list of :math:`M` seeds says that there are many models.
        validation: Data for validation, like ``data``; or a function of the module that gives the validation loss.
        checkpoint: A file to write the state to, atomically. If it is there, training goes on from it, to the same bits
            as if it had never stopped.
        checkpoint_every: Epochs from one checkpoint to the next.
        history: A file to write one line of JSON an epoch to.
        prune: For many models, called after each validation with the number of the epoch and the validation losses;
            gives a mask of the models to go on with. The module needs a method ``select`` that keeps these alone, as
            the stacks have it.
        on_epoch: Called after each epoch with its number from 1, its losses and the validation losses if there are any.
        progress: What a progress bar says; it is shown on a terminal only.

    Example:
        >>> from abelnet import AbelianGroup, Affine
        >>> group = AbelianGroup(Affine(1, dtype=torch.float64))
        >>> x = torch.linspace(-5, 5, 60, dtype=torch.float64).reshape(20, 3, 1)
        >>> squared = lambda model, batch: (model.reduce(batch[0]) - batch[1]).square().mean()
        >>> settings = Settings(epochs=500, lr=0.05, schedule="cosine")
        >>> train(group, (x, x.sum(1) + 2), squared, settings=settings).loss.item() < 1e-10  # x + y + 1
        True
    """
    run = _Run(model, data, loss, settings or Settings(), seed, validation)
    checkpoint = None if checkpoint is None else Path(checkpoint)
    if checkpoint is not None and checkpoint.exists():
        run.load(checkpoint)
    lines = History(history, run.epoch)
    with Bar(progress, run.settings.epochs, run.epoch) as advance:
        while not run.finished:
            run.one_epoch()
            lines.write(run.epoch, *run.losses())
            if prune is not None and run.validation is not None and run.epoch % run.settings.validate_every == 0:
                run.keep(prune(run.epoch, run.validation))
            if checkpoint is not None and (run.epoch % checkpoint_every == 0 or run.finished):
                run.save(checkpoint)
            if on_epoch is not None:
                on_epoch(run.epoch, run.loss, run.validation)
            advance(run.loss)
    run.finish()
    if run.settings.patience:
        run.validation = run.best
    return TrainingResult(*run.losses(), run.epoch, run.pruned)


class _Run:
    """All that changes while training, and how to save it."""

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        loss: Loss,
        settings: Settings,
        seed: int | Sequence[int],
        validation: Data | Validate | None,
    ) -> None:
        self.model, self.data, self.loss_of, self.settings = model, data, loss, settings
        self.validate = validation if callable(validation) else None
        self.validation_data = None if callable(validation) else validation
        self.many = not isinstance(seed, int)
        self.seeds: list[int] = [seed] if isinstance(seed, int) else list(seed)
        self.all_seeds = self.seeds
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._check()
        if settings.patience is not None and validation is None:
            raise AbelnetError("patience: expected validation data to go with it")
        self.flat = _flatten(list(self.parameters.values()))
        kind = torch.optim.AdamW if settings.decoupled else torch.optim.Adam
        self.optimiser = kind(
            [flat for flat, _ in self.flat],
            lr=settings.lr,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        like = next(iter(self.parameters.values()))
        shape = (len(self.seeds),) if self.many else ()
        self.epoch = 0
        self.loss = torch.full(shape, math.nan, dtype=like.dtype)
        self.validation: Tensor | None = None
        self.best = torch.full(shape, math.inf, dtype=like.dtype)
        self.best_parameters = {name: p.detach().clone() for name, p in self.parameters.items()}
        self.stale = torch.zeros(shape, dtype=torch.long)
        self.kept = list(range(len(self.seeds)))
        self.pruned: dict[int, int] = {}
        self.given_up = torch.full((2, *shape), math.nan, dtype=like.dtype)  # loss and validation of those not kept

    def _check(self) -> None:
        if not self.parameters:
            raise AbelnetError("model: expected at least one trainable parameter, got none")
        lead = (len(self.seeds),) if self.many else ()
        for tensors in (self.data, self.validation_data or ()):
            sizes = {tuple(x.shape[: len(lead) + 1]) for x in tensors}
            if tensors and (len(sizes) != 1 or next(iter(sizes))[:-1] != lead or next(iter(sizes))[-1] == 0):
                expected = f"({len(self.seeds)}, S, *)" if self.many else "(S, *)"
                raise AbelnetError(f"data: expected tensors of shape {expected} with S > 0, got {sorted(sizes)}")
        if self.many:
            for name, p in self.parameters.items():
                if p.ndim == 0 or len(p) > len(self.seeds):
                    raise AbelnetError(f"model: expected {len(self.seeds)} models, got {name} of {tuple(p.shape)}")

    @property
    def finished(self) -> bool:
        patience = self.settings.patience
        return self.epoch >= self.settings.epochs or (patience is not None and bool((self.stale >= patience).all()))

    def one_epoch(self) -> None:
        """One pass through the data, then validation."""
        examples = self.data[0].shape[1 if self.many else 0]
        size = min(self.settings.batch_size or examples, examples)
        steps = math.ceil(examples / size)
        shuffled = self._shuffled(examples)
        total = torch.zeros_like(self.loss)
        self.model.train()
        for step in range(steps):
            low, high = step * size, min((step + 1) * size, examples)
            batch = tuple(x[:, low:high] if self.many else x[low:high] for x in shuffled)
            self._set_lr((self.epoch * steps + step) / (self.settings.epochs * steps))
            losses = self.loss_of(self.model, batch)
            if losses.shape != self.loss.shape:
                raise AbelnetError(f"loss: expected shape {tuple(self.loss.shape)}, got {tuple(losses.shape)}")
            losses.sum().backward()  # type: ignore[no-untyped-call]
            if self.settings.clip_norm is not None:
                self._clip(self.settings.clip_norm)
            self._step()
            total += losses.detach() * ((high - low) / examples)
        self.epoch += 1
        self.loss = total
        if not self.many and not bool(total.isfinite()):
            raise AbelnetError(
                f"loss: expected finite values, got {total.item()} in epoch {self.epoch}; try a smaller lr"
            )
        validated = self.validation_data is not None or self.validate is not None
        if validated and (self.epoch % self.settings.validate_every == 0 or self.finished):
            self._validate()

    def _shuffled(self, examples: int) -> Data:
        """The data in the order of this epoch, which the seed and its number fix."""
        orders = [
            torch.randperm(examples, generator=torch.Generator().manual_seed(_mix(seed, self.epoch)))
            for seed in self.seeds
        ]
        if not self.many:
            return tuple(x[orders[0].to(x.device)] for x in self.data)
        order = torch.stack(orders)
        rows = torch.arange(len(order))[:, None]
        return tuple(x[rows.to(x.device), order.to(x.device)] for x in self.data)

    def _set_lr(self, done: float) -> None:
        if self.settings.schedule == "cosine":
            self.optimiser.param_groups[0]["lr"] = self.settings.lr * 0.5 * (1 + math.cos(math.pi * done))

    def _step(self) -> None:
        for flat, members in self.flat:
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in members]
            flat.grad = torch.cat([gradient.reshape(-1) for gradient in gradients])
            for p in members:
                p.grad = None
        self.optimiser.step()
        if self.settings.average is not None:
            with torch.no_grad():
                for flat, _ in self.flat:
                    # Kept with Adam's own averages, it is saved, restored and pruned with them.
                    state = self.optimiser.state[flat]
                    share = max(1 - self.settings.average, 1 / state["step"].item())
                    state.setdefault("average", torch.zeros_like(flat)).lerp_(flat, share)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Puts the averages, where they are wanted, in the place of the parameters for a while."""
        if self.settings.average is None:
            yield
            return
        kept = [flat.detach().clone() for flat, _ in self.flat]
        for flat, _ in self.flat:
            flat.detach().copy_(self.optimiser.state[flat]["average"])
        try:
            yield
        finally:
            for (flat, _), values in zip(self.flat, kept, strict=True):
                flat.detach().copy_(values)

    @torch.no_grad()
    def keep(self, mask: Tensor) -> None:
        """Goes on with these models alone."""
        if not self.many or mask.dtype != torch.bool or mask.shape != self.loss.shape or not bool(mask.any()):
            raise AbelnetError("prune: expected many models, and a boolean mask of them that leaves at least one")
        if bool(mask.all()):
            return
        self.pruned |= {i: self.epoch for i, kept in zip(self.kept, mask.tolist(), strict=True) if not kept}
        self.given_up[0, self.kept] = self.loss
        if self.validation is not None:
            self.given_up[1, self.kept] = self.best if self.settings.patience else self.validation
        rows = mask.nonzero()[:, 0].tolist()
        self.kept, self.seeds = ([values[i] for i in rows] for values in (self.kept, self.seeds))
        self.data = tuple(x[mask] for x in self.data)
        self.validation_data = None if self.validation_data is None else tuple(x[mask] for x in self.validation_data)
        self.loss, self.best, self.stale = self.loss[mask], self.best[mask], self.stale[mask]
        self.validation = None if self.validation is None else self.validation[mask]

        def of(x: Tensor) -> Tensor:
            return x[mask[: len(x)]]  # a parameter may belong to the first models alone

        self.best_parameters = {name: of(p) for name, p in self.best_parameters.items()}
        states = []
        for flat, members in self.flat:
            state = self.optimiser.state.pop(flat, {})
            for key in state.keys() - {"step"}:
                parts = zip(_split(state[key], members), members, strict=True)
                state[key] = torch.cat([of(part.view_as(p)).reshape(-1) for part, p in parts])
            states.append(state)
        self.model.select(mask)  # type: ignore[operator]
        self.flat = _flatten(list(self.parameters.values()))
        self.optimiser.param_groups[0]["params"] = [flat for flat, _ in self.flat]
        self.optimiser.state.update({flat: state for (flat, _), state in zip(self.flat, states, strict=True)})

    def losses(self) -> tuple[Tensor, Tensor | None]:
        """Training and validation losses of all models, those that were given up among them."""
        return self._over_all(self.loss, 0), None if self.validation is None else self._over_all(self.validation, 1)

    def _over_all(self, values: Tensor, row: int) -> Tensor:
        """Values of the models that were kept among those of the models that were not."""
        if not self.many:
            return values
        result = self.given_up[row].clone()
        result[self.kept] = values
        return result

    def _clip(self, limit: float) -> None:
        gradients = [p.grad for p in self.parameters.values() if p.grad is not None and p.grad.numel() > 0]
        rows = [gradient.reshape(len(gradient) if self.many else 1, -1) for gradient in gradients]
        squares = rows[0].new_zeros(len(self.seeds), 1)
        for row in rows:
            squares[: len(row)] += row.square().sum(1, keepdim=True)
        scale = (limit / squares.sqrt()).clamp(max=1)
        for row in rows:
            row.mul_(scale[: len(row)])

    @torch.no_grad()
    def _validate(self) -> None:
        self.model.eval()
        with self._averaged():
            if self.validate is not None:
                self.validation = self.validate(self.model).detach()
            elif self.validation_data is not None:
                self.validation = self.loss_of(self.model, self.validation_data).detach()
            assert self.validation is not None
            if self.validation.shape != self.loss.shape:
                shapes = tuple(self.loss.shape), tuple(self.validation.shape)
                raise AbelnetError(f"validation: expected shape {shapes[0]}, got {shapes[1]}")
            better = self.validation < self.best
            self.best = torch.where(better, self.validation, self.best)
            self.stale = torch.where(better, 0, self.stale + 1)
            if self.settings.patience is not None:
                for name, p in self.parameters.items():
                    mask = better[: len(p)].reshape(-1, *[1] * (p.ndim - 1)) if self.many else better
                    self.best_parameters[name] = torch.where(mask, p.detach(), self.best_parameters[name])

    @torch.no_grad()
    def finish(self) -> None:
        """Brings the parameters that are wanted, and gives each a tensor of its own again."""
        with self._averaged():
            for name, p in self.parameters.items():
                if self.settings.patience is None:
                    self.best_parameters[name] = p.detach().clone()
        for name, p in self.parameters.items():
            p.data = self.best_parameters[name]

    def save(self, path: Path) -> None:
        tensors = {"loss": self.loss, "best": self.best, "stale": self.stale, "given_up": self.given_up}
        tensors["pruned"] = torch.tensor(list(self.pruned.items()), dtype=torch.long).reshape(-1, 2)
        if self.validation is not None:
            tensors["validation"] = self.validation
        for name, p in self.parameters.items():
            tensors[f"parameter.{name}"] = p.detach()
            if self.settings.patience is not None:
                tensors[f"best.{name}"] = self.best_parameters[name]
        for i, (flat, _) in enumerate(self.flat):
            tensors |= {f"adam.{key}.{i}": value for key, value in self.optimiser.state[flat].items()}
        with replacing(path) as temporary:
            save_file({name: x.contiguous() for name, x in tensors.items()}, temporary, {"abelnet": self._signature()})

    @torch.no_grad()
    def load(self, path: Path) -> None:
        with safe_open(path, framework="pt") as file:
            found = json.loads((file.metadata() or {}).get("abelnet", "{}"))
            self.epoch = found.pop("epoch", 0)
            wanted = json.loads(self._signature())
            wanted.pop("epoch")
            if found != wanted:
                raise AbelnetError(f"checkpoint: expected one of the same settings and seeds at {path}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if len(tensors["pruned"]) > 0:
            self.keep(torch.ones(len(self.seeds), dtype=torch.bool).index_fill(0, tensors["pruned"][:, 0], False))
            self.pruned = dict(tensors["pruned"].tolist())
        self.loss, self.best, self.stale = tensors["loss"], tensors["best"], tensors["stale"]
        self.given_up = tensors["given_up"]
        self.validation = tensors.get("validation")
        for name, p in self.parameters.items():
            p.copy_(tensors[f"parameter.{name}"])
            if self.settings.patience is not None:
                self.best_parameters[name] = tensors[f"best.{name}"]
        for i, (flat, _) in enumerate(self.flat):
            keys = ("step", "exp_avg", "exp_avg_sq", *(["average"] if self.settings.average is not None else []))
            self.optimiser.state[flat] = {key: tensors[f"adam.{key}.{i}"] for key in keys}

    def _signature(self) -> str:
        return json.dumps({"epoch": self.epoch, "seeds": self.all_seeds, "settings": asdict(self.settings)})


def _flatten(parameters: Sequence[nn.Parameter]) -> list[tuple[nn.Parameter, list[nn.Parameter]]]:
    """Moves parameters of one kind into one tensor that the optimiser steps at once, each a view of its part."""
    kinds: dict[tuple[torch.device, torch.dtype], list[nn.Parameter]] = {}
    for p in parameters:
        kinds.setdefault((p.device, p.dtype), []).append(p)
    result = []
    for members in kinds.values():
        flat = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in members]))
        for p, part in zip(members, _split(flat.detach(), members), strict=True):
            p.data = part.view_as(p)
        result.append((flat, members))
    return result


def _split(flat: Tensor, members: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return torch.split(flat, [p.numel() for p in members])


def _mix(seed: int, epoch: int) -> int:
    """Another seed for each epoch, so that an epoch can be repeated without those before it."""
    return (seed * 0x9E3779B97F4A7C15 + epoch * 0xBF58476D1CE4E5B9 + 1) % 2**63
