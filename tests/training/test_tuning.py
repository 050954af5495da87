"""The search: deterministic, killed and resumed, shared by processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from abelnet import AbelnetError
from abelnet.training.tuning import Integer, Real, Search, Trial

SCRIPT = """
import sys, time, os
from pathlib import Path
from abelnet.training.tuning import Integer, Real, Search

def evaluate(candidates, folder):
    with open(sys.argv[2], "a") as file:
        for candidate in candidates:
            file.write(f"{os.getpid()} {candidate.number}\\n")
    time.sleep(float(sys.argv[3]))
    return [(c.parameters["x"] - 2) ** 2 + c.parameters["n"] for c in candidates]

search = Search(sys.argv[1], "study", {"x": Real(-5, 5), "n": Integer(0, 3)}, trials=24, batch=4, seed=1)
search.run(evaluate)
"""


def start(journal: Path, log: Path, pause: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(journal), str(log), str(pause)])


def trials(journal: Path) -> list[Trial]:
    search = Search(journal, "study", {"x": Real(-5, 5), "n": Integer(0, 3)}, trials=24, batch=4, seed=1)
    return search.finished()


def test_killed_at_random_moments_it_comes_to_the_same_trials(tmp_path: Path) -> None:
    assert start(tmp_path / "whole.log", tmp_path / "a", 0.05).wait() == 0
    generator = random.Random(0)
    for _ in range(5):
        process = start(tmp_path / "killed.log", tmp_path / "b", 0.3)
        time.sleep(generator.uniform(2.5, 4.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert start(tmp_path / "killed.log", tmp_path / "b", 0.05).wait() == 0
    whole = trials(tmp_path / "whole.log")
    assert [trial.number for trial in whole] == list(range(24))
    assert trials(tmp_path / "killed.log") == whole
    assert min(trial.value or 0 for trial in whole) < 0.5


def test_two_processes_share_a_journal(tmp_path: Path) -> None:
    processes = [start(tmp_path / "shared.log", tmp_path / "log", 0.3) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(int(number) for _, number in lines) == list(range(24))  # none lost, none twice
    assert len({owner for owner, _ in lines}) == 2  # and both had work
    assert [trial.number for trial in trials(tmp_path / "shared.log")] == list(range(24))


def test_values_that_are_not_finite_do_not_win(tmp_path: Path) -> None:
    search = Search(tmp_path / "journal", "study", {"x": Integer(1, 9)}, trials=6, batch=3)
    best = search.run(lambda candidates, _: [float("nan") if c.number % 2 else float(c.number) for c in candidates])
    assert best.number == 0
    assert [trial.value for trial in search.finished()] == [0.0, None, 2.0, None, 4.0, None]
    counts: list[int] = []
    Search(tmp_path / "other", "study", {"x": Integer(1, 9)}, trials=5, batch=2).run(
        lambda candidates, _: [1.0 for _ in candidates], on_trials=counts.append
    )
    assert counts == [2, 4, 5]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="trials, batch: expected at least 1"):
        Search(tmp_path / "journal", "study", {}, trials=0)
    search = Search(tmp_path / "journal", "study", {"x": Integer(1, 9)}, trials=2)
    with pytest.raises(AbelnetError, match="evaluate: expected 2 values, got 1"):
        search.run(lambda candidates, _: [1.0])
    with pytest.raises(AbelnetError, match="expected a trial with a finite value"):
        Search(tmp_path / "empty", "study", {"x": Integer(1, 9)}, trials=2).best()
