"""Means: against numpy, in every layout, streamed, merged, with removal, and as formulas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy
import torch
from cases import DTYPES
from hypothesis import given, settings
from hypothesis import strategies as st

import abelnet
from abelnet import AbelianGroup, AbelnetError, Generator, Mean, Operation

KNOWN = {
    "arithmetic": ("affine", [], np.mean),
    "geometric": ("logarithm", [0.0], lambda x: np.exp(np.log(x).mean())),
    "harmonic": ("positive power", [-1.0], lambda x: 1 / np.mean(1 / x)),
    "root mean square": ("positive power", [2.0], lambda x: np.sqrt(np.mean(x**2))),
    "log-mean-exp": ("exponential", [1.0], lambda x: np.log(np.mean(np.exp(x)))),
}


def mean_over(kind: str, parameters: list[float], exponent: float = 1.0) -> Operation:
    return Operation(Generator(1, kind, parameters, dtype=torch.float64), Mean(exponent))


@pytest.mark.parametrize("name", KNOWN)
def test_the_means_people_know(name: str) -> None:
    kind, parameters, known = KNOWN[name]
    operation = mean_over(kind, parameters)
    for size in (1, 2, 7, 5000):
        x = np.random.default_rng(size).uniform(0.1, 5, size)
        assert operation.reduce(torch.from_numpy(x)[:, None]).item() == pytest.approx(known(x), rel=1e-12)
        assert AbelianGroup(operation.bijection).mean(torch.from_numpy(x)[:, None]).item() == pytest.approx(
            known(x), rel=1e-12
        )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.integers(0, 2**31), st.sampled_from([0.0, 0.5, 1.0]))
def test_any_order_any_parts_and_removal(elements: list[float], seed: int, exponent: float) -> None:
    operation = mean_over("affine", [], exponent)
    x = torch.tensor(elements, dtype=torch.float64)[:, None]
    wanted = x.sum() / len(x) ** exponent
    scale = max(1.0, float(x.abs().max())) * len(x)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    first, second = operation.accumulator(), operation.accumulator()
    first.add(torch.tensor([123.0], dtype=torch.float64))
    first.add_many(x[order[: len(x) // 2]])
    second.add_many(x[order[len(x) // 2 :]])
    first.merge(second)
    first.remove(torch.tensor([123.0], dtype=torch.float64))
    for got in (operation.reduce(x), operation.reduce(x[order]), first.value()):
        assert abs(float(got) - float(wanted)) <= 1e-12 * scale


@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes(dtype: torch.dtype) -> None:
    operation = Operation(Generator(2, "affine", dtype=dtype), Mean())
    x = torch.tensor([[1e-30, -1e6], [3e-30, 1e6]], dtype=dtype)
    assert operation.reduce(x).tolist() == pytest.approx([2e-30, 0.0])
    many = torch.full((1_000_000, 2), 0.1, dtype=dtype)
    assert operation.reduce(many).tolist() == pytest.approx([0.1, 0.1], rel=1e-6)
    sets = operation.reduce(x, ptr=torch.tensor([0, 1, 2]))
    assert torch.equal(sets, x)
    with pytest.raises(AbelnetError, match="expected no empty set, since Mean has no identity"):
        operation.reduce(x, ptr=torch.tensor([0, 0, 2]))
    with pytest.raises(AbelnetError, match="exponent: expected a finite number, got nan"):
        Mean(float("nan"))


def test_it_is_no_group_and_not_associative() -> None:
    operation = mean_over("affine", [])
    assert not operation.is_group
    assert not operation.law.is_associative
    with pytest.raises(AbelnetError, match="identity"):
        operation.identity()


def test_gradients() -> None:
    bijection = abelnet.SinhArcsinh(1, dtype=torch.float64)
    x = torch.tensor([[1.0], [2.0], [4.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Operation(bijection, Mean(0.7)).reduce(x), (x,))


def test_states_as_expressions() -> None:
    law, u = Mean(0.5), sympy.Symbol("u")
    total, count = law.lift_expression(u)
    assert (total, count) == (u, 1)
    assert float(law.lower_expression(sympy.Integer(6), sympy.Integer(4))) == 3.0
    assert float(law.expression(sympy.Integer(1), sympy.Integer(3))) == pytest.approx(4 / 2**0.5)


def test_it_is_saved(tmp_path: Path) -> None:
    operation = mean_over("positive power", [2.0], 0.5)
    abelnet.save(operation, tmp_path)
    x = torch.rand(9, 1, dtype=torch.float64)
    assert torch.equal(abelnet.load(tmp_path).reduce(x), operation.reduce(x))
