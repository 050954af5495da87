"""Experiment runner: units of work in parallel single-threaded processes, and a folder for their results."""

from __future__ import annotations

__all__ = ["Tell", "claim_folder", "derived_seed", "run_units", "write_results"]

import json
import multiprocessing
import os
import platform
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import abelnet
from abelnet.errors import AbelnetError
from abelnet.files import read_json, write_json

Unit = tuple[Any, ...]
Tell = Callable[[float], None]
"""Called by a unit with the fraction of its work, from 0 to 1, completed since the last call."""


def derived_seed(seed: int, purpose: str, number: int = 0) -> int:
    """Returns a random seed for one purpose of an experiment, independent of other purposes and numbers.

    Example:
        >>> derived_seed(0, "data") == derived_seed(0, "data"), derived_seed(0, "data") == derived_seed(0, "model")
        (True, False)
    """
    source = np.random.SeedSequence(seed, spawn_key=(*purpose.encode(), number))
    return int(source.generate_state(1, np.uint64)[0] >> 1)


def claim_folder(folder: Path, settings: dict[str, Any]) -> None:
    """Checks that a folder is empty or holds an experiment with the same settings."""
    path = folder / "experiment.json"
    if path.exists() and (found := read_json(path, dict)) != json.loads(json.dumps(settings)):
        raise AbelnetError(
            f"folder: expected {folder} to be empty or have the same settings, got {json.dumps(found)}; use another"
        )
    write_json(path, settings)


def write_results(
    folder: Path, settings: dict[str, Any], parts: Sequence[Path], seconds: float, shape: dict[str, Any]
) -> dict[str, Any]:
    """Merges the parts written by units into ``results.json``, with settings, versions and times.

    Arguments:
        folder: Output folder.
        settings: Settings of the experiment.
        parts: Files written by units.
        seconds: Time since the start.
        shape: What each part must be, as in :func:`~abelnet.files.read_json`.

    Returns:
        The contents of the file.
    """
    rows = [read_json(part, shape | {"seconds": float}) for part in parts]
    results = {
        "experiment": settings,
        "versions": {"abelnet": abelnet.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "rows": rows,
        "seconds": seconds,
        "seconds_in_units": sum(row["seconds"] for row in rows),
    }
    write_json(folder / "results.json", results)
    return read_json(folder / "results.json")  # type: ignore[no-any-return]


def run_units(
    function: Callable[[Unit, Tell], None],
    units: Sequence[Unit],
    *,
    jobs: int = 1,
    on_unit: Callable[[Unit], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> None:
    """Calls a function for each unit, in parallel processes.

    Workers ignore Ctrl-C. They are killed as soon as this process is interrupted or a unit fails, so units must keep
    their progress in atomic file writes.

    Arguments:
        function: Called with a unit and a function that reports progress. Like the units, it is sent to other
            processes, so it must be defined at module level, or be a ``functools.partial`` of such a function.
        units: Distinct units, in the order in which they start.
        jobs: Number of single-threaded worker processes.
        on_unit: Called with each completed unit.
        on_progress: Called periodically with the completed fraction, from 0 to 1.
    """
    # Spawned, not forked: a fork of a process that has used threads may hang.
    context = multiprocessing.get_context("spawn")
    news = context.SimpleQueue()
    done = dict.fromkeys(units, 0.0)
    with ProcessPoolExecutor(jobs, context, _start_worker, (news,)) as pool, _killing_workers():
        with _holding_back_interrupts():
            waiting = {pool.submit(_work, function, unit): unit for unit in units}
        left = set(waiting)
        while left:
            finished, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
            while not news.empty():
                unit, part = news.get()
                done[unit] += part
            for future in finished:
                future.result()
                done[waiting[future]] = 1.0
                if on_unit is not None:
                    on_unit(waiting[future])
            if on_progress is not None:
                on_progress(sum(done.values()) / len(done))


@contextmanager
def _killing_workers() -> Iterator[None]:
    """Kills the processes started in a block that ends by an error, instead of waiting for their units."""
    others = set(multiprocessing.active_children())
    try:
        yield
    except BaseException as error:
        for worker in set(multiprocessing.active_children()) - others:
            worker.kill()
        if isinstance(error, BrokenProcessPool):
            raise AbelnetError(
                "jobs: expected worker processes to finish, but one was killed, perhaps for lack of memory; run the "
                "same command again to resume, with fewer jobs if need be"
            ) from None
        raise


@contextmanager
def _holding_back_interrupts() -> Iterator[None]:
    """Delays Ctrl-C and SIGTERM until the end of a block.

    Processes started in it never receive a Ctrl-C, from their first instant, and none starts without its data.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    # Blocked for the processes, which inherit that. Another thread may still receive a signal, whose handler would then
    # run in this one, so handlers only take note.
    held: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _: held.append(number)) for number in _HELD_BACK}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for came in held:
            signal.raise_signal(came)


def _work(function: Callable[[Unit, Tell], None], unit: Unit) -> None:
    torch.set_num_threads(1)
    function(unit, lambda part: _news.put((unit, part)))


_HELD_BACK = (signal.SIGINT, signal.SIGTERM)
_news: Any = None


def _start_worker(news: Any) -> None:
    """Stores the queue to the parent, and ends the worker when the parent ends, for any reason."""
    global _news
    _news = news
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()  # unlike the parent's process id, this detects its end on every system
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
