"""The example scripts and the Python blocks of how-to pages run, and say what they promise."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES, DOCS = (Path(__file__).parent.parent / name for name in ("examples", "docs"))
PROMISES = {
    "compound_returns.py": "x∘y = x + y + x·y",
    "noisy_or.py": "x∘y = x + y − x·y",
    "sliding_window.py": "applied at size 1000",
}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert PROMISES[name] in capsys.readouterr().out


PAGES = {
    "scikit-learn.md": "{'only': 'folds'} x∘y = (x^2 + y^2)^(1/2)",
    "export.md": "",
    "sets.md": "",
    "hub.md": "x∘y = (x^2 + y^2)^(1/2)",
}


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), {})
    assert PAGES[name] in capsys.readouterr().out
