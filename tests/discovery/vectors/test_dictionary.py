"""Terms that are tried: defined on the elements, the plainest first."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from abelnet.bijections.terms import Exponential, Logarithm, Monomial, Planar, Power
from abelnet.discovery.vectors.dictionary import dictionary, parametric, plain_parameter, signs_of


def points(seed: int = 0, count: int = 50) -> torch.Tensor:
    generator = np.random.default_rng(seed)
    return torch.from_numpy(np.stack((generator.uniform(0.5, 2, count), generator.normal(size=count)), 1))


def test_terms_are_defined_and_the_plainest_first() -> None:
    x = points()
    terms = dictionary(x, x)
    assert all(bool(term.values(x).isfinite().all()) for term in terms)
    assert [term.complexity for term in terms] == sorted(term.complexity for term in terms)
    assert Monomial((Power(0, -1.0), Power(1))) in terms
    assert Monomial((Power(1), Logarithm(0))) in terms
    assert Planar("polar", 0, 0, 1) in terms


def test_terms_that_many_results_lack_are_left_out() -> None:
    x = points()
    results = x.clone()
    results[:10, 0] = -1
    assert Monomial((Logarithm(0),)) not in dictionary(x, results)
    results[1:10, 0] = 1  # noise moves a single one out of the domain
    assert Monomial((Logarithm(0),)) in dictionary(x, results)


@given(st.floats(0.05, 20).map(lambda k: float(f"{k:.2g}")), st.sampled_from([-1, 1]))
def test_the_rate_of_powers_of_ten_is_read(rate: float, sign: int) -> None:
    exact = sign * rate * math.log(10)
    found = plain_parameter(
        Monomial((Power(0), Exponential(1, exact))),
        lambda one: abs(one.factors[-1].rate * math.log(one.factors[-1].base) / exact - 1) < 1e-9,  # type: ignore[attr-defined]
    )
    assert found == Monomial((Power(0), Exponential(1, sign * rate, 10.0)))


def test_parametric_terms_start_within_their_search() -> None:
    x = points()
    for one in parametric(x, x, [0, 1]):
        assert abs(one.start) >= one.least
        assert isinstance(one.term(one.start), Monomial)
    coordinates = {one.term(one.start).factors[-1].coordinate for one in parametric(x, x, [1])}
    assert coordinates == {1}


def test_signs() -> None:
    assert signs_of(torch.tensor([[1.0, -1.0, 0.0], [2.0, 1.0, -3.0]])) == [1, 0, -1]
