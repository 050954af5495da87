r"""Word analogy experiment of the paper: training on BATS, testing on BATS and the Google analogy test set.

Each pair of a model and a seed is a unit of work: it splits BATS by the seed, trains, and answers the questions, once
with all words as candidates and once excluding :math:`a, b, c`. Without BATS, the pairs of the Google test set are
split instead. All progress is kept in the output folder: an interrupted run resumes bit for bit.
"""

from __future__ import annotations

__all__ = [
    "MODELS",
    "RESULT_TABLE",
    "AnalogyExperiment",
    "AnalogyModel",
    "load_vectors",
    "read_analogies",
    "result_table",
    "run_analogies",
]

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.experiments.running import Tell, claim_folder, derived_seed, run_units, write_results
from abelnet.files import read_json, write_json
from abelnet.saving import save
from abelnet.training.loop import train
from abelnet.training.settings import Data, Loss, Settings, Validate
from abelnet.training.tuning import Candidate, Integer, Real, Search, Space
from abelnet.words.evaluation import Evaluation, evaluate, offset
from abelnet.words.losses import AnchoredLoss, CosineLoss
from abelnet.words.models import AnalogyEnsemble, GroupAnalogy, OffsetMLP
from abelnet.words.questions import Questions, Splits, bats_questions, google_pairs, google_questions
from abelnet.words.vectors import WordVectors, cache_folder

Parameters = Mapping[str, Any]
Network = OffsetMLP | GroupAnalogy
RESULT_TABLE = {"title": str, "sections": [str], "questions": {str: int}, "correct": {str: {str: int}}}
"""What :func:`result_table` returns, as :func:`~abelnet.files.read_json` checks it."""
_PART = {"model": str, "seed": int, "tables": [RESULT_TABLE]}
# Adam with a learning rate of 1e-3 and batches of 32, the defaults.
_PAPER = Settings(epochs=100, validate_every=10)


def _cosine(vectors: WordVectors, questions: Questions) -> tuple[Data, Loss]:
    return (questions.words, questions.targets), CosineLoss(vectors)


def _anchored(vectors: WordVectors, questions: Questions) -> tuple[Data, Loss]:
    return (torch.arange(len(questions)),), AnchoredLoss(vectors, questions)


def _several(vectors: WordVectors, questions: Questions) -> tuple[Data, Loss]:
    return (torch.arange(len(questions)),), AnchoredLoss(vectors, questions, several=256)


@dataclass(frozen=True)
class Stage:
    """Stage of the training of a model.

    Attributes:
        objective: Returns training data and loss for a vocabulary and training questions.
        settings: Training settings, except for the weight decay.
    """

    objective: Callable[[WordVectors, Questions], tuple[Data, Loss]]
    settings: Settings


@dataclass(frozen=True)
class AnalogyModel:
    """Model of the comparison.

    Attributes:
        title: Name in tables.
        build: Builds the model from a number of dimensions, parameters and a seed; None if it needs no training.
        parameters: Hyperparameters chosen by the paper, or by us.
        part: Part of a split to train on.
        stages: Stages of training, each of which continues the one before.
        members: Number of models of an ensemble, each trained from its own random seed.
        space: Hyperparameter search space of a model with one stage.
    """

    title: str
    build: Callable[[int, Parameters, int], Network] | None = None
    parameters: Parameters | None = None
    part: Literal["train", "development"] = "train"
    stages: tuple[Stage, ...] = (Stage(_cosine, _PAPER),)
    members: int = 1
    space: Space | None = None

    def seeds(self, seed: int) -> list[int]:
        """Returns the random seeds of all members; a model that is no ensemble keeps its own."""
        if self.members == 1:
            return [seed]
        return [derived_seed(seed, "member", number) % 2**31 for number in range(self.members)]

    def joined(self, networks: Sequence[Network]) -> Network | AnalogyEnsemble:
        """Returns the model made of its members."""
        return networks[0] if self.members == 1 else AnalogyEnsemble(*networks)


def _mlp(dim: int, parameters: Parameters, seed: int) -> OffsetMLP:
    return OffsetMLP(dim, parameters["layers"], parameters["hidden"], seed=seed)


def _agn(dim: int, parameters: Parameters, seed: int) -> GroupAnalogy:
    return GroupAnalogy(dim, parameters["layers"], parameters["hidden"], seed=seed)


def _agn_from_offset(dim: int, parameters: Parameters, seed: int) -> GroupAnalogy:
    return GroupAnalogy(dim, parameters["layers"], parameters["hidden"], gain=0.0, seed=seed)


_SPACE: Space = {"layers": Integer(2, 6), "hidden": Integer(8, 256), "weight_decay": Real(0, 1e-3)}
# Beyond the paper. These settings were chosen on the validation pairs of the first split, on relations of BATS held out
# of training, and on parallelograms among the vectors themselves; see docs/analogies.md.
_CHOSEN: Parameters = {"layers": 5, "hidden": 304, "weight_decay": 1e-2}
_ANCHORED = Stage(_anchored, Settings(epochs=5, batch_size=256, decoupled=True, schedule="cosine"))
# About as many steps on 80% of the pairs.
_ANCHORED_80 = Stage(_anchored, replace(_ANCHORED.settings, epochs=3))
# A constant rate and averaged parameters: more steps make groups better with several pairs, and the average keeps what
# they know of one pair.
_SEVERAL = Stage(_several, replace(_ANCHORED.settings, epochs=4, schedule="constant", average=0.99))
_SEVERAL_80 = Stage(_several, replace(_SEVERAL.settings, epochs=2))
MODELS = {
    "wv": AnalogyModel("WV"),
    "wv_mlp": AnalogyModel("WV+MLP", _mlp, {"layers": 4, "hidden": 223, "weight_decay": 6.43e-4}, space=_SPACE),
    "wv_agn": AnalogyModel("WV+AGN", _agn, {"layers": 5, "hidden": 151, "weight_decay": 1.60e-4}, space=_SPACE),
    "anchored": AnalogyModel("WV+AGN, anchored", _agn_from_offset, _CHOSEN, "train", (_ANCHORED,)),
    "anchored_80": AnalogyModel("anchored, 80 % of pairs", _agn_from_offset, _CHOSEN, "development", (_ANCHORED_80,)),
    # The same, and then trained for any number of example pairs.
    "several": AnalogyModel("anchored, several pairs", _agn_from_offset, _CHOSEN, "train", (_ANCHORED, _SEVERAL)),
    "several_80": AnalogyModel(
        "several pairs, 80 % of pairs", _agn_from_offset, _CHOSEN, "development", (_ANCHORED_80, _SEVERAL_80)
    ),
    # Three of these, whose predictions are averaged: what they know of the questions is the same, their errors are not.
    "ensemble": AnalogyModel(
        "ensemble, several pairs", _agn_from_offset, _CHOSEN, "train", (_ANCHORED, _SEVERAL), members=3
    ),
    "ensemble_80": AnalogyModel(
        "ensemble, 80 % of pairs", _agn_from_offset, _CHOSEN, "development", (_ANCHORED_80, _SEVERAL_80), members=3
    ),
}


@dataclass(frozen=True)
class AnalogyExperiment:
    """Configuration of an analogy experiment.

    Attributes:
        vectors: Word vector file; the bundled vectors if None.
        bats: BATS folder; if None, the pairs of the Google test set are split instead.
        models: Keys of :data:`MODELS`.
        seeds: Number of splits, each with its own training run.
        seed: Random seed.
        epochs: Number of training epochs; the default of each model if None.
        trials: Number of trials of a search of the paper's space, for each model that has one; with 0 the
            hyperparameters chosen by the paper are used.
        limit: Maximum number of words, most frequent first; all if None.
    """

    vectors: str | None = None
    bats: str | None = None
    models: tuple[str, ...] = tuple(MODELS)
    seeds: int = 3
    seed: int = 0
    epochs: int | None = None
    trials: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        for key in self.models:
            if key not in MODELS:
                raise AbelnetError(f"model: expected one of {', '.join(MODELS)}, got {key!r}")
        check_count("seeds", self.seeds)
        check_count("trials", self.trials, 0)
        for name in ("epochs", "limit"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def settings(self, stage: Stage, parameters: Parameters) -> Settings:
        """Returns the training settings of a stage of a model."""
        settings = asdict(stage.settings) | {"weight_decay": parameters["weight_decay"]}
        return Settings(**settings | ({} if self.epochs is None else {"epochs": self.epochs}))


def load_vectors(experiment: AnalogyExperiment) -> WordVectors:
    """Loads the vectors of an experiment, from the cache if possible."""
    if experiment.vectors is None:
        return WordVectors.default(experiment.limit)
    return WordVectors.load(experiment.vectors, limit=experiment.limit, cache=cache_folder())


def run_analogies(
    experiment: AnalogyExperiment,
    folder: str | Path,
    *,
    jobs: int = 1,
    on_unit: Callable[[str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Runs all incomplete units of an experiment, and writes ``results.json``.

    Arguments:
        experiment: Configuration of the experiment.
        folder: Output folder, also of trained models; with the same folder and experiment an interrupted run resumes.
        jobs: Number of single-threaded worker processes.
        on_unit: Called with a description of each completed unit.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Returns:
        The contents of ``results.json``.
    """
    folder = Path(folder)
    # More models and seeds may be added to a folder.
    claim_folder(folder, {key: value for key, value in asdict(experiment).items() if key not in ("models", "seeds")})
    start = time.perf_counter()
    load_vectors(experiment)  # so that errors are reported once, and all processes find the cache
    units = [(model, number) for number in range(experiment.seeds) for model in experiment.models]
    searches = [(model,) for model in experiment.models if experiment.trials and MODELS[model].space]
    tell = (lambda text: None) if on_unit is None else on_unit
    if searches:
        search = partial(_search, experiment, folder)
        run_units(search, searches, jobs=jobs, on_unit=lambda unit: tell(f"search of {MODELS[unit[0]].title}"))
    run_units(
        partial(_run_unit, experiment, folder),
        units,
        jobs=jobs,
        on_unit=lambda unit: tell(f"{MODELS[unit[0]].title}, seed {experiment.seed + unit[1]}"),
        on_progress=on_progress,
    )
    parts = [_part(folder, *unit) for unit in units]
    return write_results(folder, asdict(experiment), parts, time.perf_counter() - start, _PART)


def read_analogies(folder: str | Path) -> dict[str, Any]:
    """Reads the ``results.json`` of a run that has finished."""
    path = Path(folder) / "results.json"
    if not path.is_file():
        raise AbelnetError(
            f"folder: expected results.json in {folder}, got no such file; run abelnet analogies run first"
        )
    shape = {"experiment": dict.fromkeys(asdict(AnalogyExperiment()), object), "rows": [_PART]}
    return read_json(path, shape)  # type: ignore[no-any-return]


def _run_unit(experiment: AnalogyExperiment, folder: Path, unit: tuple[str, int], tell: Tell) -> None:
    """Trains a model on one split, answers all questions, and writes the results of the unit."""
    model, number = unit
    part = _part(folder, *unit)
    if part.exists():
        return
    start = time.perf_counter()
    vectors = load_vectors(experiment)
    seed = experiment.seed + number
    splits, tests = _questions(experiment, vectors, seed)
    content: dict[str, Any] = {"model": model, "seed": seed}
    kind = MODELS[model]
    answer: Any = offset
    if kind.build is not None:
        parameters = _parameters(experiment, folder, model)
        content |= {"parameters": dict(parameters), "stages": []}
        networks = []
        for own, files in zip(kind.seeds(seed), _stage_files(part, kind), strict=True):
            networks.append(kind.build(vectors.dim, parameters, own))
            for stage, file in zip(kind.stages, files, strict=True):
                settings = experiment.settings(stage, parameters)
                share = 0.9 / (kind.members * len(kind.stages) * settings.epochs)
                done = _run_stage(
                    networks[-1],
                    stage,
                    settings,
                    vectors,
                    splits,
                    part=kind.part,
                    seed=own,
                    file=file,
                    on_epoch=partial(tell, share),
                )
                content["stages"].append(done)
        answer = kind.joined(networks)
        answer.eval()
        save(answer, folder / "models" / f"{model}-{seed}")
    content["tables"] = [result_table(evaluate(vectors, questions, {model: answer}), model) for questions in tests]
    write_json(part, content | {"seconds": time.perf_counter() - start})
    for file in itertools.chain(*_stage_files(part, kind)):
        file.with_suffix(".checkpoint").unlink(missing_ok=True)


def _stage_files(part: Path, kind: AnalogyModel) -> list[list[Path]]:
    """Returns the file of each stage of each member, without its suffix."""
    members = [part.stem] if kind.members == 1 else [f"{part.stem}-{number}" for number in range(kind.members)]
    return [[part.with_name(f"{member}-{stage}") for stage in range(len(kind.stages))] for member in members]


def _run_stage(
    network: Network,
    stage: Stage,
    settings: Settings,
    vectors: WordVectors,
    splits: Splits,
    *,
    part: Literal["train", "development"],
    seed: int,
    file: Path,
    on_epoch: Callable[[], None],
) -> dict[str, Any]:
    """Trains a network in place, and returns what is kept of the stage.

    The checkpoint of a completed stage has its last parameters, from which an interrupted run continues.
    """
    result = train(
        network,
        *stage.objective(vectors, getattr(splits, part)),
        settings=settings,
        seed=seed,
        validation=_validation(vectors, splits),
        checkpoint=file.with_suffix(".checkpoint"),
        checkpoint_every=1,
        history=file.with_suffix(".jsonl"),
        on_epoch=lambda *_: on_epoch(),
    )
    losses = {"loss": result.loss.item(), "validation": _item(result.validation)}
    return {"settings": asdict(settings), "epochs": result.epochs} | losses


def _search(experiment: AnalogyExperiment, folder: Path, unit: tuple[str], tell: Tell) -> None:
    """Searches the paper's space for the smallest validation loss on the first split."""
    (model,) = unit
    vectors = load_vectors(experiment)
    splits, _ = _questions(experiment, vectors, experiment.seed)
    kind = MODELS[model]
    assert kind.build is not None
    build, (stage,) = kind.build, kind.stages
    data, loss = stage.objective(vectors, splits.train)

    def value(candidates: Sequence[Candidate], claim: Path) -> list[float]:
        values = []
        for candidate in candidates:
            network = build(vectors.dim, candidate.parameters, experiment.seed)
            result = train(
                network,
                data,
                loss,
                settings=experiment.settings(stage, candidate.parameters),
                seed=experiment.seed,
                validation=_validation(vectors, splits),
                checkpoint=claim / f"{candidate.number}.safetensors",
                checkpoint_every=5,
            )
            values.append(_item(result.validation))
        tell(len(candidates) / experiment.trials)
        return values

    _open_search(experiment, folder, model).run(value)


def _open_search(experiment: AnalogyExperiment, folder: Path, model: str) -> Search:
    space = MODELS[model].space
    assert space is not None
    return Search(folder / "search", model, space, trials=experiment.trials, batch=1, seed=experiment.seed)


def _parameters(experiment: AnalogyExperiment, folder: Path, model: str) -> Parameters:
    if experiment.trials and MODELS[model].space:
        return _open_search(experiment, folder, model).best().parameters
    return MODELS[model].parameters or {}


def _questions(experiment: AnalogyExperiment, vectors: WordVectors, seed: int) -> tuple[Splits, list[Questions]]:
    """Returns the splits for training and validation, and all test questions."""
    if experiment.bats is None:
        splits = google_pairs(vectors, seed=seed)
        tests = [splits.test]
    else:
        splits = bats_questions(vectors, experiment.bats, seed=seed)
        tests = [splits.test, google_questions(vectors)]
    for questions in (splits.train, splits.validation, *tests):
        if len(questions) == 0:
            raise AbelnetError(f"vectors: expected words of {questions.title}, got none")
    return splits, tests


def _validation(vectors: WordVectors, splits: Splits) -> Validate:
    """Returns the paper's loss on the validation questions, whatever the training loss."""
    data, loss = _cosine(vectors, splits.validation)
    return lambda model: loss(model, data)


def result_table(evaluation: Evaluation, model: str) -> dict[str, Any]:
    """Returns the numbers of questions and correct answers of each row, by setting."""
    rows = evaluation.rows()
    sections = [section.name for section in evaluation.questions.sections]
    return {
        "title": evaluation.questions.title,
        "sections": sections,
        "questions": {row.name: row.questions for row in rows},
        "correct": {setting: {row.name: row.correct[setting][model] for row in rows} for setting in rows[0].correct},
    }


def _item(value: Tensor | None) -> float:
    return float("nan") if value is None else value.item()


def _part(folder: Path, model: str, number: int) -> Path:
    return folder / "parts" / f"{model}-{number}.json"
