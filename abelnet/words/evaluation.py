"""Accuracy of models on analogy questions over the whole vocabulary, with and without the question words excluded."""

from __future__ import annotations

__all__ = ["SETTINGS", "Evaluation", "Model", "Row", "evaluate", "offset"]

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from abelnet.errors import AbelnetError
from abelnet.files import replacing, write_json
from abelnet.words.questions import Asked, Questions
from abelnet.words.retrieval import nearest
from abelnet.words.vectors import WordVectors

Model = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Maps unit vectors of a, b and c, each with shape :math:`(n, d)`, to predictions of the vector of d."""

SETTINGS = ("all_candidates", "excluding_abc")
_QUESTIONS = 8192


def offset(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    r"""Vector offset model (WV): :math:`b - a + c`.

    Example:
        >>> offset(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), torch.tensor([2.0, 0.0]))
        tensor([2., 1.])
    """
    return b - a + c


@dataclass(frozen=True)
class Row:
    """Row of a result table.

    Attributes:
        name: Overall, a category or a section.
        questions: Number of questions.
        correct: Number of correct answers by setting and model.
    """

    name: str
    questions: int
    correct: dict[str, dict[str, int]]

    def percent(self, setting: str, model: str) -> float:
        """Returns the accuracy (%); NaN if there are no questions."""
        return 100 * self.correct[setting][model] / self.questions if self.questions else math.nan


@dataclass(frozen=True)
class Evaluation:
    r"""Answers of all models.

    Attributes:
        questions: The :math:`n` questions.
        models: Names of the :math:`m` models.
        predicted: Rows of the answers, with shape :math:`(2, m, n)`: first with all words as candidates, then excluding
            :math:`a, b` and :math:`c`.
        correct: Whether the answers are accepted, with the same shape.
        settings: Names of both settings.
    """

    questions: Asked
    models: tuple[str, ...]
    predicted: Tensor
    correct: Tensor
    settings: tuple[str, str] = SETTINGS

    def rows(self) -> list[Row]:
        """Returns the overall row, then one per category and per non-empty section, as in the tables of the paper."""
        sections = self.questions.sections
        groups: dict[str, list[int]] = {"Overall": list(range(len(sections)))}
        for number, section in enumerate(sections):
            groups.setdefault(section.category, []).append(number)
        groups |= {section.name: [number] for number, section in enumerate(sections)}
        rows = []
        for name, numbers in groups.items():
            chosen = torch.isin(self.questions.section, torch.tensor(numbers))
            counts = self.correct[:, :, chosen].sum(-1).tolist()
            correct = {
                setting: dict(zip(self.models, line, strict=True))
                for setting, line in zip(self.settings, counts, strict=True)
            }
            rows.append(Row(name, int(chosen.sum()), correct))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Returns all results as plain data for JSON."""
        rows = self.rows()
        tables = {
            setting: {
                row.name: {"questions": row.questions}
                | {model: row.correct[setting][model] for model in self.models}
                | {
                    f"{model}_percent": round(row.percent(setting, model), 4) if row.questions else None
                    for model in self.models
                }
                for row in rows
            }
            for setting in self.settings
        }
        sections = {
            section.name: {"category": section.category, "total": section.total, "used": section.used}
            for section in self.questions.sections
        }
        return {"title": self.questions.title, "models": list(self.models), "sections": sections} | tables

    def write_json(self, path: str | Path) -> None:
        """Writes :meth:`to_dict` as JSON."""
        write_json(Path(path), self.to_dict())

    def write_csv(self, path: str | Path) -> None:
        """Writes one line per row, setting and model: name, setting, model, num, correct, percent."""
        with replacing(Path(path)) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["name", "setting", "model", "num", "correct", "percent"])
            for setting in self.settings:
                for row in self.rows():
                    for model in self.models:
                        percent = f"{row.percent(setting, model):.4f}" if row.questions else ""
                        writer.writerow([row.name, setting, model, row.questions, row.correct[setting][model], percent])


def evaluate(
    vectors: WordVectors,
    questions: Questions,
    models: Mapping[str, Model] | None = None,
    *,
    on_progress: Callable[[float], None] | None = None,
) -> Evaluation:
    r"""Evaluates models on analogy questions, answered by the word with the largest cosine to the prediction.

    Candidates are all words of the vocabulary, and in a second setting all except :math:`a, b, c`; one pass over the
    vocabulary serves both settings and all models.

    Arguments:
        vectors: The vocabulary.
        questions: The questions.
        models: Models by name; ``{"wv": offset}`` if None.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Example:
        >>> from abelnet.words.questions import google_questions
        >>> table = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        >>> vectors = WordVectors(["man", "king", "woman", "queen"], table)
        >>> evaluate(vectors, google_questions(vectors)).rows()[0]
        Row(name='Overall', questions=2, correct={'all_candidates': {'wv': 2}, 'excluding_abc': {'wv': 2}})
    """
    models = {"wv": offset} if models is None else dict(models)
    if not models:
        raise AbelnetError("models: expected at least one model, got none")
    distinct, index = torch.unique(questions.words, return_inverse=True)
    elements = vectors.units(distinct)
    with torch.no_grad():
        queries = torch.stack([_predictions(name, model, elements, index) for name, model in models.items()])
    # Three words are excluded, so the four nearest include the nearest of the others.
    found = nearest(vectors.vectors, queries, min(4, len(vectors)), norms=vectors.norms, on_progress=on_progress)
    others = found.excluding(questions.words.expand(len(models), -1, -1))
    predicted = torch.stack((found.indices[..., 0], others.indices[..., 0]))
    return Evaluation(questions, tuple(models), predicted, questions.accepts(predicted))


def _predictions(name: str, model: Model, elements: Tensor, index: Tensor) -> Tensor:
    """Returns the predictions of a model, which is given each distinct word once if it answers many questions."""
    answer = getattr(model, "analogies", None)
    if answer is None:
        parts = torch.split(index, _QUESTIONS)
        given = torch.cat([model(*elements[part].unbind(-2)) for part in parts])
    else:
        given = answer(elements, index)
    expected = (len(index), elements.shape[1])
    if given.shape != expected:
        raise AbelnetError(f"{name}: expected outputs of shape {expected}, got {tuple(given.shape)}")
    return given.to(elements.dtype)
