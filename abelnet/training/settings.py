"""Training settings, and the types of data, losses and validation."""

from __future__ import annotations

__all__ = ["Data", "Loss", "Prune", "Settings", "Validate"]

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from abelnet.checks import check_count, check_number
from abelnet.errors import AbelnetError

Data = tuple[Tensor, ...]
Loss = Callable[[Any, Data], Tensor]
Validate = Callable[[nn.Module], Tensor]
Prune = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class Settings:
    """Training settings. The defaults are the paper's.

    Attributes:
        epochs: Number of passes through the data.
        batch_size: Number of examples per step; all if None.
        lr: Initial learning rate of Adam.
        betas: Decay rates of Adam's running averages.
        weight_decay: L2 penalty added to the gradient.
        decoupled: Whether weight decay is decoupled from the gradient instead, as in AdamW.
        average: Decay of a running average of the parameters, over about :math:`1 / (1 - decay)` steps, which is
            validated and kept in place of the parameters; no average if None.
        schedule: Learning rate schedule: ``"constant"``, or ``"cosine"`` annealing to 0.
        clip_norm: Maximum gradient norm of each model; no clipping if None.
        validate_every: Number of epochs between validations.
        patience: Number of validations without improvement after which training stops and the best parameters are
            restored; if None, all epochs are trained and the last parameters kept.
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
        check_count("epochs", self.epochs)
        check_count("validate_every", self.validate_every)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        if self.patience is not None:
            check_count("patience", self.patience)
        check_number("lr", self.lr, above=0)
        check_number("weight_decay", self.weight_decay, least=0)
        for beta in self.betas:
            check_number("betas", beta, least=0, below=1)
        if self.clip_norm is not None:
            check_number("clip_norm", self.clip_norm, above=0)
        if self.average is not None:
            check_number("average", self.average, above=0, below=1)
        if self.schedule not in ("constant", "cosine"):
            raise AbelnetError(f'schedule: expected "constant" or "cosine", got {self.schedule!r}')
