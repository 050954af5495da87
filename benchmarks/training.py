"""Training many small models at once, compared with a plain PyTorch loop that trains them one by one. One thread.

The plain loop has its tensors in memory and no DataLoader: shuffle, slice, forward, loss, backward, `optim.Adam`.
Figures are model-steps per second: for the plain loop the mean over the models, for ours all of them together.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.experiments.synthetic.comparison import MODELS, stack_data
from abelnet.experiments.synthetic.data import make_dataset
from abelnet.nn.baselines import DeepSets
from abelnet.operation import Operation
from abelnet.training.loop import Settings, train
from abelnet.training.tuning import Integer

BATCH = 32


class OrdinaryDeepSets(nn.Module):
    """Straightforward DeepSets."""

    def __init__(self, layers: int, middle: int, hidden: int) -> None:
        super().__init__()
        between = [hidden] * (layers - 1)
        self.inner, self.outer = self._mlp([1, *between, middle]), self._mlp([middle, *between, 1])

    @staticmethod
    def _mlp(widths: list[int]) -> nn.Sequential:
        layers: list[nn.Module] = []
        for a, b in pairwise(widths):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        result: Tensor = self.outer((self.inner(values[..., None]) * mask[..., None]).sum(-2))
        return result[..., 0]


class OrdinaryOperation(nn.Module):
    def __init__(self, operation: Operation) -> None:
        super().__init__()
        self.operation = operation

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        return self.operation.reduce(values[..., None], mask=mask)[..., 0]


def ordinary_seconds(model: nn.Module, data: tuple[Tensor, ...], epochs: int) -> float:
    """Returns the seconds per step."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    values, mask, target = data
    steps = 0
    start = time.perf_counter()
    for _ in range(epochs):
        order = torch.randperm(len(values))
        for low in range(0, len(values), BATCH):
            rows = order[low : low + BATCH]
            optimiser.zero_grad()
            loss = (model(values[rows], mask[rows]) - target[rows]).square().mean()
            loss.backward()
            optimiser.step()
            steps += 1
    return (time.perf_counter() - start) / steps


def together_seconds(stacks: Sequence[tuple[nn.Module, int]], data: tuple[Tensor, ...], epochs: int) -> float:
    """Returns the seconds for one step of every model."""
    total = 0.0
    for stack, models in stacks:
        many = tuple(x.expand(models, *x.shape).contiguous() for x in data)
        start = time.perf_counter()
        loss = lambda model, batch: (model(batch[0], batch[1]) - batch[2]).square().mean(-1)
        train(stack, many, loss, settings=Settings(epochs=epochs), seed=list(range(models)))
        total += time.perf_counter() - start
    return total / (epochs * -(-len(data[0]) // BATCH))


def compare(title: str, kind: str, parameters: list[dict[str, Any]], ordinary: Sequence[nn.Module]) -> None:
    data = tuple(part[0] for part in stack_data([make_dataset("sum", 0, dtype=torch.float32).train]))
    model = MODELS[kind]
    groups: dict[int, list[nn.Module]] = {}
    for seed, one in enumerate(parameters):
        groups.setdefault(model.group(one), []).append(model.build(one, seed))
    for members in groups.values():  # a stack requires the deeper models first
        members.sort(key=lambda one: -sum(1 for _ in one.parameters()))
    stacks = [(model.stack(members), len(members)) for members in groups.values()]
    for one in ordinary[:2]:
        ordinary_seconds(one, data, 1)
    together_seconds(stacks, data, 1)
    ratios, alone, together = [], [], []
    for _ in range(3):
        alone.append(statistics.mean(ordinary_seconds(one, data, 2) for one in ordinary))
        together.append(together_seconds(stacks, data, 6) / len(parameters))
        ratios.append(alone[-1] / together[-1])
    print(
        f"{title:<58} {1 / statistics.median(alone):8.0f} /s  {1 / statistics.median(together):8.0f} /s  "
        f"{statistics.median(ratios):6.1f}x",
        flush=True,
    )


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread{'':36} ordinary      together   ratio")
    for layers, width in ((2, 16), (3, 16), (3, 20)):
        one = {"layers": layers, "middle": width, "hidden": width}
        models = [OrdinaryDeepSets(layers, width, width) for _ in range(8)]
        compare(f"64 DeepSets of {layers} layers, width {width}", "deepsets", [one] * 64, models)
    for kind, number in (("deepsets", 50), ("deepsets", 200), ("agn", 50), ("asn", 50)):
        generator = torch.Generator().manual_seed(0)
        space = MODELS[kind].space
        draws = [
            {
                key: int(torch.randint(r.low, r.high + 1, (1,), generator=generator))
                if isinstance(r, Integer)
                else "numbers"
                for key, r in space.items()
            }
            for _ in range(number)
        ]
        ordinary: list[nn.Module] = []
        for one in draws[:50]:
            built = MODELS[kind].build(one, 0)
            plain = isinstance(built, DeepSets)
            ordinary.append(OrdinaryDeepSets(**one) if plain else OrdinaryOperation(built))  # type: ignore[arg-type]
        compare(f"mixed search of the paper's space, {number} {MODELS[kind].title}", kind, draws, ordinary)


if __name__ == "__main__":
    main()
