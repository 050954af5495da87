"""Report of the analogy experiment in the layout of the paper, with the published results."""

from __future__ import annotations

__all__ = ["analogy_report", "analogy_tables"]

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from abelnet.experiments.analogies.experiment import MODELS
from abelnet.experiments.published import published
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

_SETTINGS = {"all_candidates": "all words are candidates", "excluding_abc": "all but a, b and c are candidates"}


def analogy_report(results: dict[str, Any]) -> Report:
    """Returns a report with all tables of a run.

    Arguments:
        results: Return value of :func:`~abelnet.experiments.analogies.experiment.run_analogies`.
    """
    experiment = results["experiment"]
    trained_on = "BATS" if experiment["bats"] else "the Google pairs"
    note = (
        f"Accuracy (%), mean (min – max) over {experiment['seeds']} seeds, each a split of {trained_on} with its own "
        f"training run; vectors: {experiment['vectors'] or 'bundled'}. The paper's results use other vectors: "
        f"{published()['analogies']['vectors']}. The best result of each row is bold, separately for ours and the "
        f"paper's. Total: {results['seconds_in_units']:.0f} s on one core."
    )
    return Report("Word analogies", [Section(tables=analogy_tables(results))], [note])


def analogy_tables(results: dict[str, Any]) -> list[Table]:
    """Returns all tables: for each question set and setting, overall and by category, then by section.

    Ours is the accuracy (%), mean (min – max) over seeds; the paper's is from other vectors. The winner of each row is
    marked, separately for ours and the paper's.

    Arguments:
        results: Return value of :func:`~abelnet.experiments.analogies.experiment.run_analogies`.
    """
    by_title: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in results["rows"]:
        for table in row["tables"]:
            by_title.setdefault(table["title"], {}).setdefault(row["model"], []).append(table)
    tables = []
    for title, by_model in by_title.items():
        first = next(iter(by_model.values()))[0]
        categories = [name for name in first["questions"] if name not in first["sections"]]
        for setting, meaning in _SETTINGS.items():
            theirs = published()["analogies"].get(title, {}).get(setting, {})
            headings = [MODELS[model].title for model in by_model]
            if theirs:
                headings += [f"{MODELS[model].title} (paper)" for model in by_model if model in theirs["Overall"]]
            columns = [Column(""), *(Column(heading, "right") for heading in ("num", *headings))]
            for names in (categories, first["sections"]):
                rows = [_row(name, setting, by_model, theirs) for name in names]
                tables.append(Table(f"{title}, {meaning}", columns, rows))
    return tables


def _row(
    name: str,
    setting: str,
    by_model: Mapping[str, Sequence[dict[str, Any]]],
    theirs: Mapping[str, Mapping[str, int]],
) -> list[Cell]:
    accuracies = {
        model: _accuracies((table["correct"][setting][name], table["questions"][name]) for table in tables)
        for model, tables in by_model.items()
    }
    questions = mean(table["questions"][name] for table in next(iter(by_model.values())))
    cells = [Cell(name), Cell(f"{questions:.0f}"), *_cells(accuracies.values())]
    if theirs:
        # The paper identifies subcategories of BATS by their codes.
        row = theirs[name if name in theirs else name.partition(" ")[0]]
        cells += _cells(_accuracies([(row[model], row["questions"])]) for model in by_model if model in row)
    return cells


def _accuracies(counts: Iterable[tuple[int, int]]) -> list[float]:
    """Returns the accuracies (%) of those splits that have questions."""
    return [100 * correct / questions for correct, questions in counts if questions]


def _cells(accuracies: Iterable[Sequence[float]]) -> list[Cell]:
    """Returns the means of each model, and from which to which they are; a dash where nothing was asked."""
    accuracies = list(accuracies)
    best = max((mean(values) for values in accuracies if values), default=0.0)
    cells = []
    for values in accuracies:
        spread = f" ({min(values):.1f} – {max(values):.1f})" if len(values) > 1 else ""
        cells.append(Cell(f"{mean(values):.1f}{spread}", mean(values) == best > 0) if values else Cell("–"))
    return cells
