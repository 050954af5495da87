"""Set models: every layout, weights of elements, label elements, seeds and saving."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import abelnet
from abelnet import AbelianGroup, AbelnetError, Aggregation, Monotonic, Multisets, Operation
from abelnet.laws import Maximum, Mean, Product, Sum
from abelnet.nn import MLP, GatedBank, LabelDecoder, SetModel, make_aggregation

NAMES = ("sum", "mean", "max", "log-mean-exp", "weighted-mean", "glow", "context", "bank")
EXACT = NAMES[:-1]
PTR = torch.tensor([0, 3, 4, 9])


def points(count: int = 9, dim: int = 3) -> Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(1))


def model(name: str) -> SetModel:
    return SetModel.build(3, 5, aggregation=name, channels=8, encoder_hidden=(6,), decoder_hidden=(7,), seed=0).eval()


@pytest.mark.parametrize("name", NAMES)
def test_all_layouts_give_the_same_outputs(name: str) -> None:
    net, x = model(name), points()
    whole = net(x, ptr=PTR)
    assert whole.shape == (3, 5)
    sets = Multisets(x, 3, ptr=PTR)
    values, mask = sets.padded()
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    for other in (
        net(values, mask=mask),
        net(list(x.split([3, 1, 5]))),
        net(sets),
        net(x[order], index=sets.index[order], dim_size=3),
    ):
        torch.testing.assert_close(other, whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_all_parameters_but_those_of_a_maximum(name: str) -> None:
    net = model(name).train()
    net(points(), ptr=PTR).square().sum().backward()
    missing = [key for key, p in net.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert not missing or name == "bank"  # a bank has members and networks that take turns
    assert all(p.grad.abs().sum() > 0 for p in net.encoder.parameters())


@pytest.mark.parametrize("name", EXACT)
def test_a_weight_counts_an_element_that_many_times(name: str) -> None:
    net, x = model(name), points()
    weights = torch.tensor([2.0, 1, 0, 1, 3, 0, 0, 1, 1])
    repeated = torch.repeat_interleave(x, weights.long(), dim=0)
    ptr = torch.tensor([0, 3, 4, 9])
    expected = net(repeated, ptr=torch.tensor([0, 3, 4, 9]))
    torch.testing.assert_close(net(x, ptr=ptr, element_weights=weights), expected, atol=1e-5, rtol=1e-5)
    values, mask = Multisets(x, 3, ptr=ptr).padded()
    padded = torch.zeros(mask.shape)
    padded[mask] = weights
    padded[~mask] = torch.nan  # what is padding is not looked at
    torch.testing.assert_close(net(values, mask=mask, element_weights=padded), expected, atol=1e-5, rtol=1e-5)
    as_list = net(list(x.split([3, 1, 5])), element_weights=list(weights.split([3, 1, 5])))
    torch.testing.assert_close(as_list, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["mean", "log-mean-exp", "weighted-mean", "glow", "context", "max"])
def test_a_mean_does_not_depend_on_the_scale_of_weights(name: str) -> None:
    net, x = model(name), points()
    weights = 0.1 + torch.rand(9, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(
        net(x, ptr=PTR, element_weights=weights), net(x, ptr=PTR, element_weights=7.5 * weights), atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize("name", ["sum", "mean", "log-mean-exp", "weighted-mean", "glow", "context"])
def test_weights_have_gradients(name: str) -> None:
    # Checked against finite differences, in float64.
    net, x = model(name).double(), points().double()
    weights = (0.5 + torch.rand(9, generator=torch.Generator().manual_seed(2), dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: net(x, ptr=PTR, element_weights=w), weights)


def test_weights_that_mean_nothing_are_refused() -> None:
    x = points(4, 2)
    layer = Aggregation(Operation(Monotonic(2, seed=0), Product()))
    whole = torch.tensor([1.0, 2, 0, 1])
    torch.testing.assert_close(layer(x, element_weights=whole), layer(x[[0, 1, 1, 3]]))
    for refused, weights, message in (
        (layer, whole / 2, "element_weights: expected whole numbers, since Product has no other powers"),
        (Aggregation(AbelianGroup(Monotonic(2, seed=0))), -whole, "expected no negative weight, got -2"),
        (layer, whole[:3], r"element_weights: expected shape \(4,\), one per element, got \(3,\)"),
        (
            GatedBank(2),
            whole,
            r"element_weights: expected None for a bank, got weights; aggregate with bank.harden\(\)",
        ),
    ):
        with pytest.raises(AbelnetError, match=message):
            refused(x, element_weights=weights)
    with pytest.raises(AbelnetError, match="expected a list with one weight per element"):
        layer([x, x], element_weights=[whole])


def test_sums_and_means_of_weighted_elements_are_exact() -> None:
    x, weights = torch.tensor([[1.0], [2.0], [5.0]]), torch.tensor([0.5, 2.0, 0.0])
    sets = Multisets(x, 1, ptr=torch.tensor([0, 2, 3]), element_weights=weights)
    assert Operation(abelnet.Generator(1, "affine"), Sum()).reduce(sets).tolist() == [[4.5], [0.0]]
    first = sets.take(torch.tensor([0]))
    assert Operation(abelnet.Generator(1, "affine"), Mean()).reduce(first).item() == pytest.approx(1.8)
    assert Operation(abelnet.Generator(1, "affine"), Maximum()).reduce(first).item() == 2
    assert sets.totals.tolist() == [2.5, 0.0]
    again = Multisets.join([first, Multisets(x, 1, ptr=torch.tensor([0, 3]))])
    assert again.totals.tolist() == [2.5, 3.0]


@pytest.mark.parametrize("name", NAMES)
def test_saved_loaded_and_reset(name: str, tmp_path: Path) -> None:
    net, x = model(name), points()
    abelnet.save(net, tmp_path)
    assert torch.equal(abelnet.load(tmp_path).eval()(x, ptr=PTR), net(x, ptr=PTR))
    other = model(name)
    other.reset_parameters(seed=3)
    third = model(name)
    third.reset_parameters(seed=3)
    assert not torch.equal(other(x, ptr=PTR), net(x, ptr=PTR))
    assert torch.equal(other(x, ptr=PTR), third(x, ptr=PTR))


@pytest.mark.parametrize("similarity", ["distance", "cosine"])
def test_label_elements(similarity: str, tmp_path: Path) -> None:
    decoder = LabelDecoder(4, 3, similarity, seed=0)  # type: ignore[arg-type]
    y = points(5, 4)
    logits, labels = decoder(y), decoder.labels.detach()
    if similarity == "distance":
        expected = -decoder.log_scale.exp() * torch.cdist(y, labels).square()
    else:
        expected = decoder.log_scale.exp() * nn.functional.cosine_similarity(y[:, None], labels, dim=-1)
    torch.testing.assert_close(logits.softmax(-1), expected.softmax(-1))
    net = SetModel(MLP([3, 4], seed=0), make_aggregation("mean", 4), decoder)
    abelnet.save(net, tmp_path)
    assert torch.equal(abelnet.load(tmp_path)(points()), net(points()))
    with pytest.raises(AbelnetError, match='similarity: expected "distance" or "cosine", got \'dot\''):
        LabelDecoder(4, 3, "dot")  # type: ignore[arg-type]


def test_an_operation_is_an_aggregation_and_others_are_refused() -> None:
    net = SetModel(nn.Linear(3, 2), AbelianGroup(Monotonic(2, seed=0)), nn.Identity())
    assert isinstance(net.aggregation, Aggregation)
    assert net([points(4), points(2)]).shape == (2, 2)
    with pytest.raises(AbelnetError, match="aggregation: expected a Pooling, got Linear"):
        SetModel(nn.Linear(3, 2), nn.Linear(2, 2), nn.Identity())  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match=r"aggregation: expected one of sum, mean, .*, got 'median'"):
        make_aggregation("median", 2)
    with pytest.raises(AbelnetError, match="values: expected a tensor, a list of tensors or Multisets, got list"):
        net([])


@pytest.mark.parametrize("name", EXACT if "ABELNET_EXPORT" in os.environ else ["weighted-mean"])
def test_exported_with_dynamic_sizes(name: str) -> None:
    net = Padded(model(name))
    batch, size = torch.export.Dim("batch"), torch.export.Dim("size")
    shapes = {"x": {0: batch, 1: size}, "mask": {0: batch, 1: size}}
    arguments = torch.randn(4, 9, 3), torch.ones(4, 9, dtype=torch.bool)
    program = torch.export.export(net, arguments, dynamic_shapes=shapes).module()
    for count, most in ((1, 1), (7, 1023), (2, 1025), (1, 5000), (4096, 2)):
        x = torch.randn(count, most, 3, generator=torch.Generator().manual_seed(0))
        mask = torch.rand(count, most, generator=torch.Generator().manual_seed(1)) < 0.7
        mask[:, 0] = True
        torch.testing.assert_close(program(x, mask), net(x, mask), atol=1e-5, rtol=1e-4)


class Padded(nn.Module):
    """Set model called with a mask."""

    def __init__(self, inner: SetModel) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.inner(x, mask=mask)  # type: ignore[no-any-return]
