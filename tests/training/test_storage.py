"""Searches in a database: SQLite, and in ``make test-engines`` PostgreSQL with three workers, one of them killed."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sql_engines import postgres_server

from abelnet import AbelnetError
from abelnet.training.storage import StorageSearch
from abelnet.training.tuning import Candidate, Choice, Integer, Real

SPACE = {"x": Real(-5, 5), "n": Integer(1, 3), "kind": Choice(("a", "b"))}
WITH_POSTGRES = pytest.mark.skipif("ABELNET_ENGINES" not in os.environ, reason="takes long: make test-engines")
WORKER = """
import sys, time
from abelnet.training.storage import StorageSearch
from abelnet.training.tuning import Real

def evaluate(candidate):
    print(candidate.number, flush=True)
    time.sleep(0.3)
    return (candidate.parameters["x"] - 2) ** 2

StorageSearch(sys.argv[1], "parabola", {"x": Real(-5, 5)}, trials=int(sys.argv[2]), heartbeat=1).run(evaluate)
"""


def value(candidate: Candidate) -> float:
    parameters = candidate.parameters
    return (parameters["x"] - 2) ** 2 + parameters["n"] + (parameters["kind"] == "a")


def test_every_trial_is_run_once(tmp_path: Path) -> None:
    url, counts = f"sqlite:///{tmp_path / 'search.db'}", list[int]()
    search = StorageSearch(url, "parabola", SPACE, trials=4)
    best = search.run(value, on_trials=counts.append)
    assert [trial.number for trial in search.finished()] == [0, 1, 2, 3]
    assert counts == [1, 2, 3, 4]
    assert best.value == min(trial.value for trial in search.finished() if trial.value is not None)
    assert best.value == pytest.approx(value(Candidate(best.number, best.parameters)))
    more = StorageSearch(url, "parabola", SPACE, trials=5)  # one more
    assert more.run(value).value <= best.value  # type: ignore[operator]
    assert [trial.number for trial in more.finished()] == list(range(5))


def test_values_that_are_not_finite_are_failures(tmp_path: Path) -> None:
    search = StorageSearch(f"sqlite:///{tmp_path / 'search.db'}", "odd", SPACE, trials=4)
    best = search.run(lambda candidate: math.nan if candidate.number % 2 else 1.0)
    assert [trial.value for trial in search.finished()] == [1.0, None, 1.0, None]
    assert best.number == 0
    with pytest.raises(AbelnetError, match="search none: expected a trial with a finite value, got none"):
        StorageSearch(f"sqlite:///{tmp_path / 'search.db'}", "none", SPACE, trials=1).run(lambda _: math.inf)


def test_trials_that_two_workers_planned_are_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, seen = f"sqlite:///{tmp_path / 'search.db'}", list[int]()
    search = StorageSearch(url, "twice", SPACE, trials=3)
    with monkeypatch.context() as patch:
        patch.setattr(StorageSearch, "_trials", lambda self: [])  # as seen before the other has planned any
        StorageSearch(url, "twice", SPACE, trials=3)

    def note(candidate: Candidate) -> float:
        seen.append(candidate.number)
        return 1.0

    search.run(note)
    assert seen == [0, 1, 2]
    assert len(search.finished()) == 3


def test_a_database_that_cannot_be_reached(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path / 'none' / 'search.db'}", "nonsense"):
        with pytest.raises(AbelnetError, match="storage: expected the URL of a database that can be reached"):
            StorageSearch(url, "parabola", SPACE, trials=1)


@WITH_POSTGRES
def test_three_workers_on_postgres_of_which_one_is_killed() -> None:
    with postgres_server() as (folder, port):
        url = f"postgresql+psycopg://tester@/postgres?host={folder}&port={port}"
        workers = [
            subprocess.Popen([sys.executable, "-c", WORKER, url, "30"], stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        victim = workers[0].stdout
        assert victim is not None
        lines = [victim.readline() for _ in range(2)]  # it is in its second trial now
        workers[0].send_signal(signal.SIGKILL)
        victim.close()
        started = time.monotonic()
        ran = [int(line) for worker in workers[1:] for line in worker.communicate(timeout=200)[0].split()]
        assert [worker.wait() for worker in workers] == [-signal.SIGKILL, 0, 0]
        search = StorageSearch(url, "parabola", {"x": Real(-5, 5)}, trials=30)
        trials = search.finished()
        search.close()
    print(f"{time.monotonic() - started:.0f} s for the rest of 30 trials, {ran}")
    assert [trial.number for trial in trials] == list(range(30))
    assert all(trial.value is not None for trial in trials)
    assert int(lines[1]) in ran  # the trial of the killed worker was run again
    assert len(ran) == len(set(ran))
