"""Writing of reports: Markdown, HTML and images."""

from __future__ import annotations

__all__ = ["write_report"]

from pathlib import Path

from abelnet.files import replacing, write_text
from abelnet.reporting.charts import CHART_STYLE, Chart, draw_chart
from abelnet.reporting.markdown import markdown_report
from abelnet.reporting.page import html_page
from abelnet.reporting.report import Report, figure_suffix


def write_report(report: Report, folder: str | Path, name: str) -> list[Path]:
    """Writes a report as Markdown and as a self-contained HTML page, and its figures as images.

    Arguments:
        report: The report.
        folder: Output folder, created if needed.
        name: Name of the two documents, without extension.

    Returns:
        Paths of the files, documents first.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in write_report(Report("Law of x", []), folder, "law")]
        ['law.md', 'law.html']
    """
    folder = Path(folder)
    documents = {folder / f"{name}.md": markdown_report(report), folder / f"{name}.html": html_page(report)}
    for path, text in documents.items():
        write_text(path, text)
    figures = {
        folder / f"{name}.{figure_suffix(figure)}": figure
        for section in report.sections
        for name, figure in section.figures.items()
    }
    for path, figure in figures.items():
        with replacing(path) as temporary:
            temporary.write_bytes(draw_chart(figure, CHART_STYLE).encode() if isinstance(figure, Chart) else figure)
    return [*documents, *figures]
