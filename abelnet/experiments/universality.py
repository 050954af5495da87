r"""Theorem 1 in practice: learning Abelian groups that are not built from the bijections of this package.

The true operations are :math:`x \circ y = g^{-1}(g(x) + g(y))` with a random smooth diffeomorphism :math:`g`: rotations
and bumps :math:`x + u \tanh(w \cdot x + b)`, inverted by bisection. Coupling networks are trained on multisets of 2 to
4 elements and tested on up to 50, compared with DeepSets.

The theorem is about compact sets, so elements of all training and test multisets have norms from 0.1 to 10, and true
results have norms of at most 15: the experiment measures size generalization, not extrapolation in range.
"""

from __future__ import annotations

__all__ = [
    "PlanarDiffeomorphism",
    "UniversalityRow",
    "draw_elements",
    "random_group",
    "read_universality",
    "universality",
    "write_universality",
]

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from abelnet.bijections import Bijection, glow
from abelnet.checks import check_count, check_values
from abelnet.errors import AbelnetError
from abelnet.files import read_json, write_json
from abelnet.multisets import Multisets
from abelnet.nn.baselines import DeepSets
from abelnet.operation import AbelianGroup
from abelnet.training.loop import Settings, train

SMALL_SIZES = (2, 3, 4)
SIZES = (2, 3, 4, 10, 20, 30, 40, 50)
TEST_SETS = 2000  # of each size
# Number of couplings and hidden width of the networks, from small to large.
NETWORKS = ((1, 8), (2, 16), (4, 32), (6, 64))
# Norms of elements and of results: the compact set to which the theorem is applied.
_SHORTEST, _LONGEST, _RADIUS = 0.1, 10.0, 15.0


class PlanarDiffeomorphism(Bijection):
    r"""Random smooth diffeomorphism of :math:`\mathbb{R}^d`, for generating target operations.

    .. math:: g = p_k \circ \dots \circ p_1 - o, \qquad p_i(x) = Q_i \, (x + u_i \tanh(w_i \cdot x + b_i))

    Each :math:`p_i` is injective since :math:`w_i \cdot u_i > -1`, and :math:`Q_i` is a rotation. Its inverse requires
    only :math:`w_i \cdot x`, the root of an increasing function, found by bisection to the last bit.
    The offset :math:`o` makes the mean of :math:`g` over the elements zero, so results of large multisets have the same
    center as those of small ones.

    References:
        Rezende & Mohamed, Variational inference with normalizing flows, ICML 2015.

    Arguments:
        dim: Number of dimensions :math:`d`.
        bumps: Number of maps :math:`k`.
        seed: Random seed.

    Example:
        >>> diffeomorphism = PlanarDiffeomorphism(2, seed=0)
        >>> x = torch.randn(5, 2, dtype=torch.float64)
        >>> torch.allclose(diffeomorphism.inverse(diffeomorphism(x)), x, atol=1e-12)
        True
    """

    def __init__(self, dim: int, bumps: int = 4, *, seed: int = 0) -> None:
        super().__init__(dim)
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        bumps = check_count("bumps", bumps)
        direction = normal(bumps, dim)
        w = direction / direction.norm(dim=1, keepdim=True)
        u = normal(bumps, dim)
        # Along w a bump scales lengths by 0.4 to 2.5.
        along = -0.6 + 2.1 * torch.rand(bumps, 1, generator=generator, dtype=torch.float64)
        u = u - (u * w).sum(1, keepdim=True) * w + along * w
        self.w: Tensor
        self.u: Tensor
        self.b: Tensor
        self.q: Tensor
        self.offset: Tensor
        self.register_buffer("w", w)
        self.register_buffer("u", u)
        self.register_buffer("b", 2 * torch.rand(bumps, generator=generator, dtype=torch.float64) - 1)
        self.register_buffer("q", torch.linalg.qr(normal(bumps, dim, dim))[0])
        self.register_buffer("offset", torch.zeros(dim, dtype=torch.float64))
        self.offset = self.forward(draw_elements(100_000, dim, generator)).mean(0)

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        for w, u, b, q in zip(self.w, self.u, self.b, self.q, strict=True):
            x = (x + u * torch.tanh(x @ w + b)[..., None]) @ q.t()
        return x - self.offset

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        y = y + self.offset
        for w, u, b, q in zip(*(part.flip(0) for part in (self.w, self.u, self.b, self.q)), strict=True):
            y = y @ q
            y = y - u * torch.tanh(_solve(y @ w, float(w @ u), float(b)) + b)[..., None]
        return y

    def log_abs_det(self, x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[:-1])
        for w, u, b, q in zip(self.w, self.u, self.b, self.q, strict=True):
            height = torch.tanh(x @ w + b)
            total = total + torch.log1p((w @ u) * (1 - height**2))
            x = (x + u * height[..., None]) @ q.t()
        return total


def draw_elements(count: int, dim: int, generator: torch.Generator) -> Tensor:
    """Draws elements :math:`(count, d)` with uniform directions and log-uniform norms from 0.1 to 10."""
    direction = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    part = torch.rand(count, 1, generator=generator, dtype=torch.float64)
    length = _SHORTEST * (_LONGEST / _SHORTEST) ** part
    return length * torch.nn.functional.normalize(direction)


def _solve(target: Tensor, along: float, b: float) -> Tensor:
    """Solves a + along tanh(a + b) = target for a, which is within |along| of the target, by bisection."""
    low, high = target - abs(along), target + abs(along)
    for _ in range(64):
        middle = (low + high) / 2
        above = middle + along * torch.tanh(middle + b) > target
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return (low + high) / 2


def random_group(dim: int, seed: int) -> AbelianGroup:
    """Returns an Abelian group on :math:`\\mathbb{R}^d` defined by a random diffeomorphism.

    Example:
        >>> random_group(3, seed=0).identity().shape
        torch.Size([3])
    """
    return AbelianGroup(PlanarDiffeomorphism(dim, seed=seed))


@dataclass(frozen=True)
class UniversalityRow:
    """Result of a model on one true operation.

    Attributes:
        dim: Number of dimensions.
        seed: Random seed of the operation and the model.
        model: Name of the model.
        parameters: Number of trainable parameters.
        sizes: Multiset sizes of the test data.
        rmse: Root mean squared distance to the true result, for each size.
    """

    dim: int
    seed: int
    model: str
    parameters: int
    sizes: list[int]
    rmse: list[float]


def universality(
    dims: Sequence[int] = (2, 3),
    *,
    networks: Sequence[tuple[int, int]] = NETWORKS,
    seeds: Sequence[int] = (0,),
    epochs: int = 60,
    sets: int = 8192,
    on_row: Callable[[UniversalityRow], None] | None = None,
) -> list[UniversalityRow]:
    """Learns random groups with coupling networks of increasing size, and with DeepSets.

    Arguments:
        dims: Numbers of dimensions.
        networks: Number of couplings and hidden width of each network.
        seeds: Random seeds; one true operation each.
        epochs: Number of training epochs.
        sets: Number of training multisets, of 2 to 4 elements.
        on_row: Called with each completed row.
    """
    if not dims or min(dims) < 2:
        raise AbelnetError(f"dims: expected 2 or more each, got {list(dims)}")
    rows = []
    for dim in dims:
        for seed in seeds:
            truth = random_group(dim, seed)
            generator = torch.Generator().manual_seed(seed + 1)
            data = _draw(truth, sets, SMALL_SIZES, generator)
            tests = [_draw(truth, TEST_SETS, (size,), generator) for size in SIZES]
            models: list[tuple[str, nn.Module]] = [
                (f"AGN {layers} × {hidden}", _Fold(AbelianGroup(glow(dim, layers, hidden, gain=0.1, seed=seed))))
                for layers, hidden in networks
            ]
            models.append(("DeepSets", DeepSets(dim, 4, 32, 64, seed=seed)))
            for name, model in models:
                _train(model, data, epochs, seed)
                parameters = sum(p.numel() for p in model.parameters())
                row = UniversalityRow(dim, seed, name, parameters, list(SIZES), _errors(model, tests))
                rows.append(row)
                if on_row is not None:
                    on_row(row)
    return rows


def write_universality(rows: Sequence[UniversalityRow], path: str | Path) -> None:
    """Writes rows as JSON.

    Example:
        >>> import tempfile
        >>> rows = [UniversalityRow(2, 0, "DeepSets", 100, [2, 50], [0.5, 2.0])]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_universality(rows, Path(folder, "rows.json"))
        ...     read_universality(Path(folder, "rows.json")) == rows
        True
    """
    write_json(Path(path), [asdict(row) for row in rows])


def read_universality(path: str | Path) -> list[UniversalityRow]:
    """Reads what :func:`write_universality` wrote."""
    return [UniversalityRow(**row) for row in read_json(Path(path))]


class _Fold(nn.Module):
    """Aggregation of padded multisets by an operation."""

    def __init__(self, operation: AbelianGroup) -> None:
        super().__init__()
        self.operation = operation

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        # In batches this small, mapping the padding costs less than removing it.
        latent = torch.where(mask[..., None], self.operation.bijection(values), 0).sum(-2)
        result: Tensor = self.operation.bijection.inverse(latent)
        return result


def _train(model: nn.Module, data: Multisets, epochs: int, seed: int) -> None:
    def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        values, mask, target = batch
        errors: Tensor = (model(values, mask) - target).square().sum(-1)
        return errors.mean()

    settings = Settings(epochs=epochs, batch_size=128, lr=4e-3, schedule="cosine", clip_norm=10.0)
    train(model, (*data.padded(), data.targets), loss, settings=settings, seed=seed)


@torch.no_grad()
def _errors(model: nn.Module, tests: Sequence[Multisets]) -> list[float]:
    return [float((model(*data.padded()) - data.targets).square().sum(-1).mean().sqrt()) for data in tests]


@torch.no_grad()
def _draw(truth: AbelianGroup, count: int, sizes: Sequence[int], generator: torch.Generator) -> Multisets:
    """Draws multisets whose true result lies in the ball of the experiment, by rejection."""
    width = max(sizes)
    kept: list[Multisets] = []
    while sum(map(len, kept)) < count:
        drawn = torch.tensor(sizes)[torch.randint(len(sizes), (count,), generator=generator)]
        mask = torch.arange(width) < drawn[:, None]
        values = draw_elements(count * width, truth.dim, generator).reshape(count, width, truth.dim)
        targets = truth.reduce(values, mask=mask)
        inside = targets.norm(dim=1) <= _RADIUS
        values, mask, targets = values[inside].float(), mask[inside], targets[inside].float()
        kept.append(Multisets(values, truth.dim, mask=mask, targets=targets))
    return Multisets.join(kept).take(torch.arange(count))
