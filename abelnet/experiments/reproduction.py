"""Both experiments of the paper in minutes, on bundled data."""

from __future__ import annotations

__all__ = ["Reproduction", "reproduce"]

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from abelnet.experiments.analogies.experiment import AnalogyExperiment, run_analogies
from abelnet.experiments.synthetic.data import OPERATIONS, Learned, learn

_MODELS = ("wv", "wv_mlp", "wv_agn", "anchored")


@dataclass(frozen=True)
class Reproduction:
    """Results of both experiments.

    Attributes:
        seed: Random seed.
        epochs: Number of training epochs of each analogy model.
        learned: Laws learned from multisets, by key of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.
        analogies: Results of :func:`~abelnet.experiments.analogies.experiment.run_analogies`.
    """

    seed: int
    epochs: int
    learned: dict[str, Learned]
    analogies: dict[str, Any]


def reproduce(
    *,
    seed: int = 0,
    epochs: int = 10,
    jobs: int = 1,
    on_unit: Callable[[str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Reproduction:
    """Learns the paper's five operations from multisets, then trains and tests its analogy models.

    Arguments:
        seed: Random seed.
        epochs: Number of training epochs of each analogy model.
        jobs: Number of single-threaded processes for the analogy models.
        on_unit: Called with a description of each completed unit.
        on_progress: Called with the completed fraction of each experiment in turn, from 0 to 1.
    """
    say = on_unit or (lambda _: None)
    show = on_progress or (lambda _: None)
    learned = {}
    for name, operation in OPERATIONS.items():
        learned[name] = learn(name, seed=seed)
        say(f"law of {operation.formula}")
        show(len(learned) / len(OPERATIONS))
    experiment = AnalogyExperiment(models=_MODELS, seeds=1, seed=seed, epochs=epochs)
    with tempfile.TemporaryDirectory() as folder:
        analogies = run_analogies(experiment, folder, jobs=jobs, on_unit=on_unit, on_progress=on_progress)
    return Reproduction(seed, epochs, learned, analogies)
