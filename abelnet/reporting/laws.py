"""Report of laws learned from a table: the law of each dimension, the evidence, and its errors."""

from __future__ import annotations

__all__ = ["law_overview", "law_report", "law_section", "write_law"]

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.formula import number
from abelnet.discovery.report import LearnedLaw
from abelnet.discovery.vectors.report import LearnedVectorLaw
from abelnet.engines.columns import Columns
from abelnet.errors import AbelnetError
from abelnet.files import write_text
from abelnet.multisets import Multisets
from abelnet.reporting.law_charts import agreement_chart, curve_chart, size_chart, size_errors
from abelnet.reporting.page import html_page
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table
from abelnet.reporting.vectors import facts, vector_overview, vector_section

_SHOWN_ELEMENTS = 8  # of a multiset, in a row of a table
_CURVE_ROWS = 11


def law_overview(model: LawRegressor, columns: Columns, *, full: bool = False) -> Report:
    """Returns a report for terminals, which fits on a screen: each law with its closest competitors and error by size.

    Arguments:
        model: Fitted estimator.
        columns: Columns that the laws were learned from.
        full: Whether to show all tables of evidence, on more than a screen.

    Example:
        >>> pairs = [[a, b] for a in range(5) for b in range(5)]
        >>> model = LawRegressor().fit(pairs, [sum(pair) for pair in pairs])
        >>> [section.heading for section in law_overview(model, Columns(("a", "b"), targets=("sum",))).sections]
        ['sum']
    """
    sections = []
    for name, law, examples in _dimensions(model, columns):
        if isinstance(law, LearnedVectorLaw):
            overview = vector_overview(law, examples)
            sections.append(replace(overview, tables=vector_section(law, examples).tables) if full else overview)
        else:
            few = [_tried(law, 6), _errors_by_size(law, examples, 12)]
            sections.append(Section(name, _summary(law, examples), _evidence(law, examples) if full else few))
    return Report(_title(columns), sections)


def law_report(model: LawRegressor, columns: Columns, source: str = "") -> Report:
    """Returns a report with all evidence: the law, candidates, distances, errors by size, φ, the worst fits, and SQL.

    Arguments:
        model: Fitted estimator.
        columns: Columns that the laws were learned from.
        source: Name of the table that they were learned from.
    """
    sections = [
        vector_section(law, examples, [columns.targets[i] for i in block])
        if isinstance(law, LearnedVectorLaw)
        else law_section(law, examples, name, columns.targets[block[0]])
        for block, (name, law, examples) in zip(model.blocks_, _dimensions(model, columns), strict=True)
    ]
    sql = _sql(model, columns)
    if sql:
        last = sections.pop()
        sections.append(replace(last, listings={**last.listings, "SQL, for DuckDB": sql}))
    return Report(_title(columns), sections, [_origin(model, columns, source)])


def _evidence(law: LearnedLaw, examples: Multisets) -> list[Table]:
    tables = [_tried(law, 12), _distances(law), _errors_by_size(law, examples), _curve_table(law, examples)]
    tables += [_outliers(law, examples), _worst_examples(law, examples)]
    return [table for table in tables if table.rows]


@torch.no_grad()
def law_section(law: LearnedLaw, examples: Multisets, name: str, target: str) -> Section:
    """Returns a section with all evidence for a law of one dimension.

    Arguments:
        law: The law.
        examples: Examples of the law.
        name: Name of the dimension.
        target: Name of the results.
    """
    found = law.operation.reduce(examples)[:, 0]
    figures = {
        f"φ of {name}": curve_chart(law, examples, name),
        f"results of {name}": agreement_chart(target, examples.targets, found, law.outliers),
        f"errors of {name}": size_chart([name], _size_errors(law, examples)),
    }
    return Section(
        name,
        tables=_evidence(law, examples),
        figures=figures,
        formula=law.mathml,
        facts=facts(_summary(law, examples)),
        listings={"LaTeX": law.latex},
    )


def write_law(model: LawRegressor, folder: str | Path, columns: Columns, source: str = "") -> Path:
    """Saves the model to a folder, with a report in ``report.html``.

    Arguments:
        model: Fitted estimator.
        folder: Output folder; :meth:`LawRegressor.load` reads it.
        columns: Columns that the laws were learned from.
        source: Name of the table that they were learned from.

    Returns:
        Path of the report.
    """
    text = html_page(law_report(model, columns, source))
    path = Path(folder) / "report.html"
    path.unlink(missing_ok=True)  # if this process is killed, no report of an old law stays beside the new one
    model.save(folder)
    write_text(path, text)
    return path


def _dimensions(model: LawRegressor, columns: Columns) -> Iterable[tuple[str, LearnedLaw, Multisets]]:
    names = _names(columns)
    own = (", ".join(names[i] for i in block) for block in model.blocks_)
    return zip(own, model.laws_, model.sample_, strict=True)


def _names(columns: Columns) -> Sequence[str]:
    """Returns the name of each dimension: in long form its column of elements, in wide form that of results."""
    return columns.targets if columns.set is None else columns.values


def _title(columns: Columns) -> str:
    return f"The law of {', '.join(_names(columns))}"


def _origin(model: LawRegressor, columns: Columns, source: str) -> str:
    """Returns what the laws were learned from in one sentence."""
    sample = model.sample_[0]
    low, high = int(sample.sizes.min()), int(sample.sizes.max())
    sizes = f"{low}" if low == high else f"{low} to {high}"
    count = model.n_examples_
    kept = f", of which a random sample of {len(sample):,} is shown" if len(sample) < count else ""
    where = f" in {source}" if source else ""
    sets = "" if columns.set is None else f", multisets by {columns.set}"
    return (
        f"Learned from {count:,} multisets of {sizes} numbers{where}{kept}: from {', '.join(columns.values)} to "
        f"{', '.join(columns.targets)}{sets}; random seed {model.seed}."
    )


def _sql(model: LawRegressor, columns: Columns) -> str:
    """Returns the laws as SQL, or nothing if they have no closed form."""
    values = columns.values if columns.set is not None else ("value",)
    try:
        return model.sql(table="elements", set=columns.set or "set", value=values)
    except AbelnetError:
        return ""


@torch.no_grad()
def _summary(law: LearnedLaw, examples: Multisets) -> str:
    """Returns the summary of a law, and a sentence on the intervals of its results."""
    if law.ensemble is None:
        return law.summary()
    results = law.operation.reduce(examples)[:, 0]
    low, high = law.interval(results, law.std(examples, results))
    width = float((high - low)[results.isfinite()].median()) / 2
    return (
        f"{law.summary()}\nintervals: results of the law are known to ±{number(width, 2)} (median half-width of 95 % "
        "intervals over the examples), wider for larger sets; a single new observation adds the held-out error"
    )


def _tried(law: LearnedLaw, count: int) -> Table:
    columns = [Column("law"), Column("parameters", "right"), Column("held-out RMSE", "right")]
    rows = [[Cell(title), Cell(str(parameters)), Cell(f"{rmse:.3g}")] for title, parameters, rmse in law.tried[:count]]
    return Table("Candidate laws, best first", columns, rows)


def _distances(law: LearnedLaw) -> Table:
    rows = [[Cell(name), Cell(f"{value:.2g}")] for name, value in law.eigenvalues.items()]
    columns = [Column("hypothesis"), Column("eigenvalue", "right")]
    return Table("Distance from the nearest law of each kind (0: exact, about 1: none)", columns, rows)


def _size_errors(law: LearnedLaw, examples: Multisets) -> list[tuple[int, int, list[float]]]:
    return size_errors(_errors(law, examples)[:, None], examples.sizes, law.outliers)


def _errors_by_size(law: LearnedLaw, examples: Multisets, count: int | None = None) -> Table:
    rows = [
        [Cell(str(size)), Cell(str(sets)), Cell(f"{rmse:.3g}")]
        for size, sets, (rmse,) in _size_errors(law, examples)[:count]
    ]
    columns = [Column("size", "right"), Column("examples", "right"), Column("RMSE", "right")]
    notes = [f"without the {len(law.outliers)} examples that were left out"] if law.outliers else []
    return Table("Error by multiset size", columns, rows, notes)


def _worst_examples(law: LearnedLaw, examples: Multisets, count: int = 10) -> Table:
    return _compared("Worst-fitting examples", law, examples, set(range(len(examples))) - set(law.outliers), count)


def _outliers(law: LearnedLaw, examples: Multisets, count: int = 50) -> Table:
    more = f", the worst {count} of {len(law.outliers)}" if len(law.outliers) > count else ""
    return _compared(f"Examples that disagree with the law{more}", law, examples, set(law.outliers), count)


def _compared(title: str, law: LearnedLaw, examples: Multisets, chosen: Collection[int], count: int) -> Table:
    """Returns some of the chosen examples with the result of the law, largest error first."""
    errors = _errors(law, examples)
    rows = []
    for i in sorted(chosen, key=lambda i: -abs(float(errors[i])))[:count]:
        elements = _elements(examples, i)
        shown = ", ".join(f"{x:.6g}" for x in elements[:_SHOWN_ELEMENTS].tolist())
        target = float(examples.targets[i])
        more = " …" if len(elements) > _SHOWN_ELEMENTS else ""
        rows.append([Cell(shown + more), Cell(f"{target:.6g}"), Cell(f"{target + float(errors[i]):.6g}")])
    return Table(title, [Column("elements"), Column("result", "right"), Column("law", "right")], rows)


@torch.no_grad()
def _curve_table(law: LearnedLaw, examples: Multisets) -> Table:
    low, high = float(examples.values.min()), float(examples.values.max())
    x = torch.linspace(low, high, _CURVE_ROWS, dtype=torch.float64)
    y = law.operation.bijection(x[:, None])[:, 0]
    rows = [[Cell(number(a)), Cell(number(b))] for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return Table("The curve φ", [Column("x", "right"), Column("φ(x)", "right")], rows)


# Access to the examples.


@torch.no_grad()
def _errors(law: LearnedLaw, examples: Multisets) -> Tensor:
    return law.operation.reduce(examples)[:, 0] - examples.targets


def _elements(examples: Multisets, i: int) -> Tensor:
    start, end = examples.ptr[i : i + 2].tolist()
    return examples.values[start:end, 0]
