r"""The paper's three models without a search: all operations and seeds of a model train as one stack, in a minute.

The settings of :data:`CHOSEN` were chosen once, of 18 drawn at random from the search space of each model, by the error
on validation multisets (2 to 4 numbers) after 500 epochs, with data and seeds that are used nowhere else. Of ASN, which
depends on its seed most, the best four were trained again with three seeds and 700 epochs, and the best median was
chosen; of those within a tenth of it, the smallest network.
"""

from __future__ import annotations

__all__ = ["CHOSEN", "Trained", "train_chosen"]

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from abelnet.experiments.running import derived_seed
from abelnet.experiments.synthetic.comparison import (
    MODELS,
    SIZES,
    Parameters,
    curve_on_grid,
    rmse_in_float32,
    rmse_of_stack,
    squared_error,
    stack_data,
)
from abelnet.experiments.synthetic.data import OPERATIONS, draw, make_dataset
from abelnet.training.loop import Settings, train


def _widths(layers: int, middle: int, hidden: int) -> Parameters:
    return {"layers": layers, "middle": middle, "hidden": hidden}


def _lines(groups: int, units: int, start: str) -> Parameters:
    return {"groups": groups, "units": units, "start": start}


CHOSEN: dict[str, dict[str, Parameters]] = {
    "deepsets": {
        "sum": _widths(2, 32, 24),
        "sum_plus_one": _widths(2, 16, 16),
        "cbrt": _widths(6, 32, 16),
        "product": _widths(4, 16, 24),
        "shifted_product": _widths(6, 16, 24),
    },
    "agn": {
        "sum": _lines(4, 16, "law"),
        "sum_plus_one": _lines(12, 24, "law"),
        "cbrt": _lines(24, 4, "random"),
        "product": _lines(16, 4, "random"),
        "shifted_product": _lines(16, 4, "random"),
    },
    "asn": {
        "sum": _lines(16, 4, "law"),
        "sum_plus_one": _lines(12, 24, "law"),
        "cbrt": _lines(12, 24, "law"),
        "product": _lines(4, 8, "numbers"),
        "shifted_product": _lines(4, 16, "law"),
    },
}
"""Hyperparameters of each model of :data:`~abelnet.experiments.synthetic.comparison.MODELS` for each operation."""


@dataclass(frozen=True)
class Trained:
    """A model of one operation that was trained with several seeds.

    Attributes:
        operation: Key of the operation.
        model: Key of the model.
        parameters: Hyperparameters.
        small: RMSE of each seed on test multisets of 2 to 4 numbers; None if it diverged.
        large: RMSE of each seed on test multisets of 10 to 12 numbers.
        by_size: For each size the RMSE of each seed, and the root mean square of the results.
        curve: Learned φ of the first seed over [−5, 5], if there is one.
    """

    operation: str
    model: str
    parameters: dict[str, Any]
    small: list[float | None]
    large: list[float | None]
    by_size: list[dict[str, Any]]
    curve: list[float] | None


def train_chosen(
    model: str,
    *,
    operations: tuple[str, ...] = tuple(OPERATIONS),
    seeds: int = 2,
    seed: int = 0,
    epochs: int = 1000,
    on_epoch: Callable[[], None] | None = None,
) -> tuple[list[Trained], dict[str, nn.Module]]:
    """Trains a model on all operations and seeds at once, on fresh data for each seed.

    Arguments:
        model: Key of :data:`~abelnet.experiments.synthetic.comparison.MODELS`.
        operations: Keys of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.
        seeds: Number of seeds.
        seed: Random seed of all of them.
        epochs: Number of training epochs.
        on_epoch: Called after each epoch.

    Returns:
        Results of each operation, and its model of the first seed.

    Example:
        >>> rows, models = train_chosen("agn", operations=("sum",), epochs=1)
        >>> rows[0].operation, len(rows[0].large), list(models)
        ('sum', 2, ['sum'])
    """
    kind = MODELS[model]
    # Stacks of DeepSets have their deeper models first.
    ordered = sorted(operations, key=lambda name: -CHOSEN[model][name].get("layers", 0))
    members = [(name, i + 1) for name in ordered for i in range(seeds)]
    fresh = [derived_seed(seed, "fresh", i) for _, i in members]
    models = [kind.build(CHOSEN[model][name], one) for (name, _), one in zip(members, fresh, strict=True)]
    data = [make_dataset(name, derived_seed(seed, "data", i), dtype=torch.float32) for name, i in members]
    stack = kind.stack(models)
    train(
        stack,
        stack_data([one.train for one in data]),
        squared_error,
        settings=Settings(epochs=epochs),
        seed=fresh,
        on_epoch=None if on_epoch is None else lambda *_: on_epoch(),
    )
    stack.unstack(models)
    small, large = rmse_of_stack(stack, [one.small for one in data]), rmse_of_stack(stack, [one.large for one in data])
    errors: dict[str, list[dict[str, Any]]] = {name: [] for name in operations}
    generators = [torch.Generator().manual_seed(derived_seed(seed, "sizes", i)) for _, i in members]
    for size in SIZES:
        drawn = [
            draw(OPERATIONS[name], 100, (size,), generator, torch.float64)
            for (name, _), generator in zip(members, generators, strict=True)
        ]
        for name in operations:
            mine = [i for i, (other, _) in enumerate(members) if other == name]
            alone = kind.stack([models[i] for i in mine])
            scale = torch.cat([drawn[i].targets for i in mine]).square().mean().sqrt().item()
            errors[name].append(
                {"size": size, "rmse": rmse_in_float32(alone, [drawn[i] for i in mine]), "scale": scale}
            )
    first = {name: models[members.index((name, 1))] for name in operations}
    rows = [
        Trained(
            name,
            model,
            dict(CHOSEN[model][name]),
            [small[i] for i, (other, _) in enumerate(members) if other == name],
            [large[i] for i, (other, _) in enumerate(members) if other == name],
            errors[name],
            curve_on_grid(first[name]),
        )
        for name in operations
    ]
    return rows, first
