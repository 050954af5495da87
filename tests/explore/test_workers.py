"""Workers: errors, time limits, queues, and processes that end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from abelnet.errors import AbelnetError
from abelnet.explore.workers import BusyError, Worker

# Takes seconds in a new process, which imports PyTorch.
SLOW = b'{"pairs": ["man:woman"], "words": ["king"]}'


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


def test_errors_are_those_of_the_task_and_the_process_lives(worker: Worker) -> None:
    with pytest.raises(AbelnetError, match="request: expected JSON"):
        worker.run("inspect", b"{")
    pid = worker.pid
    assert worker.run("inspect", b'{"text": "a,b\\n1,2\\n"}')["count"] == 1
    assert worker.pid == pid


def test_unexpected_errors_are_one_line(worker: Worker) -> None:
    with pytest.raises(AbelnetError, match=r"unexpected KeyError: .*; this is a fault of abelnet"):
        worker.run("no such task", b"{}")
    assert worker.run("presets", b"{}")["presets"]


def test_a_task_that_takes_too_long_is_ended() -> None:
    worker = Worker(seconds=0.2)
    steps: list[str] = []
    with pytest.raises(AbelnetError, match=r"time: stopped after 0\.2 seconds; try fewer rows"):
        worker.run("analogies", SLOW, lambda step, seconds: steps.append(step))
    assert worker.pid is None
    assert steps
    assert worker.run("presets", b"{}")["presets"]  # by another process
    worker.close()


def test_a_process_that_dies_is_replaced(worker: Worker) -> None:
    worker.run("presets", b"{}")
    pid = worker.pid
    assert pid is not None

    def kill(step: str, seconds: float) -> None:
        os.kill(pid, signal.SIGKILL)

    with pytest.raises(AbelnetError, match="its process has ended"):
        worker.run("analogies", SLOW, kill)
    assert worker.run("presets", b"{}")["presets"]
    assert worker.pid != pid


def test_a_task_that_nobody_waits_for_is_ended(worker: Worker) -> None:
    def leave(step: str, seconds: float) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        worker.run("analogies", SLOW, leave)
    assert worker.pid is None


def test_tasks_wait_and_too_many_are_refused() -> None:
    worker = Worker(waiting=1)
    done: list[object] = []
    threads = [threading.Thread(target=lambda: done.append(worker.run("presets", b"{}"))) for _ in range(2)]
    steps: list[str] = []

    def at_work(step: str, seconds: float) -> None:
        if not steps:
            threads[0].start()
            while not done and len(steps) == 0:
                try:
                    threads[1].run()  # waits, or is refused while the first one waits
                except BusyError as error:
                    steps.append(str(error))
        steps.append(step)
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        worker.run("analogies", SLOW, at_work)
    threads[0].join()
    assert steps[0] == "busy: 1 requests are waiting already; try again in a moment"
    assert len(done) == 1
    worker.close()


def test_a_closed_worker_starts_nothing() -> None:
    worker = Worker()
    worker.run("presets", b"{}")
    pid = worker.pid
    worker.close()
    with pytest.raises(AbelnetError, match="shutting down"):
        worker.run("presets", b"{}")
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_worker_ends_with_the_process_that_started_it(worker: Worker) -> None:
    worker.run("presets", b"{}")
    process = worker._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    deadline = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.returncode == 0
