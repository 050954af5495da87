"""Report of a law on vectors: its invariants, its errors by size, and the law as Python and LaTeX."""

from __future__ import annotations

__all__ = ["facts", "vector_overview", "vector_section"]

from collections.abc import Sequence

import torch
from torch import Tensor

from abelnet.bijections import Triangular
from abelnet.discovery.vectors.report import LearnedVectorLaw
from abelnet.multisets import Multisets
from abelnet.reporting.law_charts import agreement_chart, size_chart, size_errors
from abelnet.reporting.report import Section
from abelnet.reporting.table import Cell, Column, Table

_SHOWN_ELEMENTS = 4  # of a multiset, in a row of a table


def vector_overview(law: LearnedVectorLaw, examples: Multisets) -> Section:
    """Returns a section that fits on a screen: the law and its error by size.

    Arguments:
        law: The law.
        examples: Examples in its coordinates.
    """
    return Section(", ".join(law.names), law.summary(), [_errors_by_size(law, examples, 12)])


def vector_section(law: LearnedVectorLaw, examples: Multisets, targets: Sequence[str]) -> Section:
    """Returns a section with all evidence, charts of results and errors, and the law as Python and LaTeX.

    Arguments:
        law: The law.
        examples: Examples in its coordinates.
        targets: Names of the results.
    """
    listings = {"LaTeX": law.latex}
    if isinstance(law.bijection, Triangular) and not law.has_curves:
        listings["Python"] = law.python
    tables = [_invariants(law), _errors_by_size(law, examples), _outliers(law, examples), _worst(law, examples)]
    found = _results(law, examples)
    figures = {
        f"results of {name}": agreement_chart(target, examples.targets[:, i], found[:, i], law.outliers)
        for i, (name, target) in enumerate(zip(law.names, targets, strict=True))
    }
    figures["errors by size"] = size_chart(law.names, _size_errors(law, examples))
    return Section(
        ", ".join(law.names),
        tables=[table for table in tables if table.rows],
        figures=figures,
        formula=law.mathml,
        facts=facts(law.summary()),
        listings=listings,
    )


def facts(summary: str) -> list[tuple[str, str]]:
    """Returns the lines of a summary of a law, each with the name in front of its colon.

    Example:
        >>> facts("x∘y = x + y\\nkind: group")
        [('law', 'x∘y = x + y'), ('kind', 'group')]
    """
    parts = [line.partition(": ") for line in summary.splitlines()]
    found: list[tuple[str, str]] = []
    for name, _, fact in parts:
        if fact:
            found.append((name, fact))
        elif not found:
            found.append(("law", name))
        else:  # of the line before
            found[-1] = (found[-1][0], f"{found[-1][1]}; {name}")
    return found


def _invariants(law: LearnedVectorLaw) -> Table:
    rows = [[Cell(text), Cell(f"{error:.2g}")] for text, error in zip(law.invariants, law.errors, strict=True)]
    notes = ["errors are fractions of the spread of the results, about that of their noise"]
    return Table("What adds up", [Column("invariant"), Column("error", "right")], rows, notes)


def _size_errors(law: LearnedVectorLaw, examples: Multisets) -> list[tuple[int, int, list[float]]]:
    return size_errors(_results(law, examples) - examples.targets, examples.sizes, law.outliers)


def _errors_by_size(law: LearnedVectorLaw, examples: Multisets, count: int | None = None) -> Table:
    rows = [
        [Cell(str(size)), Cell(str(sets)), *(Cell(f"{one:.3g}") for one in rmse)]
        for size, sets, rmse in _size_errors(law, examples)[:count]
    ]
    columns = [Column("size", "right"), Column("examples", "right")]
    columns += [Column(f"RMSE of {name}", "right") for name in law.names]
    notes = [f"without the {len(law.outliers)} examples that were left out"] if law.outliers else []
    return Table("Error by multiset size", columns, rows, notes)


def _outliers(law: LearnedVectorLaw, examples: Multisets, count: int = 50) -> Table:
    return _compared("Examples that disagree with the law", law, examples, list(law.outliers), count)


def _worst(law: LearnedVectorLaw, examples: Multisets, count: int = 10) -> Table:
    others = sorted(set(range(len(examples))) - set(law.outliers))
    return _compared("Worst-fitting examples", law, examples, others, count)


def _compared(title: str, law: LearnedVectorLaw, examples: Multisets, chosen: list[int], count: int) -> Table:
    """Returns some of the chosen examples with the result of the law, largest error first."""
    found = _results(law, examples)
    spread = examples.targets.std(0, unbiased=False).clamp(min=1e-300)
    sizes = ((found - examples.targets) / spread).nan_to_num(torch.inf).abs().amax(1)
    rows = []
    for i in sorted(chosen, key=lambda i: -float(sizes[i]))[:count]:
        start, end = examples.ptr[i : i + 2].tolist()
        elements = [_shown(one) for one in examples.values[start : min(end, start + _SHOWN_ELEMENTS)]]
        more = " …" if end - start > _SHOWN_ELEMENTS else ""
        rows.append([Cell(" ".join(elements) + more), Cell(_shown(examples.targets[i])), Cell(_shown(found[i]))])
    return Table(title, [Column("elements"), Column("result", "right"), Column("law", "right")], rows)


def _shown(vector: Tensor) -> str:
    return f"({', '.join(f'{x:.6g}' for x in vector.tolist())})"


@torch.no_grad()
def _results(law: LearnedVectorLaw, examples: Multisets) -> Tensor:
    return law.operation.reduce(examples)
