"""Processes that do the work of the page: one per tab, one task at a time, ended if a task takes too long.

The server itself imports nothing heavy and stays responsive whatever a task does. A worker is sent one line of JSON and
the body of a request, and answers with lines of JSON: steps, then a result or an error.
"""

from __future__ import annotations

__all__ = ["BusyError", "Worker", "serve"]

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from abelnet.errors import AbelnetError
from abelnet.explore.tasks import run_task

# Seconds between two reports of a task that says nothing: a reader that has left is noticed.
_PULSE = 1.0
_CLOSED = "page: the server is shutting down"


class BusyError(AbelnetError):
    """Raised if too many tasks are waiting."""


class Worker:
    """A process for tasks, started on first use, and again after it has ended.

    Arguments:
        seconds: Time limit of a task.
        waiting: Number of tasks that may wait for their turn.

    Example:
        >>> worker = Worker()
        >>> answer = worker.run("presets", b"{}")
        >>> answer["presets"][0]["title"]
        'x + y + xy/2'
        >>> worker.close()
    """

    def __init__(self, seconds: float = 60.0, waiting: int = 8) -> None:
        self.seconds, self.waiting = seconds, waiting
        self._turn, self._count = threading.Lock(), threading.BoundedSemaphore(waiting + 1)
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """Number of the process, if it runs."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def run(
        self, task: str, body: bytes | Callable[[], bytes], on_step: Callable[[str, float], None] | None = None
    ) -> Any:
        """Runs a task and returns its result; raises its error.

        Arguments:
            task: Key of :data:`~abelnet.explore.tasks.TASKS`.
            body: Arguments of the task as JSON, or a function that reads them, which is called if the task may wait.
            on_step: Called with a description of each step, and the seconds since the start, about once a second.
                Whatever it raises ends the task.
        """
        say = on_step or (lambda text, seconds: None)
        if not self._count.acquire(blocking=False):
            raise BusyError(f"busy: {self.waiting} requests are waiting already; try again in a moment")
        try:
            start, given = time.monotonic(), body if isinstance(body, bytes) else body()
            while not self._turn.acquire(timeout=_PULSE):
                say("waiting for another request to finish", time.monotonic() - start)
            try:
                return self._run(task, given, say)
            except BaseException as error:
                if not isinstance(error, AbelnetError):
                    self._end()  # it would answer what nobody waits for
                raise
            finally:
                self._turn.release()
        finally:
            self._count.release()

    def close(self) -> None:
        """Ends the process for good."""
        self._is_closed = True
        self._end()

    def _run(self, task: str, body: bytes, say: Callable[[str, float], None]) -> Any:
        process = self._started()
        start, step = time.monotonic(), "starting"
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"task": task, "length": len(body)}).encode() + b"\n")
            process.stdin.write(body)
            process.stdin.flush()
        except OSError:
            raise self._lost() from None
        while True:
            if time.monotonic() - start > self.seconds:
                self._end()
                raise AbelnetError(
                    f"time: stopped after {self.seconds:g} seconds; try fewer rows, or the command line, which has no "
                    "limit"
                )
            try:
                line = self._answers.get(timeout=_PULSE)
            except queue.Empty:
                say(step, time.monotonic() - start)
                continue
            if not line:
                raise self._lost()
            answer = json.loads(line)
            if "step" in answer:
                step = answer["step"]
                say(step, time.monotonic() - start)
            elif "error" in answer:
                raise AbelnetError(answer["error"])
            else:
                return answer["result"]

    def _lost(self) -> AbelnetError:
        self._end()
        if self._is_closed:
            return AbelnetError(_CLOSED)
        return AbelnetError("task: its process has ended, for want of memory perhaps; try again with fewer rows")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._is_closed:
            raise AbelnetError(_CLOSED)
        if self._process is None or self._process.poll() is not None:
            # Not by multiprocessing, which would run the user's script again.
            code = f"import sys; sys.path[:] = {sys.path!r}; from abelnet.explore.workers import serve; serve()"
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_environment(),
            )
            self._answers = queue.SimpleQueue()
            threading.Thread(target=_forward, args=(self._process.stdout, self._answers), daemon=True).start()
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError):  # what was not sent is not wanted any more
                assert process.stdin is not None
                process.stdin.close()
            process.wait()


def _environment() -> dict[str, str]:
    # Small matrices: more threads take time from the browser, and save none.
    return {"OMP_NUM_THREADS": "1", **os.environ}


def _forward(stream: IO[bytes], answers: queue.SimpleQueue[bytes]) -> None:
    with stream:
        for line in stream:
            answers.put(line)
    answers.put(b"")


def serve() -> None:
    """Runs the tasks of a :class:`Worker` on the standard streams until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process ends this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message, allow_nan=False).encode() + b"\n")
        answers.flush()

    for line in sys.stdin.buffer:
        header = json.loads(line)
        body = sys.stdin.buffer.read(header["length"])
        try:
            send({"result": run_task(header["task"], body, lambda step: send({"step": step}))})
        except BrokenPipeError:
            return
        except AbelnetError as error:
            send({"error": str(error)})
        except MemoryError:
            send({"error": "task: out of memory; try fewer rows"})
        except Exception as error:
            text = " ".join(str(error).split())
            send({"error": f"unexpected {type(error).__name__}: {text:.300}; this is a fault of abelnet"})
