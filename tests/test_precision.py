"""Half precision and autocast: what is computed in which precision, and in which dtype results are."""

from __future__ import annotations

import copy

import pytest
import torch
from cases import BIJECTIONS, LAWS, relative_error

import abelnet
from abelnet import AbelnetError, Aggregation, Bijection, Multisets, Operation

HALVES = [torch.float16, torch.bfloat16]


def bijection(name: str) -> Bijection:
    return abelnet.Generator(3, "exponential", [0.5]) if name == "generator" else BIJECTIONS[name](torch.float32)


@pytest.mark.parametrize("law", ["sum", "product", "polynomial", "maximum"])
@pytest.mark.parametrize("name", ["affine", "spline", "glow", "permutation", "generator"])
def test_autocast_changes_nothing_but_the_dtype(name: str, law: str) -> None:
    operation = Operation(bijection(name), LAWS[law]())
    for dtype in HALVES:
        x = torch.randn(4, 5, 3).to(dtype)
        exact = x.float()
        with torch.autocast("cpu", dtype=dtype):
            got = [operation.reduce(x), operation(x, x), operation.power(x, 2), operation.cumulative(x)]
            listed = operation.reduce(list(x))
            multisets = Aggregation(operation)(x)
            plain = operation.reduce(exact)
        expected = [
            operation.reduce(exact),
            operation(exact, exact),
            operation.power(exact, 2),
            operation.cumulative(exact),
        ]
        assert torch.equal(plain, expected[0])
        assert plain.dtype == torch.float32
        for one, truth in zip((*got, listed, multisets), (*expected, expected[0], expected[0]), strict=True):
            assert one.dtype == dtype
            torch.testing.assert_close(one, truth.to(dtype), equal_nan=True)


def test_without_autocast_dtypes_must_agree() -> None:
    with pytest.raises(AbelnetError, match=r"values: expected torch.float32 as the parameters are, got torch.bfloat16"):
        Operation(abelnet.Affine(3), abelnet.Sum()).reduce(torch.ones(2, 3, dtype=torch.bfloat16))


@pytest.mark.parametrize("dtype", HALVES)
def test_sums_of_half_precision_accumulate_in_more(dtype: torch.dtype) -> None:
    operation = Operation(abelnet.Affine(1), abelnet.Sum()).to(dtype)
    for size in (1000, 3000):  # 1 + 1 + … in bfloat16 stops at 256, in float16 at 2048
        ones = torch.ones(2, size, 1, dtype=dtype)
        got = operation.reduce(ones)
        assert got.dtype == dtype
        assert got.float().allclose(torch.full((2, 1), float(size)), rtol=2 * torch.finfo(dtype).eps)
    assert Multisets(ones, 1).sum(ones.reshape(-1, 1)).dtype == dtype


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["affine", "sinh_arcsinh", "monotonic", "spline", "glow"])
def test_parameters_of_half_precision(name: str, dtype: torch.dtype) -> None:
    operation = Operation(bijection(name), abelnet.Sum()).to(dtype)
    exact, x = copy.deepcopy(operation).double(), torch.randn(6, 4, 3).to(dtype)
    got = operation.reduce(x)
    assert got.dtype == dtype
    assert relative_error(got.double(), exact.reduce(x.double())) < 32 * torch.finfo(dtype).eps


def test_gradients_under_autocast() -> None:
    operation = Operation(bijection("glow"), abelnet.Sum())
    x = torch.randn(4, 5, 3, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        total = operation.reduce(x).sum()
    mixed = torch.autograd.grad(total, [x, *operation.parameters()])
    plain = torch.autograd.grad(operation.reduce(x).sum(), [x, *operation.parameters()])
    for one, other in zip(mixed, plain, strict=True):
        torch.testing.assert_close(one, other)
