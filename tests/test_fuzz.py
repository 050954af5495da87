"""Mutated files are refused in one line, or change nothing: no traceback, no hang, no NaN, no flood of memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MUTATIONS = int(os.environ.get("ABELNET_FUZZ", "200"))
HERE = Path(__file__).parent


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures memory as Linux does")
@pytest.mark.parametrize("part", ["config", "tensors", "vectors"])
def test_mutations(part: str) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    command = [sys.executable, str(HERE / "fuzz.py"), part, str(MUTATIONS), "0"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120 + MUTATIONS, check=False
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    results = json.loads(done.stdout)
    assert results["faults"] == []
    assert results["slowest (s)"] < 5
    assert results["most memory beyond 4 x file (MB)"] <= 200
    assert results["refused"] > 0.5 * MUTATIONS
    assert sum(count for name, count in results.items() if name.startswith(("refused", "accepted"))) == MUTATIONS
