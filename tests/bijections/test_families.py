"""Generators: round trips and slopes where they are defined, and what lies beyond."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from cases import FAMILY_CASES

from abelnet import AbelianGroup, AbelnetError, Generator
from abelnet.bijections import FAMILIES


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("kind", "parameters", "low", "high"), FAMILY_CASES.values(), ids=FAMILY_CASES)
def test_round_trip_and_slope(kind: str, parameters: list[float], low: float, high: float, dtype: torch.dtype) -> None:
    bijection = Generator(2, kind, parameters, dtype=dtype)
    x = torch.linspace(low, high, 402, dtype=torch.float64).reshape(-1, 2).to(dtype)
    error = ((bijection.inverse(bijection(x)) - x).abs() / x.abs().clamp(min=1)).max().item()
    assert error < (1e-8 if dtype == torch.float64 else 1e-2)
    if dtype == torch.float64:
        x = x[(x.abs() > 1e-6).all(1)].requires_grad_()
        (slope,) = torch.autograd.grad(bijection(x).sum(), x)
        torch.testing.assert_close(bijection.log_slope(x), slope.abs().log(), rtol=1e-6, atol=1e-6)
        assert bijection.log_abs_det(x).shape == (len(x),)


def test_beyond_where_it_is_defined() -> None:
    with pytest.raises(AbelnetError, match=r"x: expected 0 < x < 1, where log\(x / \(1 - x\)\)"):
        Generator(1, "logit")(torch.tensor([[1.5]]))
    with pytest.raises(AbelnetError, match="x: expected x > 0"):
        Generator(1, "power", [-1.0])(torch.tensor([[-1.0]]))
    assert math.isnan(Generator(1, "exponential", [1.0]).inverse(torch.tensor([-1.0])).item())
    with pytest.raises(AbelnetError, match="kind: expected one of affine, power"):
        Generator(1, "cosine")
    with pytest.raises(AbelnetError, match=r"parameters: expected 1 for power \(p\), got 0"):
        Generator(1, "power")
    with pytest.raises(AbelnetError, match="p: expected a finite number other than 0"):
        Generator(1, "power", [0.0])
    for kind in ("arcsinh", "arctanh"):
        for c in (0.0, -1.0, math.inf):
            with pytest.raises(AbelnetError, match="c: expected a finite number above 0"):
                Generator(1, kind, [c])
    assert math.isnan(Generator(1, "power", [-1.0]).inverse(torch.tensor([-2.0])).item())
    assert "kind=power, p=[3.0]" in repr(Generator(1, "power", [3.0]))


@pytest.mark.parametrize(("kind", "parameters", "low", "high"), FAMILY_CASES.values(), ids=FAMILY_CASES)
def test_slopes_are_monotonic_between_turning_points(
    kind: str, parameters: list[float], low: float, high: float
) -> None:
    bijection = Generator(1, kind, parameters, dtype=torch.float64)
    turns = [point for point in bijection.turning_points().tolist() if low < point < high]
    ends = [low, *turns, high]
    for start, end in pairwise(ends):
        x = torch.linspace(start, end, 200, dtype=torch.float64)[1:-1, None]
        steps = bijection.log_slope(x).detach().diff(dim=0)
        assert bool((steps >= -1e-9).all()) or bool((steps <= 1e-9).all())


def test_every_family_has_a_case() -> None:
    assert {kind for kind, *_ in FAMILY_CASES.values()} == set(FAMILIES)


def test_ends_of_the_unit_interval() -> None:
    for dtype in (torch.float32, torch.float64):
        for kind, parameters, ends in (
            ("power of logarithm", [2.0], [1.0]),
            ("power of logarithm of complement", [2.0], [0.0]),
            ("power of odds", [2.0], [1.0]),
            ("power of odds", [-2.0], [0.0]),
            ("power of complement", [0.5, 2.0], [0.0, 1.0]),
            ("exponential of reciprocal", [3.0], [0.0, 1.0]),
            ("arcsine of power", [0.7], [0.0, 1.0]),
            ("reflected power", [1.0, 2.0], [1.0]),
        ):
            bijection = Generator(1, kind, parameters, dtype=dtype)
            x = torch.tensor(ends, dtype=dtype)[:, None]
            torch.testing.assert_close(bijection.inverse(bijection(x)), x, msg=kind)
    tiny = torch.tensor([[1e-30], [3e-30]], dtype=torch.float64)
    for kind in ("power of logarithm of complement", "power of odds"):
        p = 2.0 if "complement" in kind else -2.0
        bijection = Generator(1, kind, [p], dtype=torch.float64)
        torch.testing.assert_close(bijection.inverse(bijection(tiny)), tiny, rtol=1e-9, atol=0)
    with pytest.raises(AbelnetError, match="x: expected 0 < x"):
        Generator(1, "power of odds", [2.0], dtype=torch.float64)(torch.tensor([[0.0]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("kind", "form", "theta", "coefficients", "name"),
    [
        ("affine", "sum", (), (), "sum"),
        ("affine", "product", (), (0.0, 1.0), "product"),
        ("affine", "product", (), (1.0, -1.0), "probabilistic sum (noisy or)"),
        ("affine", "product", (), (-2.0, 0.5), "Sugeno λ-measure, λ=0.5"),
        ("affine", "product", (), (-1.0, 0.5), "Sugeno–Weber t-norm (Nelsen's copula 4.2.7), θ=0.5, where positive"),
        ("affine", "product", (), (0.3, 0.5), None),
        ("positive power", "sum", (2.0,), (), "Euclidean norm"),
        ("positive power", "sum", (-1.0,), (), "parallel resistance (harmonic sum)"),
        ("positive power", "sum", (-1.0,), (-1.0,), "Hamacher product"),
        ("positive power", "sum", (-1.0,), (-0.9,), None),
        ("logarithm", "sum", (1.0,), (), "compound returns"),
        ("logarithm", "product", (0.0,), (4.0, -0.25), "Gumbel–Barnett copula, θ=0.25"),
        ("logit", "sum", (), (), "3Π uninorm (product of odds)"),
        ("arctanh", "sum", (3.0,), (), "relativistic velocity addition, c=3"),
        ("power of logarithm", "sum", (0.5,), (), "Aczél–Alsina t-norm, λ=0.5"),
        ("power of odds", "sum", (-1.0,), (), "Hamacher sum"),
        ("power of complement", "sum", (-0.5, 3.0), (), "BB1 copula, θ=0.5, δ=3"),
        ("arcsinh", "sum", (1.0,), (), None),
    ],
)
def test_names(
    kind: str, form: str, theta: tuple[float, ...], coefficients: tuple[float, ...], name: str | None
) -> None:
    assert FAMILIES[kind].name_of(form, theta, coefficients) == name


def test_names_of_means() -> None:
    powers = {1.0: "arithmetic", -1.0: "harmonic", 3.0: "cubic"}
    assert all(FAMILIES["positive power"].mean_name(p) == f"{name} mean" for p, name in powers.items())
    assert FAMILIES["positive power"].mean_name(2.0) == "root mean square"
    assert FAMILIES["positive power"].mean_name(-3.0) == "power mean, p=-3"
    assert FAMILIES["logarithm"].mean_name(0.0) == "geometric mean"
    assert FAMILIES["exponential"].mean_name(1.0) == "log-mean-exp"
    assert FAMILIES["centered exponential"].mean_name(-2.0, 1e6) == "log-mean-exp, k=-2"
    assert FAMILIES["affine"].mean_name() == "arithmetic mean"
    assert FAMILIES["arcsinh"].mean_name(1.0) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("k", "x"), [(1.0, 100.0), (1.0, -200.0), (-2.0, 1e4), (0.5, -1e6)])
def test_exponentials_do_not_overflow(k: float, x: float, dtype: torch.dtype) -> None:
    group = AbelianGroup(Generator(1, "exponential", [k], dtype=dtype))
    values = torch.full((2, 1), x, dtype=dtype, requires_grad=True)
    expected = torch.tensor([x + math.log(2) / k], dtype=dtype)
    for result in (group.reduce(values), group(values[0], values[1]), group.power(values[0], 2)):
        torch.testing.assert_close(result, expected)
    torch.testing.assert_close(group.cumulative(values)[-1], expected)
    torch.testing.assert_close(group.mean(values), values[0])
    (gradient,) = torch.autograd.grad(group.reduce(values).sum(), values)
    torch.testing.assert_close(gradient, torch.full_like(gradient, 0.5))


@pytest.mark.parametrize("p", [-30.0, -1.0, 0.5, 2.0, 40.0])
def test_powers_do_not_overflow(p: float) -> None:
    group = AbelianGroup(Generator(1, "positive power", [p]))
    for x in (1e-30, 1.0, 1e6, 1e30):
        torch.testing.assert_close(
            group.reduce(torch.full((4, 1), x)), torch.tensor([x * 4 ** (1 / p)]), rtol=2e-5, atol=0
        )


@pytest.mark.parametrize("kind", ["power", "positive power"])
@pytest.mark.parametrize("p", [1 / 3, 0.5, 2.0])
def test_gradients_of_powers_at_zero_are_finite(kind: str, p: float) -> None:
    group = AbelianGroup(Generator(1, kind, [p], dtype=torch.float64))
    x = torch.tensor([[0.0], [0.0], [0.0], [2.0]], dtype=torch.float64, requires_grad=True)
    result = group.reduce(x, ptr=torch.tensor([0, 0, 2, 4]))
    torch.testing.assert_close(result[:, 0], torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64))
    result.sum().backward()
    assert x.grad is not None
    assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in (x, *group.parameters()))


@pytest.mark.parametrize(("kind", "theta"), [("exponential", 1.0), ("positive power", -1.0)])
def test_no_identity_outside_the_numbers(kind: str, theta: float) -> None:
    group = AbelianGroup(Generator(1, kind, [theta]))
    with pytest.raises(AbelnetError, match="expected no empty set, since the operation has no identity"):
        group.reduce(torch.ones(2, 1), ptr=torch.tensor([0, 0, 2]))
    with pytest.raises(AbelnetError, match="identity is outside the domain"):
        group.identity()
