"""What all commands that write files have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from abelnet.cli import terminal
from abelnet.reporting.report import Report


@pytest.fixture
def _saved_before_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command writes is there before its report is shown: a terminal may fail."""
    show = terminal.show

    def checked(report: Report) -> None:
        in_files = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md")]
        assert not in_files if report.title == "The paper's experiments" else f"# {report.title}" in in_files[0]
        show(report)

    monkeypatch.setattr(terminal, "show", checked)
