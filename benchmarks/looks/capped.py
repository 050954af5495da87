"""Capped laws: is the cap found, and how close are results below and beyond it? Nilpotent t-norms and capped sums.

500 multisets of 2–4 numbers each; capped sums with about 5, 20 and 50 % of the results at the cap, and plain sums,
which must not be called capped. Errors are RMSE on fresh multisets, in standard deviations of the true
results of 2–4 elements (those of 10–12 are often all at the cap).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from abelnet import LawRegressor, NoLawError

Array = np.ndarray[Any, np.dtype[np.float64]]


def yager(p: float) -> Callable[[Array], float]:
    return lambda x: max(0.0, 1 - float(((1 - x) ** p).sum()) ** (1 / p))


def sugeno_weber(parameter: float) -> Callable[[Array], float]:
    combine = lambda a, b: max(0.0, (a + b - 1 + parameter * a * b) / (1 + parameter))
    return lambda x: float(reduce(combine, x))


LAWS: dict[str, tuple[float, float, Callable[[Array], float], float]] = {
    "Łukasiewicz": (0.4, 1.0, lambda x: max(0.0, float(x.sum()) - len(x) + 1), 0.0),
    "Yager 0.7": (0.5, 1.0, yager(0.7), 0.0),
    "Yager 2": (0.3, 1.0, yager(2.0), 0.0),
    "Yager 5": (0.1, 1.0, yager(5.0), 0.0),
    "Sugeno–Weber 2": (0.3, 1.0, sugeno_weber(2.0), 0.0),
    "Sugeno–Weber −0.5": (0.4, 1.0, sugeno_weber(-0.5), 0.0),
    "sum, 5 % capped": (0.0, 5.0, lambda x: min(float(x.sum()), 12.7), 12.7),
    "sum, 20 % capped": (0.0, 5.0, lambda x: min(float(x.sum()), 10.1), 10.1),
    "sum, 50 % capped": (0.0, 5.0, lambda x: min(float(x.sum()), 7.3), 7.3),
    "2x + 2y − xy − 2, capped": (1.0, 1.6, lambda x: min(float(2 - np.prod(2 - x)), 1.9), 1.9),
    "norm, capped": (0.0, 5.0, lambda x: min(float(np.sqrt((x**2).sum())), 6.0), 6.0),
    "plain sum": (0.0, 5.0, lambda x: float(x.sum()), np.inf),
    "plain sum of integers": (0.0, 5.0, lambda x: float(np.round(x).sum()), np.inf),
}


def draw(low: float, high: float, sizes: tuple[int, int], count: int, seed: int, name: str) -> list[Array]:
    generator = np.random.default_rng(seed)
    sets = [generator.uniform(low, high, generator.integers(sizes[0], sizes[1] + 1)) for _ in range(count)]
    return [np.round(one) for one in sets] if "integers" in name else sets


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{'law':<26}{'at the cap':>11}{'cap':>10}{'2–4':>10}{'10–12':>10}  found")
    for name, (low, high, fold, cap) in LAWS.items():
        sets = draw(low, high, (2, 4), 500, 0, name)
        results = np.array([fold(one) for one in sets])
        at_cap = float(np.mean(results == cap))
        try:
            model = LawRegressor().fit(sets, results)
        except NoLawError as error:
            print(f"{name:<26}{100 * at_cap:>9.0f} %  refused: {error}")
            continue
        (law,) = model.laws_
        errors = []
        for sizes in ((2, 4), (10, 12)):
            fresh = draw(low, high, sizes, 200, 1, name)
            true = np.array([fold(one) for one in fresh])
            errors.append(float(np.sqrt(np.mean((model.predict(fresh) - true) ** 2)) / results.std()))
        found = law.absorbing if np.isfinite(cap) else None
        shown = "none" if found is None else f"{found:.6g}"
        print(
            f"{name:<26}{100 * at_cap:>9.0f} %{shown:>10}{errors[0]:>10.1e}{errors[1]:>10.1e}  {law.formula}"
            + (f" ({law.name})" if law.name else ""),
            flush=True,
        )


if __name__ == "__main__":
    main()
