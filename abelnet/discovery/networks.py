"""Small networks as candidate laws: many initial values, trained in one stack."""

from __future__ import annotations

__all__ = ["train_abelian_net"]

import math

import torch
from torch import Tensor, nn

from abelnet.bijections import Affine, Chain, SinhArcsinh
from abelnet.discovery.candidates import NETWORK, Trained
from abelnet.laws import Polynomial
from abelnet.multisets import Multisets
from abelnet.operation import AbelianNet, Operation
from abelnet.training.loop import Settings, train
from abelnet.training.stacks import fold_side_by_side

# Networks are trained on padded sets. Sets of more than this many times the mean size are left out of that training, so
# that padding takes at most as many cells for each element; they count in every error.
_PADDING = 8


class _NetStack(nn.Module):
    """Stack of one-dimensional networks, each a dimension of one network."""

    def __init__(self, net: AbelianNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        return fold_side_by_side(self.net.bijection, self.net.law, values, mask)


def train_abelian_net(fitted: Multisets, held_out: Multisets, *, seed: int = 0, epochs: int = 400) -> Trained:
    """Trains :class:`~abelnet.AbelianNet` from several initial values in one stack and returns the best.

    The initial values have either sign of γ. Values and results are divided by the median magnitude; the loss is
    logarithmic for large errors, so that heavy tails do not dominate; the best is chosen on the held-out examples.

    Arguments:
        fitted: Examples to train on.
        held_out: Examples to choose the best network on.
        seed: Random seed of the initial values.
        epochs: Number of full-batch steps.
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
        examples = _without_giants(examples)
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
    return Trained("trained AbelianNet", _one_of(net, best, size), NETWORK)


@torch.no_grad()
def _one_of(net: AbelianNet, i: int, size: float) -> Operation:
    """Returns the network of one dimension of the stack, on unscaled values."""
    scale, one = Affine(1, dtype=torch.float64), _net_chain()
    scale.log_scale.fill_(-math.log(size))
    for target, source in zip(one.parameters(), net.bijection.parameters(), strict=True):
        target.copy_(source[i : i + 1])
    assert isinstance(net.law, Polynomial)
    return AbelianNet(Chain(scale, *one), float(net.law.gamma[i]))


def _without_giants(examples: Multisets) -> Multisets:
    return examples.take(examples.sizes <= _PADDING * examples.sizes.double().mean())


def _net_chain() -> Chain:
    return Chain(Affine(1, dtype=torch.float64), SinhArcsinh(1, dtype=torch.float64), Affine(1, dtype=torch.float64))
