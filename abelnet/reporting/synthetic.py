"""Report of the synthetic experiment with the published results, the winners of each row marked."""

from __future__ import annotations

__all__ = ["curve_chart", "errors_chart", "synthetic_report", "synthetic_table"]

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from abelnet.experiments.published import published
from abelnet.experiments.synthetic.comparison import GRID, MODELS, median
from abelnet.experiments.synthetic.data import OPERATIONS, SMALL_SIZES
from abelnet.reporting.charts import Chart, Series
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

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
    """Returns a report with the table and charts of a run.

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
    figures = {f"error_by_size_{key}": _errors_chart(key, rows) for key in operations}
    for key in operations:
        chart = curve_chart(key, {row["model"]: row["curve"] for row in rows if row["operation"] == key})
        if chart is not None:
            figures[f"learned_curve_{key}"] = chart
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


def errors_chart(title: str, curves: Mapping[str, tuple[Sequence[int], Sequence[float]]], y_label: str) -> Chart:
    """Draws errors by multiset size, with the sizes of the training data shaded.

    Arguments:
        title: Title.
        curves: Sizes and errors by model; errors that are not finite are left out.
        y_label: Label of the errors, with their unit.
    """
    return Chart(
        title,
        "multiset size (number of elements)",
        y_label,
        [Series(name, *curve) for name, curve in curves.items()],
        x_log=True,
        y_log=True,
        shaded=(SMALL_SIZES[0], SMALL_SIZES[-1]),
        shaded_label="training sizes",
    )


def _errors_chart(operation: str, rows: Rows) -> Chart:
    curves = {
        MODELS[row["model"]].title: (
            [entry["size"] for entry in row["by_size"]],
            [median(entry["rmse"]) for entry in row["by_size"]],
        )
        for row in rows
        if row["operation"] == operation
    }
    return errors_chart(f"Error on {OPERATIONS[operation].formula}", curves, "RMSE, median of seeds (unit of results)")


def curve_chart(operation: str, learned: Mapping[str, Sequence[float] | None]) -> Chart | None:
    """Draws the φ that a model of the kind of the operation learned, with the true one.

    Arguments:
        operation: Key of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.
        learned: Curves over [−5, 5] by model.

    Returns:
        The chart, or None if that model was not trained.
    """
    model, curve = _TRUE_CURVES[operation]
    found = learned.get(model)
    if found is None:
        return None
    x = GRID.numpy().astype(float)
    truth, values = curve(x), np.array(found)
    if model == "agn":  # φ of a group is unique up to a factor
        values, unit = values * (values @ truth) / (values @ values), "up to a factor"
    else:  # of a semigroup up to a power, which preserves the sign
        values, unit = np.sign(values) * np.abs(values) ** _power(values, truth), "up to a power"
    title = f"φ of {OPERATIONS[operation].formula}, learned by {MODELS[model].title}"
    series = [Series("learned φ", x.tolist(), values.tolist()), Series("true φ", x.tolist(), truth.tolist(), "dashed")]
    return Chart(title, "x (element)", f"φ(x), {unit} (no unit)", series)


def _power(values: Curve, truth: Curve) -> float:
    kept = (np.abs(values) > 1e-3) & (np.abs(truth) > 1e-3) & (np.abs(np.abs(values) - 1) > 1e-3)
    if not kept.any():
        return 1.0
    logs = np.log(np.abs(values[kept]))
    return float(logs @ np.log(np.abs(truth[kept])) / (logs @ logs))
