"""Report of ``abelnet reproduce``: both experiments of the paper."""

from __future__ import annotations

__all__ = ["reproduction_report"]

from abelnet.experiments.published import best_published
from abelnet.experiments.reproduction import Reproduction
from abelnet.experiments.synthetic.data import OPERATIONS
from abelnet.reporting.analogies import analogy_tables
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table


def reproduction_report(result: Reproduction) -> Report:
    """Returns a report of the laws with the paper's best errors, and of the analogy accuracy by category."""
    # Every second table is by section of the questions.
    tables = [_law_table(result), *analogy_tables(result.analogies)[::2]]
    notes = [
        f"Analogies: accuracy (%) over 30,078 words; {result.epochs} epochs on 60% of the Google pairs.",
        "For the full experiment, on BATS and larger vectors, see abelnet analogies run --help.",
    ]
    return Report("The paper's experiments", [Section(tables=tables)], notes)


def _law_table(result: Reproduction) -> Table:
    rows = []
    for name, learned in result.learned.items():
        best = best_published(name)
        errors = (learned.small, best["small"], learned.large, best["large"])
        texts = (
            OPERATIONS[name].formula,
            learned.law.formula.removeprefix("x∘y = "),
            *(f"{error:.1e}" for error in errors),
            f"{learned.defects.associativity.relative:.0e}",
        )
        rows.append([Cell(text) for text in texts])
    headings = ("2–4", "paper", "10–12", "paper", "assoc.")
    return Table(
        f"Learned from 500 multisets of 2–4 numbers, seed {result.seed}",
        [Column("operation"), Column("law found"), *(Column(heading, "right") for heading in headings)],
        rows,
        [
            "2–4, 10–12: RMSE on test multisets of that size, numbers from [−5, 5]; paper: the best of its models.",
            "assoc.: largest relative defect of associativity.",
        ],
    )
