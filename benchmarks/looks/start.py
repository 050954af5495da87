"""Compares initializations of min-max networks in the synthetic experiment, without using its test sets.

Data are from seeds that the experiment does not use; training on sizes 2–4, evaluation on sizes 5–8, neither the small
nor the large test sizes. An initialization is better if the median error of its models is smaller.
"""

from __future__ import annotations

import statistics
from concurrent.futures import ProcessPoolExecutor

import torch

from abelnet.experiments.synthetic.comparison import MODELS, STARTS, rmse_of_stack, squared_error, stack_data
from abelnet.experiments.synthetic.data import OPERATIONS, draw, make_dataset
from abelnet.training.loop import Settings, train

SEEDS = range(50_000, 50_010)


def judge(job: tuple[str, str]) -> str:
    name, model = job
    torch.set_num_threads(1)
    kind = MODELS[model]
    cells = []
    for start in STARTS:
        parameters = {"groups": 16, "units": 16, "start": start}
        stack = kind.stack([kind.build(parameters, seed) for seed in SEEDS])
        data = stack_data([make_dataset(name, seed, dtype=torch.float32).train for seed in SEEDS])
        train(stack, data, squared_error, settings=Settings(), seed=list(SEEDS))
        generators = [torch.Generator().manual_seed(seed + 1000) for seed in SEEDS]
        held_out = [draw(OPERATIONS[name], 100, (5, 6, 7, 8), generator, torch.float32) for generator in generators]
        errors = [float("inf") if error is None else error for error in rmse_of_stack(stack, held_out)]
        cells.append(f"{statistics.median(errors):10.3g} ({min(errors):.2g} to {max(errors):.2g})")
    return f"{OPERATIONS[name].formula:<18} {kind.title}  " + "  ".join(f"{cell:<32}" for cell in cells)


def main() -> None:
    print(f"RMSE at sizes 5–8, median (range) over {len(SEEDS)} seeds; 16 groups of 16 lines, 1000 epochs")
    print(f"{'':<23}  " + "  ".join(f"{start:<32}" for start in STARTS))
    jobs = [(name, model) for name in OPERATIONS for model in ("agn", "asn")]
    with ProcessPoolExecutor(2) as pool:
        for line in pool.map(judge, jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
