"""The example scripts run, and say what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PROMISES = {
    "compound_returns.py": "x∘y = x + y + x·y",
    "noisy_or.py": "x∘y = x + y − x·y",
    "sliding_window.py": "applied at size 1000",
}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert PROMISES[name] in capsys.readouterr().out
