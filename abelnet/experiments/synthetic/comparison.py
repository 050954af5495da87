r"""Synthetic experiment of the paper, complete: three models, tuned, over fresh seeds.

Each pair of an operation and a model is a unit of work. A unit searches the paper's space for the smallest validation
error, then trains the best parameters on fresh data with fresh seeds. Units run in parallel, in single-threaded
processes. All progress is kept in the output folder: an interrupted run resumes bit for bit.
"""

from __future__ import annotations

__all__ = ["MODELS", "Experiment", "ModelKind", "run"]

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.bijections import Monotonic
from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.experiments.running import Tell, claim_folder, derived_seed, run_units, write_results
from abelnet.experiments.synthetic.data import OPERATIONS, draw, make_dataset
from abelnet.files import read_json, write_json
from abelnet.multisets import Multisets
from abelnet.nn.baselines import DeepSets
from abelnet.nn.stacks import DeepSetsStack
from abelnet.operation import AbelianGroup, AbelianSemigroup, Operation
from abelnet.training.loop import Settings, train
from abelnet.training.stacks import ModelStack, OperationStack
from abelnet.training.tuning import Candidate, Choice, Integer, Pruned, Search, Space

Parameters = dict[str, Any]


@dataclass(frozen=True)
class ModelKind:
    """Model of the comparison.

    Attributes:
        title: Name in tables.
        space: Hyperparameter search space: the paper's, and for min-max networks their initialization.
        build: Builds a model from parameters and a seed.
        stack: Stacks models into one module.
        group: Returns the key that models must share to be stacked.
    """

    title: str
    space: Space
    build: Callable[[Parameters, int], nn.Module]
    stack: Callable[[Sequence[Any]], ModelStack[Any]]
    group: Callable[[Parameters], int]


def _deepsets(parameters: Parameters, seed: int) -> nn.Module:
    return DeepSets(1, parameters["layers"], parameters["middle"], parameters["hidden"], seed=seed)


# The line near which all lines of a min-max network are initialized: the identity map, or a flat line through the
# identity element of the law, around which folds of any size stay small. Lines that only larger multisets reach, and
# that training on small ones never updates, are then sound from the start. The paper does not state its initialization.
STARTS: dict[str, Callable[[float], tuple[float, float] | None]] = {
    "numbers": lambda identity: (1.0, 0.0),
    "law": lambda identity: (0.1, identity),
    "random": lambda identity: None,
}


def _group(parameters: Parameters, seed: int) -> nn.Module:
    return AbelianGroup(_monotonic(parameters, 0.0, seed))


def _semigroup(parameters: Parameters, seed: int) -> nn.Module:
    return AbelianSemigroup(_monotonic(parameters, 1.0, seed))


def _monotonic(parameters: Parameters, identity: float, seed: int) -> Monotonic:
    near = STARTS[parameters["start"]](identity)
    return Monotonic(1, parameters["groups"], parameters["units"], near=near, seed=seed)


def _width_class(parameters: Parameters) -> int:
    """Returns the class of a width; narrow models would otherwise be padded to several times their size."""
    return int(parameters["hidden"] > 16)


_LINES: Space = {"groups": Integer(2, 32), "units": Integer(2, 32), "start": Choice(tuple(STARTS))}
_WIDTHS: Space = {"layers": Integer(2, 8), "middle": Integer(2, 32), "hidden": Integer(2, 32)}
MODELS = {
    "deepsets": ModelKind("DeepSets", _WIDTHS, _deepsets, DeepSetsStack, _width_class),
    "agn": ModelKind("AGN", _LINES, _group, OperationStack, lambda parameters: 0),
    "asn": ModelKind("ASN", _LINES, _semigroup, OperationStack, lambda parameters: 0),
}
SIZES = (2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 100)
GRID = torch.linspace(-5, 5, 101)
_TESTED = "tested.json"
_ERRORS = [float | int | None]
_PART = {
    "operation": str,
    "model": str,
    "chosen": {"small": float | int | None, "large": float | int | None},
    "small": _ERRORS,
    "large": _ERRORS,
    "by_size": [{"size": int, "rmse": _ERRORS}],
    "curve": list | None,
}


@dataclass(frozen=True)
class Experiment:
    """Configuration of a synthetic experiment.

    Attributes:
        operations: Keys of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.
        models: Keys of :data:`MODELS`.
        trials: Number of trials per search.
        batch: Number of trials drawn at once.
        seeds: Number of fresh seeds.
        epochs: Number of training epochs.
        seed: Random seed.
        prune: Whether a search prunes the worse half of the models it trains together after a quarter of the epochs,
            and again after half. The paper does not.
    """

    operations: tuple[str, ...] = tuple(OPERATIONS)
    models: tuple[str, ...] = tuple(MODELS)
    trials: int = 50
    batch: int = 25
    seeds: int = 5
    epochs: int = 1000
    seed: int = 0
    prune: bool = False

    def __post_init__(self) -> None:
        for name, wanted, known in (("op", self.operations, OPERATIONS), ("model", self.models, MODELS)):
            for key in wanted:
                if key not in known:
                    raise AbelnetError(f"{name}: expected one of {', '.join(known)}, got {key!r}")
        for name in ("trials", "batch", "seeds", "epochs"):
            check_count(name, getattr(self, name))


def run(
    experiment: Experiment,
    folder: str | Path,
    *,
    jobs: int = 1,
    on_unit: Callable[[str, str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Runs all incomplete units of an experiment, and writes ``results.json``.

    Arguments:
        experiment: Configuration of the experiment.
        folder: Output folder; with the same folder and experiment an interrupted run resumes.
        jobs: Number of single-threaded worker processes.
        on_unit: Called with the operation and the model of each completed unit.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Returns:
        The contents of ``results.json``.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # More operations or models may be added to a folder.
    settings = {key: value for key, value in asdict(experiment).items() if key not in ("operations", "models")}
    claim_folder(folder, settings)
    start = time.perf_counter()
    units = [(operation, model) for operation in experiment.operations for model in experiment.models]
    run_units(
        partial(_run_unit, experiment, folder),
        units,
        jobs=jobs,
        on_unit=None if on_unit is None else lambda unit: on_unit(*unit),
        on_progress=on_progress,
    )
    parts = [_part(folder, *unit) for unit in units]
    return write_results(folder, asdict(experiment), parts, time.perf_counter() - start, _PART)


def _run_unit(experiment: Experiment, folder: Path, unit: tuple[str, str], tell: Tell) -> None:
    """Searches, trains the best parameters with fresh seeds, and writes the results of the unit."""
    operation, model = unit
    part = _part(folder, operation, model)
    if part.exists():
        return
    start = time.perf_counter()
    kind = MODELS[model]
    # Two rungs are at most half of the epochs, so the last validation is at the end.
    rung = max(1, experiment.epochs // 4) if experiment.prune else experiment.epochs
    settings = Settings(epochs=experiment.epochs, validate_every=rung)
    data = make_dataset(operation, derived_seed(experiment.seed, "data"), dtype=torch.float32)

    def on_epoch(epoch: int, losses: Tensor, _: Tensor | None) -> None:
        if epoch % 20 == 0:
            models = experiment.trials + experiment.seeds
            tell(20 * len(losses) / (experiment.epochs * models))

    def better_half(epoch: int, losses: Tensor) -> Tensor:
        if epoch > 2 * rung:
            return torch.ones_like(losses, dtype=torch.bool)
        return losses.nan_to_num(float("inf")).argsort(stable=True).argsort() < -(-len(losses) // 2)

    def evaluate(candidates: Sequence[Candidate], claim: Path) -> list[float | Pruned]:
        values: dict[int, float | Pruned] = {}
        errors: dict[str, dict[str, float | None]] = {"small": {}, "large": {}}
        for key in sorted({kind.group(candidate.parameters) for candidate in candidates}):
            members = [candidate for candidate in candidates if kind.group(candidate.parameters) == key]
            members.sort(key=lambda member: -member.parameters.get("layers", 0))
            seeds = [derived_seed(experiment.seed, "search", member.number) for member in members]
            models = [kind.build(member.parameters, seed) for member, seed in zip(members, seeds, strict=True)]
            stack = kind.stack(models)
            result = train(
                stack,
                _repeat(data.train, len(models)),
                squared_error,
                settings=settings,
                seed=seeds,
                validation=_repeat(data.validation, len(models)),
                checkpoint=claim / f"group-{key}.safetensors",
                prune=better_half if experiment.prune else None,
                on_epoch=on_epoch,
            )
            assert result.validation is not None
            for i, (member, value) in enumerate(zip(members, result.validation.tolist(), strict=True)):
                values[member.number] = Pruned(value, result.pruned[i]) if i in result.pruned else value
            kept = [member.number for i, member in enumerate(members) if i not in result.pruned]
            for name, part in (("small", data.small), ("large", data.large)):
                errors[name] |= dict(zip(map(str, kept), rmse_of_stack(stack, [part] * len(kept)), strict=True))
        # Stored for all models, but reported only for the selected one; selection uses validation data only.
        write_json(claim / _TESTED, errors)
        return [values[candidate.number] for candidate in candidates]

    search = Search(
        folder / "search",
        f"{operation}-{model}",
        kind.space,
        trials=experiment.trials,
        batch=experiment.batch,
        seed=experiment.seed,
    )
    best = search.run(evaluate)
    errors = {str(best.number): float | int | None}
    remedy = "remove values.json beside it, and run the same command again"
    tested = read_json(search.claim_of(best) / _TESTED, {"small": errors, "large": errors}, remedy=remedy)
    final = _train_fresh_seeds(experiment, kind, operation, best.parameters, part.with_suffix(".safetensors"), on_epoch)
    content = {
        "operation": operation,
        "model": model,
        "parameters": best.parameters,
        "trial": best.number,
        "validation_rmse": None if best.value is None else best.value**0.5,
        "chosen": {part: errors[str(best.number)] for part, errors in tested.items()},
        "trials": [asdict(trial) for trial in search.finished()],
        **final,
        "seconds": time.perf_counter() - start,
    }
    write_json(part, content)


def _train_fresh_seeds(
    experiment: Experiment,
    kind: ModelKind,
    operation: str,
    parameters: Parameters,
    checkpoint: Path,
    on_epoch: Callable[[int, Tensor, Tensor | None], None],
) -> dict[str, Any]:
    # The data of the search have the number 0.
    seeds, data_seeds, size_seeds = (
        [derived_seed(experiment.seed, purpose, i + 1) for i in range(experiment.seeds)]
        for purpose in ("fresh", "data", "sizes")
    )
    models = [kind.build(parameters, seed) for seed in seeds]
    datasets = [make_dataset(operation, seed, dtype=torch.float32) for seed in data_seeds]
    stack = kind.stack(models)
    train(
        stack,
        stack_data([data.train for data in datasets]),
        squared_error,
        settings=Settings(epochs=experiment.epochs),
        seed=seeds,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
    )
    stack.unstack(models)
    generators = [torch.Generator().manual_seed(seed) for seed in size_seeds]
    by_size = []
    for size in SIZES:
        fresh = [draw(OPERATIONS[operation], 100, (size,), generator, torch.float64) for generator in generators]
        by_size.append({"size": size, "rmse": rmse_in_float32(stack, fresh)})
    return {
        "seeds": seeds,
        "data_seeds": data_seeds,
        "small": rmse_of_stack(stack, [data.small for data in datasets]),
        "large": rmse_of_stack(stack, [data.large for data in datasets]),
        "by_size": by_size,
        "curve": curve_on_grid(models[0]),
    }


def curve_on_grid(model: nn.Module) -> list[float] | None:
    """Returns the learned φ on a grid over [−5, 5], if there is one."""
    if not isinstance(model, Operation):
        return None
    with torch.no_grad():
        values: list[float] = model.bijection(GRID[:, None])[:, 0].tolist()
    return values


def squared_error(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Returns the mean squared error of each model of a stack, with shape :math:`(M)`."""
    values, mask, target = batch
    result: Tensor = (model(values, mask) - target).square().mean(-1)
    return result


def rmse_of_stack(stack: nn.Module, data: Sequence[Multisets]) -> list[float | None]:
    """Returns the RMSE of each model on its own data; None if it is not finite."""
    with torch.no_grad():
        errors = squared_error(stack, stack_data(data)).sqrt().tolist()
    return [error if error < float("inf") else None for error in errors]


def rmse_in_float32(stack: nn.Module, data: Sequence[Multisets]) -> list[float | None]:
    """Returns the RMSE of each model; None if results, such as products of many numbers, are beyond float32."""
    if any(float(one.targets.abs().max()) > torch.finfo(torch.float32).max for one in data):
        return [None] * len(data)
    narrow = [Multisets(one.values.float(), 1, ptr=one.ptr, targets=one.targets.float()) for one in data]
    return rmse_of_stack(stack, narrow)


def stack_data(data: Sequence[Multisets]) -> tuple[Tensor, Tensor, Tensor]:
    """Stacks the data of many models: values and mask :math:`(M, B, n)`, targets :math:`(M, B)`."""
    width = max(int(part.sizes.amax()) for part in data)
    values, masks = zip(*(part.padded(width) for part in data), strict=True)
    return torch.stack(values)[..., 0], torch.stack(masks), torch.stack([part.targets for part in data])


def _repeat(data: Multisets, times: int) -> tuple[Tensor, Tensor, Tensor]:
    return stack_data([data] * times)


def median(values: Sequence[float | None]) -> float:
    """Returns the median, with diverged runs as infinite."""
    return statistics.median(float("inf") if value is None else value for value in values)


def _part(folder: Path, operation: str, model: str) -> Path:
    return folder / "parts" / f"{operation}-{model}.json"
