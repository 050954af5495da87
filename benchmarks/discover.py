"""Which operation made these pairs? Ours beside two symbolic regressors, pyoperon and gplearn. One thread each.

All get the same 500 pairs (x, y) and results x∘y. Ours assumes an associative operation; the rivals do not. What they
find, a function of two numbers, is folded over larger multisets from left to right. Rivals run for the given number of
seconds per law, with the functions that the laws need (exp, log, square, square and cube root; pyoperon with least
squares on the constants); ours takes what it takes. The error is the RMSE on fresh multisets, in standard deviations of
the true results of that size.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from abelnet import LawRegressor, NoLawError

Array = np.ndarray[Any, np.dtype[np.float64]]
Binary = Callable[[Array, Array], Array]
SIZES = (2, 4, 12, 100)
LAWS: dict[str, tuple[float, float, Binary]] = {
    "x + y + 1": (-5, 5, lambda x, y: x + y + 1),
    "x + y + xy/2": (-0.9, 0.9, lambda x, y: x + y + 0.5 * x * y),
    "x y": (0.8, 1.25, lambda x, y: x * y),
    "cbrt(x³ + y³)": (-5, 5, lambda x, y: np.cbrt(x**3 + y**3)),
    "noisy or": (0, 0.2, lambda x, y: x + y - x * y),
    "parallel": (1, 100, lambda x, y: x * y / (x + y)),
    "norm": (0, 5, lambda x, y: np.hypot(x, y)),
    "velocities": (-0.9, 0.9, lambda x, y: (x + y) / (1 + x * y)),
    "log-sum-exp": (-5, 5, np.logaddexp),
    "odds": (0.4, 0.6, lambda x, y: x * y / (x * y + (1 - x) * (1 - y))),
}


def binary(predict: Callable[[Array], Array]) -> Binary:
    """Returns the function of two numbers that a regressor found; NaN where a fold has left the finite numbers."""

    def function(x: Array, y: Array) -> Array:
        pairs = np.stack((x, y), 1)
        sound = (np.abs(pairs) < 1e100).all(1)
        result = np.full(len(pairs), math.nan)
        if sound.any():
            result[sound] = np.reshape(predict(pairs[sound]), -1)
        return result

    return function


def pyoperon(pairs: Array, results: Array, seconds: int) -> Binary:
    from pyoperon.sklearn import SymbolicRegressor

    model = SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,exp,log,sqrt,square,cbrt,tanh,constant,variable",
        optimizer_iterations=10,
        generations=1_000_000,
        max_evaluations=1_000_000_000,
        max_time=seconds,
        n_threads=1,
        random_state=0,
    ).fit(pairs, results)
    return binary(model.predict)


def gplearn(pairs: Array, results: Array, seconds: int) -> Binary:
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    more = {"exp": lambda x: np.exp(np.clip(x, -50, 50)), "square": np.square, "cbrt": np.cbrt}
    functions = ["add", "sub", "mul", "div", "sqrt", "log", "inv", "neg"]
    functions += [make_function(function=function, name=name, arity=1) for name, function in more.items()]

    model, start, generations = None, time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        generations += 5
        if model is None:
            model = SymbolicRegressor(population_size=2000, function_set=functions, warm_start=True, random_state=0)
        model.set_params(generations=generations)
        model.fit(pairs, results)
    assert model is not None
    return binary(model.predict)


def error(predict: Callable[[Array], Array], low: float, high: float, law: Binary, size: int) -> float:
    """Normalized RMSE on 200 fresh multisets of one size."""
    sets = np.random.default_rng(size).uniform(low, high, (200, size))
    true = reduce(law, sets.T)
    found = predict(sets)
    if not np.isfinite(found).all():
        return math.inf
    return float(np.sqrt(np.mean((found - true) ** 2)) / true.std())


def ours(pairs: Array, results: Array) -> tuple[Callable[[Array], Array], str]:
    model = LawRegressor().fit(pairs, results)
    return model.predict, model.laws_[0].formula


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="time of each rival per law")
    parser.add_argument("--laws", nargs="*", default=list(LAWS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    print(f"{'law':<15}{'method':<10}{'time':>8}" + "".join(f"{f'size {n}':>11}" for n in SIZES))
    for name in arguments.laws:
        low, high, law = LAWS[name]
        pairs = np.random.default_rng(0).uniform(low, high, (500, 2))
        results = law(pairs[:, 0], pairs[:, 1])
        start, formula = time.perf_counter(), ""
        rows: list[tuple[str, float, Callable[[Array], Array]]] = []
        try:
            predict, formula = ours(pairs, results)
        except NoLawError:
            predict = lambda sets: np.full(len(sets), math.nan)
        rows.append(("abelnet", time.perf_counter() - start, predict))
        for rival in (pyoperon, gplearn):
            start = time.perf_counter()
            found = rival(pairs, results, arguments.seconds)
            seconds = time.perf_counter() - start
            rows.append((rival.__name__, seconds, lambda sets, found=found: reduce(found, sets.T)))  # type: ignore[misc]
        for method, seconds, predict in rows:
            errors = "".join(f"{error(predict, low, high, law, n):>11.1e}" for n in SIZES)
            print(
                f"{name:<15}{method:<10}{seconds:>6.1f} s{errors}  {formula if method == 'abelnet' else ''}", flush=True
            )


if __name__ == "__main__":
    main()
