"""Why a min-max network errs on large multisets: it uses lines that training on small ones never updated.

Inspects the final models of `abelnet synthetic`, whose folder is the argument. For each seed, it finds the lines that
are active on training data, in the forward pass at elements or in the inverse at sums, and splits the large test
multisets into those whose result is on a trained line and those whose result is not.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from abelnet import AbelianGroup, AbelianSemigroup, Monotonic, Operation
from abelnet.experiments.synthetic.data import OPERATIONS, make_dataset
from abelnet.multisets import Multisets


def lines_used(operation: Operation, data: Multisets) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the active line of each element, and that of the result of each multiset."""
    network = operation.bijection
    assert isinstance(network, Monotonic)
    forwards = network.lines(data.values).reshape(-1)
    folded = operation.law.reduce(network(data.values), data)
    return forwards, network.lines(folded, inverse=True).reshape(-1)


@torch.no_grad()
def look(folder: Path, name: str, model: str) -> None:
    row = json.loads((folder / "parts" / f"{name}-{model}.json").read_text())
    state = load_file(folder / "parts" / f"{name}-{model}.safetensors")
    kind = AbelianGroup if model == "agn" else AbelianSemigroup
    shares, on_trained, on_untrained = [], [], []
    for i, seed in enumerate(row["data_seeds"]):
        network = Monotonic(1, row["parameters"]["groups"], row["parameters"]["units"])
        for key, p in network.named_parameters():
            p.copy_(state[f"parameter.bijection.{key}"][i : i + 1])
        operation = kind(network)
        data = make_dataset(name, seed, dtype=torch.float32)
        trained = torch.cat(lines_used(operation, data.train)).unique()
        squares = (operation.reduce(data.large)[:, 0] - data.large.targets).square()
        known = torch.isin(lines_used(operation, data.large)[1], trained)
        shares.append(100 * float((~known).float().mean()))
        for part, into in ((known, on_trained), (~known, on_untrained)):
            into.append(math.sqrt(float(squares[part].mean())) if part.any() else math.nan)
    median = lambda values: statistics.median([v for v in values if not math.isnan(v)] or [math.nan])
    print(
        f"{OPERATIONS[name].formula:<16} {model}  results on untrained lines: {median(shares):5.1f} %   "
        f"RMSE on trained lines {median(on_trained):.2e}, on untrained {median(on_untrained):.2e}"
    )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    for name in OPERATIONS:
        for model in ("agn", "asn"):
            if (folder / "parts" / f"{name}-{model}.json").exists():
                look(folder, name, model)


if __name__ == "__main__":
    main()
