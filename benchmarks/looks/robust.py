"""Which laws are found when some results are wrong: outliers, wrong copies, and noise in proportion to the result.

Laws are learned from 500 multisets of sizes 2 to 4. A law is found if its formula is that of the clean examples; with
noise, if its form is, and its error on clean fresh sets is at most 5% of the spread of their results. What is no law is
to be refused.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import torch

from abelnet import LawRegressor, Multisets, NoLawError
from abelnet.discovery import LearnedLaw

Array = np.ndarray[Any, np.dtype[np.float64]]
Fold = Callable[[Array], Any]
SETS = 500
WRONG = 5e-2  # of the spread of clean results

LAWS: dict[str, tuple[float, float, Fold]] = {
    "sum": (-5, 5, np.sum),
    "sum plus one": (-5, 5, lambda x: x.sum() + len(x) - 1),
    "cbrt": (-5, 5, lambda x: np.cbrt((x**3).sum())),
    "product": (-5, 5, np.prod),
    "shifted product": (-5, 5, lambda x: 2 * (np.prod(1 + x / 2) - 1)),
    "noisy or": (0, 1, lambda x: 1 - np.prod(1 - x)),
    "resistors": (1, 1e4, lambda x: 1 / np.sum(1 / x)),
    "lengths": (0, 5, lambda x: np.sqrt(np.sum(x**2))),
    "log-sum-exp": (-5, 5, lambda x: np.log(np.exp(x).sum())),
    "returns": (-0.3, 0.5, lambda x: np.prod(1 + x) - 1),
    "mean": (-5, 5, np.mean),
    "geometric mean": (0.1, 5, lambda x: np.exp(np.log(x).mean())),
    "root mean square": (0, 5, lambda x: np.sqrt((x**2).mean())),
}
NO_LAWS: dict[str, tuple[float, float, Fold]] = {
    "difference": (-5, 5, lambda x: x[0] - x[1:].sum()),
    "range": (-5, 5, np.ptp),
    "pairs": (-5, 5, lambda x: (x.sum() ** 2 - (x**2).sum()) / 2),
    "in order": (-2, 2, lambda x: reduce(lambda a, b: a + b + 0.1 * a * a * b, x)),
    "sine": (-5, 5, lambda x: np.sin(1e3 * x[0])),
}


def gross(y: Array, generator: np.random.Generator) -> Array:
    """Replaces 5% of the results: half of them several spreads away, half by numbers of the range."""
    y = y.copy()
    chosen = generator.permutation(len(y))[: len(y) // 20]
    far, near = np.array_split(chosen, 2)
    y[far] += y.std() * generator.choice([-1, 1], len(far)) * generator.uniform(3, 10, len(far))
    y[near] = generator.uniform(y.min(), y.max(), len(near))
    return y


def copies(y: Array, generator: np.random.Generator) -> Array:
    """Swaps 10% of the results between sets."""
    y = y.copy()
    chosen = generator.permutation(len(y))[: len(y) // 10]
    y[chosen] = np.roll(y[chosen], 1)
    return y


CORRUPTIONS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "clean": lambda y, _generator: y,
    "gross": gross,
    "copies": copies,
    "noise": lambda y, generator: y + 0.05 * y.std() * generator.normal(size=len(y)),
    "noise and gross": lambda y, generator: gross(y + 0.05 * y.std() * generator.normal(size=len(y)), generator),
    "multiplicative": lambda y, generator: y * (1 + 0.1 * generator.normal(size=len(y))),
}


def draw(low: float, high: float, fold: Fold, seed: int) -> tuple[list[Array], Array]:
    """Draws multisets with their results."""
    generator = np.random.default_rng(seed)
    sets = [generator.uniform(low, high, generator.integers(2, 5)) for _ in range(SETS)]
    return sets, np.array([fold(one) for one in sets])


def look(name: str, corruption: str, seed: int) -> bool:
    """Learns one law from corrupted examples, prints a line, and returns whether the answer is right."""
    case = (LAWS | NO_LAWS)[name]
    sets, clean = draw(*case, seed)
    y = CORRUPTIONS[corruption](clean, np.random.default_rng(1000 + seed))
    start = time.process_time()
    try:
        law = LawRegressor(seed=seed).fit(sets, y).laws_[0]
    except NoLawError as refusal:
        right, answer = name in NO_LAWS, f"refused: {str(refusal)[60:240]}"
    else:
        wanted = LawRegressor(seed=seed, refuse=False, polish=False).fit(sets, clean).laws_[0]
        fresh, results = draw(*case, seed + 500)
        error = np.sqrt(np.mean((_predict(law, fresh) - results) ** 2)) / results.std()
        noisy = "noise" in corruption or corruption == "multiplicative"
        found = error <= WRONG and law.title == wanted.title if noisy else law.formula == wanted.formula
        right, left_out = found and name in LAWS, len(getattr(law, "outliers", ()))
        answer = f"{law.formula[:60]} ({law.title}), error {error:.2g}, {left_out} left out"
    mark, seconds = "+" if right else "-", time.process_time() - start
    print(f"{mark} {corruption}, {name}, seed {seed}: {answer} [{seconds:.1f} s]", flush=True)
    return right


def _predict(law: LearnedLaw, sets: list[Array]) -> Array:
    with torch.no_grad():
        found: Array = law.operation.reduce(Multisets.from_arrays(sets))[:, 0].numpy()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corruptions", nargs="+", choices=CORRUPTIONS, default=list(CORRUPTIONS))
    parser.add_argument("--laws", nargs="+", choices=[*LAWS, *NO_LAWS], default=[*LAWS, *NO_LAWS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    for corruption in arguments.corruptions:
        found = [look(name, corruption, seed) for name in arguments.laws for seed in arguments.seeds]
        print(f"{corruption}: {sum(found)} of {len(found)} right", flush=True)


if __name__ == "__main__":
    main()
