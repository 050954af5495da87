"""Report of the universality experiment: errors by model and multiset size."""

from __future__ import annotations

__all__ = ["universality_report", "universality_table"]

from collections.abc import Sequence
from statistics import geometric_mean

from abelnet.errors import AbelnetError
from abelnet.experiments.universality import TEST_SETS, UniversalityRow
from abelnet.reporting.charts import Chart
from abelnet.reporting.report import Report, Section
from abelnet.reporting.synthetic import errors_chart
from abelnet.reporting.table import Cell, Column, Table


def universality_report(rows: Sequence[UniversalityRow]) -> Report:
    """Returns a report with a table of all models, and a chart for each number of dimensions."""
    dims = sorted({row.dim for row in rows})
    figures = {f"universality_{dim}": _chart([row for row in rows if row.dim == dim], dim) for dim in dims}
    section = Section(tables=[universality_table(rows)], figures=figures)
    return Report("Groups from random diffeomorphisms", [section])


def universality_table(rows: Sequence[UniversalityRow]) -> Table:
    """Returns a table with one row per model and random group: number of parameters, and RMSE at each size.

    Example:
        >>> universality_table([UniversalityRow(2, 0, "DeepSets", 100, [2, 50], [0.5, 2.0])]).headings
        ['dim', 'seed', 'model', 'parameters', '2', '50']
    """
    if not rows:
        raise AbelnetError("rows: expected at least one, got none")
    sizes = rows[0].sizes
    columns = [Column("dim", "right"), Column("seed", "right"), Column("model"), Column("parameters", "right")]
    columns += [Column(str(size), "right") for size in sizes]
    lines = []
    for row in rows:
        errors = (f"{error:.3g}" for error in row.rmse)
        lines.append([Cell(text) for text in (str(row.dim), str(row.seed), row.model, str(row.parameters), *errors)])
    note = f"RMSE on {TEST_SETS:,} test multisets of each size; trained on sizes 2–4."
    return Table("RMSE by multiset size", columns, lines, [note])


def _chart(rows: Sequence[UniversalityRow], dim: int) -> Chart:
    curves = {}
    for name in dict.fromkeys(row.model for row in rows):
        errors = zip(*(row.rmse for row in rows if row.model == name), strict=True)
        curves[name] = rows[0].sizes, [geometric_mean(of_size) for of_size in errors]
    return errors_chart(f"Groups on R^{dim}", curves, "RMSE, geometric mean of seeds (unit of the results)")
