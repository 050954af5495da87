"""Tables of analogy answers and accuracies."""

from __future__ import annotations

__all__ = ["answer_table", "evaluation_table"]

from collections.abc import Sequence

from abelnet.reporting.table import Cell, Column, Table
from abelnet.words.evaluation import Evaluation


def evaluation_table(evaluation: Evaluation) -> Table:
    """Returns a table of correct answers and accuracy of each model: overall, by category, and by section."""
    sections = {section.name: section for section in evaluation.questions.sections}
    columns = [Column(""), Column("known", "right"), Column("num", "right")]
    for setting in evaluation.settings:
        for model in evaluation.models:
            name = f"{setting.partition('_')[0]} {model}"
            columns += [Column(name, "right"), Column(f"{name} %", "right")]
    rows = []
    for row in evaluation.rows():
        section = sections.get(row.name)
        texts = [row.name, f"{section.used}/{section.total}" if section else "", str(row.questions)]
        for setting in evaluation.settings:
            for model in evaluation.models:
                texts += [str(row.correct[setting][model]), f"{row.percent(setting, model):.1f}"]
        rows.append([Cell(text) for text in texts])
    note = "all: every word is a candidate; excluding: all but a, b and c."
    return Table(f"{evaluation.questions.title}: correct answers", columns, rows, [note])


def answer_table(words: Sequence[str], found: Sequence[tuple[str, float]]) -> Table:
    """Returns a table of the words that :func:`~abelnet.words.asking.ask` found for one word, or for three.

    Example:
        >>> table = answer_table(["king", "man", "woman"], [("queen", 0.78)])
        >>> table.title, [cell.text for cell in table.rows[0]]
        ('king − man + woman', ['queen', '0.7800'])
    """
    title = words[0] if len(words) == 1 else "{} − {} + {}".format(*words)
    rows = [[Cell(word), Cell(f"{cosine:.4f}")] for word, cosine in found]
    return Table(title, [Column("word"), Column("cosine", "right")], rows)
