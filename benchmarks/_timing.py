"""Timing for the benchmarks: all candidates interleaved in one process, compared by median."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def interleave(
    candidates: dict[str, Callable[[], object]], *, rounds: int, burst: int = 1, warm_up: int = 2
) -> dict[str, float]:
    """Returns the median seconds of each candidate, interleaved so that machine noise affects all of them equally.

    A turn is a burst of calls; if there are several, the first is not counted, so that a training step, for example, is
    timed among steps of its own, as in real use, and not after those of its rivals.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for candidate in candidates.values():
        for _ in range(warm_up):
            candidate()
    for _ in range(rounds):
        for name, candidate in candidates.items():
            turn = []
            for _ in range(burst):
                start = time.perf_counter()
                candidate()
                turn.append(time.perf_counter() - start)
            times[name] += turn[1:] or turn
    return {name: statistics.median(taken) for name, taken in times.items()}


def report(title: str, medians: dict[str, float], rival: str) -> None:
    """Prints each median and its speedup over the rival."""
    print(title)
    for name, seconds in medians.items():
        print(f"  {name:<44} {1e3 * seconds:10.2f} ms   {medians[rival] / seconds:6.2f}x", flush=True)
