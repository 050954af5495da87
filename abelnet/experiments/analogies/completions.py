r"""The models of an analogy experiment with several example pairs of a relation, by any method.

A method, in the coordinates of a model if it takes one, with some number of examples on one split is a unit of work: it
completes the test pairs of the split from its other pairs, which the model may have been trained on, and pairs of the
Google test set from all others of their relation.
"""

from __future__ import annotations

__all__ = ["Completions", "in_words", "run_completions"]

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from abelnet.experiments.analogies.experiment import (
    MODELS,
    RESULT_TABLE,
    AnalogyExperiment,
    load_vectors,
    read_analogies,
    result_table,
)
from abelnet.experiments.running import Tell, run_units, write_results
from abelnet.files import write_json
from abelnet.saving import load
from abelnet.words.methods import METHODS, named_method
from abelnet.words.models import Offset
from abelnet.words.questions import Pairs
from abelnet.words.shots import evaluate_methods, named_pairs, parse_shots

_PART = {"method": str, "seed": int, "shots": str, "tables": [RESULT_TABLE]}


class _Unit(NamedTuple):
    method: str
    model: str | None
    number: int
    shots: str

    @property
    def title(self) -> str:
        return self.method if self.model is None else f"{self.method} {self.model}"

    def part(self, folder: Path) -> Path:
        return folder / "several" / f"{self.title.replace(' ', '-')}-{self.shots}-{self.number}.json"


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
        for name in self.methods:
            named_method(name)


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
        folder: Output folder of an experiment that has finished, with its trained models. More numbers of examples and
            more methods may be added to it, and more models and seeds by the experiment.
        completions: What is asked.
        jobs: Number of single-threaded worker processes.
        on_unit: Called with a description of each completed unit.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Returns:
        The contents of ``results.json``.
    """
    results = read_analogies(folder)
    experiment = AnalogyExperiment(**results["experiment"] | {"models": tuple(results["experiment"]["models"])})
    folder = Path(folder)
    start = time.perf_counter()
    load_vectors(experiment)  # so that errors are reported once, and all processes find the cache
    trained = [model for model in experiment.models if MODELS[model].build is not None]
    units = [
        _Unit(method, model, number, shots)
        for number in range(experiment.seeds)
        for shots in completions.shots
        for method in completions.methods
        for model in (["wv", *trained] if METHODS[method].takes_model else [None])
    ]
    tell = (lambda text: None) if on_unit is None else on_unit
    run_units(
        partial(_run_unit, experiment, folder),
        units,
        jobs=jobs,
        on_unit=lambda unit: tell(f"{_Unit(*unit).title}, {in_words(unit[3])}, seed {experiment.seed + unit[2]}"),
        on_progress=on_progress,
    )
    parts = [unit.part(folder) for unit in units]
    settings = asdict(experiment) | asdict(completions)
    return write_results(folder / "several", settings, parts, time.perf_counter() - start, _PART)


def _run_unit(experiment: AnalogyExperiment, folder: Path, unit: Any, tell: Tell) -> None:
    unit = _Unit(*unit)
    part = unit.part(folder)
    if part.exists():
        return
    start = time.perf_counter()
    vectors = load_vectors(experiment)
    seed = experiment.seed + unit.number
    network: Any = Offset() if unit.model in (None, "wv") else load(folder / "models" / f"{unit.model}-{seed}").eval()
    methods = {unit.title: named_method(unit.method, network)}
    bats = experiment.bats
    queries, examples = named_pairs(vectors, bats or "google", seed=seed)
    asked: dict[str, tuple[Pairs, Pairs, Tensor | None]] = {queries.title: (queries, examples, None)}
    if bats is not None:
        pairs, others = named_pairs(vectors, "google", protocol="leave-one-out")
        asked["Google, leave-one-out"] = (pairs, others, _shared(pairs, examples))
    tables = []
    for title, (queries, examples, seen) in asked.items():
        found = evaluate_methods(vectors, queries, examples, methods, shots=parse_shots(unit.shots), seed=seed)
        table = result_table(found, unit.title) | {"title": title}
        if seen is not None:
            for name, kind in (("pair seen in training", seen), ("pair not seen", ~seen)):
                table["questions"][name] = int(kind.sum())
                for setting, correct in zip(found.settings, found.correct[:, 0, kind].sum(-1).tolist(), strict=True):
                    table["correct"][setting][name] = correct
        tables.append(table)
        tell(1 / len(asked))
    content = {"method": unit.title, "seed": seed, "shots": unit.shots, "tables": tables}
    write_json(part, content | {"seconds": time.perf_counter() - start})


def _shared(pairs: Pairs, others: Pairs) -> Tensor:
    """Returns which pairs are among others, in either direction and with any accepted answer, as a mask."""
    known = {key for c, answers in _accepted(others) for d in answers for key in ((c, d), (d, c))}
    return torch.tensor([any((c, d) in known for d in answers) for c, answers in _accepted(pairs)])


def _accepted(pairs: Pairs) -> Iterator[tuple[int, list[int]]]:
    for c, answers in zip(pairs.words.tolist(), pairs.answers[pairs.answer].tolist(), strict=True):
        yield c, [d for d in answers if d >= 0]
