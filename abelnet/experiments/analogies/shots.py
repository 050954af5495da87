"""Analogies with one and with several example pairs, and some answers, on pairs that no model was trained on."""

from __future__ import annotations

__all__ = ["METHODS", "Answered", "ShotRow", "accuracy_by_shots", "sample_answers"]

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from abelnet.words.evaluation import Model, evaluate
from abelnet.words.methods import named_method
from abelnet.words.models import AnalogyModel, Offset
from abelnet.words.questions import google_pairs
from abelnet.words.shots import evaluate_methods, named_pairs
from abelnet.words.vectors import WordVectors

METHODS = {
    "3CosAvg": ("3cosavg", False),
    "LRCos": ("lrcos", False),
    "joined, WV": ("joined", False),
    "group mean": ("3cosavg", True),
    "joined, AGN": ("joined", True),
}
"""Methods by title: each a key of :data:`abelnet.words.methods.METHODS`, and whether in the coordinates of a group."""


@dataclass(frozen=True)
class ShotRow:
    """Accuracy (%) of a method with some number of example pairs, in both settings of candidates."""

    method: str
    shots: int
    all_candidates: float
    excluding_query: float


@dataclass(frozen=True)
class Answered:
    """A question :math:`a : b = c : ?` with the best answer, and what each model said; whether that is accepted."""

    section: str
    words: tuple[str, str, str]
    answer: str
    said: dict[str, tuple[str, bool]]


def accuracy_by_shots(
    vectors: WordVectors,
    group: AnalogyModel,
    *,
    shots: Sequence[int],
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> list[ShotRow]:
    """Completes the test pairs of the Google split from examples among the other pairs of their relations.

    Arguments:
        vectors: The vocabulary.
        group: A group that was trained on none of the test pairs.
        shots: Numbers of example pairs.
        seed: Random seed of the split and of the examples.
        on_progress: Called with the completed fraction, from 0 to 1.

    Example:
        >>> rows = accuracy_by_shots(WordVectors.default(3000), Offset(), shots=(1,))
        >>> [row.method for row in rows]
        ['3CosAvg', 'LRCos', 'joined, WV', 'group mean', 'joined, AGN']
    """
    pairs = named_pairs(vectors, "google", seed=seed)
    methods = {
        title: named_method(name, group if in_group else Offset()) for title, (name, in_group) in METHODS.items()
    }
    rows = []
    for done, count in enumerate(shots, 1):
        overall = evaluate_methods(vectors, *pairs, methods, shots=count, seed=seed).rows()[0]
        everyone, others = overall.correct
        rows += [
            ShotRow(title, count, overall.percent(everyone, title), overall.percent(others, title)) for title in methods
        ]
        if on_progress is not None:
            on_progress(done / len(shots))
    return rows


def sample_answers(
    vectors: WordVectors, models: Mapping[str, Model], *, each: int = 1, seed: int = 0
) -> list[Answered]:
    """Answers some test questions of the Google split, drawn at random from each section, with all but a, b, c.

    Arguments:
        vectors: The vocabulary.
        models: Models by name.
        each: Number of questions of each section.
        seed: Random seed of the split and of the questions.

    Example:
        >>> answers = sample_answers(WordVectors.default(), {"WV": Offset()})
        >>> len(answers), answers[0].section
        (14, 'capital-common-countries')
    """
    questions = google_pairs(vectors, seed=seed).test
    generator = torch.Generator().manual_seed(seed)
    chosen = []
    for number in range(len(questions.sections)):
        places = (questions.section == number).nonzero()[:, 0]
        chosen.append(places[torch.randperm(len(places), generator=generator)[:each]])
    kept = torch.cat(chosen)
    asked = replace(
        questions, section=questions.section[kept], words=questions.words[kept], answer=questions.answer[kept]
    )
    found = evaluate(vectors, asked, models)
    answers = []
    for i, (rows, target) in enumerate(zip(asked.words.tolist(), asked.targets.tolist(), strict=True)):
        a, b, c = (vectors.index_to_key[row] for row in rows)
        said = {
            name: (vectors.index_to_key[int(found.predicted[1, j, i])], bool(found.correct[1, j, i]))
            for j, name in enumerate(found.models)
        }
        answers.append(
            Answered(asked.sections[int(asked.section[i])].name, (a, b, c), vectors.index_to_key[target], said)
        )
    return answers
