"""Operations: the laws they inherit, over every bijection and every law."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import sympy
import torch
from cases import BIJECTIONS, FAMILY_CASES, GROUPS, IDENTITY_LIKE, LAWS, VECTOR_CASES, relative_error
from hypothesis import given, settings
from hypothesis import strategies as st

import abelnet
from abelnet import (
    AbelianGroup,
    AbelianNet,
    AbelianSemigroup,
    AbelnetError,
    Affine,
    Bijection,
    Chain,
    Generator,
    Maximum,
    Monotonic,
    Operation,
    Permutation,
    Polynomial,
    RationalQuadraticSpline,
    SinhArcsinh,
    Sum,
    glow,
)
from abelnet.verify.defects import law_defects

STARTS = {f"{name}-random": make for name, make in BIJECTIONS.items()} | {
    f"{name}-identity": make for name, make in IDENTITY_LIKE.items()
}
EXACT = [name for name in STARTS if not name.startswith(("coupling", "glow"))]


def make(start: str, law: str) -> Operation:
    return Operation(STARTS[start](torch.float64), LAWS[law]())


@pytest.mark.parametrize("start", sorted(STARTS))
@pytest.mark.parametrize("law", sorted(LAWS))
def test_laws_hold_to_rounding(law: str, start: str) -> None:
    operation = make(start, law)
    x = torch.randn(200, 3, dtype=torch.float64)
    defects = law_defects(operation, x)
    assert defects.associativity.relative <= 1e-8
    assert defects.commutativity.relative <= (0 if start in EXACT else 1e-12)
    assert defects.round_trip.relative <= 1e-10
    if law not in ("maximum", "minimum", "constant"):
        assert defects.identity is not None
        assert defects.identity.relative <= 1e-7  # a law's own coefficients may be float32
    assert (defects.inverse is not None) == (law in GROUPS)
    if defects.inverse is not None:
        assert defects.inverse.relative <= 1e-7


@pytest.mark.parametrize("start", sorted(STARTS))
@pytest.mark.parametrize("law", sorted(LAWS))
def test_reduce_is_a_fold_in_any_order(law: str, start: str) -> None:
    operation = make(start, law)
    x = torch.randn(6, 3, dtype=torch.float64)
    with torch.no_grad():
        result = operation.reduce(x)
        fold = x[0]
        for element in x[1:]:
            fold = operation(fold, element)
        assert relative_error(fold, result) <= 1e-8
        orders = torch.stack([torch.randperm(6) for _ in range(100)])
        assert relative_error(operation.reduce(x[orders]), result.expand(100, 3)) <= 1e-10
        prefixes = operation.cumulative(x)
        assert relative_error(prefixes[-1], result) <= 1e-10
        assert relative_error(prefixes[2], operation.reduce(x[:3])) <= 1e-10


@settings(deadline=None, max_examples=50)
@given(
    start=st.sampled_from(sorted(EXACT)),
    law=st.sampled_from(sorted(LAWS)),
    x=st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=3, max_size=3),
    y=st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=3, max_size=3),
)
def test_commutative_bit_for_bit(start: str, law: str, x: list[float], y: list[float]) -> None:
    operation = make(start, law)
    left, right = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    assert torch.equal(operation(left, right), operation(right, left))


@pytest.mark.parametrize("start", sorted(STARTS))
def test_group_arithmetic(start: str) -> None:
    group = AbelianGroup(STARTS[start](torch.float64))
    x, y, z = torch.randn(3, 50, 3, dtype=torch.float64)
    assert relative_error(group.divide(group(x, y), y), x) <= 1e-9
    assert relative_error(group.analogy(x, y, z), group(group.divide(y, x), z)) <= 1e-9
    index = torch.randint(50, (4, 7, 3))
    expected = group.analogy(*x[index].unbind(-2))
    assert relative_error(group.analogies(x, index), expected) <= 1e-9
    assert group.analogies(x, index[0, 0]).shape == (3,)
    assert group.analogies(x, index[:, :0]).shape == (4, 0, 3)
    assert group.analogies(x[:0], index[:0]).shape == (0, 7, 3)
    assert relative_error(group.power(x, 3), group(x, group(x, x))) <= 1e-9
    assert relative_error(group.power(x, -1), group.inverse(x)) <= 1e-9
    assert relative_error(group.power(group.power(x, 0.5), 2), x) <= 1e-9
    assert relative_error(group.power(x, 0), group.identity().expand(50, 3)) <= 1e-9


@pytest.mark.parametrize("start", sorted(STARTS))
def test_translation_of_many_pairs(start: str) -> None:
    group = AbelianGroup(STARTS[start](torch.float64))
    a, b = torch.randn(2, 4, 5, 3, dtype=torch.float64)
    c = torch.randn(3, dtype=torch.float64)
    offsets = group.bijection(b) - group.bijection(a)
    expected = {
        "mean": offsets.mean(1),
        "median": offsets.median(1).values,
        "weights": (offsets * torch.tensor([0.1, 0.3, 0.0, 0.4, 0.2], dtype=torch.float64)[:, None]).sum(1),
    }
    weights = torch.tensor([1.0, 3.0, 0.0, 4.0, 2.0])
    for name, how in (("mean", "mean"), ("median", "median"), ("weights", weights)):
        found = group.translation(a, b, how)
        assert relative_error(found, group.bijection.inverse(expected[name])) <= 1e-9
        moved = group.bijection.inverse(group.bijection(c) + expected[name])
        assert relative_error(group(found, c), moved) <= 1e-8
    assert relative_error(group.translation(a[:, :1], b[:, :1]), group.divide(b[:, 0], a[:, 0])) <= 1e-9
    shifted = group(a, c)  # every pair differs by the same element
    for how in ("mean", "median", weights):
        assert relative_error(group.translation(a, shifted, how), c.expand(4, 3)) <= 1e-7


def test_translation_says_what_it_expects() -> None:
    group, x = AbelianGroup(Affine(2)), torch.randn(4, 2)
    even = torch.tensor([[0.0, 0.0], [1.0, 4.0]])
    assert group.translation(torch.zeros(2, 2), even, "median").tolist() == [0.5, 2.0]
    with pytest.raises(AbelnetError, match=r"a, b: expected shapes \(\*, k, 2\) with at least one pair, got \(0, 2\)"):
        group.translation(x[:0], x[:0])
    with pytest.raises(AbelnetError, match=r"a, b: expected shapes \(\*, k, 2\) with at least one pair, got \(2,\)"):
        group.translation(x[0], x[0])
    with pytest.raises(AbelnetError, match=r"how: expected weights of shape \(\*, 4\), got \(3,\)"):
        group.translation(x, x, torch.ones(3))
    for weights in (torch.zeros(4), torch.tensor([1.0, -1.0, 1.0, 1.0]), torch.full((4,), float("nan"))):
        with pytest.raises(AbelnetError, match="how: expected finite weights of at least 0, not all 0"):
            group.translation(x, x, weights)
    with pytest.raises(AbelnetError, match='how: expected "mean", "median" or weights, got \'mode\''):
        group.translation(x, x, "mode")  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match="expected a group, got Product"):
        AbelianSemigroup(Affine(2)).translation(x, x)


def test_semigroup_has_natural_powers_only() -> None:
    semigroup = AbelianSemigroup(Monotonic(1, seed=0, dtype=torch.float64))
    x = torch.randn(9, 1, dtype=torch.float64)
    torch.testing.assert_close(semigroup.power(x, 2), semigroup(x, x))
    torch.testing.assert_close(semigroup.power(x, 0), semigroup.identity().expand(9, 1))
    for n in (-1, 0.5):
        with pytest.raises(AbelnetError, match="expected an integer of at least 0, since Product is not a group"):
            semigroup.power(x, n)
    with pytest.raises(AbelnetError, match="expected an integer of at least 1"):
        Operation(Affine(1, dtype=torch.float64), Maximum()).power(x, 0)
    for call in (
        semigroup.inverse,
        lambda x: semigroup.divide(x, x),
        lambda x: semigroup.analogy(x, x, x),
        lambda x: semigroup.analogies(x, torch.tensor([0, 1, 2])),
    ):
        with pytest.raises(AbelnetError, match="expected a group, got Product"):
            call(x)
    with pytest.raises(AbelnetError, match="expected a finite number, got '2'"):
        semigroup.power(x, "2")  # type: ignore[arg-type]


def test_broadcasting() -> None:
    group = AbelianGroup(Affine(2))
    assert group(torch.randn(5, 1, 2), torch.randn(3, 2)).shape == (5, 3, 2)
    assert group(torch.randn(2), torch.randn(7, 2)).shape == (7, 2)
    assert group(torch.randn(0, 2), torch.randn(0, 2)).shape == (0, 2)


def test_bad_input() -> None:
    group, x = AbelianGroup(Affine(2)), torch.randn(4, 2)
    with pytest.raises(AbelnetError, match="index: expected entries from 0 to 3, got 1 to 4"):
        group.analogies(x, torch.tensor([1, 2, 4]))
    with pytest.raises(AbelnetError, match=r"index: expected a tensor of integers, got torch\.float32"):
        group.analogies(x, x)
    for elements, index in ((x[None], [[0, 1, 2]]), (x, [[0, 1]]), (x, 0)):
        with pytest.raises(AbelnetError, match=r"elements, index: expected shapes \(m, 2\) and \(\*, 3\), got"):
            group.analogies(elements, torch.tensor(index))
    with pytest.raises(AbelnetError, match=r"y: expected shape \(\*, 2\), got \(4, 3\)"):
        group(x, torch.randn(4, 3))
    with pytest.raises(AbelnetError, match="x: expected finite values, got 1 of 8 that are NaN"):
        group(torch.where(torch.arange(8).reshape(4, 2) == 3, float("nan"), x), x)
    with pytest.raises(AbelnetError, match=r"x: expected torch\.float32"):
        group.inverse(x.double())
    with pytest.raises(AbelnetError, match=r"x, y: expected shapes that broadcast, got \(4, 2\) and \(3, 2\)"):
        group(x, torch.randn(3, 2))
    with pytest.raises(AbelnetError, match="n: expected a finite number, got nan"):
        group.power(x, float("nan"))
    with pytest.raises(AbelnetError, match="gamma: expected 1 or 2 coefficients, got 3"):
        Operation(Affine(2), Polynomial(torch.ones(3)))
    with pytest.raises(AbelnetError, match=r"values: expected shape \(\*, n, 2\)"):
        group.cumulative(x[0])
    with pytest.raises(AbelnetError, match="expected an operation with an identity, got one over Maximum"):
        Operation(Affine(2), Maximum()).identity()
    with pytest.raises(AbelnetError, match="expected a Bijection, got Linear"):
        Operation(torch.nn.Linear(2, 2), Sum())  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match="expected a Law, got str"):
        Operation(Affine(2), "sum")  # type: ignore[arg-type]


def test_trains_saves_and_copies() -> None:
    group = AbelianGroup(Monotonic(1, seed=0))
    x = torch.randn(64, 3, 1)
    target = x.sum(-2) + 2  # x + y + 1, twice
    optimiser = torch.optim.Adam(group.parameters(), lr=1e-2)
    losses = []
    for _ in range(200):
        optimiser.zero_grad()
        loss = (group.reduce(x) - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.02 * losses[0]
    twin = AbelianGroup(Monotonic(1))
    twin.load_state_dict(group.state_dict())
    assert torch.equal(twin.reduce(x), group.reduce(x))
    assert torch.equal(copy.deepcopy(group).reduce(x), group.reduce(x))


@pytest.mark.parametrize("start", sorted(STARTS))
@pytest.mark.parametrize("law", ["sum", "polynomial"])
def test_parameters_are_reset(law: str, start: str) -> None:
    operation = Operation(STARTS[start](torch.float64), Polynomial([0.3], trainable="gamma") if law != "sum" else Sum())
    begin = {name: tensor.clone() for name, tensor in operation.state_dict().items()}
    with torch.no_grad():
        for parameter in operation.parameters():
            parameter.add_(1)
    operation.reset_parameters()
    again = {name: tensor.clone() for name, tensor in operation.state_dict().items()}
    assert all(again[name].shape == tensor.shape for name, tensor in begin.items())
    operation.reset_parameters(seed=5)
    twin = copy.deepcopy(operation)
    twin.reset_parameters()
    twin.reset_parameters(seed=5)
    assert all(torch.equal(tensor, operation.state_dict()[name]) for name, tensor in twin.state_dict().items())
    if law != "sum":
        assert operation.law.gamma.tolist() == [0.3]


def test_the_start_is_that_of_the_constructor() -> None:
    made = {
        "glow": lambda seed: glow(4, layers=2, hidden=8, seed=seed),
        "monotonic": lambda seed: Monotonic(4, seed=seed, near=(2.0, 1.0)),
        "chain": lambda seed: Chain(Affine(4), Generator(4, "power", [[1.0, 2.0, 3.0, 4.0]])),
        "permutation": lambda seed: Permutation(4, order=[3, 1, 0, 2]),
    }
    for name, make in made.items():
        net, expected = AbelianNet(make(3), gamma=0.25), make(4).state_dict()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.mul_(1.5).add_(0.125)
        net.reset_parameters(seed=4)
        assert all(torch.equal(tensor, expected[key]) for key, tensor in net.bijection.state_dict().items()), name
        assert net.law.gamma.tolist() == [0.25] * 4
    for module in glow(4, layers=1, hidden=8).modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()  # as graph libraries call it

    class Shift(Bijection):
        """A user's own bijection with a parameter, which says nothing about its start."""

        def __init__(self) -> None:
            super().__init__(1)
            self.by = torch.nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.by

        def inverse(self, y: torch.Tensor) -> torch.Tensor:
            return y - self.by

        def log_abs_det(self, x: torch.Tensor) -> torch.Tensor:
            return x.new_zeros(x.shape[:-1])

    with pytest.raises(AbelnetError, match="reset_parameters: expected Shift, which has parameters, to define it"):
        AbelianGroup(Shift()).reset_parameters()


def test_gamma_is_per_dimension_unless_shared() -> None:
    assert AbelianNet(Affine(3)).law.gamma.tolist() == [0.0] * 3
    assert AbelianNet(Affine(3), gamma=[0.5]).law.gamma.tolist() == [0.5]
    assert AbelianNet(Affine(3), gamma=torch.tensor([1.0, 2.0, 3.0])).law.gamma.tolist() == [1, 2, 3]


def test_results_are_contiguous() -> None:
    x = torch.randn(6, 4)
    for group in (AbelianGroup(glow(4, layers=2, hidden=8)), AbelianGroup(Monotonic(4))):
        assert group.reduce(x, index=torch.tensor([0, 0, 1, 1, 2, 2])).is_contiguous()
        assert group(x, x).is_contiguous()
        assert abelnet.Aggregation(group)(x, index=torch.tensor([0, 0, 1, 1, 2, 2])).is_contiguous()


def test_a_law_may_be_learned() -> None:
    class Cubic(Bijection):
        """A user's own bijection needs three methods and nothing else."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x**3

        def inverse(self, y: torch.Tensor) -> torch.Tensor:
            return y.sign() * y.abs() ** (1 / 3)

        def log_abs_det(self, x: torch.Tensor) -> torch.Tensor:
            return (3 * x**2).log().sum(-1)

    group = AbelianGroup(Cubic(1))
    assert group(torch.tensor([3.0]), torch.tensor([4.0])).item() == pytest.approx(91 ** (1 / 3))
    assert group.identity().item() == 0


def test_expressions_are_the_operation() -> None:
    x, y = sympy.symbols("x y", real=True)
    operation = AbelianNet(Chain(Affine(1), SinhArcsinh(1)).double(), gamma=0.5)
    torch.nn.init.constant_(operation.bijection.bijections[1].log_tail, 0.3)
    function = sympy.lambdify((x, y), operation.expression(x, y), "math")
    expected = operation(*torch.tensor([[0.7], [-2.0]], dtype=torch.float64)).item()
    assert math.isclose(function(0.7, -2.0), expected, rel_tol=1e-12)
    with pytest.raises(
        AbelnetError, match="expression: expected a bijection of one piece, got RationalQuadraticSpline"
    ):
        AbelianGroup(RationalQuadraticSpline(1)).expression(x, y)


def test_centered_it_is_a_law_with_the_identity_zero_that_saves_and_resets(tmp_path: Path) -> None:
    operation = AbelianSemigroup(Affine(2)).double().centered()
    x, y = torch.tensor([[0.5, -2.0], [3.0, 1e6]], dtype=torch.float64)
    torch.testing.assert_close(operation(x, y), x + y + x * y)
    torch.testing.assert_close(operation.identity(), torch.zeros(2, dtype=torch.float64))
    abelnet.save(operation, tmp_path)
    loaded = abelnet.load(tmp_path)
    assert torch.equal(loaded(x, y), operation(x, y))
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.add_(0.5)
    loaded.reset_parameters()
    assert torch.equal(loaded(x, y), operation(x, y))
    for same in (AbelianGroup(Affine(2)), Operation(Affine(2), Maximum())):
        assert same.centered() is same


def test_constructed_on_the_meta_device() -> None:
    makers = BIJECTIONS | {
        f"generator {name}": lambda dtype, case=case: Generator(3, case[0], case[1], dtype=dtype)  # type: ignore[misc]
        for name, case in FAMILY_CASES.items()
    }
    pairs = [(name, "sum") for name in makers] + [("spline", law) for law in LAWS]
    for name, law in pairs:
        with torch.device("meta"):
            operation = Operation(makers[name](torch.float32), LAWS[law]())
            x = torch.empty(4, 5, 3)
        assert all(tensor.is_meta for tensor in operation.state_dict().values()), name
        assert operation(x, x).shape == (4, 5, 3)
        assert operation.reduce(x).is_meta


@pytest.mark.parametrize("name", VECTOR_CASES)
def test_invariants_constructed_on_the_meta_device(name: str) -> None:
    with torch.device("meta"):
        group = AbelianGroup(VECTOR_CASES[name][0](torch.float32))
    assert all(tensor.is_meta for tensor in group.state_dict().values())
