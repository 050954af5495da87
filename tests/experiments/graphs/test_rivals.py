"""Aggregations of the graph experiment: shapes, invariance, starts, and packages that are missing."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from torch import nn

from abelnet import AbelnetError
from abelnet.experiments.graphs.data import TASKS, Graphs, make_batches
from abelnet.experiments.graphs.models import FORMS, Form
from abelnet.experiments.graphs.rivals import AGGREGATIONS, BARE, Context, check_installed

pytest.importorskip("torch_geometric")
pytest.importorskip("genagg")

TASK = TASKS["parallel"]
BATCHES = make_batches("parallel", 2, 8, seed=0)
BUILDS = [
    (form, name, start)
    for name, aggregation in AGGREGATIONS.items()
    for form in aggregation.forms
    for start in aggregation.names(form)
]


def build(form: Form, name: str, start: str) -> nn.Module:
    torch.manual_seed(0)
    return AGGREGATIONS[name].starts[start](Context.of(form, TASK, BATCHES)).eval()


def messages(form: Form, graphs: Graphs) -> torch.Tensor:
    given = TASK.message(graphs.nodes[graphs.source], graphs.edges)
    return given if form == "aligned" else torch.cat([given - 1 + i / 4 for i in range(16)], 1)


@pytest.mark.parametrize(("form", "name", "start"), BUILDS)
def test_each_is_an_aggregation(form: Form, name: str, start: str) -> None:
    layer, graphs = build(form, name, start), BATCHES[0]
    values = messages(form, graphs).requires_grad_()
    result = layer(values, index=graphs.target, dim_size=len(graphs))
    assert result.shape == (len(graphs), values.shape[1])
    assert result.isfinite().all()
    result.square().mean().backward()
    assert values.grad is not None
    assert values.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())
    assert (start == BARE) == (not list(layer.parameters())) or form == "generic"


@pytest.mark.parametrize(("form", "name", "start"), BUILDS)
def test_a_result_depends_on_its_own_set_alone(form: Form, name: str, start: str) -> None:
    layer, graphs = build(form, name, start), BATCHES[0]
    values = messages(form, graphs)
    count = int((graphs.target < 3).sum())
    with torch.no_grad():
        whole = layer(values, index=graphs.target, dim_size=len(graphs))[:3]
        part = layer(values[:count], index=graphs.target[:count], dim_size=3)
    assert torch.allclose(whole, part, atol=1e-5)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_affine_starts_as_the_bare_aggregation(name: str) -> None:
    graphs = BATCHES[0]
    values = messages("aligned", graphs)
    affine, bare = (
        build("aligned", name, start)(values, index=graphs.target, dim_size=len(graphs)) for start in ("affine", BARE)
    )
    assert torch.equal(affine, bare)


def test_quann_and_powermean_start_as_the_mean() -> None:
    graphs = BATCHES[0]
    values = messages("aligned", graphs)

    def result(name: str, start: str) -> torch.Tensor:
        layer = build("aligned", name, start)
        found: torch.Tensor = layer(values, index=graphs.target, dim_size=len(graphs))
        return found

    mean = result("mean", BARE)
    assert torch.allclose(result("quann", "default"), mean, atol=1e-5)
    assert torch.allclose(result("powermean", "default"), mean, atol=1e-5)


def test_lcm_is_that_of_pyg_where_nothing_is_padded() -> None:
    layer = build("generic", "lcm", "default")
    values = torch.randn(24, 16)
    index = torch.arange(6).repeat_interleave(4)
    theirs = layer.layer(values, index, dim_size=6)  # type: ignore[operator]
    assert torch.allclose(layer(values, index=index, dim_size=6), theirs, atol=1e-6)


def test_missing_packages_have_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed(list(AGGREGATIONS))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_installed(["quann"])
    with pytest.raises(AbelnetError, match=r"package torch_geometric for 'sum', got none; pip install .abelnet\[graph"):
        check_installed(["quann", "sum"])


def test_forms() -> None:
    assert all(set(aggregation.forms) <= set(FORMS) for aggregation in AGGREGATIONS.values())
    assert BARE not in AGGREGATIONS["sum"].names("generic")
