"""The comparison of models by size: networks that ship, and the law that is learned."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from abelnet.errors import AbelnetError
from abelnet.experiments.synthetic.data import OPERATIONS, make_dataset
from abelnet.explore import multisets
from abelnet.explore.tasks import run_task


def compared(**given: Any) -> dict[str, Any]:
    given = {"operation": "shifted_product", "size": 50, "seed": 0, **given}
    return run_task("multisets", json.dumps(given).encode(), lambda step: None)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_networks_are_those_that_were_trained(operation: str) -> None:
    data = make_dataset(operation, 7).small
    spread = float(data.targets.std())
    for name in multisets.MODELS:
        network = multisets.network(name, operation)
        error = float((multisets.results(network, data) - data.targets).square().mean().sqrt())
        assert error < (0.15 if name == "network" else 1.5) * spread


def test_the_law_holds_where_rivals_fail() -> None:
    found = compared()
    table = {row[0]["text"]: row for row in found["table"]["rows"]}
    assert list(table) == ["Law: x + y + 0.5·x·y", "ASN", "DeepSets", "Mean pooling", "Max pooling", "Truth"]
    assert table["Law: x + y + 0.5·x·y"][1]["text"] == table["Truth"][1]["text"]
    assert table["Law: x + y + 0.5·x·y"][0]["winner"]
    assert not table["DeepSets"][0]["winner"]
    assert "trained on these sizes" in found["chart"]["svg"]
    assert "size 50" in found["chart"]["svg"]


def test_multisets_depend_on_size_and_seed_alone() -> None:
    assert compared() == compared()
    assert compared()["elements"] != compared(seed=1)["elements"]
    assert compared(size=2)["elements"].count(",") == 1
    assert compared(size=1000)["elements"].endswith("(992 more)")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"operation": "minus"}, "operation: expected one of"),
        ({"size": 1}, "size: expected an integer from 2 to 1000"),
        ({"size": 1001}, "size: expected"),
        ({"seed": -1}, "seed: expected"),
    ],
)
def test_what_cannot_be_compared(given: dict[str, Any], message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        compared(**given)


def test_networks_are_in_double_precision() -> None:
    parameters = multisets.network("deepsets", "sum").parameters()
    assert {one.dtype for one in parameters} == {torch.float64}
