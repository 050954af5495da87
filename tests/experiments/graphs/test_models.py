"""Message-passing networks around an aggregation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from abelnet.experiments.graphs.data import TASKS, Graphs, draw, make_batches
from abelnet.experiments.graphs.models import make_model


class Smallest(nn.Module):
    def forward(self, values: Tensor, *, index: Tensor, dim_size: int) -> Tensor:
        start = values.new_full((dim_size, values.shape[1]), torch.inf)
        return start.scatter_reduce(0, index[:, None].expand_as(values), values, "amin")


def test_aligned_with_the_true_aggregation_is_the_truth() -> None:
    for name in ("min_plus", "shortest_paths"):
        graphs = draw(TASKS[name], 8, torch.Generator().manual_seed(0), sizes=(50, 50), degree=15.0)
        model = make_model("aligned", Smallest(), TASKS[name], [])
        assert not list(model.parameters())
        assert torch.allclose(model(graphs), graphs.results, atol=1e-5)


def test_generic_knows_neither_units_nor_graphs_of_the_same_batch() -> None:
    batches = make_batches("min_plus", 3, 4, seed=0)
    model = make_model("generic", Smallest(), TASKS["min_plus"], batches)
    results = torch.cat([graphs.results for graphs in batches])
    found = torch.cat([model(graphs) for graphs in batches])
    assert (found - results).abs().mean() < 3 * results.std()

    first, second, _ = batches
    offset = len(first)
    both = Graphs(
        torch.cat((first.nodes, second.nodes)),
        torch.cat((first.edges, second.edges)),
        torch.cat((first.source, second.source + offset)),
        torch.cat((first.target, second.target + offset)),
        torch.cat((first.results, second.results)),
    )
    assert torch.allclose(model(both), torch.cat((model(first), model(second))), atol=1e-5)
