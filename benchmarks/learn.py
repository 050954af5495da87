"""Learning an operation: closed form and full search, compared with the paper's procedure and DeepSets. One thread.

The paper's five operations, each from 500 multisets of 2–4 numbers. Ours runs in its default configuration on ten
seeds; the paper's network (min-max, 16 groups of 16 lines, told whether the truth is a group or semigroup, unlike ours)
and DeepSets (3 layers of width 32) are trained once for 1000 epochs. Then a million examples in chunks.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
import warnings

import numpy as np
import torch
from torch import nn

from abelnet import AbelianGroup, AbelianSemigroup, Monotonic
from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.spectral import SpectralFit
from abelnet.errors import ExtrapolationWarning
from abelnet.experiments.synthetic.comparison import rmse_of_stack, squared_error, stack_data
from abelnet.experiments.synthetic.data import OPERATIONS, make_dataset
from abelnet.multisets import Multisets
from abelnet.nn.baselines import DeepSets
from abelnet.nn.stacks import DeepSetsStack
from abelnet.training.loop import Settings, train
from abelnet.training.stacks import OperationStack


def ours(name: str, seeds: int, noise: float) -> None:
    closed, total, small, large, groups, formulas, ratios = [], [], [], [], [], set(), []
    for seed in range(seeds):
        data = make_dataset(name, seed)
        target = data.train.targets.numpy()
        size = noise * target.std()
        target = target + size * np.random.default_rng(seed).normal(size=len(target))
        examples = Multisets.from_arrays(data.train, target)
        start = time.perf_counter()
        SpectralFit().partial_fit(examples).refine(examples).solve()
        closed.append(time.perf_counter() - start)
        start = time.perf_counter()
        model = LawRegressor().fit(examples)
        total.append(time.perf_counter() - start)
        errors = [
            float(np.sqrt(np.mean((model.predict(part) - part.targets.numpy()) ** 2)))
            for part in (data.small, data.large)
        ]
        small.append(errors[0])
        large.append(errors[1])
        ratios.append(errors[0] / size if noise else 0.0)
        groups.append(model.laws_[0].is_group)
        formulas.add(model.laws_[0].formula + f" (absorbing: {model.laws_[0].absorbing})")
    right = sum(group is OPERATIONS[name].is_group for group in groups)
    print(
        f"{OPERATIONS[name].formula:<16} ours, noise {noise:<5g} small {statistics.median(small):.1e} "
        f"(worst {max(small):.1e})  large {statistics.median(large):.1e} (worst {max(large):.1e})"
        + (f"  error / noise at most {max(ratios):.2f}" if noise else "")
        + f"  kind right {right}/{seeds}  closed form {1e3 * statistics.median(closed):.0f} ms, "
        f"all {statistics.median(total):.2f} s (longest {max(total):.2f} s)"
    )
    print("   " + "; ".join(sorted(formulas)), flush=True)


def rival(title: str, stack: nn.Module, name: str) -> None:
    data = make_dataset(name, 0, dtype=torch.float32)
    start = time.perf_counter()
    train(stack, stack_data([data.train]), squared_error, settings=Settings(), seed=[0])
    seconds = time.perf_counter() - start
    errors = [rmse_of_stack(stack, [part])[0] for part in (data.small, data.large)]
    print(f"{OPERATIONS[name].formula:<16} {title:<28} small {errors[0]:.1e}  large {errors[1]:.1e}  {seconds:.1f} s")


def million() -> None:
    generator = np.random.default_rng(0)
    start = time.perf_counter()
    model = LawRegressor()
    for _ in range(50):
        values = generator.uniform(-5, 5, (20_000, 4))
        values[generator.random((20_000, 4)) < [0, 0, 0.3, 0.5]] = np.nan
        model.partial_fit(values, np.nanprod(1 + values / 2, axis=1) * 2 - 2)
    formula = model.laws_[0].formula
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"a million examples in parts: {formula}, {time.perf_counter() - start:.1f} s, peak memory {peak:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # Large sets are extrapolated on purpose.
    warnings.simplefilter("ignore", ExtrapolationWarning)
    million()
    for name, truth in OPERATIONS.items():
        for noise in (0.0, 0.01, 0.1):
            ours(name, arguments.seeds, noise)
        kind = AbelianGroup if truth.is_group else AbelianSemigroup
        network = kind(Monotonic(1, 16, 16, near=(1.0, 0.0), seed=0))
        rival("the paper's network", OperationStack([network]), name)
        rival("DeepSets", DeepSetsStack([DeepSets(1, 3, 32, 32, seed=0)]), name)


if __name__ == "__main__":
    main()
