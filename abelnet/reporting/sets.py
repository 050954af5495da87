"""Report of the set experiment: accuracy of each aggregation by task and test sets, winners marked."""

from __future__ import annotations

__all__ = ["set_report", "set_table"]

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from abelnet.experiments.sets.data import TASKS
from abelnet.experiments.sets.models import AGGREGATIONS
from abelnet.reporting.plots import Panel, draw
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[dict[str, Any]]


def set_report(results: dict[str, Any]) -> Report:
    """Returns a report with the tables and plots of a run.

    Arguments:
        results: Return value of :func:`~abelnet.experiments.sets.comparison.run`, or its ``results.json``.
    """
    rows = results["rows"]
    note = (
        "Accuracy in percent, mean ± standard deviation over runs, folds of cross-validation or random seeds. "
        "All models of a task have the same number of parameters up to 2%, and the same training. Each run selects its "
        "learning rate and weight decay on its own validation sets. The best mean of each column is bold. "
        f"Total: {results['seconds_in_units']:.0f} s on one core."
    )
    sections = []
    for name in dict.fromkeys(row["task"] for row in rows):
        some = [row for row in rows if row["task"] == name]
        figures = draw({f"accuracy_{name}": [Panel(TASKS[name].title, partial(_draw_accuracies, some))]})
        sections.append(Section(TASKS[name].title, tables=[set_table(some)], figures=figures))
    return Report("Classification of sets", sections, [note])


def set_table(rows: Rows) -> Table:
    """Returns the accuracy of each aggregation on one task, its settings and number of parameters.

    Arguments:
        rows: Rows of ``results.json`` of one task.
    """
    task = TASKS[rows[0]["task"]]
    means = {place: [statistics.fmean(_accuracies(row, place)) for row in rows] for place in task.tests}
    lines = []
    for i, row in enumerate(rows):
        cells = [Cell(AGGREGATIONS[row["model"]].title)]
        for place in task.tests:
            values = _accuracies(row, place)
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            cells.append(Cell(f"{means[place][i]:.1f}{spread}", means[place][i] == max(means[place])))
        known = [one["validation"] for one in row["runs"] if one["validation"] is not None]
        cells.append(Cell(f"{statistics.fmean(known):.1f}" if known else "–"))
        chosen = Counter(f"{one['lr']:g}, {one['weight_decay']:g}" for one in row["runs"])
        cells.append(Cell("; ".join(f"{settings} (×{count})" for settings, count in sorted(chosen.items()))))
        cells += [Cell(str(row["runs"][0]["parameters"])), Cell(str(len(row["runs"])))]
        lines.append(cells)
    places = [Column("test" if len(task.tests) == 1 else f"test, {place} points", "right") for place in task.tests]
    columns = [Column("aggregation"), *places, Column("validation", "right")]
    columns += [Column("learning rate, weight decay"), Column("parameters", "right"), Column("runs", "right")]
    return Table(f"Accuracy (%): {task.title}", columns, lines)


def _accuracies(row: dict[str, Any], place: str) -> list[float]:
    """Returns the accuracy of each run; 0 of a model whose training diverged."""
    return [one["accuracies"][place] or 0.0 for one in row["runs"]]


def _draw_accuracies(rows: Rows, axes: Axes) -> None:
    places = list(TASKS[rows[0]["task"]].tests)
    names = [AGGREGATIONS[row["model"]].title for row in rows]
    for i, place in enumerate(places):
        values = [_accuracies(row, place) for row in rows]
        middle = [statistics.fmean(one) for one in values]
        errors = [statistics.stdev(one) / math.sqrt(len(one)) if len(one) > 1 else 0.0 for one in values]
        axes.errorbar(middle, range(len(rows)), xerr=errors, fmt="os^D"[i % 4], label=f"{place} points", alpha=0.8)
    axes.set_yticks(range(len(rows)), names, fontsize=6)
    axes.invert_yaxis()
    axes.set(xlabel="accuracy (%), mean and standard error")
    axes.legend(fontsize=6)
