"""Windows of every law are the folds of their elements, which are computed one by one here."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
import torch
from cases import FAMILY_CASES, LAWS, VECTOR_CASES, relative_error, vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import abelnet
from abelnet import AbelianGroup, AbelnetError, Generator, Operation, set_checks_enabled
from abelnet.windows import StateQueue, fold_ranges, slide

F64 = torch.float64


def plain(law: abelnet.Law, dim: int = 3) -> Operation:
    return Operation(Generator(dim, "affine", dtype=F64), law)


# Operations over each law, and over each kind of bijection; the low and the high end of their elements.
OPERATIONS: dict[str, tuple[Callable[[], Operation], float, float]] = {
    **{name: (lambda make=make: plain(make()), -3.0, 3.0) for name, make in LAWS.items()},  # type: ignore[misc]
    "capped": (lambda: plain(abelnet.CappedSum(4.0)), 0.0, 2.0),
    "floored": (lambda: plain(abelnet.CappedSum(-1.0, shift=-1.0)), 0.0, 1.0),
    "mean": (lambda: plain(abelnet.Mean()), -3.0, 3.0),
    "stouffer": (lambda: plain(abelnet.Mean(0.5)), -3.0, 3.0),
    "log_mean_exp": (lambda: Operation(Generator(3, "exponential", [0.7], dtype=F64), abelnet.Mean()), -900.0, 900.0),
    "spline": (lambda: AbelianGroup(abelnet.RationalQuadraticSpline(3, dtype=F64)), -3.0, 3.0),
    **{
        f"family {name}": (
            lambda kind=kind, theta=theta: AbelianGroup(Generator(3, kind, theta, dtype=F64)),  # type: ignore[misc]
            low,
            high,
        )
        for name, (kind, theta, low, high) in FAMILY_CASES.items()
        if name in ("power_3", "positive_power", "exponential", "exponential_falling", "logarithm", "logit")
    },
}


def elements(name: str, count: int, seed: int) -> torch.Tensor:
    """Elements of an operation; some are zeros, where the domain has them, and some are equal."""
    _, low, high = OPERATIONS[name]
    generator = torch.Generator().manual_seed(seed)
    x = low + (high - low) * torch.rand(count, 3, generator=generator, dtype=F64)
    if low <= 0 <= high and not name.startswith("family lo"):
        x[torch.rand(count, 3, generator=generator) < 0.1] = 0.0
    return x


def naive(operation: Operation, window: torch.Tensor, least: int) -> torch.Tensor:
    """The fold of one window by ``reduce``; NaN marks missing elements."""
    there = window[~window.isnan().any(-1)]
    nothing = torch.full((operation.dim,), math.nan, dtype=window.dtype)
    if len(there) < least:
        return nothing
    if len(there) > 0:
        return operation.reduce(there)
    try:
        return operation.identity().to(window)
    except AbelnetError:
        return nothing


def assert_close(got: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-9) -> None:
    assert torch.equal(got.isnan(), expected.isnan())
    assert relative_error(got.nan_to_num(), expected.nan_to_num()) <= tolerance


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(OPERATIONS)),
    count=st.integers(1, 70),
    size=st.integers(1, 80),
    least=st.integers(0, 3),
    holes=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 100),
)
def test_windows_are_folds(name: str, count: int, size: int, least: int, holes: float, seed: int) -> None:
    operation, x = OPERATIONS[name][0](), elements(name, count, seed)
    x[torch.rand(count, generator=torch.Generator().manual_seed(seed)) < holes] = math.nan
    least = min(least, size)
    with torch.no_grad():
        expected = torch.stack([naive(operation, x[max(i + 1 - size, 0) : i + 1], least) for i in range(count)])
        assert_close(operation.rolling(x, size, min_periods=least), expected)
        window = operation.window(size, min_periods=least)
        assert_close(torch.stack([window.push(one) for one in x]), expected)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(OPERATIONS)),
    gaps=st.lists(st.sampled_from([0, 0, 1, 2, 3, 7]), min_size=1, max_size=50),
    span=st.sampled_from([1, 2, 5, 20, 500]),
    closed=st.sampled_from(["right", "both", "left", "neither"]),
    least=st.integers(0, 2),
)
def test_windows_of_time_are_folds(name: str, gaps: list[int], span: int, closed: str, least: int) -> None:
    operation, x = OPERATIONS[name][0](), elements(name, len(gaps), span)
    x[::5] = math.nan
    times = torch.tensor(gaps).cumsum(0)
    inside = {
        "right": lambda i, j: times[j] > times[i] - span,
        "both": lambda i, j: times[j] >= times[i] - span,
        "left": lambda i, j: times[j] >= times[i] - span and times[j] < times[i],
        "neither": lambda i, j: times[j] > times[i] - span and times[j] < times[i],
    }[closed]
    with torch.no_grad():
        windows = [torch.tensor([j for j in range(i + 1) if inside(i, j)], dtype=torch.long) for i in range(len(x))]
        expected = torch.stack([naive(operation, x[rows], least) for rows in windows])
        for unit in (times, times.double()):
            assert_close(operation.rolling(x, span, times=unit, min_periods=least, closed=closed), expected)
        if closed == "right":
            window = operation.window(span=span, min_periods=least)
            got = [window.push(one, time) for one, time in zip(x, times.tolist(), strict=True)]
            assert_close(torch.stack(got), expected)


@pytest.mark.parametrize("name", ["center_of_mass", "pooled_variance", "complex_product", "decibels"])
def test_windows_of_vectors(name: str) -> None:
    operation, x = AbelianGroup(VECTOR_CASES[name][0](F64)), vectors(name, 40)
    with torch.no_grad():
        expected = torch.stack([naive(operation, x[max(i - 4, 0) : i + 1], 1) for i in range(40)])
        assert_close(operation.rolling(x, 5, min_periods=1), expected, 1e-8)
        window = operation.window(5, min_periods=1)
        assert_close(torch.stack([window.push(one) for one in x]), expected, 1e-8)


@pytest.mark.parametrize("name", ["sum", "product", "maximum", "capped", "family exponential", "log_mean_exp"])
def test_parts_and_batches_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operation, x = OPERATIONS[name][0](), elements(name, 600, 0).reshape(2, 3, 100, 3)
    x[0, 1, 7] = math.nan
    times = torch.arange(100.0)
    whole = [operation.rolling(x, 17), operation.rolling(x, 5, min_periods=0), operation.rolling(x, 6, times=times)]
    monkeypatch.setattr("abelnet.windows._PART", 1)
    parts = [operation.rolling(x, 17), operation.rolling(x, 5, min_periods=0), operation.rolling(x, 6, times=times)]
    for one, other in zip(whole, parts, strict=True):
        assert_close(one, other, 1e-12)
    assert_close(whole[0][1, 2], operation.rolling(x[1, 2], 17), 1e-12)


@pytest.mark.parametrize("name", ["sum", "product", "maximum", "capped", "mean", "family exponential", "log_mean_exp"])
def test_gradients_are_those_of_the_fold(name: str) -> None:
    operation, x = OPERATIONS[name][0](), elements(name, 40, 1)
    x[5] = math.nan
    if name == "maximum":
        x = torch.randn(40, 3, dtype=F64)  # without ties, which only folds share their gradient among
    for size in (3, 20):  # by doubling, and by scans
        inputs = [x.clone().requires_grad_() for _ in range(2)]
        rolled = operation.rolling(inputs[0], size, min_periods=1)
        folds = torch.stack([naive(operation, inputs[1][max(i + 1 - size, 0) : i + 1], 1) for i in range(40)])
        weights = torch.randn(40, 3, dtype=F64)
        found, expected = (
            torch.autograd.grad((weights * y).sum(), z)[0] for y, z in zip((rolled, folds), inputs, strict=True)
        )
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_no_drift_and_no_trace_of_large_elements() -> None:
    count, size = 300_000, 50
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, 1, generator=generator, dtype=F64)
    x[1000] = 1e300
    group = plain(abelnet.Sum(), 1)
    rolled = group.rolling(x, size)[:, 0]
    for i in [*range(size - 1, 1000), *range(1000 + size, 1100), *range(count - 1000, count)]:
        expected = math.fsum(x[i + 1 - size : i + 1, 0].tolist())
        assert abs(rolled[i].item() - expected) <= 1e-9 * max(abs(expected), 1e-3)
    window = group.window(size)
    streamed = torch.stack([window.push(one) for one in x[:1200]])
    assert relative_error(streamed[size - 1 :], rolled[size - 1 : 1200, None]) <= 1e-12


def test_float32_adds_in_float64() -> None:
    x = torch.full((30_000, 1), 0.1)
    rolled = AbelianGroup(abelnet.Affine(1)).rolling(x, 20_000)
    assert rolled.dtype == torch.float32
    assert abs(rolled[-1].item() - 20_000 * x[0].item()) < 1e-3


def test_autocast_rounds_neither_states_nor_times() -> None:
    group = AbelianGroup(abelnet.Affine(1))
    x, times = torch.rand(40, 1), 1e9 + torch.arange(40, dtype=F64) / 10
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = group.rolling(x, 1.05, times=times)
    assert torch.equal(found, group.rolling(x, 1.05, times=times))
    torch.testing.assert_close(found[-1], x[-11:].sum(0))


def test_pandas_has_the_same_windows() -> None:
    generator = np.random.default_rng(0)
    series = pd.Series(generator.normal(size=200))
    series[generator.random(200) < 0.2] = math.nan
    x = torch.tensor(series.to_numpy())[:, None]
    group = plain(abelnet.Sum(), 1)
    for size in (1, 3, 60):
        for least in (None, 0, 1):
            expected = series.rolling(size, min_periods=least).sum().to_numpy()
            np.testing.assert_allclose(group.rolling(x, size, min_periods=least)[:, 0], expected, atol=1e-12)


def test_windows_by_datetime_and_at_a_later_time() -> None:
    start = datetime(2026, 3, 1)
    window = plain(abelnet.Maximum(), 1).window(span=timedelta(minutes=5))
    for minute, x in ((0, 3.0), (4, 1.0), (6, 2.0)):
        value = window.push(torch.tensor([x], dtype=F64), start + timedelta(minutes=minute))
    assert value.item() == 2.0
    assert (len(window), window.count) == (2, 2)
    assert window.value().item() == 2.0
    assert window.value(start + timedelta(minutes=10)).item() == 2.0
    assert window.value(start + timedelta(minutes=11)).isnan().all()
    assert len(window) == 0


def test_missing_elements_take_their_place() -> None:
    window = plain(abelnet.Sum(), 1).window(2, min_periods=0)
    got = [window.push(torch.tensor([x], dtype=F64)).item() for x in (1.0, math.nan, math.nan, 5.0)]
    assert got == [1.0, 1.0, 0.0, 5.0]
    assert (len(window), window.count) == (2, 1)
    group = plain(abelnet.Sum(), 2)
    x = torch.tensor([[1.0, math.nan], [1.0, 2.0]], dtype=F64)
    assert group.rolling(x, 2, min_periods=1)[1].tolist() == [1.0, 2.0]  # a vector with a gap is missing as a whole
    assert group.rolling(x[:1].expand(3, 2), 2, min_periods=0).tolist() == [[0.0, 0.0]] * 3
    assert group.rolling(x[:1], 1).isnan().all()
    assert plain(abelnet.Maximum(), 2).rolling(x[:1], 1, min_periods=0).isnan().all()  # no identity
    assert group.rolling(x[:0], 3).shape == (0, 2)
    assert group.rolling(x[:0], 3, times=torch.empty(0)).shape == (0, 2)


def test_a_window_belongs_to_the_parameters_it_was_started_with() -> None:
    group = AbelianGroup(abelnet.Affine(1))
    window = group.window(2)
    window.push(torch.ones(1))
    with torch.no_grad():
        group.bijection.shift.add_(1)
    with pytest.raises(AbelnetError, match=r"window: expected the parameters it was created with"):
        window.push(torch.ones(1))


def test_a_refused_element_changes_nothing() -> None:
    window = Operation(Generator(1, "logarithm", [0.0], dtype=F64), abelnet.Sum()).window(2, min_periods=1)
    window.push(torch.tensor([2.0], dtype=F64))
    for bad in (-1.0, math.inf):
        with pytest.raises(AbelnetError):
            window.push(torch.tensor([bad], dtype=F64))
    assert len(window) == 1
    assert window.push(torch.tensor([3.0], dtype=F64)).item() == pytest.approx(6.0)


def test_queues_merge_what_they_hold() -> None:
    law = abelnet.Maximum()
    queue = StateQueue(law, 1)
    generator = torch.Generator().manual_seed(0)
    held: list[float] = []
    for _ in range(300):
        more = torch.rand(int(torch.randint(0, 4, (), generator=generator)), 1, generator=generator, dtype=F64)
        queue.push(more)
        held += more[:, 0].tolist()
        gone = min(int(torch.randint(0, 4, (), generator=generator)), len(held))
        queue.pop(gone)
        held = held[gone:]
        assert len(queue) == len(held)
        assert queue.total().item() == max(held, default=-math.inf)
    with pytest.raises(AbelnetError, match="count: expected at most"):
        queue.pop(len(held) + 1)


def test_states_alone() -> None:
    states = torch.rand(100, 2, dtype=F64)
    starts, ends = torch.tensor([0, 3, 50, 99]), torch.tensor([100, 3, 83, 100])
    expected = torch.stack([states[a:b].sum(0) for a, b in zip(starts, ends, strict=True)])
    torch.testing.assert_close(fold_ranges(abelnet.Sum(), states, starts, ends), expected)
    for size in (1, 16, 17, 33, 100, 1000):
        expected = torch.stack([states[max(i + 1 - size, 0) : i + 1].sum(0) for i in range(100)])
        torch.testing.assert_close(slide(abelnet.Sum(), states, size), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda op, x: op.rolling(x, 0), "window: expected at least 1, got 0"),
        (lambda op, x: op.rolling(x, 2.5), "window: expected an integer, got 2.5"),
        (lambda op, x: op.rolling(x[0], 2), r"values: expected shape \(\*, T, 1\), got \(1,\)"),
        (lambda op, x: op.rolling(x, 2, min_periods=3), "min_periods: expected at most the window, 2, got 3"),
        (lambda op, x: op.rolling(x, 2, min_periods=-1), "min_periods: expected at least 0, got -1"),
        (lambda op, x: op.rolling(x, 2, closed="left"), 'closed: expected "right" for windows of a number'),
        (lambda op, x: op.rolling(x, 2, closed="up"), "closed: expected one of right, both, left, neither, got 'up'"),
        (lambda op, x: op.rolling(x, 2, times=torch.arange(2)), r"times: expected .* shape \(3,\), got \(2,\)"),
        (lambda op, x: op.rolling(x, 2, times=[1, 2, 3]), "times: expected a tensor .* got list"),
        (lambda op, x: op.rolling(x, 2, times=-torch.arange(3)), "times: expected finite numbers in ascending order"),
        (lambda op, x: op.rolling(x, 2, times=x[:, 0] * math.nan), "times: expected finite numbers in ascending"),
        (lambda op, x: op.rolling(x, 0.0, times=x[:, 0]), "window: expected a number above 0, got 0.0"),
        (lambda op, x: op.rolling(x * math.inf, 2), "values: expected finite values, got 3 of 3 that are infinity"),
        (lambda op, x: op.rolling(x.float(), 2), "values: expected torch.float64"),
        (lambda op, x: op.window(), "size, span: expected one of them, got None and None"),
        (lambda op, x: op.window(2, span=3.0), "size, span: expected one of them, got 2 and 3.0"),
        (lambda op, x: op.window(span=-1.0), "span: expected a positive length of time, got -1.0"),
        (lambda op, x: op.window(2).push(x), r"x: expected shape \(1,\), got \(3, 1\)"),
        (lambda op, x: op.window(2).push(x[0], 3.0), "time: expected no time, since the window has a size, got 3.0"),
        (lambda op, x: op.window(span=2).push(x[0]), "time: expected a time for the span, got None"),
    ],
)
def test_misuse(call: Callable[[Operation, torch.Tensor], object], message: str) -> None:
    operation = Operation(abelnet.Affine(1, dtype=F64), abelnet.Sum())
    with pytest.raises(AbelnetError, match=message):
        call(operation, torch.arange(1, 4, dtype=F64)[:, None])


def test_time_does_not_run_backwards() -> None:
    window = plain(abelnet.Sum(), 1).window(span=2.0)
    window.push(torch.ones(1, dtype=F64), 5.0)
    for time in (4.0, math.nan):
        with pytest.raises(AbelnetError, match=r"time: expected at least 5.0, that of the element before"):
            window.push(torch.ones(1, dtype=F64), time)
    with set_checks_enabled(False):
        assert window.push(torch.ones(1, dtype=F64), 5.0).item() == 2.0
