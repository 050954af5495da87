"""Bijections by additive invariants: inverses, derivatives, domains, bounds and formulas, for every term."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from cases import DTYPES, POOLED, VECTOR_CASES, monomial, relative_error, vectors
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from abelnet import AbelianGroup, AbelnetError, Affine, Chain, Triangular, law_defects
from abelnet.bijections import Implicit, Invariants
from abelnet.bijections.steps import plan
from abelnet.bijections.terms import Exponential, Factor, Logarithm, Monomial, Power, Term
from abelnet.verify.certificates import lipschitz, merge_bound, size_bound

F64 = torch.float64
CLOSED = [name for name in VECTOR_CASES if not name.startswith("implicit")]
# Boxes in which angles do not jump, and in which the images of a box have inverses.
CALM = {"complex_product": ([0.5, -2.0], [2.0, 2.0]), "phasors": ([0.5, -0.4], [3.0, 0.4])}
NARROW = {
    "complex_product": ([0.5, -1.0], [2.0, 1.0]),
    "phasors": ([1.0, -0.4], [3.0, 0.4]),
    "relativistic": ([0.9, -0.2], [1.1, 0.2]),
    "impedance": ([1.0, -0.5], [2.0, 0.5]),
    "root_below": ([-2.0, 0.4], [-1.5, 0.6]),
}


def make(name: str, dtype: torch.dtype = F64) -> Invariants:
    return VECTOR_CASES[name][0](dtype)


def call(bijection: Invariants, direction: str, x: Tensor, *coefficients: Tensor) -> Tensor:
    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bijection = bijection

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = getattr(self.bijection, direction)(x)
            return result

    state = {f"bijection.coefficients.{j}": c for j, c in enumerate(coefficients)}
    result: Tensor = torch.func.functional_call(Wrapped(), state, (x,))
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VECTOR_CASES)
def test_round_trip_in_any_shape(name: str, dtype: torch.dtype) -> None:
    bijection, x = make(name, dtype), vectors(name, 24, dtype=dtype)
    tolerance = 1e-13 if dtype == F64 else 1e-5
    y = bijection(x)
    assert y.dtype == dtype
    assert relative_error(bijection.inverse(y), x) <= tolerance
    batch = y.reshape(2, 3, 4, -1)
    assert relative_error(bijection.inverse(batch).reshape(x.shape), x) <= tolerance
    assert relative_error(bijection.inverse(y[0]), x[0]) <= tolerance
    assert bijection.inverse(batch[:, :0]).shape == batch[:, :0].shape
    assert bijection(x[:0]).shape == x[:0].shape
    assert bijection.log_abs_det(x.reshape(batch.shape)).shape == (2, 3, 4)
    assert bijection.is_defined(x).all()
    assert bijection(torch.full_like(x, math.nan)).isnan().any(-1).all()
    assert bijection.inverse(torch.full_like(x, math.nan)).isnan().any(-1).all()


@pytest.mark.parametrize("name", VECTOR_CASES)
def test_derivatives_are_those_of_autograd(name: str) -> None:
    bijection, x = make(name), vectors(name, 6)
    torch.testing.assert_close(
        bijection.jacobian(x), torch.stack([torch.autograd.functional.jacobian(bijection, one) for one in x])
    )
    expected = torch.linalg.slogdet(bijection.jacobian(x)).logabsdet
    torch.testing.assert_close(bijection.log_abs_det(x), expected)
    coefficients = [c.detach().requires_grad_() for c in bijection.coefficients]
    if name == "acids":  # differences of 1e-7 are those of a pH of 7
        x[:, 1] /= 4
    y = bijection(x).detach()
    for direction, places in (("forward", x), ("inverse", y)):
        values = places.clone().requires_grad_()
        assert torch.autograd.gradcheck(
            lambda x, *c, direction=direction: call(bijection, direction, x, *c),
            (values, *coefficients),
            eps=1e-7,
            atol=1e-5,
            rtol=1e-4,
        )


def test_laws_of_textbooks() -> None:
    expected: dict[str, Any] = {
        "center_of_mass": lambda m, x: (m.sum(), (m * x).sum() / m.sum()),
        "harmonic_mean": lambda w, x: (w.sum(), w.sum() / (w / x).sum()),
        "geometric_mean": lambda w, x: (w.sum(), ((w * x.log()).sum() / w.sum()).exp()),
        "fusion": lambda mu, v: ((mu / v).sum() / (1 / v).sum(), 1 / (1 / v).sum()),
        "acids": lambda v, ph: (v.sum(), -((v * 10 ** (-ph)).sum() / v.sum()).log10()),
        "decibels": lambda t, level: (t.sum(), 10 * ((t * 10 ** (level / 10)).sum() / t.sum()).log10()),
        "complex_product": lambda a, b: torch.view_as_real(torch.complex(a, b).prod()).unbind(),
        "impedance": lambda a, b: torch.view_as_real(1 / (1 / torch.complex(a, b)).sum()).unbind(),
        "phasors": lambda r, t: (torch.polar(r, t).sum().abs(), torch.polar(r, t).sum().angle()),
        "beta": lambda a, b: ((a - 1).sum() + 1, (b - 1).sum() + 1),
        "split_complex": lambda a, b: (((a + b).prod() + (a - b).prod()) / 2, ((a + b).prod() - (a - b).prod()) / 2),
        "heat": lambda m, c, t: (m.sum(), (m * c).sum() / m.sum(), (m * c * t).sum() / (m * c).sum()),
    }
    for name, law in expected.items():
        x = vectors(name, 12)
        got = AbelianGroup(make(name)).reduce(x)
        torch.testing.assert_close(got, torch.stack(law(*x.unbind(-1))), rtol=1e-12, atol=1e-12, msg=name)


def test_pooled_variance_is_numpys() -> None:
    generator = np.random.default_rng(0)
    parts = [generator.normal(3, 2, n) for n in (1, 2, 5, 100)]
    group = AbelianGroup(make("pooled_variance"))
    states = torch.tensor([[len(one), one.mean(), one.var() * len(one)] for one in parts], dtype=F64)
    n, mean, squares = group.reduce(states).tolist()
    whole = np.concatenate(parts)
    assert n == 108
    assert mean == pytest.approx(whole.mean(), rel=1e-14)
    assert squares == pytest.approx(whole.var() * 108, rel=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_at_the_end_of_the_domain_up_to_rounding_are_there(dtype: torch.dtype) -> None:
    """Single numbers have no variance, and rounding must not make it negative, or NaN."""
    group = AbelianGroup(make("pooled_variance", dtype))
    numbers = torch.rand(1000, dtype=dtype)
    states = torch.stack((torch.ones_like(numbers), numbers, torch.zeros_like(numbers)), -1)
    alone = group.reduce(states[:, None])
    assert (alone[:, 2] >= 0).all()
    same = group.reduce(states[:1].expand(500, 3))
    assert 0 <= same[2] <= 500 * 1000 * torch.finfo(dtype).eps
    # The sum of squares of a result that is far outside is NaN, not 0.
    assert group.bijection.inverse(torch.tensor([1.0, 2.0, 3.0], dtype=dtype))[2].isnan()


def test_places_of_no_mass_are_none() -> None:
    bijection = Triangular(2, [[monomial(0)], [monomial(0, 1)]], [[1.0], [1.0]], [1, 1], dtype=F64)
    y = torch.tensor([[0.0, 0.0], [0.0, -1.0], [-1.0, 1.0], [1.0, -1e-17], [1e-300, -1e-300]], dtype=F64)
    x = bijection.inverse(y)
    assert x[0].isnan().tolist() == [False, True]
    assert x[1].isnan().tolist() == [False, True]
    assert x[2].isnan().all()
    assert x[3:].isnan().tolist() == [[False, True]] * 2


def test_terms_elsewhere_choose_the_root() -> None:
    """A coordinate that has a logarithm in one invariant is positive in all."""
    terms = [[monomial(Power(0, 2.0))], [monomial(1), monomial(Logarithm(0))]]
    bijection = Triangular(2, terms, [[1.0], [1.0, 1.0]], dtype=F64)
    x = torch.tensor([[3.0, 1.0]], dtype=F64)
    torch.testing.assert_close(bijection.inverse(bijection(x)), x)
    assert bijection.inverse(torch.tensor([0.0, 1.0], dtype=F64)).isnan().all()


def test_signs_choose_the_root() -> None:
    square = [[monomial(Power(0, 2.0))], [monomial(1)]]
    for sign in (1, -1):
        bijection = Triangular(2, square, [[1.0], [1.0]], [sign, 0], dtype=F64)
        x = torch.tensor([[sign * 3.0, 1.0], [0.0, 1.0]], dtype=F64)
        assert torch.equal(bijection.inverse(bijection(x)), x)
        assert bijection.inverse(torch.tensor([-1.0, 0.0], dtype=F64)).isnan().tolist() == [True, False]
        with pytest.raises(
            AbelnetError, match=r"x: expected vectors of the domain, x1 [≥≤] 0, got 1 of 2 that are not"
        ):
            bijection(torch.tensor([[-sign * 1.0, 0.0], [sign * 1.0, 0.0]], dtype=F64))
    with pytest.raises(AbelnetError, match="expected each to bring in one coordinate"):
        Triangular(2, square, [[1.0], [1.0]])
    for exponent in (-1.0, -3.0, 3.0):
        odd = Triangular(1, [[monomial(Power(0, exponent))]], [[2.0]], dtype=F64)
        x = torch.tensor([[-1e6], [-3.0], [-1e-6], [1e-6], [0.5], [1e6]], dtype=F64)
        torch.testing.assert_close(odd.inverse(odd(x)), x, rtol=1e-13, atol=0)


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e6])
def test_tiny_and_huge_masses(scale: float) -> None:
    group = AbelianGroup(make("center_of_mass"))
    x = torch.tensor([[scale, 1e6], [3 * scale, -1e6], [0.0, 5.0]], dtype=F64)
    torch.testing.assert_close(group.reduce(x), torch.tensor([4 * scale, -5e5], dtype=F64), rtol=1e-14, atol=0)


def test_the_product_of_a_thousand_complex_numbers() -> None:
    group = AbelianGroup(make("complex_product"))
    generator = torch.Generator().manual_seed(1)
    length = torch.exp(0.3 * torch.randn(1000, generator=generator, dtype=F64))
    turn = 2 * math.pi * torch.rand(1000, generator=generator, dtype=F64)
    numbers = torch.polar(length, turn)
    x = torch.view_as_real(numbers)
    expected = torch.tensor([1.0, 0.0], dtype=F64)
    product = complex(1.0)
    for number in numbers.tolist():
        product *= number
    expected = torch.tensor([product.real, product.imag], dtype=F64)
    size = expected.norm()
    assert (group.reduce(x) - expected).norm() <= 1e-9 * size
    assert (group.cumulative(x)[-1] - expected).norm() <= 1e-9 * size
    stream, rest = group.accumulator(), group.accumulator()
    stream.add_many(x[:400])
    rest.add_many(x[400:])
    stream.merge(rest)
    assert (stream.value() - expected).norm() <= 1e-9 * size
    for one in x[500:]:
        stream.remove(one)
    half = group.reduce(x[:500])
    assert (stream.value() - half).norm() <= 1e-9 * half.norm()
    torch.testing.assert_close(group.identity(), torch.tensor([1.0, 0.0], dtype=F64))
    torch.testing.assert_close(group(x, group.inverse(x)), group.identity().expand_as(x))
    quotient = torch.view_as_complex(group.divide(x[:5], x[5:10]).detach())
    torch.testing.assert_close(quotient, numbers[:5] / numbers[5:10])
    torch.testing.assert_close(torch.view_as_complex(group.power(x, 3).detach()), numbers**3)


@pytest.mark.parametrize("name", VECTOR_CASES)
def test_laws_hold_and_streams_fold(name: str) -> None:
    group, x = AbelianGroup(make(name)), vectors(name, 40, seed=3)
    with torch.no_grad():
        if not name.startswith("implicit"):
            defects = law_defects(group, x)
            assert defects.associativity.relative <= 1e-11
            assert defects.commutativity.relative <= 1e-12
            assert defects.round_trip.relative <= 1e-12
            assert defects.identity is None or defects.identity.relative <= 1e-12
        few = x[:5]
        expected = group.reduce(few)
        assert expected.isfinite().all()
        orders = torch.stack([torch.randperm(5, generator=torch.Generator().manual_seed(i)) for i in range(10)])
        assert relative_error(group.reduce(few[orders]), expected.expand(10, -1)) <= 1e-11
        ptr = torch.tensor([0, 2, 2, 5])
        sets = group.reduce(few, ptr=ptr)
        assert relative_error(sets[2], group.reduce(few[2:])) <= 1e-11
        stream, rest = group.accumulator(), group.accumulator()
        stream.add_many(few[:2])
        rest.add_many(x[2:6])
        stream.merge(rest)
        stream.remove(x[5])
        assert relative_error(stream.value(), expected) <= 1e-9
        assert relative_error(group.cumulative(few)[-1], expected) <= 1e-11
        assert relative_error(group.divide(group(few, x[5:10]), x[5:10]), few) <= 1e-8
        assert relative_error(group.power(few, 2), group(few, few)) <= 1e-11


@pytest.mark.parametrize(
    "name", ["pooled_variance", "real_powers", "impedance", "split_complex", "relativistic", "twisted"]
)
def test_compiled_and_exported(name: str) -> None:
    torch.compiler.reset()
    group, x = AbelianGroup(make(name)), vectors(name, 6)
    compiled = torch.compile(group, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, x.flip(0)), group(x, x.flip(0)), rtol=1e-12, atol=1e-12)
    exported = torch.export.export(group, (x, x.flip(0)))
    torch.testing.assert_close(exported.module()(x, x.flip(0)), group(x, x.flip(0)), rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=100)
@given(name=st.sampled_from(CLOSED), seed=st.integers(0, 10_000))
def test_commutative_and_associative(name: str, seed: int) -> None:
    group, (x, y, z) = AbelianGroup(make(name)), vectors(name, 3, seed=seed)
    xy, yz = group(x, y), group(y, z)
    torch.testing.assert_close(xy, group(y, x), rtol=1e-13, atol=1e-13)
    left, right = group(xy, z), group(x, yz)
    if name == "phasors":  # a sum of 0 has no angle, and one near the negative axis jumps by a whole turn
        left, right = (torch.polar(*one.detach().unbind()) for one in (left, right))
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(group.reduce(torch.stack((z, x, y))), group.reduce(torch.stack((x, y, z))))


@pytest.mark.parametrize("name", ["center_of_mass", "pooled_variance", "fusion", "impedance", "acids"])
def test_an_identity_outside_the_domain_is_refused(name: str) -> None:
    group = AbelianGroup(make(name))
    with pytest.raises(AbelnetError, match="identity: expected an operation with an identity, got one whose identity"):
        group.identity()
    assert group.accumulator().value().isnan().any()
    assert group.reduce([vectors(name, 2), vectors(name, 0)])[1].isnan().any()


def test_states_of_different_invariants_do_not_mix() -> None:
    """Accumulators compare what they were made of, terms included."""
    terms = [[monomial(0)], [monomial(0, 1)]]
    other = [[monomial(0)], [monomial(0, Power(1, 3.0))]]
    first, second = (AbelianGroup(Triangular(2, one, [[1.0], [1.0]], [1, 0])).accumulator() for one in (terms, other))
    with pytest.raises(AbelnetError, match="other: expected the same bijection"):
        first.merge(second)
    with pytest.raises(AbelnetError, match="state_dict: expected the state of the same bijection"):
        first.load_state_dict(second.state_dict())
    first.load_state_dict(AbelianGroup(Triangular(2, terms, [[1.0], [1.0]], [1, 0])).accumulator().state_dict())


@pytest.mark.parametrize("name", CLOSED)
def test_expressions_are_the_operation(name: str) -> None:
    bijection, (x, y) = make(name), vectors(name, 2, seed=5)
    dim = bijection.dim
    names = [sympy.symbols(f"{letter}:{dim}", real=True) for letter in "xy"]
    expected = AbelianGroup(bijection)(x, y)
    for i in range(dim):
        function = sympy.lambdify((*names[0], *names[1]), AbelianGroup(bijection).expression(*names, i), "math")
        got = function(*x.tolist(), *y.tolist())
        assert got == pytest.approx(expected[i].item(), rel=1e-12, abs=1e-12)
        value = sympy.lambdify(names[0], bijection.expression(names[0], i), "math")(*x.tolist())
        assert value == pytest.approx(bijection(x)[i].item(), rel=1e-12, abs=1e-12)


def test_expressions_of_chains() -> None:
    scale = Affine(2, dtype=F64)
    torch.nn.init.constant_(scale.shift, 0.25)
    chain = Chain(scale, make("center_of_mass"), scale)
    x, y = (sympy.symbols(f"{letter}:2", real=True) for letter in "xy")
    function = sympy.lambdify((*x, *y), AbelianGroup(chain).expression(x, y, 1), "math")
    left, right = vectors("center_of_mass", 2)
    expected = AbelianGroup(chain)(left, right)[1].item()
    assert function(*left.tolist(), *right.tolist()) == pytest.approx(expected, rel=1e-12)


def test_expressions_of_other_forms() -> None:
    m, x = sympy.symbols("m x")
    center = make("center_of_mass")
    with pytest.raises(AbelnetError, match="x: expected a sequence of 2 expressions, one for each coordinate, got"):
        center.expression(x)
    with pytest.raises(AbelnetError, match="x: expected a sequence of 2 expressions, one for each coordinate, got 3"):
        center.expression([m, x, x])
    with pytest.raises(AbelnetError, match="inverse_expression: expected a bijection with a closed form, got Implicit"):
        make("implicit").inverse_expression([m, x])
    moved = Triangular(2, [[monomial(0)], [monomial(0, 1)]], [[1.0], [1.0]], [1, 0], [0.0, 7.0])
    assert moved.expression([m, x], 1) == m * (x - 7)
    assert moved.inverse_expression([m, x], 1) == x / m + 7
    u, v = sympy.symbols("u v")
    assert moved.solved([u, v], [m, x]) == [u, v / m + 7]
    assert moved.order == [0, 1]


@pytest.mark.parametrize("name", VECTOR_CASES)
def test_slope_bounds_enclose_what_is_sampled(name: str) -> None:
    bijection = make(name).snapshot()
    low, high = (torch.tensor(end, dtype=F64) for end in CALM.get(name, VECTOR_CASES[name][1:]))
    steps = torch.linspace(0, 1, 9, dtype=F64)
    x = low + (high - low) * torch.cartesian_prod(*[steps] * bijection.dim)
    x = x[bijection.is_defined(x).all(-1)]
    forward = bijection.slope_bounds((low, high))
    y = bijection(x)
    assert ((y >= forward.low - 1e-9) & (y <= forward.high + 1e-9)).all()
    values = torch.linalg.svdvals(bijection.jacobian(x))
    assert values.max() <= forward.norm * (1 + 1e-9)
    if name == "implicit_angle":
        assert forward.norm == math.inf  # the angle jumps
        return
    if name == "implicit":
        assert forward.norm <= 1.6 * values.max()
        with pytest.raises(AbelnetError, match="inverse_slope_bounds: expected proved slope bounds, got Implicit"):
            bijection.inverse_slope_bounds((forward.low, forward.high))
        return
    assert forward.norm <= 3 * values.max()
    inverse = bijection.inverse_slope_bounds((forward.low, forward.high))
    assert 1 / values.min() <= inverse.norm * (1 + 1e-9)
    assert ((x >= inverse.low - 1e-9) & (x <= inverse.high + 1e-9)).all()


@pytest.mark.parametrize("name", CLOSED)
def test_certificates_of_vector_operations(name: str) -> None:
    low, high = (torch.tensor(end, dtype=F64) for end in NARROW.get(name, VECTOR_CASES[name][1:]))
    middle = (low + high) / 2
    box = middle - 0.1 * (high - low), middle + 0.1 * (high - low)
    group = AbelianGroup(make(name))
    constants = lipschitz(group.bijection, box)
    assert constants.forward_sampled <= constants.forward * (1 + 1e-9)
    assert constants.inverse_sampled <= constants.inverse * (1 + 1e-9)
    assert constants.forward < math.inf
    assert constants.inverse < math.inf, name
    merged, theorem = (bound(group, 1e-3, 4, 16, box) for bound in (merge_bound, size_bound))
    assert 1e-3 <= merged.value <= theorem.value < math.inf


@st.composite
def boxes(draw: st.DrawFn) -> tuple[str, Tensor, Tensor]:
    name = draw(st.sampled_from(CLOSED))
    low, high = (torch.tensor(end, dtype=F64) for end in CALM.get(name, VECTOR_CASES[name][1:]))
    ends = torch.tensor(draw(st.lists(st.floats(0, 1), min_size=2 * len(low), max_size=2 * len(low))), dtype=F64)
    ends = ends.reshape(2, -1).sort(0).values
    return name, low + (high - low) * ends[0], low + (high - low) * ends[1]


@settings(deadline=None, max_examples=150)
@given(case=boxes(), seed=st.integers(0, 1000))
def test_no_slope_exceeds_its_bound(case: tuple[str, Tensor, Tensor], seed: int) -> None:
    name, low, high = case
    bijection = make(name).snapshot()
    draw = torch.rand(64, bijection.dim, generator=torch.Generator().manual_seed(seed), dtype=F64)
    x = torch.cat((low + (high - low) * draw, low[None], high[None]))
    forward = bijection.slope_bounds((low, high))
    values = torch.linalg.svdvals(bijection.jacobian(x))
    assert values.max() <= forward.norm * (1 + 1e-9)
    inverse = bijection.inverse_slope_bounds((forward.low, forward.high))
    rounding = 1e-9 + 1e-14 * values.max() / values.min()  # of the least singular value
    assert 1 / values.min() <= inverse.norm * (1 + rounding)
    y = bijection(x)
    assert ((y >= forward.low - 1e-9 * y.abs() - 1e-15) & (y <= forward.high + 1e-9 * y.abs() + 1e-15)).all()
    back = bijection.inverse(y)
    assert ((back >= inverse.low - 1e-6) & (back <= inverse.high + 1e-6)).all()


@st.composite
def random_maps(draw: st.DrawFn) -> Triangular:
    """Triangular maps of any factors, in any order."""
    dim, sign = draw(st.integers(1, 4)), draw(st.sampled_from([0, 1]))
    exponents = st.sampled_from([-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 1.7, 2.0, 3.0])
    order = draw(st.permutations(range(dim)))

    def factor(i: int) -> Factor:
        kind = draw(st.sampled_from(["power", "power", "logarithm", "exponential"]))
        if kind == "logarithm":
            return Logarithm(i)
        rate, base = draw(st.sampled_from([-1.0, -0.3, 0.5, 1.0])), draw(st.sampled_from(Exponential.BASES))
        return Power(i, draw(exponents)) if kind == "power" else Exponential(i, rate, base)

    def product(known: list[int]) -> tuple[Factor, ...]:
        chosen = draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
        return tuple(Power(i, draw(exponents)) for i in chosen)

    invariants: list[list[Term]] = [[] for _ in range(dim)]
    places = draw(st.permutations(range(dim)))
    for k, i in enumerate(order):
        known = list(order[:k])
        terms = [Monomial((factor(i), *product(known)))]
        terms += [Monomial(product(known)) for _ in range(draw(st.integers(0, 2)))]
        invariants[places[k]] = list(draw(st.permutations(terms)))
    numbers = st.floats(0.5, 2.0)
    coefficients = [[draw(numbers) for _ in one] for one in invariants]
    assume(plan(invariants, [sign] * dim))  # squares of numbers of both signs have no root
    return Triangular(dim, invariants, coefficients, [sign] * dim, dtype=F64)


@settings(deadline=None, max_examples=100)
@given(bijection=random_maps(), seed=st.integers(0, 1000))
def test_random_maps(bijection: Triangular, seed: int) -> None:
    dim = bijection.dim
    low, high = torch.full((dim,), 0.5, dtype=F64), torch.full((dim,), 1.5, dtype=F64)
    x = low + (high - low) * torch.rand(20, dim, generator=torch.Generator().manual_seed(seed), dtype=F64)
    with torch.no_grad():
        y = bijection(x)
        values = torch.linalg.svdvals(bijection.jacobian(x))
        condition = values[:, :1] / values[:, -1:]
        error = (bijection.inverse(y) - x).abs() / condition
        assert error.max() <= 1e-13
        twin = Triangular.from_config(bijection.config()).double()
        torch.testing.assert_close(twin(x), y, rtol=1e-6, atol=1e-6)
        names = sympy.symbols(f"x:{dim}", real=True)
        for i in range(dim):
            formula = sympy.lambdify(names, bijection.expression(names, i), "math")
            assert formula(*x[0].tolist()) == pytest.approx(y[0, i].item(), rel=1e-12, abs=1e-12)
    jacobian = torch.stack([torch.autograd.functional.jacobian(bijection, one) for one in x[:3]])
    torch.testing.assert_close(bijection.jacobian(x[:3]).detach(), jacobian, rtol=1e-10, atol=1e-12)
    bound = bijection.slope_bounds((low, high))
    assert values.max() <= bound.norm * (1 + 1e-9)
    assert ((y >= bound.low - 1e-9 * y.abs()) & (y <= bound.high + 1e-9 * y.abs())).all()
    back = bijection.inverse_slope_bounds((y.amin(0), y.amax(0)))
    assert 1 / values.min() <= back.norm * (1 + 1e-9 + 1e-13 * condition.max())
    assert ((x >= back.low - 1e-9) & (x <= back.high + 1e-9)).all()


def test_boxes_without_bounds() -> None:
    center = make("center_of_mass")
    assert lipschitz(center, (torch.tensor([0.0, -1.0]), torch.tensor([1.0, 1.0]))).inverse == math.inf
    wide = center.slope_bounds((torch.tensor([0.0, -math.inf]), torch.tensor([1.0, math.inf])))
    assert wide.norm == math.inf
    with pytest.raises(AbelnetError, match="region: expected a box of the domain, x1 ≥ 0, got -1 to 1"):
        center.slope_bounds((torch.tensor([-1.0, 0.0]), torch.tensor([1.0, 1.0])))
    with pytest.raises(AbelnetError, match="region: expected a box of the domain, x1 ≥ 0, got -inf to inf"):
        merge_bound(AbelianGroup(center), 0.1, 4, 16)
    product = make("complex_product")
    for low in ([-1.0, -1.0], [-2.0, -1.0]):
        assert product.slope_bounds((torch.tensor(low), torch.tensor([-0.5, 1.0]))).norm == math.inf


def test_an_origin_keeps_the_digits_of_variances() -> None:
    """A thousand parts of a million numbers around 1e6, merged in random trees."""
    generator = np.random.default_rng(0)
    numbers = generator.normal(1e6, 1.0, 1_000_000)
    order = np.sort(generator.choice(np.arange(1, len(numbers)), 999, replace=False))
    parts = np.split(numbers, order)
    states = torch.tensor([[len(one), one.mean(), ((one - one.mean()) ** 2).sum()] for one in parts], dtype=F64)
    group = AbelianGroup(Triangular(3, POOLED, [[1.0], [1.0], [1.0, 1.0]], [1, 0, 1], [0.0, 1e6, 0.0], dtype=F64))
    with torch.no_grad():
        left = list(states)
        while len(left) > 1:
            left = [left[i] for i in generator.permutation(len(left))]
            pairs = len(left) // 2
            merged = group(torch.stack(left[:pairs]), torch.stack(left[pairs : 2 * pairs]))
            left = [*merged, *left[2 * pairs :]]
    n, mean, squares = left[0].tolist()
    assert n == 1_000_000
    assert mean == pytest.approx(numbers.mean(), rel=1e-13)
    assert squares / n == pytest.approx(numbers.var(), rel=1e-9)


def test_only_an_origin_that_keeps_the_law_is_taken() -> None:
    expected = {
        "center_of_mass": [False, True],
        "pooled_variance": [False, True, False],
        "fusion": [True, False],
        "acids": [False, True],
        "harmonic_mean": [False, False],
        "beta": [False, False],
        "complex_product": [False, False],
        "heat": [False, False, True],
        "pooled_covariance": [False, True, True, False],
        "pooled_skewness": [False, True, False, False],
        "implicit": [False, False],
    }
    for name, movable in expected.items():
        bijection = make(name)
        assert bijection.translatable() == movable, name
        moved = bijection.with_origin([3.0 if one else 0.0 for one in movable])
        assert bijection.origin == [0.0] * bijection.dim
        x = vectors(name, 5)
        torch.testing.assert_close(AbelianGroup(moved).reduce(x), AbelianGroup(bijection).reduce(x))
        with pytest.raises(AbelnetError, match=r"origin: expected 0\.0 for coordinate"):
            bijection.with_origin([1.0] * bijection.dim)
    with pytest.raises(AbelnetError, match="origin: expected 2 finite numbers"):
        make("acids").with_origin([1.0])


def test_an_origin_moves_the_domain() -> None:
    bijection = Triangular(
        2, [[monomial(Logarithm(0))], [monomial(Power(1, 0.5))]], [[1.0], [1.0]], origin=[3.0, -2.0], dtype=F64
    )
    assert bijection.describe_domain_of(["a", "b"]) == "a > 3, b ≥ -2"
    x = torch.tensor([[3.5, -2.0], [10.0, 5.0]], dtype=F64)
    assert ((x > bijection.domain[0]) & (x < bijection.domain[1])).all()
    torch.testing.assert_close(bijection.inverse(bijection(x)), x)
    assert bijection.is_defined(torch.tensor([[3.0, -2.1]])).tolist() == [[False, False]]
    with pytest.raises(AbelnetError, match="got 1 of 1 that are not"):
        bijection(torch.tensor([[3.0, 0.0]], dtype=F64))


def test_newton_from_one_start_outside_the_others() -> None:
    terms = [[monomial(Logarithm(0)), monomial(1)], [monomial(1), monomial(0)]]
    known = torch.tensor([[-1.0, 0.0], [1.0, 1.0]], dtype=F64)  # the first is outside the domain
    bijection = Implicit(2, terms, [[1.0, 0.1], [1.0, -0.1]], [1, 0], known=known, dtype=F64)
    x = torch.tensor([[1e-6, 3.0], [5.0, -2.0], [1e3, 0.0]], dtype=F64)
    assert relative_error(bijection.inverse(bijection(x)), x) <= 1e-12
    with pytest.raises(AbelnetError, match="known: expected a point of the domain, x1 > 0, got none"):
        Implicit(2, terms, [[1.0, 0.1], [1.0, -0.1]], [1, 0], known=known[:1])


def test_newton_where_there_is_no_solution() -> None:
    """Squares are not negative, and their slope at 0 is singular."""
    terms = [[monomial(Power(0, 2.0)), monomial(Power(1, 2.0))], [monomial(0, 1)]]
    known = torch.tensor([[0.0, 0.0], [1.0, 0.5]], dtype=F64)
    bijection = Implicit(2, terms, [[1.0, 1.0], [1.0]], known=known, dtype=F64)
    y = torch.tensor([[-1.0, 0.0], [2.0, 0.3], [math.inf, 0.0], [0.0, 0.0]], dtype=F64)
    x = bijection.inverse(y)
    assert x[0].isnan().all()
    assert x[2].isnan().all()
    torch.testing.assert_close(bijection(x[[1]]), y[[1]])
    assert x[3].abs().max() <= 1e-3


def test_angles_of_an_implicit_map_are_found_up_to_whole_turns() -> None:
    group, x = AbelianGroup(make("implicit_angle")), vectors("implicit_angle", 30, seed=7)
    x[:, 2] /= 30
    got = group.reduce(x)
    product = torch.view_as_complex(x[:, :2].contiguous()).prod()
    angle = torch.view_as_complex(got[:2].detach().contiguous()).angle()
    assert math.remainder(float(angle - product.angle()), 2 * math.pi) == pytest.approx(0, abs=1e-9)


def test_other_coefficients_keep_the_starts() -> None:
    bijection, x = make("implicit"), vectors("implicit", 5)
    other = bijection.with_coefficients([[1.0, 0.4], torch.tensor([2.0, -0.3])])
    assert torch.equal(other.known, bijection.known)  # type: ignore[arg-type]
    assert bijection.coefficients[0][1].item() == 1 / 3
    torch.testing.assert_close(other.inverse(other(x)), x)
    with pytest.raises(AbelnetError, match="coefficients: expected one for each term of each invariant"):
        bijection.with_coefficients([[1.0], [1.0, 2.0]])


def test_values_in_chunks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bijection, x = make("implicit"), vectors("implicit", 50)
    y = bijection(x)
    whole = bijection.inverse(y)
    monkeypatch.setattr("abelnet.bijections.implicit._CHUNK", 1000)
    torch.testing.assert_close(bijection.inverse(y), whole, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, [[monomial(0)]], [[1.0]]), "invariants: expected 2 lists of terms, got 1"),
        ((1, [[]], [[]]), "invariants: expected 1 lists of terms"),
        ((1, [[monomial(1)]], [[1.0]]), "invariants: expected terms of 1 coordinates"),
        ((1, [[monomial(0)]], [[1.0, 2.0]]), "coefficients: expected one for each term"),
        ((1, [[monomial(0)]], [[math.nan]]), "coefficients: expected finite numbers"),
        ((1, [[monomial(0)]], [[1.0]], [2]), "signs: expected 1 of -1, 0 and 1"),
        ((1, [[monomial(0)]], [[1.0]], [0], [math.inf]), "origin: expected 1 finite numbers"),
        ((1, [[monomial(Logarithm(0))]], [[1.0]], [-1]), "signs: expected numbers on which terms are defined"),
        ((1, [[monomial(0), monomial(Exponential(0))]], [[1.0, 1.0]]), "use Implicit"),
    ],
)
def test_bad_arguments(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        Triangular(*arguments)
