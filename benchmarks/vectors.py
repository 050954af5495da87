"""Laws on vectors: how many are found, with all formulas right, without and with noise, outliers and few examples.

For each law of the tests: sets of 2–4 elements; errors at sizes 2–4 and 10–12 are root mean squares of all coordinates,
each in standard deviations of the true results there. Noise is a fraction of the standard deviation, of the results or
of the elements. ``--non-laws`` draws aggregations that are no law instead, and counts those that are refused. Random
ones, 200 of each: ``--random 200`` for triangular laws, ``--random 200 --non-laws`` for non-laws. ``--million`` streams
a million examples of pooled mean and variance in parts.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from abelnet import AbelnetError, ExtrapolationWarning, LawRegressor, NoLawError

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from vector_laws import LAWS, NON_LAWS, WIDER, VectorLaw, draw, is_right, random_law, random_non_law, spoil


def errors(model: LawRegressor, law: VectorLaw, seed: int) -> tuple[float, float]:
    found = []
    for sizes in ((2, 4), (10, 12)):
        sets, target = draw(law, 200, seed + 1000, sizes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            try:
                predicted = model.predict(sets)
            except AbelnetError:  # outside the domain of a law that is another
                return math.inf, math.inf
        found.append(float(np.sqrt(np.mean(((predicted - target) / target.std(0)) ** 2))))
    return found[0], found[1]


def run(name: str, law: VectorLaw, args: argparse.Namespace, *, quiet: bool = False) -> tuple[bool, bool]:
    sets, target = draw(law, args.count, args.seed)
    sets, target = spoil(sets, target, args.noise, args.elements, args.swapped, args.seed)
    start = time.perf_counter()
    try:
        model = LawRegressor(seed=args.seed, polish=False).fit(sets, target, names=law.names)
    except NoLawError as error:
        print(f"   {name:30s} {time.perf_counter() - start:5.1f} s  refused: {str(error)[:160]}", flush=True)
        return False, True
    took = time.perf_counter() - start
    exact = not (args.noise or args.elements)
    small, large = errors(model, law, args.seed)
    # A random law has several bases of invariants that are equally plain: its results decide.
    right = large < 1e-6 if args.random else is_right(model, law, 1e-6 if exact else 0.02)
    if not (quiet and right):
        text = " | ".join(one.formula for one in model.laws_)
        mark = "ok" if right else "  "
        print(f"{mark} {name:30s} {took:5.1f} s  small {small:.1e}  large {large:.1e}  {text[:110]}", flush=True)
    return right, False


def million(seed: int) -> None:
    """Streams a million examples of three coordinates; what draws them is not counted in the time."""
    law, model, took = LAWS["pooled variance"], LawRegressor(seed=seed, polish=False), 0.0
    for part in range(50):
        sets, target = draw(law, 20_000, seed * 1000 + part)
        start = time.perf_counter()
        model.partial_fit(sets, target)
        took += time.perf_counter() - start
    start = time.perf_counter()
    text = " | ".join(one.formula for one in model.laws_)
    learned = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    small, large = errors(model, law, seed)
    print(f"a million examples: {took:.1f} s streamed, {learned:.1f} s learned, peak memory {peak:.2f} GB")
    print(f"small {small:.1e}  large {large:.1e}  {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--elements", type=float, default=0.0)
    parser.add_argument("--swapped", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wider", action="store_true", help="exponentials, real exponents and four coordinates")
    parser.add_argument("--non-laws", action="store_true", help="the non-laws of the tests")
    parser.add_argument("--random", type=int, default=0, help="this many random laws, or non-laws with --non-laws")
    parser.add_argument("--only", default="", help="part of the name of a law")
    parser.add_argument("--million", action="store_true", help="stream a million examples of three coordinates")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.million:
        million(args.seed)
        return
    if args.random:
        make = random_non_law if args.non_laws else random_law
        table = {f"random {k}": make(args.seed * 10_000 + k) for k in range(args.random)}
    else:
        table = NON_LAWS if args.non_laws else WIDER if args.wider else LAWS
    table = {name: law for name, law in table.items() if args.only in name}
    outcomes = [run(name, law, args, quiet=bool(args.random)) for name, law in table.items()]
    right, refused = (sum(part) for part in zip(*outcomes, strict=True))
    print(f"{args}\n{'refused' if args.non_laws else 'found'}: {refused if args.non_laws else right} of {len(table)}")


if __name__ == "__main__":
    main()
