"""Report of measured and certified errors by multiset size."""

from __future__ import annotations

__all__ = ["certificate_chart", "certificate_report", "certificate_table"]

import math
from collections.abc import Sequence

from abelnet.experiments.certify import Certificate
from abelnet.reporting.charts import Chart, Series
from abelnet.reporting.report import Report, Section
from abelnet.reporting.table import Cell, Column, Table

_HEADINGS = ("size", "measured", "ours", "Theorem 3")
_CURVES = ("measured", "bound, ours", "bound, Theorem 3")


def certificate_report(certificates: Sequence[Certificate]) -> Report:
    """Returns a report with a table and a chart for each certificate."""
    figures = {f"certificate_{i}": certificate_chart(one) for i, one in enumerate(certificates, 1)}
    tables = [certificate_table(certificate) for certificate in certificates]
    return Report("Certified errors", [Section(tables=tables, figures=figures)])


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


def certificate_chart(certificate: Certificate) -> Chart:
    """Draws the measured error and both bounds by size."""
    sizes = [row.size for row in certificate.rows]
    curves = zip(*((row.measured, row.ours, row.paper) for row in certificate.rows), strict=True)
    series = [
        Series(name, sizes, [math.nan if error is None else error for error in errors])
        for name, errors in zip(_CURVES, curves, strict=True)
        if any(error is not None for error in errors)
    ]
    return Chart(
        certificate.title,
        "multiset size (number of elements)",
        "largest error (unit of results)",
        series,
        x_log=True,
        y_log=True,
    )
