"""Several processes train as one does; ``make test-engines`` has torchrun itself, and kills one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ranks import work

from abelnet import AbelnetError
from abelnet.training.ranks import Ranks

SCRIPT = Path(__file__).parent.parent / "ranks.py"
WITH_TORCHRUN = pytest.mark.skipif("ABELNET_ENGINES" not in os.environ, reason="takes long: make test-engines")


def start(*arguments: object, by: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *by, str(SCRIPT), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)


def result(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return found


@pytest.mark.skipif(not hasattr(os, "fork") or not torch.distributed.is_available(), reason="needs fork and gloo")
def test_three_processes_train_as_one(tmp_path: Path) -> None:
    work(0, 1, tmp_path, "one", None)
    done = start(tmp_path, "three", 3)
    assert done.returncode == 0, done.stderr
    alone, together = result(tmp_path, "one-0"), [result(tmp_path, f"three-{rank}") for rank in range(3)]
    assert together[0] == together[1] == together[2]
    np.testing.assert_allclose(together[0]["losses"], alone["losses"], rtol=1e-9)
    np.testing.assert_allclose(together[0]["weights"], alone["weights"], rtol=1e-9)
    lines = [json.loads(line) for line in (tmp_path / "three.jsonl").read_text().splitlines()]
    assert [[line["loss"], line["validation"]] for line in lines] == together[0]["losses"]


@WITH_TORCHRUN
def test_torchrun_and_a_killed_process(tmp_path: Path) -> None:
    by = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert start(tmp_path, "whole", 2, by=by).returncode == 0
    killed = start(tmp_path, "killed-first", 2, 8, by=by)
    assert killed.returncode != 0
    assert "group: expected 2 processes to train together, got a lost connection" in killed.stderr
    assert not (tmp_path / "killed-first-0.json").exists()
    assert start(tmp_path, "killed-again", 2, by=by).returncode == 0
    whole, resumed = result(tmp_path, "whole-0"), result(tmp_path, "killed-again-0")
    assert resumed["weights"] == whole["weights"]  # bit for bit
    assert resumed["losses"] == whole["losses"][5:]  # from the checkpoint of epoch 5 on


def test_one_process_is_a_group_of_its_own(tmp_path: Path) -> None:
    ranks, x = Ranks(None), torch.ones(2)
    ranks.add([x])
    ranks.follow([x])
    ranks.check_same(seed=1)
    assert x.tolist() == [1.0, 1.0]
    with ranks.copy_of(tmp_path / "none") as found:
        assert found is None
    (tmp_path / "some").touch()
    with ranks.copy_of(tmp_path / "some") as found:
        assert found == tmp_path / "some"


@pytest.mark.parametrize(("count", "size"), [(9, 3), (5, 3), (2, 3), (32, 7), (1, 1)])
def test_shares_are_all_examples_once(count: int, size: int) -> None:
    shares = []
    for rank in range(size):
        ranks = Ranks(None)
        ranks.rank, ranks.size = rank, size
        shares.append(ranks.share(10, 10 + count))
    assert [place for low, high in shares for place in range(low, high)] == list(range(10, 10 + count))
    sizes = [high - low for low, high in shares]
    assert max(sizes) - min(sizes) <= 1


def test_differing_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def gather(found: list[dict[str, Any]], values: dict[str, Any], group: object) -> None:
        found[:] = [values, values | {"seed": 2}]

    monkeypatch.setattr("torch.distributed.all_gather_object", gather)
    ranks = Ranks(None)
    ranks.size = 2
    with pytest.raises(AbelnetError, match="seed: expected the same in all processes, got 1 in 0 and 2 in 1"):
        ranks.check_same(seed=1)
