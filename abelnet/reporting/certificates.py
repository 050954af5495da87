"""Report of measured and certified errors by multiset size."""

from __future__ import annotations

__all__ = ["certificate_report", "certificate_table"]

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from abelnet.experiments.certify import Certificate
from abelnet.reporting.plots import Panel, draw
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEADINGS = ("size", "measured", "ours", "Theorem 3")
_STYLES = ("k.", "C0-", "C3--")  # of the curves: all but the first column


def certificate_report(certificates: Sequence[Certificate]) -> Report:
    """Returns a report with a table for each certificate, and one figure with a panel for each."""
    panels = [Panel(certificate.title, partial(_draw_errors, certificate)) for certificate in certificates]
    tables = [certificate_table(certificate) for certificate in certificates]
    return Report("Certified errors", [Section(tables=tables, figures=draw({"certificate": panels}))])


def certificate_table(certificate: Certificate) -> Table:
    """Returns a table with one row per size: the largest measured error, our bound, and the paper's.

    Example:
        >>> from abelnet.experiments.certify import CertificateRow
        >>> table = certificate_table(Certificate("x + y", [CertificateRow(2, 0.1, 0.25, None)], ["a note"]))
        >>> [cell.text for cell in table.rows[0]]
        ['2', '0.1', '0.25', '–']
    """
    rows = []
    for row in certificate.rows:
        errors = (row.measured, row.ours, row.paper)
        texts = [str(row.size), *("–" if error is None else f"{error:.3g}" for error in errors)]
        rows.append([Cell(text) for text in texts])
    columns = [Column(heading, "right") for heading in _HEADINGS]
    return Table(certificate.title, columns, rows, certificate.notes)


def _draw_errors(certificate: Certificate, axes: Axes) -> None:
    sizes = [row.size for row in certificate.rows]
    curves = zip(*((row.measured, row.ours, row.paper) for row in certificate.rows), strict=True)
    for label, style, errors in zip(_HEADINGS[1:], _STYLES, curves, strict=True):
        if any(error is not None for error in errors):
            axes.plot(sizes, [math.nan if error is None else error for error in errors], style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="multiset size", ylabel="largest error")
    axes.legend()
