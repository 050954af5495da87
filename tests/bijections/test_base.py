"""One table for all bijections: round trip, Jacobian, gradients, and life under torch's transforms."""

from __future__ import annotations

import copy

import pytest
import torch
from cases import BIJECTIONS, CURVES, DTYPES, ELEMENTWISE, IDENTITY_LIKE, relative_error
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from abelnet import (
    AbelnetError,
    Affine,
    Bijection,
    Chain,
    Glow,
    Monotonic,
    Permutation,
    RationalQuadraticSpline,
    glow,
)

ROUND_TRIP = {torch.float64: 1e-10, torch.float32: 1e-4}


def magnitudes(dtype: torch.dtype, largest: float) -> Tensor:
    """Rows of three numbers from 0 and 1e-30 to the largest, with both signs."""
    powers = torch.logspace(-6, torch.tensor(largest).log10().item(), 61, dtype=dtype)
    line = torch.cat((torch.tensor([0.0, 1e-30], dtype=dtype), powers, torch.linspace(0, 10, 50, dtype=dtype)))
    line = torch.cat((-line, line))
    return torch.stack((line, line.flip(0), line.roll(7)), -1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BIJECTIONS)
class TestEveryBijection:
    def test_round_trip(self, name: str, dtype: torch.dtype) -> None:
        bijection = BIJECTIONS[name](dtype)
        x = magnitudes(dtype, 1e6 if name in ELEMENTWISE else 10)
        assert relative_error(bijection.inverse(bijection(x)), x) <= ROUND_TRIP[dtype]
        assert relative_error(bijection(bijection.inverse(x)), x) <= ROUND_TRIP[dtype]

    def test_jacobian_is_that_of_autograd(self, name: str, dtype: torch.dtype) -> None:
        bijection = BIJECTIONS[name](dtype)
        x = 3 * torch.randn(40, 3, dtype=dtype)
        jacobian = torch.func.vmap(torch.func.jacrev(bijection))(x)
        expected = torch.linalg.slogdet(jacobian).logabsdet
        tolerance = 1e-10 if dtype == torch.float64 else 1e-4
        torch.testing.assert_close(bijection.log_abs_det(x), expected, rtol=tolerance, atol=tolerance)
        y = bijection(x)
        back = torch.func.vmap(torch.func.jacrev(bijection.inverse))(y)
        torch.testing.assert_close(back @ jacobian, torch.eye(3, dtype=dtype).expand(40, 3, 3), rtol=1e-3, atol=1e-3)

    def test_gradients_are_finite_everywhere(self, name: str, dtype: torch.dtype) -> None:
        bijection = BIJECTIONS[name](dtype)
        x = magnitudes(dtype, 1e6 if name in ELEMENTWISE else 10).requires_grad_()
        for direction in (bijection, bijection.inverse):
            gradients = torch.autograd.grad(direction(x).sum(), [x, *bijection.parameters()])
            assert all(gradient.isfinite().all() for gradient in gradients)

    def test_optimiser_step_and_state_dict_leave_no_trace(self, name: str, dtype: torch.dtype) -> None:
        bijection = BIJECTIONS[name](dtype)
        x = torch.randn(20, 3, dtype=dtype)
        before = bijection(x).detach()
        saved = copy.deepcopy(bijection.state_dict())
        parameters = list(bijection.parameters())
        if parameters:
            optimiser = torch.optim.SGD(parameters, lr=1e-2)
            bijection(x).square().sum().backward()
            optimiser.step()
            assert not torch.equal(bijection(x), before)
        assert relative_error(bijection.inverse(bijection(x)), x) <= ROUND_TRIP[dtype]

        bijection.load_state_dict(saved)
        assert torch.equal(bijection(x), before)
        assert relative_error(bijection.inverse(before), x) <= ROUND_TRIP[dtype]
        twin = copy.deepcopy(bijection)
        assert torch.equal(twin(x), before)

    def test_leading_dimensions(self, name: str, dtype: torch.dtype) -> None:
        bijection = BIJECTIONS[name](dtype)
        x = torch.randn(2, 4, 5, 3, dtype=dtype)
        for direction in (bijection, bijection.inverse):
            rows = direction(x.reshape(-1, 3))
            torch.testing.assert_close(direction(x), rows.reshape(x.shape))
            torch.testing.assert_close(direction(x[0, 0, 0]), rows[0])
            assert direction(x[:0]).shape == (0, 4, 5, 3)
        assert bijection.log_abs_det(x).shape == (2, 4, 5)
        assert bijection(x).dtype == dtype

    def test_vmap_over_parameters(self, name: str, dtype: torch.dtype) -> None:
        models = [BIJECTIONS[name](dtype) for _ in range(3)]
        for i, model in enumerate(models):
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter += 0.1 * i
        x = torch.randn(5, 3, dtype=dtype)
        parameters, buffers = torch.func.stack_module_state(models)  # type: ignore[arg-type]
        for direction in ("forward", "inverse"):
            wrapped = Wrapped(models[0], direction)
            state = {f"bijection.{key}": value for key, value in (parameters | buffers).items()}
            together = torch.func.vmap(
                lambda state, x, wrapped=wrapped: torch.func.functional_call(wrapped, state, (x,)), (0, None)
            )
            alone = torch.stack([getattr(model, direction)(x) for model in models])
            if state:
                torch.testing.assert_close(together(state, x), alone)

    def test_extra_repr(self, name: str, dtype: torch.dtype) -> None:
        assert "dim=3" in repr(BIJECTIONS[name](dtype))


class Wrapped(nn.Module):
    """Makes either direction the forward of a module."""

    def __init__(self, bijection: Bijection, direction: str) -> None:
        super().__init__()
        self.bijection, self.direction = bijection, direction

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = getattr(self.bijection, self.direction)(x)
        return result


@pytest.mark.parametrize("name", BIJECTIONS)
def test_gradcheck(name: str) -> None:
    bijection = BIJECTIONS[name](torch.float64)
    names, parameters = zip(*bijection.named_parameters(), strict=True) if name != "permutation" else ((), ())
    x = 3 * torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    for direction in ("forward", "inverse"):
        wrapped = Wrapped(bijection, direction)

        def call(x: Tensor, *values: Tensor, wrapped: nn.Module = wrapped) -> Tensor:
            state = {f"bijection.{name}": value for name, value in zip(names, values, strict=True)}
            result: Tensor = torch.func.functional_call(wrapped, state, (x,))
            return result

        detached = tuple(parameter.detach().requires_grad_() for parameter in parameters)
        assert torch.autograd.gradcheck(call, (x, *detached), eps=1e-7, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "inverse"])
@pytest.mark.parametrize("name", BIJECTIONS)
def test_export(name: str, direction: str) -> None:
    wrapped = Wrapped(BIJECTIONS[name](torch.float32), direction)
    x = torch.randn(6, 3)
    exported = torch.export.export(wrapped, (x,), dynamic_shapes=({0: torch.export.Dim("rows", min=2)},))
    for rows in (6, 11):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(exported.module()(x), wrapped(x))


@pytest.mark.parametrize("direction", ["forward", "inverse"])
@pytest.mark.parametrize("name", BIJECTIONS)
def test_compile(name: str, direction: str) -> None:
    torch.compiler.reset()  # the limit of recompilations is for one function, and all cases share it
    # The backend that traces and differentiates all that inductor would, without its C++ compiler.
    wrapped = Wrapped(BIJECTIONS[name](torch.float32), direction)
    compiled = torch.compile(wrapped, fullgraph=True, backend="aot_eager")
    x = torch.randn(6, 3, requires_grad=True)
    torch.testing.assert_close(compiled(x), wrapped(x))
    compiled_gradient = torch.autograd.grad(compiled(x).sum(), x)
    torch.testing.assert_close(compiled_gradient, torch.autograd.grad(wrapped(x).sum(), x))


@pytest.mark.parametrize("name", IDENTITY_LIKE)
def test_identity_like_start(name: str) -> None:
    bijection = IDENTITY_LIKE[name](torch.float64)
    x = torch.randn(100, 3, dtype=torch.float64)
    y = bijection(x)
    if name == "glow":  # the identity but for the order of the dimensions
        x, y = x.sort(-1).values, y.sort(-1).values
    assert relative_error(y, x) <= (0.2 if name == "monotonic" else 1e-14)


@pytest.mark.parametrize(
    ("length", "gain", "dtype", "tolerance"),
    [
        (10, 1.0, torch.float64, 1e-10),
        (10, 1.0, torch.float32, 1e-4),
        (1e3, 0.1, torch.float64, 1e-7),
        (1e3, 0.1, torch.float32, 1e-2),
    ],
)
def test_glow_of_the_paper_round_trip(length: float, gain: float, dtype: torch.dtype, tolerance: float) -> None:
    for seed in range(3):
        bijection = glow(300, layers=5, hidden=151, gain=gain, seed=seed, dtype=dtype)
        x = length * nn.functional.normalize(torch.randn(50, 300, dtype=dtype), dim=-1)
        assert relative_error(bijection.inverse(bijection(x)), x) <= tolerance


@settings(deadline=None, max_examples=100)
@given(
    name=st.sampled_from(sorted(ELEMENTWISE)),
    x=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
    y=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
)
def test_elementwise_bijections_are_monotonic(name: str, x: list[float], y: list[float]) -> None:
    bijection = ELEMENTWISE[name](torch.float64)
    low, high = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    low, high = torch.minimum(low, high), torch.maximum(low, high)
    rises = bijection(high) - bijection(low)
    assert (rises <= 0).all() if name == "monotonic_negative" else (rises >= 0).all()


def test_monotonic_sign_never_stays_at_zero() -> None:
    bijection = Monotonic(2, seed=0)
    with torch.no_grad():
        bijection.raw_sign.copy_(torch.tensor([0.0, -0.0]))
    assert bijection.sign().abs().min() >= 1e-3
    x = torch.randn(10, 2)
    assert relative_error(bijection.inverse(bijection(x)), x) <= 1e-3
    (gradient,) = torch.autograd.grad(bijection(x).square().sum(), bijection.raw_sign)
    assert (gradient != 0).all()  # so that the next step leaves 0

    optimiser = torch.optim.SGD(bijection.parameters(), lr=0.05)
    for _ in range(200):  # a target that falls: the sign must cross over
        optimiser.zero_grad()
        (bijection(x) + 2 * x).square().mean().backward()
        optimiser.step()
    assert (bijection.sign() < 0).all()


def test_monotonic_search_in_chunks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bijection, x = Monotonic(3, seed=0), 10 * torch.randn(7, 9, 3)
    whole, back = bijection(x), bijection.inverse(x)
    monkeypatch.setattr("abelnet.bijections.monotonic._CHUNK", 1000)
    assert torch.equal(bijection(x), whole)
    assert torch.equal(bijection.inverse(x), back)


def test_glow_in_chunks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bijection, x = glow(4, layers=2, hidden=8, seed=0), torch.randn(50, 4)
    whole = bijection(x)
    monkeypatch.setattr("abelnet.bijections.coupling._CHUNK", 7)
    torch.testing.assert_close(bijection(x), whole)


def test_padding_of_hidden_layers_stays_silent() -> None:
    bijection = glow(6, layers=2, hidden=13, seed=0)
    optimiser = torch.optim.AdamW(bijection.parameters(), lr=0.1)
    x = torch.randn(30, 6)
    for _ in range(5):
        optimiser.zero_grad()
        bijection.inverse(bijection(x) + 1).square().sum().backward()
        optimiser.step()
    for coupling in list(bijection)[::2]:
        for subnet in (coupling.subnet1, coupling.subnet2):
            assert len(subnet.weight1) == 16
            for padding in (subnet.weight1[13:], subnet.bias1[13:], subnet.weight2[13:], subnet.weight3[:, 13:]):
                assert (padding == 0).all()
            assert (subnet.weight2[:, 13:] == 0).all()
            assert (subnet.weight1[:13] != 0).all()


def test_glow_of_the_paper_has_the_papers_parameters() -> None:
    subnets = [subnet for coupling in list(glow(300, 5, 151))[::2] for subnet in (coupling.subnet1, coupling.subnet2)]
    assert sum(w.numel() + b.numel() for subnet in subnets for w, b in subnet.layers()) == 913_530


def test_same_seed_same_start() -> None:
    for make in (lambda seed: Monotonic(2, seed=seed), lambda seed: glow(4, layers=2, hidden=8, seed=seed)):
        state = torch.get_rng_state()
        first, again, other = make(3).state_dict(), make(3).state_dict(), make(4).state_dict()
        assert torch.equal(torch.get_rng_state(), state)
        assert all(torch.equal(first[key], again[key]) for key in first)
        assert not all(torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", BIJECTIONS)
def test_bad_input(name: str) -> None:
    bijection = BIJECTIONS[name](torch.float32)
    for direction in (bijection, bijection.inverse):
        with pytest.raises(AbelnetError, match=r"expected shape \(\*, 3\), got \(5, 2\)"):
            direction(torch.randn(5, 2))
        with pytest.raises(AbelnetError, match=r"expected a floating-point tensor, got torch\.int64"):
            direction(torch.ones(5, 3, dtype=torch.long))
        with pytest.raises(AbelnetError, match=r"expected a torch\.Tensor .* got list"):
            direction([1.0, 2.0, 3.0])


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_spline_round_trip_with_steep_ends(scale: float) -> None:
    bijection = RationalQuadraticSpline(3, dtype=torch.float64)
    with torch.no_grad():
        for parameter in bijection.parameters():
            parameter.copy_(scale * torch.randn_like(parameter))
    y = torch.linspace(-6, 6, 3000, dtype=torch.float64)[:, None].expand(-1, 3)
    steepness = bijection.log_slope(bijection.inverse(y)).exp().clamp(min=1)
    assert ((bijection(bijection.inverse(y)) - y).abs() <= 1e-14 * steepness).all()


def test_nan_stays_nan() -> None:
    for make in ELEMENTWISE.values():
        bijection = make(torch.float64)
        assert bijection(torch.full((1, 3), float("nan"), dtype=torch.float64)).isnan().all()


def test_bad_arguments() -> None:
    with pytest.raises(AbelnetError, match=r"groups: expected an integer, got 2\.5"):
        Monotonic(1, groups=2.5)  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match="expected Bijection instances, got Linear"):
        Chain(nn.Linear(2, 2))  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match="expected couplings and permutations, got Affine"):
        Glow(Affine(2))  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match="order: expected each of 0 to 2 once"):
        Permutation(3, order=[0, 0, 1])
    with pytest.raises(AbelnetError, match="at least 2 dimensions"):
        glow(1)
    with pytest.raises(AbelnetError, match="layers: expected at least 1"):
        glow(4, layers=0)
    with pytest.raises(AbelnetError, match="dim: expected at least 1, got 0"):
        Monotonic(0)


@pytest.mark.parametrize("name", CURVES)
def test_domain_and_codomain_hold_all_places_and_values(name: str) -> None:
    make, low, high = CURVES[name]
    bijection = make()
    x = torch.linspace(low, high, 301, dtype=torch.float64)[1:-1, None].expand(-1, 3)
    for region, values in ((bijection.domain, x), (bijection.codomain, bijection(x))):
        assert bool(((values > region[0]) & (values < region[1])).all())
