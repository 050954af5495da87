"""Maps of the plane: inverses and slopes at extremes, ranges, and the ends of their images."""

from __future__ import annotations

import math

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abelnet import AbelnetError, Triangular
from abelnet.bijections.intervals import Interval
from abelnet.bijections.terms import PLANES, Planar

F64 = torch.float64
# Boxes of the domain, and of the image, without jumps of angles.
BOXES = {
    "polar": (((0.5, 2.0), (-1.0, 2.0)), ((-1.0, 1.0), (-9.0, 9.0))),
    "inversion": (((0.5, 2.0), (-1.0, 2.0)), ((0.5, 2.0), (-1.0, 2.0))),
    "split": (((2.5, 4.0), (-2.0, 2.0)), ((-1.0, 2.0), (-2.0, 1.0))),
    "Lorentz": (((0.5, 2.0), (-0.9, 0.8)), ((2.0, 3.0), (-1.0, 1.5))),
    "Cartesian": (((0.5, 2.0), (-3.0, 3.0)), ((0.5, 2.0), (-1.0, 2.0))),
}


@settings(deadline=None, max_examples=100)
@given(
    plane=st.sampled_from(sorted(PLANES)),
    inverse=st.booleans(),
    parts=st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_ranges_hold_all_values_and_slopes(plane: str, inverse: bool, parts: list[float]) -> None:
    one, box = PLANES[plane], BOXES[plane][int(inverse)]
    ends = [sorted(low + (high - low) * part for part in parts[2 * i : 2 * i + 2]) for i, (low, high) in enumerate(box)]
    ranges = [Interval(*(torch.tensor([end], dtype=F64) for end in pair)) for pair in ends]
    points = torch.cartesian_prod(*(torch.linspace(*pair, 9, dtype=F64) for pair in ends))
    values, slopes = (one.enclose_inverse if inverse else one.enclose)(ranges[0], ranges[1])
    function = one.inverse if inverse else one.forward
    found = torch.stack(function(*points.unbind(-1)), -1)
    jacobian = torch.func.vmap(torch.func.jacrev(lambda x: torch.stack(function(x[0], x[1]))))(points)
    for i in range(2):
        assert ((found[:, i] >= values[i].low - 1e-9) & (found[:, i] <= values[i].high + 1e-9)).all()
        for k in range(2):
            slope = jacobian[:, i, k]
            assert ((slope >= slopes[i][k].low - 1e-9) & (slope <= slopes[i][k].high + 1e-9)).all()


@pytest.mark.parametrize("plane", PLANES)
def test_expressions(plane: str) -> None:
    one, a, b = PLANES[plane], *sympy.symbols("a b", real=True)
    for box, expressions, function in (
        (BOXES[plane][0], one.expressions, one.forward),
        (BOXES[plane][1], one.inverse_expressions, one.inverse),
    ):
        point = [0.3 * low + 0.7 * high for low, high in box]
        expected = function(*(torch.tensor(x, dtype=F64) for x in point))
        got = sympy.lambdify((a, b), expressions(a, b), "math")(*point)
        assert got == pytest.approx([float(x) for x in expected], rel=1e-13)


def test_where_they_are_defined() -> None:
    inside = {
        "polar": (0.0, 1.0),
        "inversion": (1.0, 0.0),
        "split": (1.0, -0.9),
        "Lorentz": (1.0, 0.9),
        "Cartesian": (0.0, 3.0),
    }
    outside = {
        "polar": (0.0, 0.0),
        "inversion": (0.0, 0.0),
        "split": (1.0, 1.0),
        "Lorentz": (0.0, 0.5),
        "Cartesian": (1.0, 7.0),
    }
    for plane in PLANES:
        assert Planar(plane, 0, 0, 1).is_defined(torch.tensor(inside[plane]))
        assert not Planar(plane, 0, 0, 1).is_defined(torch.tensor(outside[plane]))


def test_bad_arguments() -> None:
    with pytest.raises(
        AbelnetError, match="plane: expected one of polar, inversion, split, Lorentz, Cartesian, got 'x'"
    ):
        Planar("x", 0, 0, 1)
    with pytest.raises(AbelnetError, match="part: expected 0 or 1, got 2"):
        Planar("polar", 2, 0, 1)
    with pytest.raises(AbelnetError, match="second: expected at least 0, got -1"):
        Planar("polar", 0, 0, -1)


@pytest.mark.parametrize("size", [1e-30, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("plane", PLANES)
def test_planes_in_float32(plane: str, size: float) -> None:
    """Squares of 1e-30 are 0 in float32."""
    x = torch.tensor([[1.0, 0.0], [1.0, -0.3], [1.0, 0.9]])
    x = x * torch.tensor([size, size if plane in ("polar", "inversion", "split") else 1.0])
    bijection = Triangular(2, [[Planar(plane, 0, 0, 1)], [Planar(plane, 1, 0, 1)]], [[1.0], [1.0]])
    torch.testing.assert_close(bijection.inverse(bijection(x)), x, rtol=2e-5, atol=1e-5 * size)
    (gradient,) = torch.autograd.grad(bijection(x.requires_grad_())[:, 0].sum(), x)
    if plane != "inversion" or size > 1e-10:
        torch.testing.assert_close(gradient, bijection.jacobian(x)[:, 0].detach(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e-6, 1.0, 1e6, 1e150])
@pytest.mark.parametrize("plane", PLANES)
def test_planes_at_extremes(plane: str, size: float) -> None:
    b = torch.tensor([0.0, 1e-30, -0.1, 0.3, -0.5, 0.99], dtype=F64)
    if plane == "Lorentz":
        x = torch.stack((torch.full_like(b, size), b), -1)
    elif plane == "Cartesian":
        x = torch.stack((torch.full_like(b, size), 3 * b), -1)
    else:
        x = size * torch.stack((torch.ones_like(b), b), -1)
    bijection = Triangular(2, [[Planar(plane, 0, 0, 1)], [Planar(plane, 1, 0, 1)]], [[1.0], [1.0]], dtype=F64)
    x.requires_grad_()
    y = bijection(x)
    back = bijection.inverse(y)
    assert y.isfinite().all()
    scale = x.detach().abs().clamp(min=size if plane not in ("Lorentz", "Cartesian") else 0)
    scale[:, 0] = size
    worst = 1e-12 if plane in ("polar", "split") else 1e-14  # logarithms of 1e±200 are as exact as their size allows
    assert ((back - x).detach().abs() <= worst * scale + 1e-16 * (scale > 0)).all()
    (gradient,) = torch.autograd.grad(y[:, 1].sum(), x)
    if abs(math.log10(size)) <= 150 or plane in ("polar", "split"):
        assert gradient.isfinite().all()
        torch.testing.assert_close(gradient, bijection.jacobian(x)[:, 1].detach(), rtol=1e-10, atol=0)


def test_split_and_lorentz_do_not_cancel_or_leave_their_image() -> None:
    split = PLANES["split"]
    u = torch.tensor([0.0, 1e-20, 700.0, -700.0, 300.0], dtype=F64)
    v = torch.tensor([0.0, 0.0, 699.0, -2000.0, -300.0], dtype=F64)
    a, b = split.inverse(u, v)
    assert b[1] == 0.5e-20
    assert (a.isfinite() & (a > 0)).all()
    assert a[3] == pytest.approx(math.exp(-700) / 2)
    energy, momentum = (
        torch.tensor([5.0, -5.0, 1.0, 1.0, 1.0], dtype=F64),
        torch.tensor([3.0, 3.0, 1.0, -2.0, 0.999999]),
    )
    mass, velocity = PLANES["Lorentz"].inverse(energy, momentum.double())
    torch.testing.assert_close(mass[:2], torch.tensor([4.0, -4.0], dtype=F64), rtol=1e-15, atol=0)
    assert velocity[:2].tolist() == [0.6, -0.6]
    assert mass[2:4].isnan().all()
    assert velocity[2:4].isnan().all()
    assert mass[4] > 0
