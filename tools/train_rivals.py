"""Trains the networks of the page's tab *Multisets*, and writes abelnet/explore/rivals.safetensors.

    python tools/train_rivals.py

Each network is trained on the paper's data, 500 multisets of 2 to 4 numbers, with three seeds, of which the one with
the smallest validation error is kept. The file is written after each operation, and those that it has are skipped.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from abelnet.experiments.synthetic.comparison import squared_error, stack_data
from abelnet.experiments.synthetic.data import OPERATIONS, make_dataset
from abelnet.explore.multisets import FILE, MODELS, build, results
from abelnet.nn.stacks import DeepSetsStack
from abelnet.training.loop import Settings, train
from abelnet.training.stacks import OperationStack

ROOT = Path(__file__).parent.parent
SEEDS = (1, 2, 3)
SETTINGS = Settings(epochs=300, batch_size=50, lr=3e-3, schedule="cosine")
# Parameters of curves are few, and their steps may be larger.
CURVES = Settings(epochs=300, batch_size=50, lr=1e-2, schedule="cosine")
STACKS = {"network": (OperationStack, CURVES), "deepsets": (DeepSetsStack, SETTINGS)}


def fit(name: str, operation: str) -> nn.Module:
    """Returns the best of several networks."""
    data = make_dataset(operation, 0, dtype=torch.float32)
    models = [build(name, operation, seed) for seed in SEEDS]
    if name in STACKS:
        kind, settings = STACKS[name]
        stack = kind(models)
        train(stack, stack_data([data.train] * len(models)), squared_error, settings=settings, seed=list(SEEDS))
        stack.unstack(models)
    else:
        values, mask = data.train.padded(int(data.train.sizes.amax()))

        def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
            found: Tensor = model(batch[0], mask=batch[1])[:, 0]
            return (found - batch[2]).square().mean()

        for model, seed in zip(models, SEEDS, strict=True):
            train(model, (values, mask, data.train.targets), loss, settings=SETTINGS, seed=seed)
    errors = [float((results(model, data.validation) - data.validation.targets).square().mean()) for model in models]
    print(f"{operation} {name}: validation RMSE {min(errors) ** 0.5:.3g}", flush=True)
    return models[errors.index(min(errors))]


def main() -> None:
    path = ROOT / "abelnet" / "explore" / FILE
    tensors = load_file(path) if path.exists() else {}
    for operation in OPERATIONS:
        if any(key.startswith(f"{operation}.") for key in tensors):
            continue
        for name in MODELS:
            own = fit(name, operation).state_dict()
            tensors |= {f"{operation}.{name}.{key}": tensor.contiguous() for key, tensor in own.items()}
        save_file(tensors, path)
    print(path)


if __name__ == "__main__":
    main()
