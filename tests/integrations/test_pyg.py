"""PyG's own tests of aggregations, as cases against ours, and what its layers do beyond them.

From ``test/nn/aggr``:

- ``test_basic`` (validation, index and ptr, gradients of learned ones), ``test_aggr_resolver`` (instance and name),
  ``test_multi`` (every mode) and ``test_mp_interface`` (inside message passing) apply.
- ``test_scaler`` applies: ours among those that are scaled by degree.
- ``test_fused`` does not: only PyG's own seven fuse; that ours stands beside fused ones is a case of ``test_multi``.
- The others test a class of their own that is no aggregation by a law: attention, equilibrium, GMT, GRU, LSTM, MLP,
  patches, quantile, soft median, SSMA, set2set, set transformer, sort, variance preserving, and their helpers;
  ``test_deep_sets`` and ``test_lcm`` likewise, whose shapes, printing and reset are cases of ``test_basic`` here.

From ``test/nn/conv/test_message_passing``: layers with any aggregation, out-of-bounds edges, static graphs (3-D),
several aggregations, copies, hooks, default arguments, explanations, modules as aggregation, and int32 edges apply.
``torch.jit`` cases are one refusal. Fused ``message_and_aggregate`` is chosen by PyG for its own names only; tuples as
outputs and edge updates never call an aggregation.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from cases import BIJECTIONS, LAWS
from torch import Tensor, nn

from abelnet import (
    AbelianGroup,
    AbelianNet,
    AbelianSemigroup,
    AbelnetError,
    Affine,
    Maximum,
    Minimum,
    Monotonic,
    Operation,
    Sum,
    glow,
)

pytest.importorskip("torch_geometric")
from torch_geometric.nn import DegreeScalerAggregation, GATConv, GraphSAGE, MessagePassing, MultiAggregation, SAGEConv
from torch_geometric.nn import aggr as pyg_aggr
from torch_geometric.nn.resolver import aggregation_resolver
from torch_geometric.utils import to_torch_csc_tensor

from abelnet.integrations.pyg import AbelianAggregation, register

X = torch.randn(6, 16)
INDEX, PTR = torch.tensor([0, 0, 1, 1, 1, 2]), torch.tensor([0, 2, 5, 6])
EDGES = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])
SAME = {"sum": Sum(), "max": Maximum(), "min": Minimum()}
POOLS = {
    "channels": lambda d: d,
    "net": lambda d: AbelianNet(Monotonic(d, seed=0), gamma=0.1),
    "maximum": lambda d: Operation(Monotonic(d, seed=0), Maximum()),
    "glow": lambda d: AbelianGroup(glow(d, layers=2, hidden=8, seed=0)),
}


class MyConv(MessagePassing):
    def __init__(self, channels: int, out: int, aggr: Any) -> None:
        super().__init__(aggr=aggr)
        self.lin = nn.Linear(channels, out)

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None, size: Any = None) -> Tensor:
        result: Tensor = self.lin(self.propagate(edge_index, x=x, edge_weight=edge_weight, size=size))
        return result

    def message(self, x_j: Tensor, edge_weight: Tensor | None = None, zeros: bool = False) -> Tensor:
        x_j = x_j if edge_weight is None else edge_weight.view(-1, 1) * x_j
        return x_j * 0 if zeros else x_j


def test_validate() -> None:
    aggr = AbelianAggregation(16)
    torch.testing.assert_close(aggr(X), aggr(X, torch.zeros(6, dtype=torch.long)))
    with pytest.raises(ValueError, match="invalid dimension"):
        aggr(X, INDEX, dim=-3)
    with pytest.raises(ValueError, match="invalid 'dim_size'"):
        aggr(X, ptr=PTR, dim_size=2)
    with pytest.raises(AbelnetError, match="index: expected entries from 0 to 1, got 0 to 2"):
        aggr(X, INDEX, dim_size=2)
    with pytest.raises(AbelnetError, match="pool: expected an integer, got 'sum'"):
        AbelianAggregation("sum")  # type: ignore[arg-type]


@pytest.mark.parametrize("pool", sorted(POOLS))
def test_basic_aggregation(pool: str) -> None:
    aggr = AbelianAggregation(POOLS[pool](16))
    aggr.reset_parameters()
    assert str(aggr).startswith("AbelianAggregation(")
    assert isinstance(aggr, pyg_aggr.Aggregation)
    out = aggr(X, INDEX)
    assert out.size() == (3, 16)
    torch.testing.assert_close(aggr(X, ptr=PTR), out)
    torch.testing.assert_close(aggr(X, INDEX, ptr=PTR, dim_size=3), out)
    torch.testing.assert_close(aggr(X, INDEX, max_num_elements=3), out)
    order = torch.tensor([3, 5, 0, 2, 4, 1])
    torch.testing.assert_close(aggr(X[order], INDEX[order]), out, rtol=1e-4, atol=1e-5)
    out.mean().backward()
    # The curves and the network of a bank have steps of their own.
    late = ("pool.network", "pool.members.11")
    trained = {name: p.grad for name, p in aggr.named_parameters() if not name.startswith(late)}
    assert all(grad is not None and grad.isfinite().all() for grad in trained.values())


@pytest.mark.parametrize("law", sorted(LAWS))
@pytest.mark.parametrize("bijection", ["affine", "monotonic", "spline"])
def test_every_law_aggregates(law: str, bijection: str) -> None:
    operation = Operation(BIJECTIONS[bijection](torch.float32), LAWS[law]())
    aggr, x = AbelianAggregation(operation, centered=False), torch.randn(6, 3)
    torch.testing.assert_close(aggr(x, INDEX), operation.reduce(x, index=INDEX))


@pytest.mark.parametrize("name", sorted(SAME))
def test_the_same_as_those_of_pyg(name: str) -> None:
    aggr, theirs = AbelianAggregation(Operation(Affine(4), SAME[name])), aggregation_resolver(name)
    index = torch.tensor([4, 1, 4, 0, 1, 4])  # unsorted, and sets 2, 3 and 5 are empty
    for shape, dim in (((6, 4), -2), ((6, 4), 0), ((2, 6, 4), -2), ((2, 6, 4), 1), ((6, 3, 2, 4), 0), ((4, 6), -1)):
        x = torch.randn(shape, requires_grad=True)
        ours, expected = aggr(x, index, dim_size=6, dim=dim), theirs(x, index, dim_size=6, dim=dim)
        torch.testing.assert_close(ours, expected)
        weight = torch.randn_like(expected)
        one, other = (torch.autograd.grad((result * weight).sum(), x)[0] for result in (ours, expected))
        torch.testing.assert_close(one, other)
    x, ptr, index_of_ptr = torch.randn(2, 6, 4), torch.tensor([0, 2, 2, 6]), torch.tensor([0, 0, 2, 2, 2, 2])
    torch.testing.assert_close(aggr(x, ptr=ptr), theirs(x, index_of_ptr))  # theirs needs another package for ptr
    none = torch.empty(0, dtype=torch.long)
    for x in (torch.empty(0, 4), torch.empty(2, 0, 4)):
        assert torch.equal(aggr(x, none, dim_size=3), theirs(x, none, dim_size=3))
        assert aggr(x, none).shape == (*x.shape[:-2], 0, 4)
    scalar, x = AbelianAggregation(Operation(Affine(1), SAME[name])), torch.randn(6)
    torch.testing.assert_close(scalar(x, index, dim=0), theirs(x, index, dim=0))


def test_normalized_it_is_the_mean_of_pyg() -> None:
    aggr = AbelianAggregation(Operation(Affine(16), Sum()), normalization=1.0)
    torch.testing.assert_close(aggr(X, INDEX, dim_size=4), pyg_aggr.MeanAggregation()(X, INDEX, dim_size=4))
    with pytest.raises(AbelnetError, match=r"normalization: expected 0 unless pool is an Operation, got 1\.0"):
        AbelianAggregation(16, normalization=1.0)


def test_empty_sets_have_the_fill_value_and_no_gradient() -> None:
    aggr = AbelianAggregation(Operation(Monotonic(2, seed=0), Minimum()), fill=-7.0)
    x = torch.randn(3, 2, requires_grad=True)
    out = aggr(x, torch.tensor([3, 1, 3]), dim_size=5)
    assert (out[[0, 2, 4]] == -7).all()
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in aggr.parameters())


def test_resolver_and_copies() -> None:
    instance = AbelianAggregation(16)
    assert aggregation_resolver(instance) is instance
    register()
    for name in ("abelian", "Abelian", "AbelianAggregation"):
        named = aggregation_resolver(name, pool=16)
        assert isinstance(named, AbelianAggregation)
        assert str(named) == str(instance) == "AbelianAggregation(GatedBank)"
    model = GraphSAGE(16, 16, 2, aggr="abelian", aggr_kwargs={"pool": 16})
    model.reset_parameters()
    assert len({p.data_ptr() for p in model.parameters()}) == len(list(model.parameters()))
    assert model(torch.randn(4, 16), EDGES).shape == (4, 16)
    for twin in (copy.copy(instance), copy.deepcopy(instance), pickle.loads(pickle.dumps(instance))):
        assert torch.equal(twin(X, INDEX), instance(X, INDEX))
    twin = copy.deepcopy(instance)
    torch.nn.init.ones_(twin.pool.members[0].gamma)
    assert not torch.equal(twin(X, INDEX), instance(X, INDEX))
    twin.reset_parameters()
    assert torch.equal(twin(X, INDEX), instance(X, INDEX))
    twin.load_state_dict(instance.state_dict())


@pytest.mark.parametrize(
    ("mode", "expand"),
    [("cat", 3), *((mode, 1) for mode in ("proj", "attn", "sum", "mean", "max", "min", "logsumexp", "std", "var"))],
)
def test_multi_aggr(mode: str, expand: int) -> None:
    channels = {"in_channels": 16, "out_channels": 16}
    more = {"proj": channels, "attn": channels | {"num_heads": 4}}.get(mode)
    aggr = MultiAggregation(["mean", AbelianAggregation(16), "max"], mode=mode, mode_kwargs=more)
    aggr.reset_parameters()
    assert "  AbelianAggregation(GatedBank),\n" in str(aggr)
    out = aggr(X, INDEX)
    assert out.size() == (3, expand * 16)
    torch.testing.assert_close(aggr(X, ptr=PTR), out)
    if mode in ("cat", "sum"):
        assert aggr(X.expand(2, 6, 16), INDEX).size() == (2, 3, expand * 16)


def test_degree_scaler_aggregation() -> None:
    scalers = ["identity", "amplification", "attenuation", "linear", "inverse_linear"]
    aggr = DegreeScalerAggregation([AbelianAggregation(16), "max"], scalers, torch.tensor([0, 3, 0, 1, 1, 0]))
    assert aggr(X, INDEX).size() == (3, 160)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("pool", sorted(POOLS))
def test_message_passing(pool: str) -> None:
    x, weight = torch.randn(4, 8), torch.randn(4)
    conv = MyConv(8, 32, AbelianAggregation(POOLS[pool](8)))
    out = conv(x, EDGES, weight)
    assert out.size() == (4, 32)
    torch.testing.assert_close(conv(x, EDGES, weight, (4, 4)), out)
    adjacency = to_torch_csc_tensor(EDGES, weight, size=(4, 4))
    torch.testing.assert_close(conv(x, adjacency.t()), out)  # index and ptr together
    torch.testing.assert_close(conv(x, EDGES.int(), weight), out)
    static = conv(torch.stack((x, 2 * x, 3 * x)), EDGES, weight)
    assert static.size() == (3, 4, 32)
    torch.testing.assert_close(static[0], out)
    with pytest.raises(IndexError, match="valid indices"):
        conv(x, torch.tensor([[0, 1, 2, 9], [0, 0, 1, 1]]), weight)
    twin = copy.deepcopy(conv)
    torch.testing.assert_close(twin(x, EDGES, weight), out)
    conv.reset_parameters()


def test_message_passing_hooks_and_explanations() -> None:
    x, calls = torch.randn(4, 8), []
    conv = MyConv(8, 8, AbelianAggregation(8))
    handle = conv.register_aggregate_forward_hook(lambda module, inputs, output: calls.append(output.shape))
    conv(x, EDGES)
    assert calls == [(4, 8)]
    handle.remove()
    conv.explain = True
    conv._edge_mask, conv._apply_sigmoid = torch.zeros(4), False
    torch.testing.assert_close(conv(x, EDGES), conv.lin(torch.zeros(4, 8)))


def test_products_of_what_an_encoder_sends_start_near_the_identity_and_learn() -> None:
    torch.manual_seed(0)
    labels, index = torch.arange(100) % 2, torch.arange(100).repeat_interleave(64)
    x = (torch.randn(100, 64, 4) + 0.3 * (2 * labels - 1)[:, None, None]).reshape(-1, 4)
    encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 2)
    operation = AbelianSemigroup(Affine(8))
    assert AbelianAggregation(operation, centered=False)(encoder(x), index).abs().median() < 1e-20
    aggr = AbelianAggregation(operation)
    assert 0.1 < aggr(encoder(x), index).abs().median() < 10
    parameters = [*aggr.parameters(), *encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(50):
        scores = decoder(aggr(encoder(x), index))
        optimizer.zero_grad()
        nn.functional.cross_entropy(scores, labels).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    assert (scores.argmax(-1) == labels).float().mean() > 0.9
    aggr.reset_parameters()
    torch.testing.assert_close(aggr(torch.zeros(64, 8)), torch.zeros(1, 8))


def test_layers_of_pyg() -> None:
    x = torch.randn(4, 8)
    assert SAGEConv(8, 8, aggr=AbelianAggregation(8))(x, EDGES).shape == (4, 8)
    assert SAGEConv(8, 8, aggr=["max", AbelianAggregation(8)])(x, EDGES).shape == (4, 8)
    assert SAGEConv((8, 16), 32, aggr=AbelianAggregation(8))((x, torch.randn(2, 16)), EDGES).shape == (2, 32)
    # Attention aggregates (heads, channels) at once and calls .view on the result.
    attention = GATConv(8, 4, heads=2, aggr=AbelianAggregation(AbelianGroup(glow(4, layers=1, hidden=8))))
    assert attention(x, EDGES).shape == (4, 8)


@pytest.mark.parametrize("law", [Sum(), Maximum()])
def test_compiled_in_one_graph(law: Any) -> None:
    aggr = AbelianAggregation(Operation(Affine(16), law))
    torch.compiler.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(aggr, fullgraph=True, backend="eager")
        for layout in ({"index": INDEX, "dim_size": 3}, {"index": INDEX}, {"ptr": PTR}, {"ptr": PTR, "dim_size": 3}):
            torch.testing.assert_close(compiled(X, **layout), aggr(X, **layout))
        static = X.expand(2, 6, 16)
        torch.testing.assert_close(compiled(static, INDEX, dim_size=4), aggr(static, INDEX, dim_size=4))


def test_torchscript_is_refused() -> None:
    for module in (AbelianAggregation(8), MyConv(8, 8, AbelianAggregation(8))):
        with pytest.raises(AbelnetError, match=r"which TorchScript cannot compile; use torch\.compile"):
            torch.jit.script(module)
