"""Compiled kernels: the same results and gradients as torch, to rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from abelnet import AbelnetError, Generator, Maximum, Mean, Minimum, Multisets, Operation, Polynomial, Sum, multisets
from abelnet.aggregation import Aggregation
from abelnet.checks import set_checks_enabled
from abelnet.nn import Channelwise, GatedBank
from abelnet.segments import kernels_for, set_kernels_enabled

kernels = pytest.importorskip("abelnet.kernels", reason="numba is not installed")

N, B, DIM = 8192, 700, 8


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def sets(low: float = 0.5, high: float = 1.5) -> tuple[Tensor, Tensor]:
    """Returns elements and the set of each in any order: sets 0 and 699 are empty, one has 3000 elements, one has 1."""
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(3, B - 1, (N,), generator=generator)
    index[torch.randperm(N, generator=generator)[:3000]] = 2
    index[17] = 1
    return low + (high - low) * torch.rand(N, DIM, generator=generator), index


def run(layer: torch.nn.Module, x: Tensor, index: Tensor, enabled: bool) -> list[Tensor]:
    """Returns results and all gradients."""
    x = x.detach().requires_grad_()
    layer.zero_grad()
    with set_kernels_enabled(enabled):
        y = layer(x, index=index, dim_size=B)
        y.backward(torch.randn(y.shape, generator=torch.Generator().manual_seed(1)))
    assert x.grad is not None
    return [y.detach(), x.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]


def rates(*values: float) -> Tensor:
    return torch.tensor(values).repeat(DIM)[:DIM]


LAWS: dict[str, Callable[[], Operation]] = {
    "log-sum-exp": lambda: Operation(Generator(DIM, "exponential", [rates(1.0, -3.0)]), Sum()),
    "log-mean-exp": lambda: Operation(Generator(DIM, "exponential", [rates(6.0)]), Mean()),
    "power sum": lambda: Operation(Generator(DIM, "positive power", [rates(-1.0, 0.5, 2.0)]), Sum()),
    "power mean": lambda: Operation(Generator(DIM, "positive power", [rates(2.0)]), Mean()),
    "geometric mean": lambda: Operation(Generator(DIM, "logarithm", [rates(0.0, 0.1)]), Mean()),
    "product": lambda: Operation(Generator(DIM, "logarithm", [0.0]), Sum()),
    "maximum": lambda: Operation(Generator(DIM, "affine"), Maximum()),
    "minimum": lambda: Operation(Generator(DIM, "affine"), Minimum()),
    "noisy or": lambda: Operation(Generator(DIM, "affine"), Polynomial(rates(-0.2, 0.0, 1e-9), trainable="both")),
    "polynomial product": lambda: Operation(Generator(DIM, "affine"), Polynomial(1.0, -1.0, trainable="both")),
}


def close(found: list[Tensor], expected: list[Tensor], tolerance: float = 1e-5) -> None:
    for one, other in zip(found, expected, strict=True):
        assert bool(one.isfinite().all())
        assert float((one - other).norm()) <= tolerance * float(other.norm()) + 1e-30


@pytest.mark.parametrize("name", LAWS)
def test_laws_fold_as_torch_does(name: str) -> None:
    layer = Aggregation(LAWS[name]()).float()
    x, index = sets(0.98, 1.02) if "product" in name or name == "noisy or" else sets()
    assert kernels_for(x) is kernels
    close(run(layer, x, index, True), run(layer, x, index, False))
    order = index.argsort(stable=True)
    ordered = run(layer, x[order], index[order], True)
    assert torch.equal(ordered[0], run(layer, x, index, True)[0])  # only the set decides, to the last bit


@pytest.mark.parametrize("name", ["log-sum-exp", "power sum", "geometric mean", "maximum", "noisy or"])
@pytest.mark.parametrize(("low", "high"), [(-1e6, 1e6), (0.0, 1e-30), (-1.0, 1.0)])
def test_extremes(name: str, low: float, high: float) -> None:
    layer = Aggregation(LAWS[name]()).float()
    x, index = sets(low, high)
    found, expected = (run(layer, x, index, enabled) for enabled in (True, False))
    if name == "noisy or" and high == 1e6:  # products of all factors overflow: kernels leave them to torch
        assert torch.equal(found[0], expected[0])
    else:
        # Relative to the numbers of which results are differences.
        torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=2e-7)
        close(found[1:2], expected[1:2], 1e-4)


def test_ties_share_the_gradient() -> None:
    x, index = sets()
    x = (8 * x).round()
    for name in ("maximum", "minimum"):
        close(run(Aggregation(LAWS[name]()), x, index, True), run(Aggregation(LAWS[name]()), x, index, False), 1e-7)


@pytest.mark.parametrize("name", ["log-sum-exp", "power mean", "geometric mean", "noisy or", "maximum"])
def test_gradients_of_higher_order(name: str) -> None:
    layer = Aggregation(LAWS[name]()).float()
    x, index = sets(0.98, 1.02)

    def curvature(enabled: bool) -> list[Tensor]:
        u = x.detach().requires_grad_()
        with set_kernels_enabled(enabled):
            y = layer(u, index=index, dim_size=B)
            (first,) = torch.autograd.grad(y.square().sum(), u, create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), u)
        return [first.detach(), second]

    close(curvature(True), curvature(False), 1e-4)


def test_threads_share_the_sets() -> None:
    generator = torch.Generator().manual_seed(0)
    x, index = torch.rand(20_000, 32, generator=generator), torch.randint(0, B, (20_000,), generator=generator)
    layer = Aggregation(Operation(Generator(32, "exponential", [2.0]), Sum()))
    one = run(layer, x, index, True)
    torch.set_num_threads(2)
    two = run(layer, x, index, True)
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1], two[1])
    close(two, one)


def test_order_of_sets() -> None:
    index = torch.randint(0, 50, (1000,), generator=torch.Generator().manual_seed(0))
    rows, ends, is_ascending = kernels.order_by_set(index.numpy(), 60)
    assert not is_ascending
    assert rows.tolist() == index.argsort(stable=True).tolist()
    assert np.diff(ends).tolist() == torch.bincount(index, minlength=60).tolist()
    assert kernels.order_by_set(index.sort().values.numpy(), 60)[2]
    assert kernels.order_by_set(index[:0].numpy(), 2)[1].tolist() == [0, 0, 0]


def test_few_numbers_and_double_precision_are_left_to_torch() -> None:
    assert kernels_for(torch.zeros(100, 8)) is None
    assert kernels_for(torch.zeros(N, DIM, dtype=torch.float64)) is None
    assert kernels_for(torch.zeros(70, 2048)) is None
    x, index = sets()
    multisets = Multisets(x, DIM, index=index)
    assert multisets.kernels(x) is not None
    with set_kernels_enabled(False):
        assert multisets.kernels(x) is None


def hardened(dim: int, law: str) -> Channelwise:
    """Returns a bank that has kept one law."""
    bank = GatedBank(dim, seed=0)
    with torch.no_grad():
        bank.logits[:, bank.names.index(law)] = 1.0
    bank.anneal(1.0)
    return bank.harden()


@pytest.mark.parametrize("dim", [20, 32])
@pytest.mark.parametrize("law", GatedBank(1).names)
def test_what_is_not_finite_is_noticed_wherever_it_is(law: str, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n, count = 20_000, 2000
    layer, generator = hardened(dim, law), torch.Generator().manual_seed(0)
    x = 0.5 + torch.rand(n, dim, generator=generator)
    ordered = torch.arange(count).repeat_interleave(n // count)
    for index in (ordered, ordered[torch.randperm(n, generator=generator)]):
        with monkeypatch.context() as patch:
            seen: list[str] = []
            patch.setattr(multisets, "check_finite", lambda name, _, seen=seen: seen.append(name))
            layer(x, index=index, dim_size=count)
        assert seen == []  # without a pass of its own
        for bad, kind in ((math.nan, "NaN"), (math.inf, "infinity"), (-math.inf, "infinity")):
            i, j = (int(torch.randint(0, limit, (), generator=generator)) for limit in x.shape)
            with torch.no_grad():
                before, x[i, j] = float(x[i, j]), bad
            message = f"values: expected finite values, got 1 of {n * dim} that are {kind}$"
            for call in (layer, layer.operations[0].reduce):
                with pytest.raises(AbelnetError, match=message):
                    call(x, index=index, dim_size=count)
            with set_checks_enabled(False):
                layer(x, index=index, dim_size=count)
            x[i, j] = before


def test_what_is_not_finite_is_noticed_beside_other_laws_and_by_threads() -> None:
    laws = Operation(Generator(DIM, "affine"), Maximum()), Operation(Generator(DIM, "affine"), Sum())
    layer = Channelwise(laws, [range(DIM), range(DIM, 2 * DIM)])
    x, index = torch.rand(2**17, 2 * DIM), torch.arange(2**17) // 8
    x[70_000, 3], x[80_000, DIM] = -math.inf, math.nan
    torch.set_num_threads(2)
    with pytest.raises(AbelnetError, match=f"got 2 of {x.numel()} that are NaN or infinity"):
        layer(x, index=index, dim_size=2**14)
    one = Operation(Generator(2 * DIM, "affine"), Maximum())
    with pytest.raises(AbelnetError, match=f"got 2 of {x.numel()} that are NaN or infinity"):
        one.reduce(x, index=index, dim_size=2**14)


def test_finite_numbers_whose_sum_overflows_are_no_error() -> None:
    x, index = torch.full((N, DIM), 3e38), torch.arange(N) // 8
    for law in (Sum(), Polynomial(0.0), Maximum()):
        Operation(Generator(DIM, "affine"), law).float().reduce(x, index=index, dim_size=N // 8)
