"""Curves of pieces: written out, and with their numbers looked up."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
import torch

from abelnet import Monotonic, RationalQuadraticSpline
from abelnet.bijections import Elementwise
from abelnet.bijections.pieces import Pieces


def random_spline() -> RationalQuadraticSpline:
    spline = RationalQuadraticSpline(1, bins=12, bound=3.0, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in spline.parameters():
            parameter.normal_(generator=generator)
    return spline


CURVES = {"spline": random_spline(), "network": Monotonic(1, seed=1, dtype=torch.float64)}


def values(pieces: Pieces, x: sympy.Symbol, at: np.ndarray) -> list[float]:
    """Returns values of a curve with the numbers of each piece looked up."""
    columns = pieces.columns()
    symbols = [sympy.Symbol(f"c{i}", real=True) for i in range(len(columns))]
    number = sympy.lambdify(x, pieces.number(), "math")
    curve = sympy.lambdify([x, *symbols], pieces.looked_up(symbols), "math")
    return [curve(one, *(float(column[number(one) - 1]) for column in columns)) for one in at.tolist()]


@pytest.mark.parametrize("name", CURVES)
def test_numbers_that_are_looked_up_give_the_curve(name: str) -> None:
    curve: Elementwise = CURVES[name]
    x, at = sympy.Symbol("x", real=True), np.linspace(-9, 9, 301)
    rows = torch.from_numpy(at)[:, None]
    pieces, inverse = curve.pieces(x), curve.inverse_pieces(x)
    assert pieces is not None
    assert inverse is not None
    np.testing.assert_allclose(values(pieces, x, at), curve(rows).detach().numpy()[:, 0], rtol=1e-12, atol=1e-12)
    found = values(inverse, x, at)
    np.testing.assert_allclose(found, curve.inverse(rows).detach().numpy()[:, 0], rtol=1e-11, atol=1e-11)
