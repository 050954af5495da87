r"""Graph experiment, complete: aggregations in message-passing networks, at equal budgets.

Models are trained on graphs of 5 to 20 nodes, and tested on such graphs and on graphs of 200 nodes, of the same degree
and of a larger one. Each triple of a task, a form of network and an aggregation is a unit of work: settings are
selected on validation graphs with the first seed alone, then all seeds are trained with them. Each trained model has a
file of its own in the output folder, so an interrupted run resumes.
"""

from __future__ import annotations

__all__ = ["PLACES", "Experiment", "median", "run"]

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.experiments.graphs.data import SMALL, TASKS, Graphs, draw, make_batches
from abelnet.experiments.graphs.fitting import fit, relative_error
from abelnet.experiments.graphs.models import FORMS, Form, make_model
from abelnet.experiments.graphs.rivals import AGGREGATIONS, BARE, Context, check_installed
from abelnet.experiments.running import Tell, claim_folder, derived_seed, run_units, write_results
from abelnet.files import read_json, write_json

# Learning rates to select from. In the aligned form there are few parameters, in units of the data.
RATES: dict[Form, tuple[float, ...]] = {"aligned": (0.01, 0.03), "generic": (0.003, 0.01)}
GRAPHS_PER_BATCH = 16
BATCHES = 50
_VALIDATION_GRAPHS = 64


class Place(NamedTuple):
    """Test graphs: their title, number, sizes and degree."""

    title: str
    graphs: int
    sizes: tuple[int, int]
    degree: float


PLACES = {
    "small": Place("5–20 nodes, degree 3", 64, SMALL, 3.0),
    "large": Place("200 nodes, degree 3", 8, (200, 200), 3.0),
    "dense": Place("200 nodes, degree 15", 8, (200, 200), 15.0),
}

_ERROR = float | int | None
_RUN = {
    "seed": int,
    "start": str,
    "lr": float | int,
    "loss": str,
    "validation": _ERROR,
    "errors": dict.fromkeys(PLACES, _ERROR),
    "laws": list | None,
    "skipped": int,
    "seconds": float | int,
}
_PART = {"task": str, "form": str, "model": str, "selected": dict, "runs": [_RUN]}


@dataclass(frozen=True)
class Settings:
    """What is selected on validation graphs: the start of an aggregation, its learning rate and its loss."""

    start: str
    lr: float
    loss: str


@dataclass(frozen=True)
class Experiment:
    """Configuration of a graph experiment.

    Attributes:
        tasks: Keys of :data:`~abelnet.experiments.graphs.data.TASKS`.
        forms: Forms of networks: ``"aligned"`` and ``"generic"``.
        models: Keys of :data:`~abelnet.experiments.graphs.rivals.AGGREGATIONS`.
        seeds: Number of seeds.
        steps: Number of training steps.
        seed: Random seed.
    """

    tasks: tuple[str, ...] = tuple(TASKS)
    forms: tuple[str, ...] = FORMS
    models: tuple[str, ...] = tuple(AGGREGATIONS)
    seeds: int = 5
    steps: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        checked = (("task", self.tasks, TASKS), ("form", self.forms, FORMS), ("model", self.models, AGGREGATIONS))
        for name, wanted, known in checked:
            for key in wanted:
                if key not in known:
                    raise AbelnetError(f"{name}: expected one of {', '.join(known)}, got {key!r}")
        for name in ("seeds", "steps"):
            check_count(name, getattr(self, name))

    @property
    def units(self) -> list[tuple[str, Form, str]]:
        """The task, form and model of each unit."""
        forms = [form for form in FORMS if form in self.forms]
        triples = itertools.product(self.tasks, forms, self.models)
        return [(task, form, model) for task, form, model in triples if form in AGGREGATIONS[model].forms]


def run(
    experiment: Experiment,
    folder: str | Path,
    *,
    jobs: int = 1,
    on_unit: Callable[[str, str, str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Trains all models of an experiment that are missing in a folder, and writes ``results.json``.

    Arguments:
        experiment: Configuration of the experiment.
        folder: Output folder; with the same folder an interrupted run resumes, and tasks, forms, models and seeds may
            be added.
        jobs: Number of single-threaded worker processes.
        on_unit: Called with the task, the form and the model of each completed unit.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Returns:
        The contents of ``results.json``.
    """
    check_installed(experiment.models)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    added = ("tasks", "forms", "models", "seeds")
    claim_folder(folder, {key: value for key, value in asdict(experiment).items() if key not in added})
    start = time.perf_counter()
    units = experiment.units
    run_units(
        partial(_run_unit, experiment, folder),
        units,
        jobs=jobs,
        on_unit=None if on_unit is None else lambda unit: on_unit(*unit),
        on_progress=on_progress,
    )
    parts = [_part(folder, unit) for unit in units]
    return write_results(folder, asdict(experiment), parts, time.perf_counter() - start, _PART)


def median(values: Sequence[float | None]) -> float:
    """Returns the median, where None is infinite."""
    return statistics.median(math.inf if value is None else value for value in values)


def _run_unit(experiment: Experiment, folder: Path, unit: tuple[str, Form, str], tell: Tell) -> None:
    """Selects settings with the first seed, trains all seeds, and writes the results of the unit."""
    _, form, model = unit
    aggregation = AGGREGATIONS[model]
    train = partial(_trained, experiment, folder, unit)
    # A robust loss is part of the bank; rivals may choose it.
    loss = "robust" if aggregation.is_ours else "squared"
    grid = [
        Settings(start, lr, loss)
        for start in aggregation.names(form)
        for lr in (RATES[form][:1] if start == BARE else RATES[form])
    ]
    extra = 0 if aggregation.is_ours else 1
    step = 1 / ((len(grid) + extra + experiment.seeds - 1) * experiment.steps)

    def on_steps(count: int) -> None:
        tell(count * step)

    tried = [train(settings, 0, on_steps) for settings in grid]
    if extra:
        best = _best(tried)
        tried.append(train(Settings(best["start"], best["lr"], "robust"), 0, on_steps))
    best = _best(tried)
    selected = Settings(best["start"], best["lr"], best["loss"])
    runs = [best, *(train(selected, seed, on_steps) for seed in range(1, experiment.seeds))]
    content = {
        **dict(zip(("task", "form", "model"), unit, strict=True)),
        "selected": asdict(selected),
        "tried": [{key: one[key] for key in (*asdict(selected), "validation")} for one in tried],
        "runs": runs,
        "seconds": float(sum(one["seconds"] for one in (*tried, *runs[1:]))),
    }
    write_json(_part(folder, unit), content)


def _best(tried: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return min(tried, key=lambda one: math.inf if one["validation"] is None else one["validation"])


def _trained(
    experiment: Experiment,
    folder: Path,
    unit: tuple[str, Form, str],
    settings: Settings,
    seed: int,
    on_steps: Callable[[int], None],
) -> dict[str, Any]:
    """Returns the errors of one model, from its file if it has been trained before."""
    name, form, model = unit
    file = folder / "models" / "-".join((*unit, *map(str, asdict(settings).values()), f"{seed}.json"))
    if file.exists():
        found: dict[str, Any] = read_json(file, _RUN)
        return found
    begin = time.process_time()  # of one core, whatever else runs
    task, aggregation = TASKS[name], AGGREGATIONS[model]
    batches = make_batches(name, BATCHES, GRAPHS_PER_BATCH, derived_seed(experiment.seed, "train", seed))
    # Modules of other packages draw their parameters from torch's global generator.
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(derived_seed(experiment.seed, "model", seed))
        layer = aggregation.starts[settings.start](Context.of(form, task, batches))
        network = make_model(form, layer, task, batches)
    skipped = fit(
        network,
        batches,
        steps=experiment.steps,
        lr=settings.lr,
        robust=settings.loss == "robust",
        anneal=layer.anneal if aggregation.is_ours else None,  # type: ignore[arg-type]
        tell=on_steps,
    )
    validation, places = _tests(name, experiment.seed)
    spread = places["small"].results.std().item()
    content = {
        "seed": seed,
        **asdict(settings),
        "validation": relative_error(network, validation, spread),
        "errors": {place: relative_error(network, graphs, spread) for place, graphs in places.items()},
        "laws": [str(law) for law in layer.laws()] if aggregation.is_ours else None,  # type: ignore[operator]
        "skipped": skipped,
        "seconds": time.process_time() - begin,
    }
    write_json(file, content)
    return content


def _tests(name: str, seed: int) -> tuple[Graphs, dict[str, Graphs]]:
    """Returns validation graphs, and test graphs of each place, which are the same for all models."""
    task = TASKS[name]
    generator = torch.Generator().manual_seed(derived_seed(seed, "validation"))
    validation = draw(task, _VALIDATION_GRAPHS, generator)
    generator = torch.Generator().manual_seed(derived_seed(seed, "test"))
    return validation, {
        key: draw(task, place.graphs, generator, sizes=place.sizes, degree=place.degree)
        for key, place in PLACES.items()
    }


def _part(folder: Path, unit: tuple[str, ...]) -> Path:
    return folder / "parts" / ("-".join(unit) + ".json")
