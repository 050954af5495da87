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
