"""Weighted means: against numpy, as attention pooling, streamed and merged, stable, and refused where not defined."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import abelnet
from abelnet import AbelnetError, Aggregation, Generator, Multisets, Operation, WeightedMean, glow


def operation(dim: int = 6, rate: float = 2.0) -> Operation:
    return Operation(Generator(dim, "affine"), WeightedMean(rate))


def elements(count: int, dim: int = 6, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(count), dtype=dtype)


@pytest.mark.parametrize("size", [1, 2, 7, 5000])
def test_masses_and_places_against_numpy(size: int) -> None:
    x = elements(size)
    a, v = (part.numpy() for part in x.chunk(2, -1))
    mass = np.exp(2 * a)
    expected = np.concatenate((np.log(mass.mean(0)) / 2, (mass * v).sum(0) / mass.sum(0)))
    np.testing.assert_allclose(operation().reduce(x).numpy(), expected, rtol=1e-12, atol=1e-12)


def test_it_contains_softmax_the_mean_and_the_place_of_the_largest() -> None:
    x = elements(9, 3)
    softmax = (torch.softmax(2 * x, 0) * x).sum(0)
    torch.testing.assert_close(operation().reduce(torch.cat((x, x), -1))[3:], softmax)
    torch.testing.assert_close(operation().reduce(torch.cat((torch.ones_like(x), x), -1))[3:], x.mean(0))
    a, far = elements(9, 3), operation(rate=1e4).reduce(torch.cat((elements(9, 3), x), -1))
    torch.testing.assert_close(far[3:], x.gather(0, a.argmax(0, keepdim=True))[0])


def test_a_pair_is_a_set_of_two_and_equal_parts_combine() -> None:
    law, x = operation(), elements(8)
    torch.testing.assert_close(law(x[0], x[1]), law.reduce(x[:2]))
    torch.testing.assert_close(law(x[0], x[1]), law(x[1], x[0]))
    torch.testing.assert_close(law(law.reduce(x[:4]), law.reduce(x[4:])), law.reduce(x))
    torch.testing.assert_close(law.power(x, 3), x)


def test_it_streams_merges_and_removes() -> None:
    law, x = operation(), elements(9)
    first, second = law.accumulator(), law.accumulator()
    first.add_many(x[:4])
    second.add_many(x[4:])
    second.add(x[0])
    first.merge(second)
    first.remove(x[0])
    torch.testing.assert_close(first.value().double(), law.reduce(x), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(law.cumulative(x)[-1], law.reduce(x))


def test_nothing_overflows_and_gradients_are_finite() -> None:
    for scale in (1e-30, 1.0, 1e6, 1e18):
        x = (scale * elements(50, dtype=torch.float32)).requires_grad_()
        sets = Multisets(x, 6, ptr=torch.tensor([0, 20, 50]))
        result = operation().reduce(sets)
        result.sum().backward()
        assert result.isfinite().all()
        assert x.grad is not None
        assert x.grad.isfinite().all()
    with pytest.raises(AbelnetError, match="values: expected logarithms of masses up to"):
        operation().accumulator().add(torch.full((6,), 1e6))


def test_empty_sets_have_the_fill_in_a_layer_and_none_in_an_operation() -> None:
    x = elements(4, dtype=torch.float32).requires_grad_()
    layer = Aggregation(operation(), fill=7.0)
    result = layer(x, ptr=torch.tensor([0, 4, 4]))
    result.sum().backward()
    assert result[1].tolist() == [7.0] * 6
    assert x.grad is not None
    assert x.grad.isfinite().all()
    with pytest.raises(AbelnetError, match="expected no empty set, since WeightedMean has no identity"):
        operation().reduce(x, ptr=torch.tensor([0, 4, 4]))


def test_over_a_bijection_that_mixes_and_saved(tmp_path: Path) -> None:
    mixed = Operation(glow(6, layers=2, hidden=8, gain=1.0, seed=0), WeightedMean(3.0))
    x = elements(9, dtype=torch.float32)
    torch.testing.assert_close(mixed.reduce(x), mixed.reduce(x.flip(0)))
    abelnet.save(mixed, tmp_path)
    assert torch.equal(abelnet.load(tmp_path).reduce(x), mixed.reduce(x))


def test_what_is_refused() -> None:
    with pytest.raises(AbelnetError, match="dim: expected an even number, as many masses as places, got 3"):
        operation(3)
    with pytest.raises(AbelnetError, match="rate"):
        WeightedMean(0.0)
    with pytest.raises(AbelnetError, match="expected a law of single coordinates, got WeightedMean"):
        WeightedMean().lift_expression(None)  # type: ignore[arg-type]


def test_a_pair_of_masses_near_1_keeps_its_digits() -> None:
    law = WeightedMean(rate=1.5)
    pairs = torch.tensor([[[5e-7, 1.0], [9e-7, 2.0]], [[-3e-8, 1.0], [-8e-8, 2.0]], [[0.0, 1.0], [0.0, 3.0]]])
    exact = law.combine(*pairs.double().unbind(1))
    torch.testing.assert_close(law.combine(*pairs.unbind(1)).double(), exact, rtol=1e-6, atol=0)
    infinite = torch.tensor([[math.inf, 1.0], [-math.inf, 2.0], [3.0, 0.0]])
    assert law.combine(infinite, infinite)[:, 0].tolist() == [math.inf, -math.inf, 3.0]
