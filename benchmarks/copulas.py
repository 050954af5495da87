"""Nelsen's 22 Archimedean copulas at two parameters each, learned from 500 sets of 2–4 numbers. One thread.

The generators come from the package ``copul``; results are folded with them in float64 and inverted by bisection.
Strict generators fold numbers drawn evenly from 0.01 to 1. The others are 0 beyond a sum of φ(0): their numbers are the
parts of a random sum below it, so that no result is at that cap. Errors are root mean squared errors divided by the
standard deviation of the true results.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import copul
import numpy as np
import sympy

from abelnet import AbelnetError, Generator, Operation, Polynomial
from abelnet.discovery.estimator import LawRegressor

Array = np.ndarray[Any, np.dtype[np.float64]]
Curve = Callable[[Array], Array]
# Small enough that no generator overflows on the elements drawn.
PARAMETERS: dict[int, tuple[float, float]] = {
    1: (0.5, 3.0),
    2: (1.5, 3.0),
    3: (-0.7, 0.8),
    4: (1.5, 4.0),
    5: (-3.0, 5.0),
    6: (1.5, 3.0),
    7: (0.3, 0.8),
    8: (2.0, 5.0),
    9: (0.3, 0.9),
    10: (0.4, 1.0),
    11: (0.2, 0.5),
    12: (1.5, 3.0),
    13: (0.5, 2.0),
    14: (1.5, 3.0),
    15: (1.5, 3.0),
    16: (0.5, 3.0),
    17: (-3.0, 2.0),
    18: (2.0, 5.0),
    19: (0.3, 2.0),
    20: (0.4, 1.0),
    21: (1.5, 3.0),
    22: (0.4, 1.0),
}
SMALL, LARGE = (2, 5), (10, 13)


def generator_of(number: int, theta: float) -> Curve:
    """Returns the additive generator of a family of Nelsen's list."""
    family = getattr(copul.family.archimedean, f"Nelsen{number}")(theta)
    # The formula itself: the public one has pieces for the limits at 0 and 1.
    curve = sympy.lambdify(family.t, family._raw_generator.subs(family.theta, theta), "numpy")

    def evaluated(t: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(np.real(curve(t)), dtype=np.float64)

    return evaluated


def inverted(curve: Curve, u: Array) -> Array:
    """Returns where a decreasing curve on (0, 1) has these values, by bisection of the logarithm."""
    low, high = np.full_like(u, np.log(1e-290)), np.zeros_like(u)
    for _ in range(80):
        middle = (low + high) / 2
        above = curve(np.exp(middle)) > u
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.exp((low + high) / 2)


def draw(curve: Curve, sizes: tuple[int, int], count: int, random: np.random.Generator) -> tuple[list[Array], Array]:
    """Returns sets of these sizes, and their results."""
    before, cap = curve(np.array([1e-200, 1e-290]))
    is_strict = np.isinf(cap) or cap - before > 1e-6 * cap
    sets, sums = [], []
    for size in random.integers(*sizes, count):
        if is_strict:
            one = random.uniform(0.01, 1, size)
        else:
            parts = random.dirichlet(np.ones(size)) * random.uniform(0.05, 0.95) * cap
            one = inverted(curve, parts)
        sets.append(one)
        sums.append(curve(one).sum())
    return sets, inverted(curve, np.array(sums))


def error(model: LawRegressor, sets: list[Array], results: Array) -> float:
    """Returns the normalized error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.asarray(model.predict(sets)).reshape(-1)
    return float(np.sqrt(np.mean((found - results) ** 2)) / results.std())


def name_of(operation: Operation) -> str | None:
    """Returns the name of a law over a family, in the words of the family."""
    bijection, law = operation.bijection, operation.law
    if not isinstance(bijection, Generator):
        return None
    gamma, shift = (float(law.gamma), float(law.shift)) if isinstance(law, Polynomial) else (0.0, 0.0)
    theta = tuple(value.item() for value in bijection.values)
    if gamma:
        return bijection.family.name_of("product", theta, (-1 / gamma - shift, gamma))
    return bijection.family.name_of("sum", theta, (shift,) if shift else ())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", default=list(PARAMETERS), help="numbers in Nelsen's list")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    good = named = cases = 0
    for number in arguments.only:
        for theta in PARAMETERS[number]:
            random = np.random.default_rng(1000 * arguments.seed + number)
            curve = generator_of(number, theta)
            model = LawRegressor(refuse=False)
            start = time.perf_counter()
            try:
                model.fit(*draw(curve, SMALL, 500, random))
            except AbelnetError as problem:
                print(f"{number:>2}  θ={theta:<4g}  {problem}")
                continue
            took = time.perf_counter() - start
            small, large = (error(model, *draw(curve, sizes, 300, random)) for sizes in (SMALL, LARGE))
            law = model.laws_[0]
            name = name_of(law.operation)
            within = small <= 0.01 and large <= 0.03
            cases, good, named = cases + 1, good + within, named + (name is not None)
            print(
                f"{number:>2}  θ={theta:<4g}  {small:8.1e}  {large:8.1e}  {'within' if within else 'beyond'}  "
                f"{took:5.1f} s  {law.title}: {name or law.formula}",
                flush=True,
            )
    print(f"within 1 % at sizes 2–4 and 3 % at sizes 10–12: {good} of {cases}; named: {named}")


if __name__ == "__main__":
    main()
