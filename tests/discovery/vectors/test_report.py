"""What is said of a law on vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from vector_laws import CORE, LAWS, WIDER, draw

from abelnet import AbelianGroup, AbelnetError, LawRegressor, Triangular
from abelnet.bijections.terms import Exponential, Logarithm, Monomial, Power
from abelnet.discovery.vectors.report import LearnedVectorLaw


def law_of(
    terms: list[list[Monomial]],
    names: list[str],
    coefficients: list[list[float]] | None = None,
    signs: tuple[int, ...] = (),
) -> LearnedVectorLaw:
    c = coefficients or [[1.0] * len(one) for one in terms]
    d = len(names)
    operation = AbelianGroup(Triangular(d, terms, c, signs, dtype=torch.float64))
    return LearnedVectorLaw(operation, names, [0.0] * d, [1.0] * d)


def test_weighted_means_are_named() -> None:
    w = Monomial((Power(0),))
    names = {
        "mean": Power(1),
        "harmonic mean": Power(1, -1.0),
        "geometric mean": Logarithm(1),
        "root mean square": Power(1, 2.0),
        "power mean 1.5": Power(1, 1.5),
    }
    for name, factor in names.items():
        law = law_of([[w], [Monomial((Power(0), factor))]], ["w", "x"], signs=(0, 1))
        assert law.words == f"w adds up; x is the {name} weighted by w"
    law = law_of([[w], [Monomial((Power(0), Exponential(1, -1.0, 10.0)))]], ["V", "pH"])
    assert law.words == "V adds up; V·10^(−pH) adds up"


@pytest.mark.parametrize("name", ["pooled variance", "weighted harmonic mean", "complex product", "mixing by pH"])
def test_the_python_function_is_the_law(name: str) -> None:
    law = (LAWS | WIDER)[name]
    model = LawRegressor(polish=False).fit(*draw(law, 150, seed=1), names=law.names)
    scope: dict[str, object] = {}
    exec(model.laws_[0].python, scope)
    sets, _ = draw(law, 20, seed=2, sizes=(2, 2))
    found = [scope["merge"](*one.tolist()) for one in sets]  # type: ignore[operator]
    np.testing.assert_allclose(found, model.predict(sets), rtol=1e-12)


def test_awkward_names() -> None:
    law = law_of([[Monomial((Power(0),))], [Monomial((Power(0), Power(1)))]], ["class", "x [mm]"])
    assert law.formula == "class = Σ class, x [mm] = Σ(class·x [mm]) / class"
    assert "def merge" in law.python
    compile(law.python, "merge", "exec")
    names = law_of([[Monomial((Power(0),))], [Monomial((Power(0), Power(1)))]], ["µ", "1"]).python
    compile(names, "merge", "exec")


def test_identity_and_domain() -> None:
    center = law_of([[Monomial((Power(0),))], [Monomial((Power(0), Power(1)))]], ["m", "x"])
    assert center.identity is None
    with pytest.raises(AbelnetError, match="X, set 3: expected at least one element"):
        center.check_identity("X, set 3")
    sums = law_of([[Monomial((Power(0),))], [Monomial((Power(1),)), Monomial((Power(0), Power(0)))]], ["a", "b"])
    assert sums.identity == [0.0, 0.0]
    logs = law_of([[Monomial((Logarithm(0),))], [Monomial((Power(1),))]], ["a", "b"])
    assert logs.domain == "a > 0"
    with pytest.raises(AbelnetError, match=r"row 1: expected an element of the domain of the law, a > 0, got a = -1"):
        logs.check_domain(torch.tensor([[1.0, 2.0], [-1.0, 0.0]]).double(), lambda i: f"row {i}")


def test_extrapolation_is_marked_in_all_coordinates() -> None:
    law = CORE["center of mass"]
    model = LawRegressor(polish=False).fit(*draw(law, 150, seed=1), names=law.names)
    assert model.extrapolated([[[1.0, 2.0], [1.0, 1.0]], [[1.0, 99.0], [1.0, 1.0]]]).tolist() == [
        [False, False],
        [True, True],
    ]


def test_the_summary_has_everything_a_reader_needs() -> None:
    law = CORE["pooled variance"]
    model = LawRegressor(polish=False).fit(*draw(law, 150, seed=1), names=law.names)
    text = model.laws_[0].summary()
    for part in ("adds up: n; n·mean; m2 + n·mean^2", "mean is the mean weighted by n", "identity: none", "held-out"):
        assert part in text
    assert (
        model.laws_[0].latex
        == r"\sum \left(n\right), \quad \sum \left(mean n\right), \quad \sum \left(m_{2} + mean^{2} n\right)"
    )
