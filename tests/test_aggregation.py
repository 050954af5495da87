"""Operations as set-pooling layers: finite where reduce raises, and equal to it elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cases import BIJECTIONS, LAWS

import abelnet
from abelnet import AbelianGroup, AbelnetError, Aggregation, Generator, Mean, Operation

PTR = torch.tensor([0, 2, 2, 5])


@pytest.mark.parametrize("law", sorted(LAWS))
@pytest.mark.parametrize("bijection", sorted(BIJECTIONS))
def test_it_is_the_operation_where_that_is_defined(bijection: str, law: str) -> None:
    operation = Operation(BIJECTIONS[bijection](torch.float64), LAWS[law]())
    x = torch.rand(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    result = Aggregation(operation)(x, ptr=PTR)
    expected = operation.reduce(x, ptr=torch.tensor([0, 2, 5]))
    torch.testing.assert_close(result[[0, 2]], expected, equal_nan=True)
    assert result[1].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("law", [abelnet.Sum, Mean])
@pytest.mark.parametrize(
    ("kind", "theta"),
    [("exponential", 1.0), ("exponential", -6.0), ("positive power", -1.0), ("positive power", 2.0), ("power", 0.5)],
)
def test_what_networks_send_has_finite_results_and_gradients(
    kind: str, theta: float, law: type, dtype: torch.dtype
) -> None:
    layer = Aggregation(Operation(Generator(2, kind, [theta], dtype=dtype), law()))
    x = torch.tensor([[0.0, 1.0], [-3.0, 0.5], [2.0, 7.0], [1e-30, -1e6], [1e6, 0.0]], dtype=dtype, requires_grad=True)
    result = layer(x, ptr=PTR)
    assert result.isfinite().all()
    assert (result[1] == 0).all()
    result.sum().backward()
    assert x.grad is not None
    assert all(one.grad is None or one.grad.isfinite().all() for one in (x, *layer.parameters()))


def test_saved_and_loaded(tmp_path: Path) -> None:
    layer = Aggregation(AbelianGroup(Generator(1, "exponential", [2.0])), fill=3.0)
    x = torch.rand(5, 1)
    abelnet.save(layer, tmp_path / "layer")
    assert torch.equal(abelnet.load(tmp_path / "layer")(x, ptr=PTR), layer(x, ptr=PTR))
    assert layer(x, ptr=PTR)[1].item() == 3.0


def test_bad_input() -> None:
    operation = AbelianGroup(Generator(1, "affine"))
    with pytest.raises(AbelnetError, match="margin: expected a number above 0, got 0"):
        Aggregation(operation, margin=0)
    with pytest.raises(AbelnetError, match="values: expected finite values"):
        Aggregation(operation)(torch.tensor([[float("nan")]]))


@pytest.mark.parametrize(("kind", "theta"), [("affine", ()), ("exponential", (2.0,)), ("positive power", (-1.0,))])
def test_normalization_is_between_the_fold_and_the_mean(kind: str, theta: tuple[float, ...]) -> None:
    bijection = Generator(3, kind, theta)
    fold, mean = Operation(bijection, abelnet.Sum()), Operation(bijection, Mean())
    half = Operation(bijection, Mean(0.5))
    x = 0.1 + torch.rand(5, 3, generator=torch.Generator().manual_seed(0))
    for exponent, expected in ((0.0, fold), (1.0, mean), (0.5, half)):
        layer = Aggregation(fold, normalization=exponent)
        torch.testing.assert_close(layer(x, ptr=PTR)[[0, 2]], expected.reduce(x, ptr=torch.tensor([0, 2, 5])))
    empty = [Aggregation(fold, normalization=exponent)(x, ptr=PTR)[1] for exponent in (0.0, 1.0)]
    assert torch.equal(*empty)


def test_learned_normalization_trains_and_is_saved(tmp_path: Path) -> None:
    layer = Aggregation(Operation(Generator(2, "exponential", [3.0]), abelnet.Sum()), normalization="learned")
    x = torch.rand(5, 2, generator=torch.Generator().manual_seed(0))
    layer(x, ptr=PTR).sum().backward()
    assert isinstance(layer.exponent, torch.nn.Parameter)
    assert layer.exponent.grad is not None
    assert (layer.exponent.grad < 0).all()
    with torch.no_grad():
        layer.exponent[0] = 1.0
    abelnet.save(layer, tmp_path / "layer")
    assert torch.equal(abelnet.load(tmp_path / "layer")(x, ptr=PTR), layer(x, ptr=PTR))
    layer.reset_parameters()
    assert layer.exponent.tolist() == [0.5, 0.5]


def test_the_mean_of_a_million_elements() -> None:
    x = 1 + torch.rand(1_000_000, 1, generator=torch.Generator().manual_seed(0))
    for kind, theta, expected in (
        ("affine", (), x.double().mean()),
        ("exponential", (1.0,), x.double().exp().mean().log()),
    ):
        layer = Aggregation(AbelianGroup(Generator(1, kind, theta)), normalization=1.0)
        assert layer(x).item() == pytest.approx(expected.item(), rel=1e-5)


def test_normalization_of_what_is_no_sum_is_refused() -> None:
    for law in (abelnet.Maximum(), Mean(), abelnet.Product()):
        with pytest.raises(
            AbelnetError, match=rf"normalization: expected 0 for an operation over {law.name}, got 1\.0"
        ):
            Aggregation(Operation(Generator(1, "affine"), law), normalization=1.0)
    with pytest.raises(AbelnetError, match="normalization: expected a number or \"learned\", got 'mean'"):
        Aggregation(AbelianGroup(Generator(1, "affine")), normalization="mean")  # type: ignore[arg-type]
