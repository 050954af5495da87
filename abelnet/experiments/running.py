"""Runs experiments: units of work in parallel processes of one thread each, and a folder for their results."""

from __future__ import annotations

__all__ = ["Tell", "claim_folder", "derived_seed", "run_units", "write_results"]

import json
import multiprocessing
import os
import platform
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import torch

import abelnet
from abelnet.errors import AbelnetError
from abelnet.files import read_json, write_json

Unit = tuple[Any, ...]
Tell = Callable[[float], None]
"""What a unit calls with the part of its work, from 0 to 1, that it has done since it last did so."""


def derived_seed(seed: int, purpose: str, number: int = 0) -> int:
    """A random seed for one purpose of an experiment, independent of those for any other purpose or number.

    Example:
        >>> derived_seed(0, "data") == derived_seed(0, "data"), derived_seed(0, "data") == derived_seed(0, "model")
        (True, False)
    """
    source = np.random.SeedSequence(seed, spawn_key=(*purpose.encode(), number))
    return int(source.generate_state(1, np.uint64)[0] >> 1)


def claim_folder(folder: Path, settings: dict[str, Any]) -> None:
    """Checks that a folder is empty or keeps an experiment of the same settings."""
    path = folder / "experiment.json"
    if path.exists() and (found := read_json(path)) != json.loads(json.dumps(settings)):
        raise AbelnetError(f"folder: expected {folder} to be empty or of the same settings, got {json.dumps(found)}")
    write_json(path, settings)


def write_results(folder: Path, settings: dict[str, Any], parts: Sequence[Path], seconds: float) -> dict[str, Any]:
    """Joins the parts that units have written into ``results.json``, with settings, versions and times.

    Returns:
        The content of the file.
    """
    rows = [read_json(part) for part in parts]
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
    """Calls a function for each unit.

    Arguments:
        function: Called with a unit and a function to tell its progress by; it is sent to other processes, as the units
            are, so it has to be defined at the top of a module, or a ``functools.partial`` of such a one.
        units: The units, all different, in the order in which they are begun.
        jobs: Number of processes.
        on_unit: Called with each unit that is done.
        on_progress: Called now and then with the part of the work that is done, from 0 to 1.
    """
    # Spawned, not forked: a fork of a process that has used threads may hang.
    context = multiprocessing.get_context("spawn")
    news = context.SimpleQueue()
    done = dict.fromkeys(units, 0.0)
    with ProcessPoolExecutor(jobs, context, _start_worker, (news,)) as pool:
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


def _work(function: Callable[[Unit, Tell], None], unit: Unit) -> None:
    torch.set_num_threads(1)
    function(unit, lambda part: _news.put((unit, part)))


_news: Any = None


def _start_worker(news: Any) -> None:
    """Keeps the queue to the parent, and ends the worker when the parent is gone, however it went."""
    global _news
    _news = news
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()  # unlike the parent's id, this tells its end on every system
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
