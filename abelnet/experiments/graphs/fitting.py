"""Training of message-passing networks: Adam with clipped gradients, and a cosine schedule in the second half."""

from __future__ import annotations

__all__ = ["fit", "relative_error"]

import math
from collections.abc import Callable, Sequence

import torch
from torch import nn

from abelnet.experiments.graphs.data import Graphs

GATE_RATE = 0.03
"""Learning rate of gates, whose parameters are named ``logits``."""

_LARGEST_GRADIENT = 1.0
_TELL_EVERY = 100


def fit(
    model: nn.Module,
    batches: Sequence[Graphs],
    *,
    steps: int,
    lr: float,
    robust: bool,
    anneal: Callable[[float, float | None], None] | None = None,
    tell: Callable[[int], None] | None = None,
) -> int:
    r"""Trains a model on batches of graphs, in turn.

    The loss is the squared error in units of the standard deviation of all results, or in the first half
    :math:`\log(1 + \mathrm{error}^2)` if it is robust. Steps with non-finite gradients are skipped.

    Arguments:
        model: The model, called with a batch.
        batches: Training graphs.
        steps: Number of steps.
        lr: Learning rate, constant in the first half.
        robust: Whether the loss of the first half is robust.
        anneal: Called before each step with the progress of training from 0 to 1 and the last loss, at the end with 1.
        tell: Called with the number of steps since the last call.

    Returns:
        The number of steps skipped.
    """
    named = list(model.named_parameters())
    gates = [parameter for name, parameter in named if name.endswith("logits")]
    others = [parameter for name, parameter in named if not name.endswith("logits")]
    groups = [(others, lr), (gates, GATE_RATE)]
    rates = [rate for parameters, rate in groups if parameters]
    if not rates:
        return 0
    optimizer = torch.optim.Adam([{"params": part, "lr": rate} for part, rate in groups if part], fused=True)
    spread = torch.cat([graphs.results for graphs in batches]).std()
    half, skipped = steps // 2, 0
    last: float | None = None
    model.train()
    for step in range(steps):
        if tell is not None and step % _TELL_EVERY == 0 and step > 0:
            tell(_TELL_EVERY)
        if anneal is not None:
            anneal(step / steps, last)
        graphs = batches[step % len(batches)]
        error = ((model(graphs) - graphs.results) / spread).square()
        loss = torch.log1p(error).mean() if robust and step < half else error.mean()
        if not loss.requires_grad:  # the law that is left, such as the minimum, has no parameters
            break
        last = loss.item()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_([parameter for _, parameter in named], _LARGEST_GRADIENT)
        if not norm.isfinite():
            skipped += 1
            continue
        if step >= half:
            factor = 0.5 * (1 + math.cos(math.pi * (step - half) / (steps - half)))
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
        optimizer.step()
    if anneal is not None:
        anneal(1.0, None)
    return skipped


@torch.no_grad()
def relative_error(model: nn.Module, graphs: Graphs, spread: float) -> float | None:
    """Returns the RMSE of a model on graphs in units of ``spread``; None if it is not finite."""
    model.eval()
    error = ((model(graphs) - graphs.results).double().square().mean().sqrt() / spread).item()
    return error if math.isfinite(error) else None
