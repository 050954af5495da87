"""Aggregation layers forward and backward, compared with the sum of PyTorch Geometric. One thread.

All are called as a message-passing layer calls them, with an index that is sorted by set and one that is not. Laws are
those that a hardened bank may have; kernels are compiled before the clock starts. The soft bank is averaged over the
turns of its training, before the best laws are tried and while they are. Memory that is freed is kept for all of them:
where the C library returns it to the system, faults of new pages take longer than a sum, and hit whatever comes next.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from abelnet import Affine, RationalQuadraticSpline, SinhArcsinh
from abelnet.bijections import Monotonic
from abelnet.experiments.graphs.rivals import AGGREGATIONS, Context
from abelnet.integrations.pyg import AbelianAggregation
from abelnet.nn import GatedBank
from abelnet.operation import AbelianGroup, AbelianNet, Operation
from abelnet.segments import kernels_for, set_kernels_enabled

warnings.simplefilter("ignore")

RIVALS = {
    "PyG sum": "sum",
    "PyG max": "max",
    "PyG softmax": "softmax",
    "PyG LCM": "lcm",
    "PyG SetTransformer": "set_transformer",
    "GenAgg": "genagg",
}
LAWS = {
    "sum": "polynomial",
    "noisy or": "polynomial",
    "log-sum-exp": "log-sum-exp +1",
    "log-mean-exp": "log-mean-exp -6",
    "power sum": "power sum -1",
    "power mean": "power mean +2",
    "arithmetic mean": "arithmetic mean",
    "maximum": "maximum",
    "minimum": "minimum",
    "geometric mean": "geometric mean",
    "product": "product",
    "curve": "curve",
    "mean over a curve": "mean over a curve",
}
DIM = 32
# Steps before the trial and in it, of which the bank takes turns.
TURNS = 48
# Parameters of glibc's mallopt: free memory that is not returned, and blocks that are not mapped one by one, in bytes.
MALLOPT = {-1: 2**30, -3: 2**25}


def hardened(dim: int, name: str, law: str) -> nn.Module:
    """Returns a bank in which all channels have kept a law, with parameters as after training, as exact operations."""
    bank = GatedBank(dim, seed=0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        bank.logits[:, bank.names.index(law)] = 1.0
        for parameter in bank.members.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
        bank.members[0].gamma.fill_(0.0 if name == "sum" else -0.2)  # type: ignore[operator]
        bank.members[0].shift.fill_(0.0)  # type: ignore[operator]
    bank.anneal(1.0)
    return bank.harden()


def others(dim: int) -> dict[str, Operation]:
    return {
        "group, SinhArcsinh": AbelianGroup(SinhArcsinh(dim)),
        "group, spline": AbelianGroup(RationalQuadraticSpline(dim)),
        "group, Monotonic": AbelianGroup(Monotonic(dim)),
        "AbelianNet(Affine)": AbelianNet(Affine(dim)),
        "AbelianNet(Affine), gamma -0.2": AbelianNet(Affine(dim), -0.2),
    }


def step(layer: nn.Module, values: Tensor, index: Tensor, gradient: Tensor) -> None:
    values.grad = None
    layer.zero_grad()
    layer(values, index=index, dim_size=len(gradient)).backward(gradient)


def compare(elements: int, sets: int, dim: int, rounds: int, slow: bool) -> None:
    # Positive, so that no law moves elements into its domain; in the right order of magnitude for products of ten.
    values = (0.5 + torch.rand(elements, dim)).requires_grad_()
    gradient = torch.randn(sets, dim)
    layers: dict[str, nn.Module] = {}
    for name, key in RIVALS.items():
        if slow or key in ("sum", "max", "softmax"):
            layers[name] = rival(key)
    for name, law in LAWS.items():
        layers[f"hardened: {name}"] = AbelianAggregation(hardened(dim, name, law))
    layers |= {name: AbelianAggregation(operation) for name, operation in others(dim).items()}
    first, trial = AbelianAggregation(dim), AbelianAggregation(dim)
    ordered = torch.arange(sets).repeat_interleave(elements // sets)
    for order, index in (("sorted", ordered), ("unsorted", ordered[torch.randperm(elements)])):
        times: dict[str, list[float]] = {name: [] for name in layers}
        soft = {"soft bank": first, "soft bank, trial of the best": trial}
        times |= {name: [] for name in soft}
        for turn in range(rounds + 1):
            for name, layer in layers.items():
                if name in ("PyG LCM", "PyG SetTransformer", "GenAgg") and turn > 1:
                    continue
                # LCM needs a sorted index.
                given = ordered if name in ("PyG LCM", "PyG SetTransformer") else index
                seconds = timed(lambda: step(layer, values, given, gradient))  # noqa: B023
                times[name] += [seconds] if turn > 0 else []
            for (name, layer), start in zip(soft.items(), (0.0, 0.25), strict=True):
                bank = layer.pool
                assert isinstance(bank, GatedBank)
                total = 0.0
                for k in range(TURNS):
                    bank.anneal(start + 0.2 * (turn + k / TURNS) / (rounds + 1), 1.0)
                    total += timed(lambda: step(layer, values, index, gradient))  # noqa: B023
                times[name] += [total / TURNS] if turn > 0 else []
        medians = {name: statistics.median(taken) for name, taken in times.items()}
        print(f"{elements:,} x {dim} elements into {sets:,} sets, {order} index; times the cost of PyG's sum")
        for name, seconds in medians.items():
            print(f"  {name:<34} {1e3 * seconds:10.2f} ms   {seconds / medians['PyG sum']:7.2f}", flush=True)


class Wide(Context):
    """Place of an aggregation in a network of as many channels as here."""

    channels = DIM


def rival(key: str) -> nn.Module:
    """Returns a rival as in the graph experiment."""
    return next(iter(AGGREGATIONS[key].starts.values()))(Wide("generic", torch.ones(2, dtype=torch.long)))


def timed(call: Callable[[], object]) -> float:
    """Returns the seconds of CPU time."""
    start = time.process_time()
    call()
    return time.process_time() - start


def keep_memory() -> bool:
    """Keeps memory that is freed, and returns whether that is possible: in the C library of GNU."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(parameter, size) == 1 for parameter, size in MALLOPT.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--fast", action="store_true", help="without the slow rivals")
    parser.add_argument("--plain", action="store_true", help="without compiled kernels")
    arguments = parser.parse_args()
    set_kernels_enabled(not arguments.plain)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    kernels = "not used" if kernels_for(torch.zeros(100_000, DIM)) is None else "used"
    memory = "kept" if keep_memory() else "returned to the system"
    print(f"torch {torch.__version__}, one thread; compiled kernels are {kernels}; freed memory is {memory}")
    compare(100_000, 10_000, DIM, arguments.rounds, not arguments.fast)


if __name__ == "__main__":
    main()
