"""Compositions carry regions from one bijection to the next."""

from __future__ import annotations

import math

import pytest

from abelnet import Affine, Chain, Generator, SinhArcsinh


def test_domain_of_a_chain() -> None:
    exponential, logarithm = Generator(1, "exponential", [-1.0]), Generator(1, "logarithm", [-2.0])
    chain = Chain(exponential, logarithm)  # log(exp(-x) - 2), below -log 2
    low, high = chain.domain
    assert (float(low), float(high)) == (-math.inf, pytest.approx(-math.log(2)))
    assert chain.codomain == (-math.inf, math.inf)
    low, high = Chain(Generator(1, "logit"), exponential, Affine(1)).codomain
    assert (float(low), float(high)) == (0.0, math.inf)
    low, high = Chain(Affine(1), Generator(1, "logit"), SinhArcsinh(1)).domain
    assert (float(low), float(high)) == (0.0, 1.0)
