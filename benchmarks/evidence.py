"""Are non-laws refused and laws not? Every non-law of the tests without noise and with 5 %, every law with 10 %.

500 multisets of 2–4 elements each; noise is a fraction of the standard deviation of the results. ``--jobs`` runs in
processes of one thread each.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from abelnet import LawRegressor, NoLawError
from abelnet.experiments.synthetic.data import OPERATIONS, make_dataset

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from laws_of_practice import LAWS, Fold, draw
from non_laws import NON_LAWS

COUNT = 500


def bent(name: str) -> Fold:
    """Returns the law of a curve that no formula has."""
    curve = CURVES[name][2]
    grid = np.linspace(-40, 40, 800_001)
    heights = curve(grid)
    return lambda x: float(np.interp(curve(x).sum(), heights, grid))


CURVES = {
    "φ = x + x³": (-2.0, 2.0, lambda x: x + x**3),
    "φ = x³ + 5 x": (-4.0, 4.0, lambda x: x**3 + 5 * x),
    "φ = x + 0.8 sin x": (-5.0, 5.0, lambda x: x + 0.8 * np.sin(x)),
    "φ = x + tanh(3 x) / 2": (-3.0, 3.0, lambda x: x + np.tanh(3 * x) / 2),
}


class Job(NamedTuple):
    name: str
    kind: str
    noise: float
    seed: int
    polish: bool


def run(job: Job) -> str:
    """Returns the reason of a refusal; empty if a law is found."""
    torch.set_num_threads(1)
    if job.name in OPERATIONS:
        data = make_dataset(job.name, job.seed).train
        sets, target = data, data.targets.numpy()
    elif job.name in CURVES:
        low, high, _ = CURVES[job.name]
        sets, target = draw(low, high, bent(job.name), COUNT, job.seed)
    else:
        low, high, fold = (NON_LAWS if job.kind == "non-law" else LAWS)[job.name][:3]
        sets, target = draw(low, high, fold, COUNT, job.seed)
    errors = np.random.default_rng([job.seed, 1]).normal(size=len(target))
    try:
        LawRegressor(polish=job.polish).fit(sets, target + job.noise * target.std() * errors)
    except NoLawError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=("law", "non-law"), default=("law", "non-law"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--polish", action="store_true", help="train curves, as LawRegressor does by default")
    arguments = parser.parse_args()
    kinds = dict.fromkeys((*LAWS, *OPERATIONS, *CURVES), "law") | dict.fromkeys(NON_LAWS, "non-law")
    jobs = [
        Job(name, kind, noise, seed, arguments.polish)
        for name, kind in kinds.items()
        if kind in arguments.kinds
        for noise in ((0.0, 0.05) if kind == "non-law" else (0.1,))
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    ]
    wrong, counts = dict.fromkeys(("law", "non-law"), 0), dict.fromkeys(("law", "non-law"), 0)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for job, reason in zip(jobs, pool.map(run, jobs), strict=True):
            counts[job.kind] += 1
            wrong[job.kind] += bool(reason) is (job.kind == "law")
            outcome = "refused" if reason else "accepted"
            what = reason.removeprefix("no law: ")
            print(f"{job.kind:<8} {job.name:<34} noise {job.noise:<5g} {outcome:<9} {what}", flush=True)
    print(
        f"non-laws accepted: {wrong['non-law']} of {counts['non-law']}; laws refused: {wrong['law']} of {counts['law']}"
    )
