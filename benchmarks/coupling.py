"""Glow in 300 dimensions, 5 blocks of width 151, compared with idiomatic FrEIA. One thread.

Forward, inverse, and one training step of φ⁻¹(φ(b) − φ(a) + φ(c)). FrEIA is called three times and trained with plain
Adam, as its users do; ours maps a, b, c in one pass and is trained with fused Adam. Weights have the same shapes and
initialization.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from _freia import FreiaAnalogy
from _timing import interleave, report
from torch import nn

from abelnet.words import GroupAnalogy

DIM, LAYERS, HIDDEN = 300, 5, 151
BURST = 6


def training_step(
    model: nn.Module, optimiser: torch.optim.Optimizer, batch: int, compile_with: dict[str, object] | None = None
) -> Callable[[], object]:
    a, b, c, d = F.normalize(torch.randn(4, batch, DIM), dim=-1)
    loss = lambda a, b, c, d: -F.cosine_similarity(model(a, b, c), d).mean()
    if compile_with is not None:
        loss = torch.compile(loss, **compile_with)  # type: ignore[call-overload]

    def step() -> None:
        optimiser.zero_grad()
        loss(a, b, c, d).backward()
        optimiser.step()

    return step


def compare_passes(theirs: FreiaAnalogy, ours: GroupAnalogy, batch: int, rounds: int) -> None:
    x = F.normalize(torch.randn(batch, DIM), dim=-1)
    bijection = ours.group.bijection
    forward = {"FrEIA": lambda: theirs.network(x), "abelnet": lambda: bijection(x)}
    inverse = {"FrEIA": lambda: theirs.network(x, rev=True), "abelnet": lambda: bijection.inverse(x)}
    with torch.no_grad():
        report(f"forward, batch {batch}", interleave(forward, rounds=rounds, burst=BURST), "FrEIA")
        report(f"inverse, batch {batch}", interleave(inverse, rounds=rounds, burst=BURST), "FrEIA")


def compare_training(theirs: FreiaAnalogy, ours: GroupAnalogy, batch: int, rounds: int, compiled: bool) -> None:
    steps = {
        "FrEIA, three calls, Adam": training_step(theirs, torch.optim.Adam(theirs.parameters()), batch),
        "abelnet, one pass, fused Adam": training_step(ours, torch.optim.Adam(ours.parameters(), fused=True), batch),
    }
    if compiled:
        model = GroupAnalogy(DIM, LAYERS, HIDDEN, seed=0)
        optimiser = torch.optim.Adam(model.parameters(), fused=True)
        step = training_step(model, optimiser, batch, {"options": {"cpp_wrapper": True}})
        steps["abelnet, torch.compile, fused Adam"] = step
    report(f"training step, batch {batch}", interleave(steps, rounds=rounds, burst=BURST), "FrEIA, three calls, Adam")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-compile", action="store_true", help="leave out the compiled variants (cold: two minutes)")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread; times faster than FrEIA")
    for batch, rounds in ((32, 10), (256, 5), (4096, 2)):
        theirs, ours = FreiaAnalogy(DIM, LAYERS, HIDDEN), GroupAnalogy(DIM, LAYERS, HIDDEN, seed=0)
        compare_passes(theirs, ours, batch, rounds)
        compare_training(theirs, ours, batch, rounds, compiled=not arguments.no_compile and batch <= 256)


if __name__ == "__main__":
    main()
