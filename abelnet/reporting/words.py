"""Tables of analogy answers and accuracies."""

from __future__ import annotations

__all__ = ["answer_table", "completion_table", "evaluation_table", "judged_table"]

from collections.abc import Sequence
from itertools import zip_longest

from abelnet.reporting.table import Cell, Column, Table
from abelnet.words.choices import Judged
from abelnet.words.completing import Completion
from abelnet.words.evaluation import Evaluation

_EXCLUDED = {"excluding_abc": "a, b and c", "excluding_query": "the query"}


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
                percent = f"{row.percent(setting, model):.1f}" if row.questions else "–"
                texts += [str(row.correct[setting][model]), percent]
        rows.append([Cell(text) for text in texts])
    note = "all: every word is a candidate; excluding: all but " + _EXCLUDED[evaluation.settings[1]] + "."
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


def completion_table(completion: Completion) -> Table:
    """Returns a table of the answers to one word, those of each method side by side.

    Example:
        >>> completion = Completion("germany", {"WV": [("berlin", 0.9)], "AGN": [("berlin", 0.8), ("bonn", 0.7)]})
        >>> [[cell.text for cell in row] for row in completion_table(completion).rows]
        [['berlin', '0.9000', 'berlin', '0.8000'], ['', '', 'bonn', '0.7000']]
    """
    columns = [column for name in completion.answers for column in (Column(name), Column("score", "right"))]
    rows = []
    for answers in zip_longest(*completion.answers.values()):
        texts = [
            text for answer in answers for text in (("", "") if answer is None else (answer[0], f"{answer[1]:.4f}"))
        ]
        rows.append([Cell(text) for text in texts])
    return Table(f"{completion.word} : ?", columns, rows)


def judged_table(judged: Sequence[Judged]) -> Table:
    """Returns a table of the accuracy (%) on SAT questions, or of rank correlations by relation.

    Example:
        >>> [cell.text for cell in judged_table([Judged("SAT", 374, 368, {"wv": 40.5})]).rows[0]]
        ['SAT', '368/374', '40.5']
    """
    is_sat = judged[0].name == "SAT"
    columns = [Column(""), Column("known", "right"), *(Column(name, "right") for name in judged[0].scores)]
    rows = [
        [Cell(row.name), Cell(f"{row.used}/{row.total}")]
        + [Cell(f"{score:.1f}" if is_sat else f"{score:.3f}") for score in row.scores.values()]
        for row in judged
    ]
    return Table("SAT: accuracy (%)" if is_sat else "SemEval-2012 Task 2: rank correlation", columns, rows)
