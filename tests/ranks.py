"""Training by several processes, for tests: ``python ranks.py FOLDER NAME PROCESSES [KILLED_AT]``.

One process imports torch and forks the others, unless torchrun has started them. Each writes the losses of all epochs
and its final weights as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch
from torch import Tensor, distributed, nn

from abelnet import AbelianGroup, AbelnetError, SinhArcsinh
from abelnet.training import Settings, train

EPOCHS = 12
SETTINGS = Settings(epochs=EPOCHS, lr=0.02, batch_size=9, clip_norm=1.0, average=0.9, schedule="cosine")


def squared(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    result: Tensor = (model.reduce(batch[0]) - batch[1]).square().mean()
    return result


def work(rank: int, size: int, folder: Path, name: str, killed_at: int | None) -> None:
    if size > 1:
        distributed.init_process_group("gloo", f"file://{folder / 'store'}-{name}", rank=rank, world_size=size)
    group = distributed.group.WORLD if size > 1 else None
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(41, 3, 1, generator=generator, dtype=torch.float64)  # the last batch has 5 examples
    y = x.pow(3).sum(1).abs().pow(1 / 3) * x.pow(3).sum(1).sign()
    model = AbelianGroup(SinhArcsinh(1, dtype=torch.float64))
    if rank > 0:  # those of the first process count
        torch.nn.init.constant_(model.bijection.log_tail, 0.7)
    losses: list[list[float]] = []

    def note(epoch: int, loss: Tensor, validation: Tensor | None) -> None:
        assert validation is not None
        losses.append([loss.item(), validation.item()])
        if rank == size - 1 and epoch == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    train(
        model,
        (x, y),
        squared,
        settings=SETTINGS,
        validation=(x[:7], y[:7]),
        checkpoint=folder / f"{name.partition('-')[0]}.safetensors",
        checkpoint_every=5,
        history=folder / f"{name}.jsonl",
        on_epoch=note,
        group=group,
    )
    weights = [p.tolist() for p in model.parameters()]
    (folder / f"{name}-{rank}.json").write_text(json.dumps({"losses": losses, "weights": weights}))
    if size > 1:
        distributed.destroy_process_group()  # its threads may abort a process that ends with one


def main() -> None:
    folder, name, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    killed_at = int(sys.argv[4]) if len(sys.argv) > 4 else None
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if "RANK" in os.environ:  # by torchrun
        work(int(os.environ["RANK"]), size, folder, name, killed_at)
        return
    rank = next((rank for rank in range(1, size) if os.fork() == 0), 0)
    work(rank, size, folder, name, killed_at)
    for _ in range(size - 1 if rank == 0 else 0):
        os.wait()


if __name__ == "__main__":
    try:
        main()
    except AbelnetError as error:
        sys.exit(f"error: {error}")
