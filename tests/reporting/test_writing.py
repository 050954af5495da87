"""Reports on disk."""

from __future__ import annotations

from pathlib import Path

from abelnet.reporting.markdown import markdown_report
from abelnet.reporting.page import html_page
from abelnet.reporting.report import Report, Section
from abelnet.reporting.writing import write_report


def test_documents_and_figures(tmp_path: Path) -> None:
    report = Report("x∘y", [Section("x", figures={"curve": b"PNG"}), Section("y", figures={"other": b"2"})])
    paths = write_report(report, tmp_path / "new" / "folder", "law")
    assert [path.name for path in paths] == ["law.md", "law.html", "curve.png", "other.png"]
    assert paths[0].read_text(encoding="utf-8") == markdown_report(report)
    assert paths[1].read_text(encoding="utf-8") == html_page(report)
    assert paths[2].read_bytes() == b"PNG"
    assert sorted(path.parent for path in paths) == [tmp_path / "new" / "folder"] * 4
    assert len(list(paths[0].parent.iterdir())) == 4  # nothing temporary is left
