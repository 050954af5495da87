"""Report of the synthetic experiment with the published results, the winners of each row marked."""

from __future__ import annotations

__all__ = ["synthetic_report", "synthetic_table"]

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abelnet.experiments.published import published
from abelnet.experiments.synthetic.comparison import MODELS, median
from abelnet.experiments.synthetic.data import OPERATIONS
from abelnet.reporting.plots import Panel, draw
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[dict[str, Any]]
Curve = np.ndarray[Any, Any]

# The true φ, up to a factor (groups) or a power (semigroups), of the kind that the operation is.
_TRUE_CURVES: dict[str, tuple[str, Callable[[Curve], Curve]]] = {
    "sum": ("agn", lambda x: x),
    "sum_plus_one": ("agn", lambda x: x + 1),
    "cbrt": ("agn", lambda x: x**3),
    "product": ("asn", lambda x: x),
    "shifted_product": ("asn", lambda x: 1 + x / 2),
}


def synthetic_report(results: dict[str, Any]) -> Report:
    """Returns a report with the table and plots of a run.

    Arguments:
        results: Return value of :func:`~abelnet.experiments.synthetic.comparison.run`, or its ``results.json``.
    """
    experiment = results["experiment"]
    note = (
        f"RMSE, median (min – max) over {experiment['seeds']} fresh seeds, each model tuned with "
        f"{experiment['trials']} trials of {experiment['epochs']} epochs; searched: the model selected by the search, "
        f"as trained there, which is likely what the paper reports. The best result of each row is bold, separately "
        f"for each of the three. Total: {results['seconds_in_units']:.0f} s on one core."
    )
    rows = results["rows"]
    operations = dict.fromkeys(row["operation"] for row in rows)
    plots = {"error_by_size": _draw_errors, "learned_curves": _draw_curve}
    figures = draw(
        {
            name: [Panel(OPERATIONS[key].formula, partial(draw_panel, key, rows)) for key in operations]
            for name, draw_panel in plots.items()
        }
    )
    return Report("Synthetic size generalization", [Section(tables=[synthetic_table(rows)], figures=figures)], [note])


def synthetic_table(rows: Rows) -> Table:
    """Returns the RMSE of fresh seeds, median (min – max), of the models selected by the searches, and of the paper.

    The winner is marked separately for each of the three.

    Arguments:
        rows: The ``"rows"`` of ``results.json``, one per operation and model.
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    found = {(row["operation"], row["model"]): row for row in rows}
    titles = [MODELS[model].title for model in models]
    headings = [*titles, *(f"{title} ({of})" for of in ("searched", "paper") for title in titles)]
    lines = []
    for operation in dict.fromkeys(row["operation"] for row in rows):
        theirs = published()["synthetic_rmse"][operation]
        for part, sizes in (("small", "2–4"), ("large", "10–12")):
            ours = [found[operation, model][part] for model in models]
            chosen = [_or_infinite(found[operation, model]["chosen"][part]) for model in models]
            cells = [Cell(OPERATIONS[operation].formula), Cell(sizes)]
            cells += _marked([median(values) for values in ours], [_range(values) for values in ours])
            for values in (chosen, [theirs[model][part] for model in models]):
                cells += _marked(values, [f"{value:.3g}" for value in values])
            lines.append(cells)
    columns = [Column("operation"), Column("sizes"), *(Column(heading, "right") for heading in headings)]
    return Table("RMSE, median (range) over seeds, and published results", columns, lines)


def _marked(values: Sequence[float], texts: Sequence[str]) -> list[Cell]:
    best = min(values)
    return [Cell(text, value == best < math.inf) for value, text in zip(values, texts, strict=True)]


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


def _range(values: Sequence[float | None]) -> str:
    known = [_or_infinite(value) for value in values]
    return f"{median(values):.2e} ({min(known):.1e} – {max(known):.1e})"


def _draw_errors(operation: str, rows: Rows, axes: Axes) -> None:
    for i, row in enumerate(row for row in rows if row["operation"] == operation):
        sizes = [entry["size"] for entry in row["by_size"]]
        middle = [median(entry["rmse"]) for entry in row["by_size"]]
        errors = [[_or_infinite(value) for value in entry["rmse"]] for entry in row["by_size"]]
        axes.plot(sizes, middle, color=f"C{i}", marker=".", label=MODELS[row["model"]].title)
        axes.fill_between(sizes, [min(e) for e in errors], [max(e) for e in errors], color=f"C{i}", alpha=0.2)
    axes.axvspan(2, 4, color="0.9", zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="multiset size (training sizes shaded)", ylabel="RMSE")
    axes.legend()


def _draw_curve(operation: str, rows: Rows, axes: Axes) -> None:
    model, curve = _TRUE_CURVES[operation]
    learned = [row["curve"] for row in rows if row["operation"] == operation and row["model"] == model]
    x = np.linspace(-5, 5, 101)
    truth = curve(x)
    axes.plot(x, truth, color="0.6", linewidth=4, label="true φ")
    if learned:
        values = np.array(learned[0])
        if model == "agn":  # φ of a group is unique up to a factor
            values = values * (values @ truth) / (values @ values)
        else:  # of a semigroup up to a power, which preserves the sign
            power = _power(values, truth)
            values = np.sign(values) * np.abs(values) ** power
        axes.plot(x, values, color="C3", label=f"learned ({MODELS[model].title})")
    axes.set(xlabel="x", ylabel="φ(x)")
    axes.legend()


def _power(values: Curve, truth: Curve) -> float:
    kept = (np.abs(values) > 1e-3) & (np.abs(truth) > 1e-3) & (np.abs(np.abs(values) - 1) > 1e-3)
    if not kept.any():
        return 1.0
    logs = np.log(np.abs(values[kept]))
    return float(logs @ np.log(np.abs(truth[kept])) / (logs @ logs))
