"""Report of the analogy experiment in the layout of the paper, with the published results."""

from __future__ import annotations

__all__ = ["analogy_report", "analogy_tables", "completion_report"]

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from abelnet.experiments.analogies.completions import in_words
from abelnet.experiments.analogies.experiment import MODELS
from abelnet.experiments.published import published
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

_SETTINGS = {"all_candidates": "all words are candidates", "excluding_abc": "all but a, b and c are candidates"}
_QUERY_SETTINGS = {"all_candidates": "all words are candidates", "excluding_query": "all but the query are candidates"}


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
    accuracies = {model: _counted(tables, setting, name) for model, tables in by_model.items()}
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


def completion_report(results: dict[str, Any]) -> Report:
    """Returns a report of a run with several example pairs: methods by the number of pairs, and by category.

    Arguments:
        results: Return value of :func:`~abelnet.experiments.analogies.completions.run_completions`.
    """
    experiment = results["experiment"]
    note = (
        f"Accuracy (%), mean (min – max) over {experiment['seeds']} seeds, each a split with its own trained models "
        f"and its own draw of examples; vectors: {experiment['vectors'] or 'bundled'}. Examples of test pairs are the "
        f"train and validation pairs of the same relation. The best result of each column is bold. Total: "
        f"{results['seconds_in_units']:.0f} s on one core."
    )
    by_title: dict[str, dict[str, dict[str, list[dict[str, Any]]]]] = {}
    for row in results["rows"]:
        for table in row["tables"]:
            by_method = by_title.setdefault(table["title"], {}).setdefault(row["shots"], {})
            by_method.setdefault(row["method"], []).append(table)
    sections = []
    for title, by_shots in by_title.items():
        first = next(iter(next(iter(by_shots.values())).values()))[0]
        categories = [name for name in first["questions"] if name not in first["sections"]]
        tables = []
        for setting, meaning in _QUERY_SETTINGS.items():
            overall = {in_words(shots): (by_method, "Overall") for shots, by_method in by_shots.items()}
            tables.append(_by_method(f"{title}, {meaning}", overall, setting))
            for shots, by_method in by_shots.items():
                heading = f"{title}, {in_words(shots)}, {meaning}"
                tables.append(_by_method(heading, {name: (by_method, name) for name in categories}, setting))
        sections.append(Section(tables=tables))
    return Report("Words completed from several example pairs", sections, [note])


def _by_method(
    title: str, columns: Mapping[str, tuple[Mapping[str, Sequence[dict[str, Any]]], str]], setting: str
) -> Table:
    """Returns a table with a row for each method; each column is one row of the tables of all splits."""
    cells = [
        _cells(_counted(tables, setting, name) for tables in by_method.values()) for by_method, name in columns.values()
    ]
    methods = next(iter(columns.values()))[0]
    rows = [[Cell(method), *row] for method, row in zip(methods, zip(*cells, strict=True), strict=True)]
    return Table(title, [Column(""), *(Column(heading, "right") for heading in columns)], rows)


def _counted(tables: Sequence[dict[str, Any]], setting: str, name: str) -> list[float]:
    """Returns the accuracies (%) in one row of the tables of all splits."""
    return _accuracies((table["correct"][setting][name], table["questions"][name]) for table in tables)
