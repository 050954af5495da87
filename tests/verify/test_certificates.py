"""Certificates hold: no sample is steeper than a proved constant, no multiset further off than a bound."""

from __future__ import annotations

import math

import pytest
import torch
from cases import BIJECTIONS, COUPLED, ELEMENTWISE, randomise
from hypothesis import given, settings
from hypothesis import strategies as st

from abelnet import (
    AbelianGroup,
    AbelianNet,
    AbelianSemigroup,
    AbelnetError,
    Affine,
    Chain,
    Generator,
    Maximum,
    Monotonic,
    Operation,
    Polynomial,
    RationalQuadraticSpline,
    SinhArcsinh,
)
from abelnet.verify.certificates import generator_bound, lipschitz, merge_bound, reach, size_bound

F64 = torch.float64


def near_identity(spread: float, seed: int) -> Monotonic:
    """A min-max network close to the identity, as a trained one is."""
    network = Monotonic(1, 6, 5, near=(1.0, 0.0), seed=seed, dtype=F64)
    with torch.no_grad():
        network.log_weight.mul_(spread)
        network.bias.mul_(spread)
    return network


def measured(learned: Operation, truth: Operation, values: torch.Tensor) -> float:
    with torch.no_grad():
        return float((learned.reduce(values) - truth.reduce(values)).abs().max())


@pytest.mark.parametrize("name", sorted(BIJECTIONS))
def test_no_sample_is_steeper_than_proved(name: str) -> None:
    bijection = BIJECTIONS[name](F64)
    constants = lipschitz(bijection, (-2.0, 3.0))
    assert constants.forward >= constants.forward_sampled * (1 - 1e-9)
    assert constants.inverse >= constants.inverse_sampled * (1 - 1e-9)
    assert constants.exact == (name in ELEMENTWISE and name != "chain")
    x, y = (5 * torch.rand(2000, 3, dtype=F64) - 2 for _ in range(2))
    with torch.no_grad():
        quotient = (bijection(x) - bijection(y)).norm(dim=1) / (x - y).norm(dim=1)
    assert quotient.max() <= constants.forward * (1 + 1e-9)
    assert 1 / quotient.min() <= constants.inverse * (1 + 1e-9)
    assert ("=" if constants.exact else "≤") in constants.statement


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_constants_of_curves_are_reached(name: str) -> None:
    bijection = ELEMENTWISE[name](F64)
    constants = lipschitz(bijection, (-7.0, 6.0))
    with torch.no_grad():
        places = torch.linspace(-7, 6, 50_001, dtype=F64)
        slopes = bijection(places[:, None].expand(-1, 3)).diff(dim=0).abs() / places.diff()[:, None]
    # A step of the grid misses the steepest place by little; a chain is bounded, not exact.
    room = 1.02 if name == "chain" else 1.001
    assert slopes.max() <= constants.forward * (1 + 1e-9)
    assert constants.forward <= room * slopes.max()
    assert 1 / slopes.min() <= constants.inverse * (1 + 1e-9)
    assert constants.inverse <= room / slopes.min()


def test_whole_line_and_powers() -> None:
    network = Monotonic(1, 4, 4, seed=2, dtype=F64)
    everywhere, far = lipschitz(network), lipschitz(network, (-1e6, 1e6))
    assert everywhere.forward == far.forward
    assert everywhere.inverse == far.inverse
    bent = SinhArcsinh(1, dtype=F64)
    torch.nn.init.constant_(bent.log_tail, 0.5)
    assert lipschitz(bent).forward == math.inf
    cube = lipschitz(Generator(1, "power", [3.0], dtype=F64), (-1.0, 2.0))
    assert cube.forward == pytest.approx(12.0)
    assert cube.inverse == math.inf
    assert lipschitz(Generator(1, "logit", dtype=F64), (0.1, 0.8)).inverse == pytest.approx(0.25)
    assert lipschitz(Generator(1, "affine", dtype=F64), (-1.0, 1.0)).forward == 1
    assert lipschitz(Affine(2)).forward == 1  # float32 is taken over exactly


@given(seed=st.integers(0, 10_000), negative=st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_polyline_is_the_network(seed: int, negative: bool) -> None:
    network = Monotonic(2, 5, 4, seed=seed, dtype=F64)
    with torch.no_grad():
        if negative:
            network.raw_sign.neg_()
        line = network.snapshot()
        generator = torch.Generator().manual_seed(seed)
        x = 20 * torch.rand(500, 2, generator=generator, dtype=F64) - 10
        torch.testing.assert_close(line(x), network(x))
        torch.testing.assert_close(line.inverse(x), network.inverse(x))
        torch.testing.assert_close(line.log_slope(x), network.log_slope(x))


def test_equal_lines_are_one_line() -> None:
    network = Monotonic(1, 3, 3, dtype=F64)
    with torch.no_grad():
        network.log_weight.zero_()
        network.bias.zero_()
    assert lipschitz(network).forward == pytest.approx(1.0)


@given(
    a=st.integers(2, 9),
    b=st.integers(1, 2000),
    steepness=st.floats(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_the_merge_bound_is_never_above_theorem_3(a: int, b: int, steepness: float) -> None:
    bent = SinhArcsinh(1, dtype=F64)
    torch.nn.init.constant_(bent.log_tail, steepness)
    group = AbelianGroup(bent)
    bounds = [bound(group, 0.01, a, b, (-2.0, 5.0), samples=1).value for bound in (merge_bound, size_bound)]
    assert bounds[0] <= bounds[1] * (1 + 1e-12)
    assert (bounds[0] == 0) == (b == 1)


def test_theorem_3_is_the_papers_formula() -> None:
    bent = SinhArcsinh(1, dtype=F64)
    torch.nn.init.constant_(bent.log_tail, math.log(3))
    bound = size_bound(AbelianGroup(bent), 0.01, 4, 1000, (-1.0, 1.0))
    factor = 4 * 5.0  # K1 = 5, K2 = 1
    assert bound.value == pytest.approx(0.01 * (factor**5 - 1) / (factor - 1))
    assert "proved if the error is at most 0.01" in bound.statement
    # A true sum, learned with an offset: the error up to size a is (a - 1) times it, and at b it is (b - 1) times.
    off = Affine(1, dtype=F64)
    torch.nn.init.constant_(off.shift, 0.001)
    assert 0.999 <= merge_bound(AbelianGroup(off), 0.003, 4, 1000).value <= 1.023 + 1e-9


CELLS = st.sampled_from([20, 1000])  # the coarser the grid, the looser the bound, but a bound it is


@given(
    seed=st.integers(0, 10_000),
    size=st.sampled_from([1, 2, 5, 40]),
    spread=st.sampled_from([0.0, 0.1, 1.0]),
    cells=CELLS,
)
@settings(max_examples=15, deadline=None)
def test_no_multiset_of_a_group_is_further_off(seed: int, size: int, spread: float, cells: int) -> None:
    cube = Generator(1, "power", [3.0], dtype=F64)
    truth, learned = AbelianGroup(cube), AbelianGroup(Chain(near_identity(spread, seed), cube))
    bound = generator_bound(learned, truth, size, (-5.0, 5.0), cells=cells)
    generator = torch.Generator().manual_seed(seed)
    values = 10 * torch.rand(300, size, 1, generator=generator, dtype=F64) - 5
    same = torch.linspace(-5, 5, 301, dtype=F64)[:, None, None].expand(-1, size, 1)
    for multisets in (values, same):
        # Both sides of the comparison are rounded, and the cube root is steep at 0.
        assert measured(learned, truth, multisets) <= bound.value + 1e-5
        with torch.no_grad():
            results = learned.cumulative(multisets)
        assert bound.learned[0] - 1e-5 <= results.min()
        assert results.max() <= bound.learned[1] + 1e-5


@given(
    seed=st.integers(0, 10_000),
    size=st.sampled_from([2, 5, 40]),
    spread=st.sampled_from([0.0, 0.01, 0.1]),
    cells=CELLS,
)
@settings(max_examples=15, deadline=None)
def test_no_multiset_of_a_semigroup_is_further_off_in_its_range(
    seed: int, size: int, spread: float, cells: int
) -> None:
    truth = AbelianSemigroup(Affine(1, dtype=F64))
    learned = AbelianSemigroup(near_identity(spread, seed))
    bound = generator_bound(learned, truth, size, (-3.0, 3.0), least=1 / 3, largest=81.0, cells=cells)
    generator = torch.Generator().manual_seed(seed)
    logs = math.log(3) * (2 * torch.rand(2000, size, 1, generator=generator, dtype=F64) - 1)
    values = logs.exp() * torch.where(torch.rand(logs.shape, generator=generator) < 0.5, -1.0, 1.0)
    values = values[logs.sum(1)[:, 0].abs() <= math.log(81)]
    assert measured(learned, truth, values) <= bound.value + 1e-9
    assert "nothing is sampled" in bound.statement
    assert bound.results == pytest.approx((-81.0, 81.0))


def test_an_offset_is_bounded_exactly() -> None:
    truth, learned = (AbelianGroup(Affine(1, dtype=F64)) for _ in range(2))
    torch.nn.init.constant_(learned.bijection.shift, -0.01)
    for size in (2, 1000):
        assert generator_bound(learned, truth, size, (-5.0, 5.0)).value == pytest.approx(0.01 * (size - 1))
    assert generator_bound(truth, truth, 1000, (-5.0, 5.0)).value < 1e-9
    # A generator is one up to a factor, of either sign.
    with torch.no_grad():
        learned.bijection.shift.zero_()
        learned.bijection.log_scale.fill_(2.0)
    turned = AbelianGroup(Chain(learned.bijection, falling()))
    assert generator_bound(turned, truth, 100, (-5.0, 5.0)).value < 1e-6


def falling() -> Monotonic:
    """The negative of the identity."""
    network = near_identity(0.0, 0)
    torch.nn.init.constant_(network.raw_sign, -1 + 1e-3)
    return network


def test_other_curves_and_coefficients() -> None:
    truth = Operation(Affine(1, dtype=F64), Polynomial(0.5))
    # Nothing is wrong; what is left is the slack of the grid.
    assert generator_bound(AbelianNet(Affine(1), 0.5), truth, 50, (-5.0, 5.0), least=0.3, largest=100.0).value < 1e-4
    shifted = Operation(Affine(1, dtype=F64), Polynomial(0.0, 1.0))
    same = Affine(1, dtype=F64)
    torch.nn.init.constant_(same.shift, 1.0)
    assert generator_bound(AbelianGroup(same), shifted, 1000, (-5.0, 5.0)).value < 1e-6
    spline = randomise(RationalQuadraticSpline(1, bins=6, dtype=F64))
    group = AbelianGroup(spline)
    bound = generator_bound(group, AbelianGroup(Affine(1, dtype=F64)), 10, (-4.0, 4.0))
    values = 8 * torch.rand(5000, 10, 1, dtype=F64) - 4
    assert measured(group, AbelianGroup(Affine(1, dtype=F64)), values) <= bound.value
    assert reach(shifted, 3, (-5.0, 5.0)) == (-13.0, 17.0)


def test_couplings_start_as_the_identity() -> None:
    from abelnet import glow

    constants = lipschitz(glow(4, 3, 8, gain=0.0, seed=0), (-1.0, 1.0))
    assert constants.forward == pytest.approx(1.0)
    assert constants.inverse == pytest.approx(1.0)
    assert lipschitz(COUPLED["glow"](F64)).forward == math.inf  # on the whole space no bound is known


def test_bad_input() -> None:
    group, semigroup = AbelianGroup(Affine(1, dtype=F64)), AbelianSemigroup(Affine(1, dtype=F64))
    with pytest.raises(AbelnetError, match="region: expected the lower corner below the upper"):
        lipschitz(Affine(1), (1.0, -1.0))
    with pytest.raises(AbelnetError, match="operation: expected a group, got Product"):
        size_bound(semigroup, 0.1, 4, 10)
    with pytest.raises(AbelnetError, match="epsilon: expected a number of at least 0"):
        merge_bound(group, -0.1, 4, 10)
    with pytest.raises(AbelnetError, match="a: expected at least 2"):
        size_bound(group, 0.1, 1, 10)
    with pytest.raises(AbelnetError, match="expected a sum like the truth, got a product"):
        generator_bound(semigroup, group, 10, (-5.0, 5.0))
    with pytest.raises(AbelnetError, match="least, largest: expected finite"):
        generator_bound(semigroup, semigroup, 10, (-5.0, 5.0))
    with pytest.raises(AbelnetError, match="elements: expected a finite range"):
        generator_bound(group, group, 10, (5.0, 5.0))
    with pytest.raises(AbelnetError, match="expected an operation in one dimension"):
        generator_bound(AbelianGroup(Affine(2)), group, 10, (-5.0, 5.0))
    with pytest.raises(AbelnetError, match="got Maximum"):
        generator_bound(Operation(Affine(1), Maximum()), group, 10, (-5.0, 5.0))
    off = AbelianSemigroup(Affine(1, dtype=F64))
    torch.nn.init.constant_(off.bijection.shift, 0.5)
    with pytest.raises(AbelnetError, match="agree in sign"):
        generator_bound(off, semigroup, 10, (-5.0, 5.0), least=0.2, largest=100.0)
    with pytest.raises(AbelnetError, match="or no element is left"):
        generator_bound(semigroup, semigroup, 10, (-5.0, 5.0), least=6.0, largest=100.0)
    with pytest.raises(AbelnetError, match="truth: expected a group"):
        reach(semigroup, 3, (-5.0, 5.0))
