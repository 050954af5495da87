from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("lightning", reason="not in the extra dev: pip install lightning")


def test_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank of the page ends with the law of its data."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "lightning.md"
    (block,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, page.name, "exec"), names)
    assert "x + y − x·y" in capsys.readouterr().out
    assert names["model"].aggregation.is_hard  # type: ignore[attr-defined]
