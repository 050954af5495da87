r"""Set experiment, complete: aggregations in set models of equal size, at equal budgets.

Models are trained on sets of few points, and tested on such sets and on whole ones; multiple-instance data are
cross-validated. Each pair of a task and an aggregation is a unit of work. Each run selects its learning rate and weight
decay on its own validation sets: those of a fold are test sets of others. Each trained model has a file of its own in
the output folder, so an interrupted run resumes.
"""

from __future__ import annotations

__all__ = ["Experiment", "run"]

import importlib
import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.checks import check_count
from abelnet.errors import AbelnetError, needs_extra
from abelnet.experiments.running import Tell, claim_folder, derived_seed, run_units, write_results
from abelnet.experiments.sets.data import TASKS, Sets, Task, draw_points
from abelnet.experiments.sets.models import AGGREGATIONS, check_installed, count_parameters, make_model
from abelnet.files import read_json, write_json
from abelnet.nn import SetModel
from abelnet.training import Settings, train

# Sets to test at once.
_TEST_BATCH = 256
# Sets are few: of each, points are drawn this many times to test a model.
_DRAWS = 5

_ACCURACY = float | int | None
_RUN = {
    "run": int,
    "lr": float | int,
    "weight_decay": float | int,
    "parameters": int,
    "validation": _ACCURACY,
    "accuracies": dict,
    "tested": int,
    "seconds": float | int,
}
_PART = {"task": str, "model": str, "runs": [_RUN]}


@dataclass(frozen=True)
class Experiment:
    """Configuration of a set experiment.

    Attributes:
        tasks: Keys of :data:`~abelnet.experiments.sets.data.TASKS`.
        models: Keys of :data:`~abelnet.experiments.sets.models.AGGREGATIONS`.
        runs: Largest number of runs; if None, as many as each task has.
        epochs: Number of epochs; if None, as many as each task has.
        seed: Random seed.
    """

    tasks: tuple[str, ...] = ("digits", "digits8")
    models: tuple[str, ...] = tuple(AGGREGATIONS)
    runs: int | None = None
    epochs: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, wanted, known in (("task", self.tasks, TASKS), ("model", self.models, AGGREGATIONS)):
            for key in wanted:
                if key not in known:
                    raise AbelnetError(f"{name}: expected one of {', '.join(known)}, got {key!r}")
        for name in ("runs", "epochs"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    @property
    def units(self) -> list[tuple[str, str]]:
        """The task and model of each unit."""
        return list(itertools.product(self.tasks, self.models))


def run(
    experiment: Experiment,
    folder: str | Path,
    *,
    data: str | Path | None = None,
    jobs: int = 1,
    on_unit: Callable[[str, str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Trains all models of an experiment that are missing in a folder, and writes ``results.json``.

    Arguments:
        experiment: Configuration of the experiment.
        folder: Output folder; with the same folder an interrupted run resumes, and tasks, models and runs may be added.
        data: Folder with the archives of data that are not part of scikit-learn.
        jobs: Number of single-threaded worker processes.
        on_unit: Called with the task and the model of each completed unit.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Returns:
        The contents of ``results.json``.
    """
    check_installed(experiment.models)
    with needs_extra("sets", "sets"):
        importlib.import_module("sklearn")  # before anything is written
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    added = ("tasks", "models", "runs")
    claim_folder(folder, {key: value for key, value in asdict(experiment).items() if key not in added})
    start = time.perf_counter()
    units = experiment.units
    run_units(
        partial(_run_unit, experiment, folder, None if data is None else Path(data)),
        units,
        jobs=jobs,
        on_unit=None if on_unit is None else lambda unit: on_unit(*unit),
        on_progress=on_progress,
    )
    parts = [_part(folder, unit) for unit in units]
    return write_results(folder, asdict(experiment), parts, time.perf_counter() - start, _PART)


def _run_unit(experiment: Experiment, folder: Path, data: Path | None, unit: tuple[str, str], tell: Tell) -> None:
    """Trains each run with all learning rates and weight decays, and writes those selected as results of the unit."""
    task = TASKS[unit[0]]
    runs = min(task.runs, experiment.runs or task.runs)
    step = 1 / (len(task.choices) * runs)

    def trained(choice: tuple[float, float], number: int) -> dict[str, Any]:
        result = _trained(experiment, folder, data, unit, *choice, number)
        tell(step)
        return result

    trials = [[trained(choice, number) for choice in task.choices] for number in range(runs)]
    content: dict[str, Any] = {
        **dict(zip(("task", "model"), unit, strict=True)),
        "runs": [max(some, key=lambda one: one["validation"] or 0.0) for some in trials],
        "tried": [
            {key: one[key] for key in ("run", "lr", "weight_decay", "validation")} for some in trials for one in some
        ],
    }
    content["seconds"] = float(sum(one["seconds"] for some in trials for one in some))
    write_json(_part(folder, unit), content)


def _trained(
    experiment: Experiment,
    folder: Path,
    data: Path | None,
    unit: tuple[str, str],
    lr: float,
    decay: float,
    number: int,
) -> dict[str, Any]:
    """Returns the accuracies of one model, from its file if it has been trained before."""
    name, model = unit
    file = folder / "models" / f"{name}-{model}-{lr:g}-{decay:g}-{number}.json"
    if file.exists():
        found: dict[str, Any] = read_json(file, _RUN)
        return found
    task = TASKS[name]
    sets = task.split(data, number, derived_seed(experiment.seed, "data") % 2**31)
    begin = time.process_time()  # of one core, whatever else runs
    # Modules of other packages draw their parameters from torch's global generator.
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(derived_seed(experiment.seed, "model", number))
        sizes = sets.train.mask.sum(1)
        histogram = torch.bincount(sizes if task.points is None else sizes.clamp_max(task.points))
        network = make_model(model, task, sets.train.values.shape[-1], histogram)
        settings = Settings(
            epochs=experiment.epochs or task.epochs,
            batch_size=task.batch_size,
            lr=lr,
            schedule="cosine",
            clip_norm=1.0,
            weight_decay=decay,
            decoupled=True,
        )
        generator = torch.Generator().manual_seed(derived_seed(experiment.seed, "points", number))
        is_finite = True
        try:
            train(
                network,
                (sets.train.values, sets.train.mask, sets.train.labels),
                partial(_loss, task, generator),
                settings=settings,
                seed=derived_seed(experiment.seed, "order", number) % 2**31,
            )
        except AbelnetError:  # the loss is not finite any more
            is_finite = False
    points = torch.Generator().manual_seed(derived_seed(experiment.seed, "test points", number))
    accuracy = partial(_accuracy, network, generator=points)
    is_validated = is_finite and len(sets.validation) > 0
    validated = [accuracy(sets.validation, n, _DRAWS) for n in task.tests.values()] if is_validated else []
    content = {
        "run": number,
        "lr": lr,
        "weight_decay": decay,
        "parameters": count_parameters(network),
        "validation": sum(validated) / len(validated) if validated else None,
        "accuracies": {place: accuracy(sets.test, n, _DRAWS) if is_finite else None for place, n in task.tests.items()},
        "tested": len(sets.test),
        "seconds": time.process_time() - begin,
    }
    write_json(file, content)
    return content


def _loss(task: Task, generator: torch.Generator, model: SetModel, batch: tuple[Tensor, ...]) -> Tensor:
    values, mask = draw_points(Sets(*batch), task.points, generator)
    return F.cross_entropy(model(values, mask=mask), batch[2])


@torch.no_grad()
def _accuracy(model: SetModel, sets: Sets, points: int | None, draws: int = 1, *, generator: torch.Generator) -> float:
    """Returns the accuracy of a model in percent, of several draws of points if not all are taken."""
    model.eval()
    right = 0
    draws = 1 if points is None else draws
    for places in torch.split(torch.arange(len(sets)).repeat(draws), _TEST_BATCH):
        some = sets.take(places)
        values, mask = draw_points(some, points, generator)
        right += int((model(values, mask=mask).argmax(-1) == some.labels).sum())
    return 100 * right / (draws * len(sets))


def _part(folder: Path, unit: tuple[str, str]) -> Path:
    return folder / "parts" / ("-".join(unit) + ".json")
