"""Error and kind of laws whose curve no family has, learned from 500 sets of 2 to 4 elements, without and with noise.

Errors are root mean squared errors on 2,000 fresh sets without noise, in percent of the standard deviation of their
results. Seeds are not those of the tests. A group law whose curve is called that of a semigroup is marked.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtri

from abelnet import AbelnetError, LawRegressor

Array = np.ndarray[Any, np.dtype[np.float64]]
SEEDS = (70_000, 70_001)


class Law(NamedTuple):
    """Law over an increasing curve: the range of elements, and the domain of the curve."""

    curve: Callable[[Array], Array]
    elements: tuple[float, float]
    domain: tuple[float, float] = (-1e3, 1e3)


GROUPS = {
    "x + 0.8 sin x": Law(lambda x: x + 0.8 * np.sin(x), (-5, 5)),
    "x + 0.3 sin 3x": Law(lambda x: x + 0.3 * np.sin(3 * x), (-3, 3)),
    "x + x^3": Law(lambda x: x + x**3, (-2, 2)),
    "x^3 + 5x": Law(lambda x: x**3 + 5 * x, (-3, 3)),
    "probit": Law(ndtri, (0.05, 0.95), (1e-16, 1 - 1e-16)),
    "signed log1p": Law(lambda x: np.sign(x) * np.log1p(np.abs(x)), (-5, 5), (-1e6, 1e6)),
    "x + 2 tanh 3x": Law(lambda x: x + 2 * np.tanh(3 * x), (-2, 2)),
    "x + |x| / 2": Law(lambda x: x + np.abs(x) / 2, (-3, 3)),
    "two kinks": Law(lambda x: x + np.clip(2 * x, -1, 3), (-2, 2)),
    "e^x + x": Law(lambda x: np.exp(np.minimum(x, 300)) + x, (-2, 2)),
    "x + softplus": Law(lambda x: x + 2 * np.logaddexp(0, 3 * x), (-2, 2)),
    "x^2 + x, x > 0": Law(lambda x: x**2 + x, (0.1, 3), (0, 1e3)),
}
SEMIGROUPS = {
    "x + 0.3 sin 2x": Law(lambda x: x + 0.3 * np.sin(2 * x), (-1.5, 1.5)),
    "x^3 + x": Law(lambda x: x**3 + x, (-1.2, 1.2)),
    "e^x + x": Law(lambda x: np.exp(np.minimum(x, 300)) + x, (-1.5, 1)),
}


def inverse(law: Law, u: Array) -> Array:
    """Returns the inverse of the curve by bisection."""
    low, high = np.full_like(u, law.domain[0]), np.full_like(u, law.domain[1])
    for _ in range(80):
        middle = (low + high) / 2
        below = law.curve(middle) < u
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def draw(law: Law, form: str, count: int, seed: int) -> tuple[list[Array], Array]:
    """Returns sets of 2 to 4 elements and their results without noise."""
    generator = np.random.default_rng(seed)
    sets = [generator.uniform(*law.elements, size) for size in generator.integers(2, 5, count)]
    fold = {"group": np.sum, "mean": np.mean, "semigroup": np.prod}[form]
    return sets, inverse(law, np.array([fold(law.curve(one)) for one in sets]))


class Row(NamedTuple):
    """One line of the table: the error in percent, the kind that was found, and its time in seconds."""

    name: str
    form: str
    count: int
    noise: float
    error: float
    kind: str
    title: str
    seconds: float


def judge(job: tuple[str, str, int, float, int]) -> Row:
    """Learns one law from one draw."""
    name, form, count, noise, seed = job
    torch.set_num_threads(1)
    law = (SEMIGROUPS if form == "semigroup" else GROUPS)[name]
    sets, results = draw(law, form, count, seed)
    results = results + noise * results.std() * np.random.default_rng(seed + 1).normal(size=count)
    fresh, wanted = draw(law, form, 2000, seed + 2)
    start = time.perf_counter()
    try:
        model = LawRegressor().fit(sets, results)
    except AbelnetError as error:
        return Row(name, form, count, noise, np.nan, "refused", str(error)[:60], time.perf_counter() - start)
    seconds = time.perf_counter() - start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = float(np.sqrt(np.mean((model.predict(fresh) - wanted) ** 2)) / wanted.std())
    found = model.laws_[0]
    return Row(name, form, count, noise, 100 * error, found.kind, found.title, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forms", nargs="+", default=["group", "mean", "semigroup"])
    parser.add_argument("--noise", nargs="+", type=float, default=[0.0, 0.01, 0.05])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--laws", nargs="+", default=None, help="laws to learn; all if not given")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--processes", type=int, default=1)
    chosen = parser.parse_args()
    jobs = [
        (name, form, chosen.count, noise, seed)
        for form in chosen.forms
        for name in (SEMIGROUPS if form == "semigroup" else GROUPS)
        for noise in chosen.noise
        for seed in chosen.seeds
        if chosen.laws is None or name in chosen.laws
    ]
    with ProcessPoolExecutor(chosen.processes) as pool:
        for row in pool.map(judge, jobs):
            invented = "  <- invented" if row.form == "group" and "semigroup over" in row.title else ""
            print(
                f"{row.form:<10}{row.name:<16}{row.count:>6}{row.noise:>6.2f}  {row.error:8.3f} %  {row.seconds:5.1f} s"
                f"  {row.kind}: {row.title}{invented}",
                flush=True,
            )


if __name__ == "__main__":
    main()
