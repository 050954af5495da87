"""Coverage of intervals: true results of large sets inside 95 % intervals, or flagged as extrapolated. One thread.

Twenty laws, formulas and curves, means and capped sums, with and without noise, each learned from 200 multisets of 2–4
numbers with several random seeds. New sets have 2–4, 10–12 and 100 numbers; the elements of large ones are drawn
nearer to the identity of the law if it has one, so that many results lie inside the range of the examples.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from abelnet.discovery.estimator import LawRegressor
from abelnet.errors import ExtrapolationWarning

Array = np.ndarray[Any, np.dtype[np.float64]]
Fold = Callable[[Array], float]
_EXAMPLES, _TESTED = 200, 100


class Truth(NamedTuple):
    """Law to be learned: how sets fold, the range of elements, noise in standard deviations of the results."""

    title: str
    fold: Fold
    low: float
    high: float
    noise: float = 0.0
    # Elements of large sets are e + (x - e) · 4 / n, so that many results stay in the range; None for means.
    identity: float | None = 0.0
    # Results that were not capped have noise; the bound is known exactly.
    bound: float | None = None


def curve(phi: Callable[[Any], Any], low: float, high: float, mean: bool = False) -> Fold:
    """Returns the law of a curve, by bisection."""

    def fold(x: Array) -> float:
        wanted, a, b = float(phi(x).mean() if mean else phi(x).sum()), low, high
        for _ in range(100):
            middle = (a + b) / 2
            a, b = (middle, b) if phi(middle) < wanted else (a, middle)
        return (a + b) / 2

    return fold


def power(p: float) -> Fold:
    return lambda x: float((x**p).sum() ** (1 / p))


def wave(x: Any) -> Any:
    return x + 0.8 * np.sin(x)


LAWS = (
    Truth("x + y", lambda x: float(x.sum()), -2, 3, 0.05),
    Truth("x + y + 0.7134", lambda x: float(x.sum() + 0.7134 * (len(x) - 1)), -2, 3, 0.05, -0.7134),
    Truth("2.3719-norm", power(2.3719), 0.1, 3, 0.03),
    Truth("parallel resistors", power(-1), 1, 9, 0.02, 1e3),
    Truth("noisy or", lambda x: float(1 - np.prod(1 - x)), 0, 0.6, 0.05),
    Truth("x + y + 0.3128 xy", lambda x: float((np.prod(1 + 0.3128 * x) - 1) / 0.3128), 0, 2, 0.1),
    Truth("log-sum-exp, k = 1.7183", lambda x: float(np.log(np.exp(1.7183 * x).sum()) / 1.7183), -1, 2, 0.03, -1e2),
    Truth("velocities, c = 1.137", lambda x: float(1.137 * np.tanh(np.arctanh(x / 1.137).sum())), -0.9, 0.9, 0.03),
    Truth("odds", lambda x: float(1 / (1 + np.prod(1 / x - 1))), 0.05, 0.95, 0.02, 0.5),
    Truth("cube roots", lambda x: float(np.cbrt((x**3).sum())), -2, 2, 0.1),
    Truth("arithmetic mean", lambda x: float(x.mean()), -2, 3, 0.1, None),
    Truth("power mean, p = 2.618", lambda x: float((x**2.618).mean() ** (1 / 2.618)), 0.1, 3, 0.05, None),
    Truth("geometric mean", lambda x: float(np.exp(np.log(x).mean())), 0.2, 3, 0.05, None),
    Truth("min(x + y, 6)", lambda x: min(float(x.sum()), 6.0), 0, 3, 0.02, 0.0, 6.0),
    Truth("min(1.63-norm, 4)", lambda x: min(power(1.63)(x), 4.0), 0, 3, 0.02, 0.0, 4.0),
    Truth("x + x²", curve(lambda x: x + x**2, 0, 1e3), 0.05, 3, 0.0),
    Truth("x + x², noise", curve(lambda x: x + x**2, 0, 1e3), 0.05, 3, 0.05),
    Truth("x³ + 5x, noise", curve(lambda x: x**3 + 5 * x, -1e2, 1e2), -2, 2, 0.03),
    Truth("x + 0.8 sin x", curve(wave, -1e3, 1e3), -3, 3),
    Truth("mean over x + 0.8 sin x, noise", curve(wave, -5, 5, mean=True), -2, 3, 0.03, None),
)


def draw(truth: Truth, count: int, sizes: Sequence[int], generator: np.random.Generator) -> list[Array]:
    sets = []
    for size in generator.choice(sizes, count):
        one = generator.uniform(truth.low, truth.high, size)
        if size > 4 and truth.identity is not None:
            margin = 0.01 * (truth.high - truth.low)  # the ends themselves are hardly ever seen
            one = truth.identity + (one - truth.identity) * 4 / size
            one = np.clip(one, truth.low + margin, truth.high - margin)
        sets.append(one)
    return sets


class Row(NamedTuple):
    """Fractions of results flagged, and inside or flagged; mean half-width and error of the others, in spreads."""

    flagged: float
    good: float
    width: float
    error: float


def measure(truth: Truth, seed: int, polish: bool) -> tuple[str, float, list[Row]]:
    """Learns the law from the examples of a seed; returns its title, the seconds, and a row for each group of sizes."""
    generator = np.random.default_rng([seed, *truth.title.encode()])
    sets = draw(truth, _EXAMPLES, (2, 3, 4), generator)
    exact = np.array([truth.fold(one) for one in sets])
    results = exact + truth.noise * exact.std() * generator.normal(size=len(exact))
    if truth.bound is not None:
        results = np.where(exact == truth.bound, exact, np.minimum(results, truth.bound))
    start = time.perf_counter()
    model = LawRegressor(seed=seed, polish=polish, refuse=False).fit(sets, results)
    seconds = time.perf_counter() - start
    rows = []
    for sizes in ((2, 3, 4), (10, 11, 12), (100,)):
        new = draw(truth, _TESTED, sizes, generator)
        wanted = np.array([truth.fold(one) for one in new])
        found, flagged = model.predict(new), model.extrapolated(new)
        low, high = model.predict_interval(new)
        inside = (low <= wanted) & (wanted <= high)
        known = ~flagged & np.isfinite(high - low)
        width = float((high - low)[known].mean() / 2 / exact.std()) if known.any() else float("nan")
        error = float(np.sqrt(((found - wanted)[known] ** 2).mean()) / exact.std()) if known.any() else float("nan")
        rows.append(Row(flagged.mean(), (inside | flagged).mean(), width, error))
    return model.laws_[0].title, seconds, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--only", nargs="*", help="titles of laws")
    parser.add_argument("--no-polish", action="store_true", help="without curves trained by gradient descent")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ExtrapolationWarning)
    print("sizes: 2–4, 10–12, 100; good: inside or flagged; half-widths and errors in standard deviations of results")
    everything = []
    for truth in LAWS:
        if arguments.only and truth.title not in arguments.only:
            continue
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        runs = [measure(truth, seed, not arguments.no_polish) for seed in seeds]
        table = np.array([rows for _, _, rows in runs])
        everything.append(table)
        titles = {title for title, _, _ in runs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # all are flagged: no widths to average
            mean = np.nanmean(table, 0)
        parts = [
            f"good {100 * good:5.1f} flagged {100 * flagged:5.1f} width {width:.1e} error {error:.1e}"
            for flagged, good, width, error in mean
        ]
        seconds = np.mean([seconds for _, seconds, _ in runs])
        found = "; ".join(sorted(titles))
        print(f"{truth.title:<30} {truth.noise:4.0%} {seconds:5.1f} s | {' | '.join(parts)} | {found}", flush=True)
    good = np.array(everything)[..., 1].mean((0, 1))
    print(f"inside or flagged, of all: sizes 2–4 {good[0]:.1%}, 10–12 {good[1]:.1%}, 100 {good[2]:.1%}")


if __name__ == "__main__":
    main()
