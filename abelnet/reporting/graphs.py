"""Report of the graph experiment: errors of each aggregation by form of network and test graphs, winners marked."""

from __future__ import annotations

__all__ = ["graph_report", "graph_table", "law_table"]

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from abelnet.experiments.graphs.comparison import PLACES, RATES, median
from abelnet.experiments.graphs.data import TASKS
from abelnet.experiments.graphs.rivals import AGGREGATIONS
from abelnet.reporting.plots import Panel, draw
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[dict[str, Any]]

_ROUNDING = 1e-6
"""Relative errors below are those of float32: results that differ by less are the same."""

_LAWS = 3
"""Laws of a seed that are shown, where channels have different ones."""


def graph_report(results: dict[str, Any]) -> Report:
    """Returns a report with the tables and plots of a run.

    Arguments:
        results: Return value of :func:`~abelnet.experiments.graphs.comparison.run`, or its ``results.json``.
    """
    experiment, rows = results["experiment"], results["rows"]
    forms = dict.fromkeys(row["form"] for row in rows)
    rates = "; ".join(f"{form}: {' or '.join(f'{rate:g}' for rate in RATES[form])}" for form in forms)
    seeds = f"median (min – max) over {experiment['seeds']} seeds" if experiment["seeds"] > 1 else "1 seed"
    note = (
        f"Relative RMSE (in standard deviations of the results on test graphs of 5–20 nodes), {seeds}, "
        f"of models trained for {experiment['steps']} steps on graphs of 5–20 nodes. "
        f"Learning rates ({rates}), losses and starts are selected on validation graphs of 5–20 nodes with the first "
        f"seed. The best median of each row is bold, with all that are below {_ROUNDING:g}, the rounding of float32. "
        f"Total: {results['seconds_in_units']:.0f} s on one core."
    )
    exact = _exact_rivals(rows)
    if exact:
        note += f" Exact rivals, which no error can be far below: {exact}."
    sections = []
    for form in forms:
        some = [row for row in rows if row["form"] == form]
        tables = [graph_table(some, place) for place in PLACES]
        if any(AGGREGATIONS[row["model"]].is_ours for row in some):
            tables.append(law_table(some))
        panels = [Panel(place.title, partial(_draw_errors, key, some)) for key, place in PLACES.items()]
        figures = draw({f"errors_{form}": panels})
        sections.append(Section(f"{form.capitalize()} messages", tables=tables, figures=figures))
    return Report("Aggregations in message-passing networks", sections, [note])


def graph_table(rows: Rows, place: str) -> Table:
    """Returns the relative RMSE of each task and aggregation, median (min – max) over seeds.

    Arguments:
        rows: Rows of ``results.json`` of one form of network.
        place: Test graphs, a key of :data:`~abelnet.experiments.graphs.comparison.PLACES`.
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    errors = {(row["task"], row["model"]): [run["errors"][place] for run in row["runs"]] for row in rows}
    lines = []
    for task in dict.fromkeys(row["task"] for row in rows):
        found = [errors.get((task, model)) for model in models]
        middle = [math.inf if values is None else median(values) for values in found]
        best = max(min(middle), _ROUNDING)
        cells = [Cell(TASKS[task].title), Cell(TASKS[task].formula)]
        cells += [
            Cell("–") if values is None else Cell(_range(values), value <= best < math.inf)
            for values, value in zip(found, middle, strict=True)
        ]
        lines.append(cells)
    titles = [AGGREGATIONS[model].title for model in models]
    columns = [Column("task"), Column("aggregation"), *(Column(title, "right") for title in titles)]
    return Table(f"Relative RMSE, {PLACES[place].title}", columns, lines)


def law_table(rows: Rows) -> Table:
    """Returns the laws that ours chose on each task, and in how many channels: the most common ones of each seed.

    Arguments:
        rows: Rows of ``results.json`` of one form of network.
    """
    lines = []
    for row in rows:
        if AGGREGATIONS[row["model"]].is_ours:
            for run in row["runs"]:
                counts = Counter(run["laws"])
                shown = counts.most_common(_LAWS)
                laws = [law if count == 1 else f"{count} × {law}" for law, count in shown]
                if others := counts.total() - sum(count for _, count in shown):
                    laws.append(f"{others} more")
                lines.append([Cell(TASKS[row["task"]].title), Cell(str(run["seed"])), Cell(", ".join(laws))])
    return Table("Laws chosen", [Column("task"), Column("seed", "right"), Column("laws")], lines)


def _exact_rivals(rows: Rows) -> str:
    """Returns, as text, the rivals whose median errors are those of float32 on all test graphs, and on which tasks."""
    found: dict[str, list[str]] = {}
    for row in rows:
        errors = [median([run["errors"][place] for run in row["runs"]]) for place in PLACES]
        if not AGGREGATIONS[row["model"]].is_ours and max(errors) < _ROUNDING:
            title = f"{TASKS[row['task']].title} ({row['form']})"
            found.setdefault(title, []).append(AGGREGATIONS[row["model"]].title)
    return "; ".join(f"{', '.join(models)} on {title}" for title, models in found.items())


def _range(values: Sequence[float | None]) -> str:
    known = [math.inf if value is None else value for value in values]
    middle = f"{median(values):.1e}"
    return middle if len(known) == 1 else f"{middle} ({min(known):.0e} – {max(known):.0e})"


def _draw_errors(place: str, rows: Rows, axes: Axes) -> None:
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    for i, model in enumerate(dict.fromkeys(row["model"] for row in rows)):
        some = [row for row in rows if row["model"] == model]
        middle = [median([run["errors"][place] for run in row["runs"]]) for row in some]
        drawn = [(tasks.index(row["task"]), value) for row, value in zip(some, middle, strict=True) if value < math.inf]
        if drawn:
            places, values = zip(*drawn, strict=True)
            marker = "*" if AGGREGATIONS[model].is_ours else "ov^<>sDP"[i % 8]
            # Exact results have a place on the logarithmic axis.
            shown = [max(value, _ROUNDING / 10) for value in values]
            axes.plot(places, shown, marker, color=f"C{i % 10}", label=AGGREGATIONS[model].title, alpha=0.8)
    axes.set_xticks(range(len(tasks)), [TASKS[task].title for task in tasks], rotation=60, ha="right", fontsize=6)
    axes.set(yscale="log", ylabel="relative RMSE, median")
    axes.legend(fontsize=5, ncols=2)
