"""Where no formula fits, a curve of one coordinate times another is found."""

from __future__ import annotations

import numpy as np
import torch
from vector_laws import VectorLaw, columns, draw, uniform, weighted

from abelnet import LawRegressor
from abelnet.bijections.terms import Power
from abelnet.discovery.vectors.curves import curve_term, ramps

GRID = np.linspace(-6, 6, 200_001)


def phi(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / 4 + np.tanh(2 * x))


LAW = VectorLaw(
    ("w", "x"),
    columns(uniform(0.5, 3), uniform(-3, 3)),
    weighted(phi, lambda u: np.interp(u, phi(GRID), GRID)),
    (),
)


def test_a_weighted_mean_by_a_curve() -> None:
    model = LawRegressor(polish=False).fit(*draw(LAW, 400, seed=1), names=LAW.names)
    (law,) = model.laws_
    assert law.formula == "w = Σ w, x = φ⁻¹(Σ(w·φ(x)) / w)"
    assert law.words == "w adds up; x is the quasi-arithmetic mean by a curve φ weighted by w"
    for sizes in ((2, 4), (10, 12)):
        sets, target = draw(LAW, 100, seed=2, sizes=sizes)
        error = np.sqrt(np.mean(((model.predict(sets) - target) / target.std(0)) ** 2))
        assert error < 0.02


def test_ramps_add_up_to_the_curve() -> None:
    points = torch.linspace(0, 30, 31, dtype=torch.float64)[:, None].expand(-1, 2)
    terms = ramps(1, (Power(0),), points, 60)
    coefficients = np.array([1.0, 2.0, 0.5, 3.0, -4.0])
    curve = curve_term(terms, coefficients)
    assert curve is not None
    x = torch.stack((torch.tensor([2.0, 3.0]), torch.tensor([5.0, 25.0])), 1).double()
    ramped = sum(c * term.values(x) for c, term in zip(coefficients, terms, strict=True))
    torch.testing.assert_close(curve.values(x), ramped)
