"""Tasks on graphs, each against its definition on one neighborhood at a time."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import gmean, hmean

from abelnet import AbelnetError
from abelnet.experiments.graphs.data import TASKS, draw, make_batches

Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


def _curve(x: Numbers) -> Numbers:
    return x + 2 * np.tanh(x)


# Left and right of the definition: f(result) = g(messages).
DEFINITIONS: dict[str, tuple[Callable[[float], float], Callable[[Numbers], float]]] = {
    "noisy_or": (lambda y: y, lambda x: 1 - float(np.prod(1 - x))),
    "parallel": (lambda y: 1 / y, lambda x: float(np.sum(1 / x))),
    "min_plus": (lambda y: y, lambda x: float(np.min(x))),
    "shortest_paths": (lambda y: y, lambda x: float(np.min(x))),
    "reliability": (lambda y: y, lambda x: float(np.prod(x))),
    "log_sum_exp": (lambda y: y, lambda x: float(logsumexp(x))),
    "harmonic": (lambda y: y, lambda x: float(hmean(x))),
    "geometric": (lambda y: y, lambda x: float(gmean(x))),
    "curve": (lambda y: float(_curve(np.array([y]))[0]), lambda x: float(_curve(x).sum())),
    "median": (lambda y: y, lambda x: statistics.median(x.tolist())),
}


@pytest.mark.parametrize("name", TASKS)
def test_folds_are_what_they_are_defined_as(name: str) -> None:
    task = TASKS[name]
    graphs = draw(task, 4, torch.Generator().manual_seed(0))
    h = graphs.nodes.double()
    left, right = DEFINITIONS[name]
    for _ in range(task.rounds):
        messages = task.message(h[graphs.source], graphs.edges.double())
        h = task.fold(messages, graphs.target, len(graphs))
        for node in range(len(graphs)):
            heard = messages[graphs.target == node, 0].numpy()
            assert left(h[node].item()) == pytest.approx(right(heard), rel=1e-9, abs=1e-9)
    assert torch.equal(h.float(), graphs.results)


@pytest.mark.parametrize("name", TASKS)
def test_nodes_hear_themselves_and_results_vary(name: str) -> None:
    task = TASKS[name]
    graphs = draw(task, 64, torch.Generator().manual_seed(0))
    assert graphs.target.equal(graphs.target.sort().values)
    own = graphs.source == graphs.target
    assert int(own.sum()) == len(graphs)
    assert torch.allclose(task.message(graphs.nodes, graphs.edges[own]), graphs.nodes)
    assert graphs.results.isfinite().all()
    assert graphs.results.std() > 0.02 * graphs.results.abs().max()


def test_sizes_and_degrees() -> None:
    task, generator = TASKS["min_plus"], torch.Generator().manual_seed(0)
    for degree in (3.0, 15.0):
        graphs = draw(task, 8, generator, sizes=(200, 200), degree=degree)
        assert len(graphs) == 1600
        assert len(graphs.source) / len(graphs) - 1 == pytest.approx(degree, rel=0.05)
        assert (graphs.source // 200).equal(graphs.target // 200)  # no edge between graphs
        pairs = {*zip(graphs.source.tolist(), graphs.target.tolist(), strict=True)}
        assert len(pairs) == len(graphs.source)
        assert pairs == {(target, source) for source, target in pairs}
    complete = draw(task, 1, generator, sizes=(3, 3), degree=15.0)
    assert len(complete.source) == 9


def test_the_most_that_shortest_paths_can_reach_is_shorter_than_far() -> None:
    graphs = make_batches("shortest_paths", 5, 16, seed=1)
    results = torch.cat([batch.results for batch in graphs])
    reached = results[results < 10]
    assert 0 < len(reached) < len(results)
    assert reached.max() < 8


def test_seeds() -> None:
    first, second, other = (make_batches("noisy_or", 2, 3, seed=seed) for seed in (0, 0, 1))
    assert first[1].results.equal(second[1].results)
    assert not first[0].nodes.equal(first[1].nodes)
    assert not torch.equal(first[0].nodes[:5], other[0].nodes[:5])
    with pytest.raises(AbelnetError, match=r"task: expected one of noisy_or, .* got 'xor'"):
        make_batches("xor", 1, 1, seed=0)
