r"""Training loop for a single module, or for many models stacked into one.

A stack is one module whose parameters all have a leading dimension :math:`M`, or less if only the first models have
them, and whose loss is a tensor :math:`(M)`, one value per model. The losses are summed; since no model's loss depends
on another's parameters, each is trained as if alone, and a model that diverges does not affect the others.
"""

from __future__ import annotations

__all__ = ["Settings", "TrainingResult", "train"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor, nn

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.training.progress import Bar, History
from abelnet.training.ranks import Ranks
from abelnet.training.run import Run
from abelnet.training.settings import Data, Loss, Prune, Settings, Validate
from abelnet.training.stacks import ModelStack

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


@dataclass
class TrainingResult:
    """Result of training.

    Attributes:
        loss: Mean training loss of the last epoch, with shape :math:`()` or :math:`(M)`.
        validation: Last validation loss, or the best one with ``patience``; None without validation data.
        epochs: Number of epochs trained.
        pruned: For stacks, the pruned models with the number of epochs each was trained for; their ``loss`` and
            ``validation`` are those at that point.
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
    group: ProcessGroup | None = None,
) -> TrainingResult:
    r"""Trains a module in place with Adam or AdamW.

    Arguments:
        model: The module.
        data: Tensors whose first dimension counts examples, :math:`(S, *)`; for stacks, :math:`(M, S, *)`.
        loss: Returns the loss of the module on a batch of such tensors: :math:`()`, or :math:`(M)` for stacks.
        settings: Training settings; the defaults if None.
        seed: Random seed of the order of the examples; for stacks, a list of :math:`M` seeds.
        validation: Validation data, like ``data``, or a function that returns the validation loss of the module.
        checkpoint: Checkpoint file, written atomically. If it exists, training resumes from it bit for bit.
        checkpoint_every: Number of epochs between checkpoints.
        history: File for one line of JSON per epoch.
        prune: For stacks, called after each validation with the epoch and the validation losses; returns a mask of the
            models to keep. The module must be a :class:`~abelnet.training.stacks.ModelStack`.
        on_epoch: Called after each epoch with its number, from 1, its losses, and the validation losses if any.
        progress: Text of a progress bar, shown on terminals only.
        group: Process group of ``torch.distributed`` whose processes, as those of ``torchrun``, train the module
            together: each takes a part of every batch, so that ``batch_size`` is that of all, and the loss has to be a
            mean over examples. All need the same arguments. Parameters, checkpoint and validation are those of the
            first process, which alone writes files.

    Example:
        >>> import torch
        >>> from abelnet import AbelianGroup, Affine
        >>> group = AbelianGroup(Affine(1, dtype=torch.float64))
        >>> x = torch.linspace(-5, 5, 60, dtype=torch.float64).reshape(20, 3, 1)
        >>> squared = lambda model, batch: (model.reduce(batch[0]) - batch[1]).square().mean()
        >>> settings = Settings(epochs=500, lr=0.05, schedule="cosine")
        >>> train(group, (x, x.sum(1) + 2), squared, settings=settings).loss.item() < 1e-10  # x + y + 1
        True
    """
    check_count("checkpoint_every", checkpoint_every)
    if prune is not None and not isinstance(model, ModelStack):
        raise AbelnetError(f"prune: expected a model that is a ModelStack, got {type(model).__name__}")
    ranks = Ranks(group)
    run = Run(model, data, loss, settings or Settings(), seed, validation, ranks)
    checkpoint = None if checkpoint is None else Path(checkpoint)
    if checkpoint is not None:
        with ranks.copy_of(checkpoint) as found:
            if found is not None:
                run.load(found)
    lines = History(history if ranks.is_first else None, run.epoch)
    with Bar(progress if ranks.is_first else None, run.settings.epochs, run.epoch) as advance:
        while not run.finished:
            run.one_epoch()
            lines.write(run.epoch, *run.losses())
            if prune is not None and run.validation is not None and run.epoch % run.settings.validate_every == 0:
                run.keep(prune(run.epoch, run.validation))
            if checkpoint is not None and ranks.is_first and (run.epoch % checkpoint_every == 0 or run.finished):
                run.save(checkpoint)
            if on_epoch is not None:
                on_epoch(run.epoch, run.loss, run.validation)
            advance(run.loss)
    run.finish()
    if run.settings.patience is not None:
        run.validation = run.best
    return TrainingResult(*run.losses(), run.epoch, run.pruned)
