"""Certificates as tables and plots."""

from __future__ import annotations

from abelnet.experiments.certify import Certificate, CertificateRow
from abelnet.reporting.certificates import certificate_report

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
    assert len(section.figures["certificate"]) > 5_000
