r"""The models of an analogy experiment with several example pairs of a relation, by any method.

Each pair of a split and a number of examples is a unit of work: it completes the test pairs of the split from its other
pairs, which the models may have been trained on, and pairs of the Google test set from all others of their relation.
"""

from __future__ import annotations

__all__ = ["Completions", "in_words", "run_completions"]

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from abelnet.experiments.analogies.experiment import MODELS, AnalogyExperiment, load_vectors, read_analogies
from abelnet.experiments.running import Tell, claim_folder, run_units, write_results
from abelnet.files import write_json
from abelnet.saving import load
from abelnet.words.evaluation import Evaluation
from abelnet.words.methods import named_methods
from abelnet.words.models import Offset
from abelnet.words.questions import Pairs
from abelnet.words.shots import evaluate_methods, named_pairs, parse_shots

_TABLE = {"title": str, "sections": [str], "questions": {str: int}, "correct": {str: {str: {str: int}}}}
_PART = {"seed": int, "shots": str, "tables": [_TABLE]}


@dataclass(frozen=True)
class Completions:
    """Configuration of what is asked of the models of an experiment.

    Attributes:
        shots: Numbers of example pairs, or ``"all"``.
        methods: Keys of :data:`abelnet.words.methods.METHODS`.
    """

    shots: tuple[str, ...] = ("1", "5", "all")
    methods: tuple[str, ...] = ("3cosavg", "lrcos", "weighted", "joined", "spelled")

    def __post_init__(self) -> None:
        for one in self.shots:
            parse_shots(one)
        named_methods(self.methods, {"wv": Offset()})


def in_words(shots: str) -> str:
    """Returns a number of example pairs in words.

    Example:
        >>> in_words("1"), in_words("all")
        ('1 pair', 'all pairs')
    """
    return f"{shots} {'pair' if shots == '1' else 'pairs'}"


def run_completions(
    folder: str | Path,
    completions: Completions,
    *,
    jobs: int = 1,
    on_unit: Callable[[str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Runs all incomplete units, and writes ``several/results.json`` in the folder of the experiment.

    Arguments:
        folder: Output folder of an experiment that has finished, with its trained models.
        completions: What is asked.
        jobs: Number of single-threaded worker processes.
        on_unit: Called with a description of each completed unit.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Returns:
        The contents of ``results.json``.
    """
    results = read_analogies(folder)
    experiment = AnalogyExperiment(**results["experiment"] | {"models": tuple(results["experiment"]["models"])})
    own = Path(folder) / "several"
    claim_folder(own, asdict(completions) | {"models": experiment.models, "seeds": experiment.seeds})
    start = time.perf_counter()
    load_vectors(experiment)  # so that errors are reported once, and all processes find the cache
    units = [(number, shots) for number in range(experiment.seeds) for shots in completions.shots]
    run_units(
        partial(_run_unit, experiment, completions, Path(folder)),
        units,
        jobs=jobs,
        on_unit=lambda unit: (
            None if on_unit is None else on_unit(f"{in_words(unit[1])}, seed {experiment.seed + unit[0]}")
        ),
        on_progress=on_progress,
    )
    settings = asdict(experiment) | asdict(completions)
    return write_results(own, settings, [_part(own, *unit) for unit in units], time.perf_counter() - start, _PART)


def _run_unit(
    experiment: AnalogyExperiment, completions: Completions, folder: Path, unit: tuple[int, str], tell: Tell
) -> None:
    number, shots = unit
    part = _part(folder / "several", *unit)
    if part.exists():
        return
    start = time.perf_counter()
    vectors = load_vectors(experiment)
    seed = experiment.seed + number
    trained = [model for model in experiment.models if MODELS[model].build is not None]
    models = {"wv": Offset()} | {model: load(folder / "models" / f"{model}-{seed}").eval() for model in trained}
    methods = named_methods(completions.methods, models)
    bats = experiment.bats
    queries, examples = named_pairs(vectors, bats or "google", seed=seed)
    asked: dict[str, tuple[Pairs, Pairs, Tensor | None]] = {queries.title: (queries, examples, None)}
    if bats is not None:
        pairs, others = named_pairs(vectors, "google", protocol="leave-one-out")
        asked["Google, leave-one-out"] = (pairs, others, _shared(pairs, examples))
    tables = []
    for done, (title, (queries, examples, seen)) in enumerate(asked.items(), 1):
        found = evaluate_methods(vectors, queries, examples, methods, shots=parse_shots(shots), seed=seed)
        tables.append(_table(title, found, seen))
        tell(done / len(asked) - (done - 1) / len(asked))
    write_json(part, {"seed": seed, "shots": shots, "tables": tables, "seconds": time.perf_counter() - start})


def _shared(pairs: Pairs, others: Pairs) -> Tensor:
    """Returns which pairs are among others, in either direction and with any accepted answer, as a mask."""
    known = {key for c, answers in _accepted(others) for d in answers for key in ((c, d), (d, c))}
    return torch.tensor([any((c, d) in known for d in answers) for c, answers in _accepted(pairs)])


def _accepted(pairs: Pairs) -> Iterator[tuple[int, list[int]]]:
    for c, answers in zip(pairs.words.tolist(), pairs.answers[pairs.answer].tolist(), strict=True):
        yield c, [d for d in answers if d >= 0]


def _table(title: str, found: Evaluation, seen: Tensor | None) -> dict[str, Any]:
    """Returns the numbers of questions, and of correct answers by method, setting and row."""
    rows = [(row.name, row.questions, row.correct) for row in found.rows()]
    if seen is not None:
        for name, kind in (("pair seen in training", seen), ("pair not seen", ~seen)):
            counts = dict(zip(found.settings, found.correct[:, :, kind].sum(-1).tolist(), strict=True))
            correct = {setting: dict(zip(found.models, line, strict=True)) for setting, line in counts.items()}
            rows.append((name, int(kind.sum()), correct))
    return {
        "title": title,
        "sections": [section.name for section in found.questions.sections],
        "questions": {name: questions for name, questions, _ in rows},
        "correct": {
            method: {
                setting: {name: correct[setting][method] for name, _, correct in rows} for setting in found.settings
            }
            for method in found.models
        },
    }


def _part(folder: Path, number: int, shots: str) -> Path:
    return folder / "parts" / f"{shots}-{number}.json"
