"""Adam on one flat tensor of parameters: with small models most time is overhead per tensor, not arithmetic."""

from __future__ import annotations

__all__ = ["FlatAdam"]

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.adamw import adamw

from abelnet.training.settings import Settings


class FlatAdam:
    """Adam or AdamW, optionally with a running average of the parameters.

    The parameters are moved into one flat tensor per device and dtype, and become views of it.

    Arguments:
        parameters: Parameters to optimize.
        settings: Learning rate, decay rates, weight decay and average.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], settings: Settings) -> None:
        self._parameters, self._average = list(parameters), settings.average
        self._flat = _flatten(self._parameters)
        # The functional form: constructing torch.optim.Adam imports torch._dynamo, which takes seconds.
        self._update: Callable[..., None] = partial(
            adamw if settings.decoupled else adam,
            beta1=settings.betas[0],
            beta2=settings.betas[1],
            weight_decay=settings.weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
            fused=True,
        )
        self._lr = settings.lr
        self._states = [_initial_state(flat) for flat, _ in self._flat]

    def set_lr(self, lr: float) -> None:
        """Sets the learning rate."""
        self._lr = lr

    @torch.no_grad()
    def step(self) -> None:
        """Performs one optimization step and clears the gradients."""
        for (flat, members), state in zip(self._flat, self._states, strict=True):
            gradient = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in members])
            for p in members:
                p.grad = None
            moments = [state["exp_avg"]], [state["exp_avg_sq"]]
            self._update([flat], [gradient], *moments, [], [state["step"]], lr=self._lr)
            if self._average is not None:
                share = max(1 - self._average, 1 / state["step"].item())
                # In the same state, so that it is saved, restored and pruned with it.
                state.setdefault("average", torch.zeros_like(flat)).lerp_(flat, share)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Replaces the parameters by their averages, if enabled, inside the context."""
        if self._average is None:
            yield
            return
        kept = [flat.clone() for flat, _ in self._flat]
        for (flat, _), state in zip(self._flat, self._states, strict=True):
            flat.copy_(state["average"])
        try:
            yield
        finally:
            for (flat, _), values in zip(self._flat, kept, strict=True):
                flat.copy_(values)

    @contextmanager
    def selecting(self, rows_of: Callable[[Tensor], Tensor]) -> Iterator[None]:
        """Keeps some rows of the state; the caller selects the same rows of the parameters inside the context."""
        for (_, members), state in zip(self._flat, self._states, strict=True):
            for key in state.keys() - {"step"}:
                parts = zip(_split(state[key], members), members, strict=True)
                state[key] = torch.cat([rows_of(part.view_as(p)).reshape(-1) for part, p in parts])
        yield
        self._flat = _flatten(self._parameters)

    def state_dict(self) -> dict[str, Tensor]:
        """Returns the state as tensors."""
        return {f"adam.{key}.{i}": value for i, state in enumerate(self._states) for key, value in state.items()}

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Loads a state; other tensors in the mapping are ignored."""
        keys = ("step", "exp_avg", "exp_avg_sq", *(["average"] if self._average is not None else []))
        self._states = [{key: tensors[f"adam.{key}.{i}"] for key in keys} for i in range(len(self._flat))]


def _initial_state(flat: Tensor) -> dict[str, Tensor]:
    return {
        "step": torch.zeros((), dtype=torch.float32, device=flat.device),
        "exp_avg": torch.zeros_like(flat),
        "exp_avg_sq": torch.zeros_like(flat),
    }


def _flatten(parameters: Sequence[nn.Parameter]) -> list[tuple[Tensor, list[nn.Parameter]]]:
    """Moves parameters of equal device and dtype into one flat tensor, and makes each a view of its part."""
    kinds: dict[tuple[torch.device, torch.dtype], list[nn.Parameter]] = {}
    for p in parameters:
        kinds.setdefault((p.device, p.dtype), []).append(p)
    result = []
    for members in kinds.values():
        flat = torch.cat([p.detach().reshape(-1) for p in members])
        for p, part in zip(members, _split(flat, members), strict=True):
            p.data = part.view_as(p)
        result.append((flat, members))
    return result


def _split(flat: Tensor, members: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return torch.split(flat, [p.numel() for p in members])
