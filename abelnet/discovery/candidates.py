"""Laws that are tried: each with its error on held-out examples; and curves trained on the results themselves."""

from __future__ import annotations

__all__ = ["Candidate", "fixed", "polished", "train_abelian_net"]

import copy
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from abelnet.bijections import Affine, Chain, Generator, SinhArcsinh
from abelnet.discovery.families import Entry
from abelnet.laws import Law, Polynomial
from abelnet.multisets import Multisets
from abelnet.operation import AbelianNet, Operation
from abelnet.training.loop import Settings, train
from abelnet.training.stacks import fold_side_by_side


@dataclass
class Candidate:
    """A law that was tried, with its error on the held-out examples."""

    title: str
    complexity: int
    operation: Operation
    entry: Entry | None = None
    errors: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def mse(self) -> float:
        """Mean squared error on the held-out examples."""
        return float(self.errors.mean())

    @property
    def rmse(self) -> float:
        """Its root."""
        return math.sqrt(self.mse)

    def judge(self, examples: Multisets) -> Candidate:
        """Takes down the squared errors on these examples."""
        self.errors = (
            self.entry.squared_errors(examples) if self.entry is not None else _squared_errors(self.operation, examples)
        )
        return self


def fixed(law: Law) -> Candidate:
    """A law over numbers as they are: nothing to learn."""
    return Candidate(law.name.lower(), 0, Operation(Generator(1, "affine", dtype=torch.float64), law))


def polished(candidate: Candidate, examples: Multisets) -> Candidate:
    """The same trained further on the results themselves, by L-BFGS."""
    operation = copy.deepcopy(candidate.operation)
    parameters = [p for p in operation.parameters() if p.requires_grad]
    optimiser = torch.optim.LBFGS(
        parameters,
        max_iter=60,
        tolerance_grad=1e-16,
        tolerance_change=1e-18,
        history_size=20,
        line_search_fn="strong_wolfe",
    )
    scale = float(examples.targets.var())

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = (_fold(operation, examples) - examples.targets).square().mean() / scale
        if loss.requires_grad and bool(loss.isfinite()):
            loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return Candidate(f"{candidate.title}, trained", candidate.complexity + 1, operation)


class _NetStack(nn.Module):
    """Networks of one dimension side by side."""

    def __init__(self, net: AbelianNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        return fold_side_by_side(self.net.bijection, self.net.law, values, mask)


def train_abelian_net(fitted: Multisets, held_out: Multisets, *, seed: int = 0, epochs: int = 400) -> Candidate:
    """Trains :class:`~abelnet.AbelianNet` from several starts at once, with either sign of γ, and keeps the best.

    Values and results are divided by their size; the loss grows as a logarithm far out, so that heavy tails do not
    drown the rest; the best is chosen on the held-out examples.

    Arguments:
        fitted: Examples to train on.
        held_out: Examples to choose by.
        seed: Fixes the starts.
        epochs: Number of steps, each on all examples.
    """
    size = float(fitted.values.abs().median()) or 1.0
    gammas = torch.tensor([0.0, 0.3, -0.3, 1.0, -1.0, 0.05, -0.05, 0.0], dtype=torch.float64)
    count = len(gammas)
    bent = SinhArcsinh(count, dtype=torch.float64)
    net = AbelianNet(Chain(Affine(count, dtype=torch.float64), bent, Affine(count, dtype=torch.float64)), gammas)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(seed)
        bent.log_tail.uniform_(-0.7, 0.7, generator=generator)
    spread = float((fitted.targets / size).std()) or 1.0

    def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        residual = (model(batch[0], batch[1]) - batch[2]) / (0.1 * spread)
        return torch.log1p(residual.square()).mean(-1)

    def side_by_side(examples: Multisets) -> tuple[Tensor, ...]:
        values, mask = examples.padded()
        parts = (values[..., 0] / size, mask, examples.targets / size)
        return tuple(part.expand(count, *part.shape).contiguous() for part in parts)

    settings = Settings(epochs=epochs, batch_size=None, lr=0.03, schedule="cosine", validate_every=epochs)
    result = train(
        _NetStack(net),
        side_by_side(fitted),
        loss,
        settings=settings,
        seed=[seed] * count,
        validation=side_by_side(held_out),
    )
    assert result.validation is not None
    best = int(result.validation.nan_to_num(math.inf).argmin())
    return Candidate("trained AbelianNet", 30, _one_of(net, best, size))


@torch.no_grad()
def _one_of(net: AbelianNet, i: int, size: float) -> Operation:
    """The network of one dimension, on numbers as they come."""
    scale, one = Affine(1, dtype=torch.float64), _net_chain()
    scale.log_scale.fill_(-math.log(size))
    for target, source in zip(one.parameters(), net.bijection.parameters(), strict=True):
        target.copy_(source[i : i + 1])
    assert isinstance(net.law, Polynomial)
    return AbelianNet(Chain(scale, *one), float(net.law.gamma[i]))


def _net_chain() -> Chain:
    return Chain(Affine(1, dtype=torch.float64), SinhArcsinh(1, dtype=torch.float64), Affine(1, dtype=torch.float64))


def _fold(operation: Operation, examples: Multisets) -> Tensor:
    return operation.reduce(examples)[:, 0]


@torch.no_grad()
def _squared_errors(operation: Operation, examples: Multisets) -> Tensor:
    return (_fold(operation, examples) - examples.targets).square().nan_to_num(math.inf)
