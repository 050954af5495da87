"""State of a training run: parameters, optimizer, losses and pruned models, and its checkpoints."""

from __future__ import annotations

__all__ = ["Run"]

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from abelnet.errors import AbelnetError
from abelnet.files import replacing
from abelnet.saving import checksum
from abelnet.training.optimizer import FlatAdam
from abelnet.training.ranks import Ranks
from abelnet.training.settings import Data, Loss, Settings, Validate
from abelnet.training.stacks import ModelStack


class Run:
    """Everything that changes during training, and its checkpoints."""

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        loss: Loss,
        settings: Settings,
        seed: int | Sequence[int],
        validation: Data | Validate | None,
        ranks: Ranks,
    ) -> None:
        self.ranks = ranks
        self.model, self.data, self.loss_of, self.settings = model, data, loss, settings
        self.validate = validation if callable(validation) else None
        self.validation_data = None if callable(validation) else validation
        self.many = not isinstance(seed, int)
        self.seeds: list[int] = [seed] if isinstance(seed, int) else list(seed)
        self.all_seeds = self.seeds
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._check()
        if settings.patience is not None and validation is None:
            raise AbelnetError(f"validation: expected data for patience={settings.patience}, got None")
        shapes = [tuple(x.shape) for x in (*data, *self.parameters.values())]
        ranks.check_same(seed=self.seeds, settings=asdict(settings), data=shapes)
        ranks.follow([p.detach() for p in self.parameters.values()])
        self.optimizer = FlatAdam(list(self.parameters.values()), settings)
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
        self.given_up = torch.full((2, *shape), math.nan, dtype=like.dtype)  # loss and validation of pruned models

    def _check(self) -> None:
        if not self.parameters:
            raise AbelnetError("model: expected at least one trainable parameter, got none")
        lead = (len(self.seeds),) if self.many else ()
        for argument, tensors in (("data", self.data), ("validation", self.validation_data or ())):
            sizes = {tuple(x.shape[: len(lead) + 1]) for x in tensors}
            if tensors and (len(sizes) != 1 or next(iter(sizes))[:-1] != lead or next(iter(sizes))[-1] == 0):
                expected = f"({len(self.seeds)}, S, *)" if self.many else "(S, *)"
                raise AbelnetError(f"{argument}: expected tensors of shape {expected} with S > 0, got {sorted(sizes)}")
        if self.many:
            for name, p in self.parameters.items():
                if p.ndim == 0 or len(p) > len(self.seeds):
                    raise AbelnetError(f"model: expected {len(self.seeds)} models, got {name} of {tuple(p.shape)}")

    @property
    def finished(self) -> bool:
        patience = self.settings.patience
        return self.epoch >= self.settings.epochs or (patience is not None and bool((self.stale >= patience).all()))

    def one_epoch(self) -> None:
        """Trains for one epoch, then validates."""
        examples = self.data[0].shape[1 if self.many else 0]
        size = min(self.settings.batch_size or examples, examples)
        steps = math.ceil(examples / size)
        shuffled = self._shuffled(examples)
        total = torch.zeros_like(self.loss)
        self.model.train()
        for step in range(steps):
            low, high = step * size, min((step + 1) * size, examples)
            self._set_lr((self.epoch * steps + step) / (self.settings.epochs * steps))
            losses = self._backward(shuffled, low, high)
            if self.settings.clip_norm is not None:
                self._clip(self.settings.clip_norm)
            self.optimizer.step()
            total += losses * ((high - low) / examples)
        self.epoch += 1
        self.loss = total
        if not self.many and not bool(total.isfinite()):
            raise AbelnetError(
                f"loss: expected finite values, got {total.item()} in epoch {self.epoch}; try a smaller lr"
            )
        validated = self.validation_data is not None or self.validate is not None
        if validated and (self.epoch % self.settings.validate_every == 0 or self.finished):
            self._validate()

    def _backward(self, shuffled: Data, low: int, high: int) -> Tensor:
        """Computes loss and gradients of a batch, of which each process takes a part."""
        first, last = self.ranks.share(low, high)
        losses = torch.zeros_like(self.loss)
        if last > first:
            batch = tuple(x[:, first:last] if self.many else x[first:last] for x in shuffled)
            found = self.loss_of(self.model, batch)
            if found.shape != self.loss.shape:
                raise AbelnetError(f"loss: expected shape {tuple(self.loss.shape)}, got {tuple(found.shape)}")
            if self.ranks.size > 1:
                found = found * ((last - first) / (high - low))
            found.sum().backward()  # type: ignore[no-untyped-call]
            losses = found.detach()
        if self.ranks.size > 1:
            for p in self.parameters.values():
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            self.ranks.add([*(p.grad for p in self.parameters.values() if p.grad is not None), losses])
        return losses

    def _shuffled(self, examples: int) -> Data:
        """Returns the data in the order of this epoch, determined by the seed and the number of the epoch."""
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
            self.optimizer.set_lr(self.settings.lr * 0.5 * (1 + math.cos(math.pi * done)))

    @torch.no_grad()
    def keep(self, mask: Tensor) -> None:
        """Keeps only the models of a boolean mask :math:`(M)`."""
        if not isinstance(self.model, ModelStack):
            raise AbelnetError(f"prune: expected a model that is a ModelStack, got {type(self.model).__name__}")
        if mask.dtype != torch.bool or mask.shape != self.loss.shape or not bool(mask.any()):
            count = len(self.seeds)
            raise AbelnetError(f"prune: expected a boolean mask ({count}) that keeps at least one model, got {mask}")
        if bool(mask.all()):
            return
        self.pruned |= {i: self.epoch for i, kept in zip(self.kept, mask.tolist(), strict=True) if not kept}
        self.given_up[0, self.kept] = self.loss
        if self.validation is not None:
            self.given_up[1, self.kept] = self.validation if self.settings.patience is None else self.best
        rows = mask.nonzero()[:, 0].tolist()
        self.kept, self.seeds = ([values[i] for i in rows] for values in (self.kept, self.seeds))
        self.data = tuple(x[mask] for x in self.data)
        self.validation_data = None if self.validation_data is None else tuple(x[mask] for x in self.validation_data)
        self.loss, self.best, self.stale = self.loss[mask], self.best[mask], self.stale[mask]
        self.validation = None if self.validation is None else self.validation[mask]

        def of(x: Tensor) -> Tensor:
            return x[mask[: len(x)]]  # a parameter may belong to the first models only

        self.best_parameters = {name: of(p) for name, p in self.best_parameters.items()}
        with self.optimizer.selecting(of):
            self.model.select(mask)

    def losses(self) -> tuple[Tensor, Tensor | None]:
        """Returns training and validation losses of all models, including pruned ones."""
        return self._over_all(self.loss, 0), None if self.validation is None else self._over_all(self.validation, 1)

    def _over_all(self, values: Tensor, row: int) -> Tensor:
        """Combines values of the remaining models with those of the pruned ones."""
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
        with self.optimizer.averaged():
            if self.validate is not None:
                self.validation = self.validate(self.model).detach()
            elif self.validation_data is not None:
                self.validation = self.loss_of(self.model, self.validation_data).detach()
            assert self.validation is not None
            self.ranks.follow([self.validation])  # rounded otherwise on another machine, it might stop later
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
        """Sets the final parameters: the last, averaged or best ones, each in its own tensor again."""
        with self.optimizer.averaged():
            for name, p in self.parameters.items():
                if self.settings.patience is None:
                    self.best_parameters[name] = p.detach().clone()
        for name, p in self.parameters.items():
            p.data = self.best_parameters[name]

    def save(self, path: Path) -> None:
        """Writes a checkpoint atomically."""
        tensors = {"loss": self.loss, "best": self.best, "stale": self.stale, "given_up": self.given_up}
        tensors["pruned"] = torch.tensor(list(self.pruned.items()), dtype=torch.long).reshape(-1, 2)
        if self.validation is not None:
            tensors["validation"] = self.validation
        for name, p in self.parameters.items():
            tensors[f"parameter.{name}"] = p.detach()
            if self.settings.patience is not None:
                tensors[f"best.{name}"] = self.best_parameters[name]
        tensors |= self.optimizer.state_dict()
        tensors = {name: x.cpu().clone(memory_format=torch.contiguous_format) for name, x in tensors.items()}
        text = self._signature()
        with replacing(path) as temporary:
            save_file(tensors, temporary, {"abelnet": text, "checksum": checksum(text, tensors)})

    @torch.no_grad()
    def load(self, path: Path) -> None:
        """Loads a checkpoint, from which training resumes bit for bit."""
        try:
            self._load(path)
        except AbelnetError:
            raise
        except (SafetensorError, OSError, LookupError, TypeError, RuntimeError, ValueError, AttributeError) as error:
            reason = str(error).strip().partition("\n")[0][:200]
            raise AbelnetError(
                f"checkpoint: expected one of this training at {path}, got a damaged file ({reason}); "
                "remove the file to start over"
            ) from None

    def _load(self, path: Path) -> None:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            found = json.loads(metadata.get("abelnet", "{}"))
            self.epoch = found.pop("epoch", 0)
            wanted = json.loads(self._signature())
            wanted.pop("epoch")
            if found != wanted:
                raise AbelnetError(
                    f"checkpoint: expected the same settings and seeds at {path}, got {json.dumps(found)}; "
                    "remove the file to start over"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.get("checksum") != checksum(metadata["abelnet"], tensors):
            raise ValueError("its checksum is that of another")
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
        self.optimizer.load_state_dict(tensors)

    def _signature(self) -> str:
        return json.dumps({"epoch": self.epoch, "seeds": self.all_seeds, "settings": asdict(self.settings)})


def _mix(seed: int, epoch: int) -> int:
    """Derives a seed for each epoch, so that an epoch can be repeated without those before it."""
    return (seed * 0x9E3779B97F4A7C15 + epoch * 0xBF58476D1CE4E5B9 + 1) % 2**63
