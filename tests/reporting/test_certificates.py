"""Certificates as tables and charts."""

from __future__ import annotations

import math

from abelnet.experiments.certify import Certificate, CertificateRow
from abelnet.reporting.certificates import certificate_report
from abelnet.reporting.charts import Chart

CERTIFICATE = Certificate(
    "x + y", [CertificateRow(2, 0.1, 0.25, None), CertificateRow(1000, None, 12.3456, 1e6)], ["a sample"]
)


def test_report() -> None:
    report = certificate_report([CERTIFICATE, CERTIFICATE])  # two dimensions may have the same law
    (section,) = report.sections
    assert len(section.tables) == 2
    table = section.tables[0]
    assert table.title == "x + y"
    assert table.headings == ["size", "measured", "ours", "Theorem 3"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["2", "0.1", "0.25", "–"],
        ["1000", "–", "12.3", "1e+06"],
    ]
    assert table.notes == ["a sample"]
    assert list(section.figures) == ["certificate_1", "certificate_2"]
    chart = section.figures["certificate_1"]
    assert isinstance(chart, Chart)
    measured, ours, paper = chart.series
    assert (measured.y[0], math.isnan(measured.y[1])) == (0.1, True)
    assert list(ours.y) == [0.25, 12.3456]
    assert (math.isnan(paper.y[0]), paper.y[1]) == (True, 1e6)
