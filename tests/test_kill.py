"""Commands killed at random moments leave old files or new ones, never a mixture; so does a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Few in the suite, and none of experiments: these have tests of their own, killed at known places. `make test-kill` has
# all.
LEARN = int(os.environ.get("ABELNET_KILLS", "3"))
APPLY, EXPERIMENTS = max(1, LEARN * 3 // 10), LEARN * 3 // 10
HERE = Path(__file__).parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the commands")
@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("learn", LEARN),
        ("apply", APPLY),
        ("export", APPLY),
        *((name, EXPERIMENTS) for name in ("synthetic", "analogies") if EXPERIMENTS),
        ("full", 0),
    ],
)
def test_nothing_is_half_written(command: str, count: int) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    arguments = [sys.executable, str(HERE / "kill.py"), command, str(count), "0"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    outcome = json.loads(done.stdout)
    assert outcome["faults"] == []
    assert outcome.get("kills", 0) == count
    if command == "full":
        places = 2 - outcome["full file system: not allowed to mount"]
        assert outcome["refused in one line"] == 5 * places
