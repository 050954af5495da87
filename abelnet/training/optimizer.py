"""Adam on one flat tensor of parameters: with small models most time is overhead per tensor, not arithmetic."""

from __future__ import annotations

__all__ = ["FlatAdam"]

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

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
        kind = torch.optim.AdamW if settings.decoupled else torch.optim.Adam
        self._adam = kind(
            [flat for flat, _ in self._flat],
            lr=settings.lr,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
            fused=True,
        )

    def set_lr(self, lr: float) -> None:
        """Sets the learning rate."""
        self._adam.param_groups[0]["lr"] = lr

    def step(self) -> None:
        """Performs one optimization step and clears the gradients."""
        for flat, members in self._flat:
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in members]
            flat.grad = torch.cat([gradient.reshape(-1) for gradient in gradients])
            for p in members:
                p.grad = None
        self._adam.step()
        if self._average is not None:
            with torch.no_grad():
                for flat, _ in self._flat:
                    # In Adam's own state, so that it is saved, restored and pruned with it.
                    state = self._adam.state[flat]
                    share = max(1 - self._average, 1 / state["step"].item())
                    state.setdefault("average", torch.zeros_like(flat)).lerp_(flat, share)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Replaces the parameters by their averages, if enabled, inside the context."""
        if self._average is None:
            yield
            return
        kept = [flat.detach().clone() for flat, _ in self._flat]
        for flat, _ in self._flat:
            flat.detach().copy_(self._adam.state[flat]["average"])
        try:
            yield
        finally:
            for (flat, _), values in zip(self._flat, kept, strict=True):
                flat.detach().copy_(values)

    @contextmanager
    def selecting(self, rows_of: Callable[[Tensor], Tensor]) -> Iterator[None]:
        """Keeps some rows of the state; the caller selects the same rows of the parameters inside the context."""
        states = []
        for flat, members in self._flat:
            state = self._adam.state.pop(flat, {})
            for key in state.keys() - {"step"}:
                parts = zip(_split(state[key], members), members, strict=True)
                state[key] = torch.cat([rows_of(part.view_as(p)).reshape(-1) for part, p in parts])
            states.append(state)
        yield
        self._flat = _flatten(self._parameters)
        self._adam.param_groups[0]["params"] = [flat for flat, _ in self._flat]
        self._adam.state.update({flat: state for (flat, _), state in zip(self._flat, states, strict=True)})

    def state_dict(self) -> dict[str, Tensor]:
        """Returns the state as tensors."""
        return {
            f"adam.{key}.{i}": value
            for i, (flat, _) in enumerate(self._flat)
            for key, value in self._adam.state[flat].items()
        }

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Loads a state; other tensors in the mapping are ignored."""
        keys = ("step", "exp_avg", "exp_avg_sq", *(["average"] if self._average is not None else []))
        for i, (flat, _) in enumerate(self._flat):
            self._adam.state[flat] = {key: tensors[f"adam.{key}.{i}"] for key in keys}


def _flatten(parameters: Sequence[nn.Parameter]) -> list[tuple[nn.Parameter, list[nn.Parameter]]]:
    """Moves parameters of equal device and dtype into one flat tensor, and makes each a view of its part."""
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
