"""Report of a law on vectors: its invariants, its errors by size, and the law as Python and LaTeX."""

from __future__ import annotations

__all__ = ["vector_overview", "vector_section"]

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from abelnet.bijections import Triangular
from abelnet.discovery.vectors.report import LearnedVectorLaw
from abelnet.multisets import Multisets
from abelnet.reporting.plots import Panel, draw
from abelnet.reporting.report import Section
from abelnet.reporting.table import Cell, Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN_ELEMENTS = 4  # of a multiset, in a row of a table
_MOST_POINTS = 2_000


def vector_overview(law: LearnedVectorLaw, examples: Multisets) -> Section:
    """Returns a section that fits on a screen: the law and its error by size.

    Arguments:
        law: The law.
        examples: Examples in its coordinates.
    """
    return Section(", ".join(law.names), law.summary(), [_errors_by_size(law, examples, 12)])


def vector_section(law: LearnedVectorLaw, examples: Multisets) -> Section:
    """Returns a section with all evidence, a plot of results, and the law as Python and LaTeX.

    Arguments:
        law: The law.
        examples: Examples in its coordinates.
    """
    text = f"{law.summary()}\n\nLaTeX: {law.latex}"
    if isinstance(law.bijection, Triangular) and not law.has_curves:
        text += f"\n\n{law.python}"
    tables = [_invariants(law), _errors_by_size(law, examples), _outliers(law, examples), _worst(law, examples)]
    found, target = _results(law, examples)[:_MOST_POINTS], examples.targets[:_MOST_POINTS]
    panels = [Panel(name, partial(_draw, target[:, i], found[:, i])) for i, name in enumerate(law.names)]
    figures = draw({f"results of {', '.join(law.names)}": panels})
    return Section(", ".join(law.names), text, [table for table in tables if table.rows], figures)


def _invariants(law: LearnedVectorLaw) -> Table:
    rows = [[Cell(text), Cell(f"{error:.2g}")] for text, error in zip(law.invariants, law.errors, strict=True)]
    notes = ["errors are fractions of the spread of the results, about that of their noise"]
    return Table("What adds up", [Column("invariant"), Column("error", "right")], rows, notes)


def _errors_by_size(law: LearnedVectorLaw, examples: Multisets, count: int | None = None) -> Table:
    kept = torch.ones(len(examples), dtype=torch.bool)
    kept[list(law.outliers)] = False
    errors, sizes = (_results(law, examples) - examples.targets)[kept], examples.sizes[kept]
    rows = []
    for size in sorted(set(sizes.tolist()))[:count]:
        of_size = errors[sizes == size]
        rmse = of_size.square().mean(0).sqrt().tolist()
        rows.append([Cell(str(size)), Cell(str(len(of_size))), *(Cell(f"{one:.3g}") for one in rmse)])
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


def _draw(target: Tensor, found: Tensor, axes: Axes) -> None:
    axes.plot(target, found, ".", markersize=3)
    axes.axline((float(target.median()),) * 2, slope=1, linewidth=0.8, color="gray")
    axes.set(xlabel="result", ylabel="law")


@torch.no_grad()
def _results(law: LearnedVectorLaw, examples: Multisets) -> Tensor:
    return law.operation.reduce(examples)
