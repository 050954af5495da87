"""Adam on one flat tensor, against torch.optim."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from abelnet.training.optimizer import FlatAdam
from abelnet.training.settings import Settings


@pytest.mark.parametrize("decoupled", [False, True])
def test_steps_are_those_of_torch(decoupled: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 2, generator=generator), torch.randn(5, generator=generator)]
    ours, theirs = ([nn.Parameter(p.clone()) for p in start] for _ in range(2))
    settings = Settings(lr=0.1, betas=(0.8, 0.95), weight_decay=0.3, decoupled=decoupled)
    flat = FlatAdam(ours, settings)
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    adam = kind(theirs, lr=0.1, betas=(0.8, 0.95), weight_decay=0.3, fused=True)
    for lr in (0.1, 0.1, 0.02):
        flat.set_lr(lr)
        adam.param_groups[0]["lr"] = lr
        for parameters in (ours, theirs):
            sum(p.sin().sum() for p in parameters).backward()
        flat.step()
        adam.step()
        adam.zero_grad()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=0)
        assert one.grad is None


def test_training_does_not_import_the_compiler() -> None:
    # It takes seconds, in every worker process of an experiment.
    code = (
        "import sys, torch; from abelnet.training.loop import Settings, train; x = torch.randn(8, 2);"
        "train(torch.nn.Linear(2, 1), (x, x), lambda m, b: m(b[0]).square().mean(), settings=Settings(epochs=1));"
        "assert 'torch._dynamo' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
