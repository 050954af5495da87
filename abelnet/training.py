"""The training loop."""

from __future__ import annotations

__all__ = ["fit"]

from collections.abc import Callable

import torch
from torch import Tensor, nn


def fit(
    module: nn.Module,
    loss: Callable[[], Tensor],
    *,
    steps: int = 1000,
    lr: float = 1e-2,
    on_step: Callable[[int, float], None] | None = None,
) -> float:
    """Minimises a loss over all parameters of a module, by Adam with a cosine decay of the learning rate.

    Arguments:
        module: The module to train, in place.
        loss: Gives the loss with the current parameters.
        steps: Number of steps.
        lr: Learning rate at the start.
        on_step: Called with the number of each step and its loss.

    Returns:
        The last loss.

    Example:
        >>> from abelnet import AbelianGroup, Affine
        >>> group = AbelianGroup(Affine(1, dtype=torch.float64))
        >>> x = torch.linspace(-5, 5, 60, dtype=torch.float64).reshape(20, 3, 1)
        >>> fit(group, lambda: (group.reduce(x) - x.sum(1) - 2).square().mean()) < 1e-10  # x + y + 1
        True
    """
    optimiser = torch.optim.Adam(module.parameters(), lr=lr, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    value = float("nan")
    for step in range(steps):
        optimiser.zero_grad()
        current = loss()
        current.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        value = current.item()
        if on_step is not None:
            on_step(step, value)
    return value
