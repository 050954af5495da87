r"""Tasks on random graphs: rounds of message passing with a known aggregation, the truth in float64.

Every node also hears itself, by an edge whose message is its own value, so no neighborhood is empty. Edges are sorted
by target, as some aggregations require.
"""

from __future__ import annotations

__all__ = ["TASKS", "Graphs", "Task", "draw", "make_batches"]

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from abelnet.errors import AbelnetError

SMALL = (5, 20)
"""Smallest and largest number of nodes of the graphs that models are trained on."""

DEGREE = 3.0
"""Mean degree of a node in the graphs that models are trained on, without itself."""


@dataclass(frozen=True)
class Graphs:
    """Batch of graphs, as one graph whose components they are.

    Attributes:
        nodes: Value of each node, with shape :math:`(n, 1)`.
        edges: Value of each directed edge, with shape :math:`(m, 1)`.
        source: Node that each edge starts from, with shape :math:`(m)`.
        target: Node that each edge points to, in ascending order, with shape :math:`(m)`.
        results: Value of each node after all rounds, with shape :math:`(n, 1)`.
    """

    nodes: Tensor
    edges: Tensor
    source: Tensor
    target: Tensor
    results: Tensor

    def __len__(self) -> int:
        return len(self.nodes)


Message = Callable[[Tensor, Tensor], Tensor]
Fold = Callable[[Tensor, Tensor, int], Tensor]


@dataclass(frozen=True)
class Task:
    """Rounds of message passing to learn.

    Attributes:
        title: Name in tables.
        formula: The aggregation, as text.
        rounds: Number of rounds.
        nodes: Maps numbers drawn uniformly from [0, 1) to values of nodes.
        edges: Smallest and largest value of an edge.
        own: Value of the edge from a node to itself.
        message: Message from the value of a node along an edge.
        fold: Aggregates messages: values, the node that each is sent to, and the number of nodes.
        is_law: Whether the aggregation is a law or a quasi-arithmetic mean.
    """

    title: str
    formula: str
    rounds: int
    nodes: Callable[[Tensor], Tensor]
    edges: tuple[float, float]
    own: float
    message: Message
    fold: Fold
    is_law: bool = True


def draw(
    task: Task,
    count: int,
    generator: torch.Generator,
    *,
    sizes: tuple[int, int] = SMALL,
    degree: float = DEGREE,
) -> Graphs:
    """Draws random graphs, and computes the results of a task on them in float64.

    Arguments:
        task: The task.
        count: Number of graphs.
        generator: Source of randomness.
        sizes: Smallest and largest number of nodes; all numbers between are equally likely.
        degree: Mean number of neighbors of a node; in graphs of fewer nodes all are neighbors.

    Example:
        >>> graphs = draw(TASKS["min_plus"], 16, torch.Generator().manual_seed(0))
        >>> bool((graphs.results <= graphs.nodes).all())  # every node hears itself
        True
    """
    low, high = sizes
    size = torch.randint(low, high + 1, (count,), generator=generator)
    chance = (degree / (size - 1).clamp_min(1)).clamp_max(1)
    there = torch.rand(count, high, high, generator=generator) < chance[:, None, None]
    exists = torch.arange(high) < size[:, None]
    there = torch.triu(there, 1) & exists[:, :, None] & exists[:, None, :]
    graph, first, second = (there | there.mT).nonzero(as_tuple=True)
    offset = size.cumsum(0) - size
    total = int(size.sum())
    own = torch.arange(total)
    source = torch.cat((first + offset[graph], own))
    target, order = torch.cat((second + offset[graph], own)).sort(stable=True)
    nodes = task.nodes(torch.rand(total, 1, generator=generator))
    start, end = task.edges
    drawn = start + (end - start) * torch.rand(len(graph), 1, generator=generator)
    edges = torch.cat((drawn, torch.full((total, 1), task.own)))[order]
    source = source[order]
    # In float64 from the float32 numbers that models receive.
    results, exact = nodes.double(), edges.double()
    for _ in range(task.rounds):
        results = task.fold(task.message(results[source], exact), target, total)
    return Graphs(nodes, edges, source, target, results.float())


def make_batches(name: str, batches: int, count: int, seed: int) -> list[Graphs]:
    """Draws batches of the graphs that models are trained on.

    Arguments:
        name: Task, a key of :data:`TASKS`.
        batches: Number of batches.
        count: Number of graphs in each.
        seed: Random seed.

    Example:
        >>> len(make_batches("noisy_or", 3, 16, seed=0))
        3
    """
    if name not in TASKS:
        raise AbelnetError(f"task: expected one of {', '.join(TASKS)}, got {name!r}")
    generator = torch.Generator().manual_seed(seed)
    return [draw(TASKS[name], count, generator) for _ in range(batches)]


def _add(values: Tensor, index: Tensor, n: int) -> Tensor:
    return values.new_zeros(n, 1).index_add(0, index, values)


def _average(values: Tensor, index: Tensor, n: int) -> Tensor:
    return _add(values, index, n) / _add(torch.ones_like(values), index, n)


def _largest(values: Tensor, index: Tensor, n: int) -> Tensor:
    start = values.new_full((n, 1), -torch.inf)
    return start.scatter_reduce(0, index[:, None], values, "amax")


def _smallest(values: Tensor, index: Tensor, n: int) -> Tensor:
    return -_largest(-values, index, n)


def _noisy_or(values: Tensor, index: Tensor, n: int) -> Tensor:
    return -torch.expm1(_add(torch.log1p(-values), index, n))


def _product(values: Tensor, index: Tensor, n: int) -> Tensor:
    return values.new_ones(n, 1).scatter_reduce(0, index[:, None], values, "prod")


def _parallel(values: Tensor, index: Tensor, n: int) -> Tensor:
    return 1 / _add(1 / values, index, n)


def _log_sum_exp(values: Tensor, index: Tensor, n: int) -> Tensor:
    top = _largest(values, index, n)
    return top + _add((values - top[index]).exp(), index, n).log()


def _harmonic(values: Tensor, index: Tensor, n: int) -> Tensor:
    return 1 / _average(1 / values, index, n)


def _geometric(values: Tensor, index: Tensor, n: int) -> Tensor:
    return _average(values.log(), index, n).exp()


def _curve(values: Tensor, index: Tensor, n: int) -> Tensor:
    r"""Aggregates by :math:`\varphi^{-1}(\sum \varphi)` with :math:`\varphi(x) = x + 2 \tanh x`, by bisection."""
    total = _add(values + 2 * values.tanh(), index, n)
    low, high = total - 2, total + 2
    for _ in range(60):  # bisection: halves of 4 until the last bit
        middle = (low + high) / 2
        above = middle + 2 * middle.tanh() > total
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return (low + high) / 2


def _median(values: Tensor, index: Tensor, n: int) -> Tensor:
    """Aggregates by the median, of an even number of values the mean of the two in the middle."""
    by_value = values[:, 0].argsort(stable=True)
    order = by_value[index[by_value].argsort(stable=True)]
    ordered = values[order]
    count = torch.bincount(index, minlength=n)
    start = count.cumsum(0) - count
    return (ordered[start + (count - 1) // 2] + ordered[start + count // 2]) / 2


def _plus(h: Tensor, e: Tensor) -> Tensor:
    return h + e


def _times(h: Tensor, e: Tensor) -> Tensor:
    return h * e


def _fails(h: Tensor, e: Tensor) -> Tensor:
    """Probability that either a node with failure probability h or a link that works with probability e fails."""
    return 1 - e * (1 - h)


# Shares of sources, and the distance of nodes that no source has reached yet: longer than four of the longest edges.
_SOURCES, _FAR = 0.15, 10.0

TASKS = {
    "noisy_or": Task("noisy-or", "1 − Π(1 − x)", 3, lambda u: 0.3 * u, (0.0, 0.25), 1.0, _times, _noisy_or),
    "parallel": Task("parallel resistance", "1/Σ(1/x)", 1, lambda u: 0.5 + 4 * u, (0.0, 2.0), 0.0, _plus, _parallel),
    "min_plus": Task("min-plus", "min x", 3, lambda u: 5 * u, (0.0, 2.0), 0.0, _plus, _smallest),
    "shortest_paths": Task(
        "shortest paths",
        "min x",
        4,
        lambda u: torch.where(u < _SOURCES, 0.0, _FAR),
        (0.2, 2.0),
        0.0,
        _plus,
        _smallest,
    ),
    "reliability": Task("network reliability", "Π x", 3, lambda u: 0.4 + 0.6 * u, (0.0, 0.3), 1.0, _fails, _product),
    "log_sum_exp": Task("log-sum-exp", "log Σ exp x", 2, lambda u: 4 * u - 2, (-1.0, 1.0), 0.0, _plus, _log_sum_exp),
    "harmonic": Task("harmonic mean", "n/Σ(1/x)", 1, lambda u: 0.2 + 4 * u, (0.0, 2.0), 0.0, _plus, _harmonic),
    "geometric": Task("geometric mean", "(Π x)^(1/n)", 2, lambda u: 0.1 + 4 * u, (0.5, 2.0), 1.0, _times, _geometric),
    "curve": Task(
        "curve without a formula",
        "φ⁻¹(Σ φ(x)), φ(x) = x + 2 tanh x",
        1,
        lambda u: 4 * u - 2,
        (-0.5, 0.5),
        0.0,
        _plus,
        _curve,
    ),
    "median": Task(
        "median (no law)", "median x", 1, lambda u: -torch.log1p(-u), (0.0, 0.5), 0.0, _plus, _median, is_law=False
    ),
}
