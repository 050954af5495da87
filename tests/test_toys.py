"""A bijection and a law of a user's own: one class each, here, and everything works with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn

import abelnet
from abelnet import AbelnetError, Multisets, Operation, generator_bound, law_defects, lipschitz, size_bound
from abelnet.bijections import Elementwise
from abelnet.laws import Law, PlainForm


class Cubic(Elementwise):
    r"""The curve :math:`x^3 + a x`, with Cardano's inverse."""

    def __init__(self, dim: int, a: float = 1.0) -> None:
        super().__init__(dim)
        self.a = nn.Parameter(torch.full((dim,), a, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x**3 + self.a * x

    def inverse(self, y: Tensor) -> Tensor:
        scale = 2 * (self.a / 3).sqrt()
        return scale * torch.sinh(torch.arcsinh(3 * y / (self.a * scale)) / 3)

    def log_slope(self, x: Tensor) -> Tensor:
        return (3 * x**2 + self.a).log()

    def turning_points(self, dimension: int = 0) -> Tensor:
        return torch.zeros(1, dtype=torch.float64)

    def expression(self, x: Any, dimension: int = 0) -> Any:
        return x**3 + sympy.Float(self.a[dimension].item()) * x

    def inverse_expression(self, y: Any, dimension: int = 0) -> Any:
        a = sympy.Float(self.a[dimension].item())
        scale = 2 * sympy.sqrt(a / 3)
        return scale * sympy.sinh(sympy.asinh(3 * y / (a * scale)) / 3)

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim}


class SumMinus(Law):
    r"""The group :math:`u * v = u + v - c`."""

    def __init__(self, c: float = 3.0) -> None:
        super().__init__()
        self.c = c

    is_group = True

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return u + v - self.c

    def lift(self, u: Tensor) -> Tensor:
        return u - self.c

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        return (state + self.c).to(dtype)

    def identity(self, dim: int) -> Tensor:
        return torch.full((dim,), self.c)

    def inverse(self, u: Tensor) -> Tensor:
        return 2 * self.c - u

    def plain_form(self) -> PlainForm:
        return PlainForm("sum", torch.ones(1, dtype=torch.float64), torch.tensor([-self.c], dtype=torch.float64))

    def expression(self, u: Any, v: Any, dimension: int = 0) -> Any:
        return u + v - self.c

    def config(self) -> dict[str, Any]:
        return {"c": self.c}


@pytest.fixture
def toy() -> Operation:
    operation = Operation(Cubic(1), SumMinus(0.5))
    nn.init.constant_(operation.bijection.a, 1.5)  # type: ignore[arg-type]
    return operation


def test_it_folds(toy: Operation) -> None:
    x = torch.randn(7, 1, dtype=torch.float64)
    folded = toy(toy(x[0], x[1]), x[2])
    torch.testing.assert_close(toy.reduce(x[:3]), folded)
    torch.testing.assert_close(toy.reduce(Multisets(x, 1, ptr=torch.tensor([0, 3, 3, 7])).values[:3]), folded)
    accumulator = toy.accumulator()
    accumulator.add_many(x[:4])
    accumulator.remove(x[3])
    torch.testing.assert_close(accumulator.value(), folded)
    assert law_defects(toy, x).associativity.relative < 1e-12


def test_it_prints_as_a_formula(toy: Operation) -> None:
    x, y = sympy.symbols("x y", real=True)
    function = sympy.lambdify((x, y), toy.expression(x, y), "math")
    expected = toy(*torch.tensor([[0.3], [-1.2]], dtype=torch.float64)).item()
    assert function(0.3, -1.2) == pytest.approx(expected, rel=1e-12)


def test_it_is_certified(toy: Operation) -> None:
    constants = lipschitz(toy.bijection, (-1.0, 2.0))
    assert constants.forward == pytest.approx(3 * 4 + 1.5)
    assert constants.inverse == pytest.approx(1 / 1.5)
    assert size_bound(toy, 1e-3, 4, 16, (-1.0, 2.0)).value > 1e-3
    assert generator_bound(toy, toy, 10, (-1.0, 2.0)).value < 1e-5


def test_it_saves_and_loads_in_another_process(toy: Operation, tmp_path: Path) -> None:
    abelnet.save(toy, tmp_path)
    x = torch.tensor([[0.3], [-1.2], [2.0]], dtype=torch.float64)
    script = (
        "import sys, torch, abelnet, test_toys as t; "
        "toy = abelnet.load(sys.argv[1], classes={'Cubic': t.Cubic, 'SumMinus': t.SumMinus}); "
        "print(toy.reduce(torch.tensor([[0.3], [-1.2], [2.0]], dtype=torch.float64)).item().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert done.stdout.strip() == toy.reduce(x).item().hex(), done.stderr
    with pytest.raises(AbelnetError, match="classes: expected the class Cubic, got none"):
        abelnet.load(tmp_path)
