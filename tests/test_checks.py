"""Checks of values can be turned off, and then nothing waits for the device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from cases import BIJECTIONS, LAWS
from torch.utils._python_dispatch import TorchDispatchMode

from abelnet import (
    AbelianGroup,
    AbelnetError,
    Affine,
    Generator,
    Operation,
    load,
    save,
    set_checks_enabled,
)
from abelnet.checks import is_checking

NAN = torch.full((3, 1), float("nan"))


class Reads(TorchDispatchMode):
    """Counts how often a value is read from a tensor, which waits for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    assert is_checking()


def test_off_within_a_block_and_from_here_on() -> None:
    group = AbelianGroup(Affine(1))
    with set_checks_enabled(False):
        assert group.reduce(NAN).isnan().all()
        with set_checks_enabled(True), pytest.raises(AbelnetError, match="expected finite values"):
            group.reduce(NAN)
        assert not is_checking()
        with pytest.raises(AbelnetError, match=r"expected shape \(\*, 1\)"):  # shapes are checked regardless
            group.reduce(torch.ones(3, 2))
    set_checks_enabled(False)
    assert not is_checking()
    set_checks_enabled(True)
    with pytest.raises(ZeroDivisionError), set_checks_enabled(False):
        raise ZeroDivisionError
    with pytest.raises(AbelnetError, match="expected finite values"):
        group.reduce(NAN)


def test_a_thread_has_its_own_switch() -> None:
    seen: list[bool] = []
    with set_checks_enabled(False):
        thread = threading.Thread(target=lambda: seen.append(is_checking()))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.parametrize("bijection", sorted(BIJECTIONS))
@pytest.mark.parametrize("law", sorted(LAWS))
def test_nothing_is_read_with_checks_off(law: str, bijection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abelnet.segments._READABLE", set())  # as if the values were elsewhere
    operation = Operation(BIJECTIONS[bijection](torch.float32), LAWS[law]())
    x, index = torch.randn(6, 3, requires_grad=True), torch.tensor([0, 2, 1, 1, 2, 2])
    ptr = torch.tensor([0, 1, 3, 6])
    with Reads() as reads:
        expected = operation.reduce(x, index=index, dim_size=3)
    assert 2 <= reads.count <= 4  # finite, in range; in the domain, not empty where that matters
    with set_checks_enabled(False), Reads() as reads:
        assert torch.equal(operation.reduce(x, index=index, dim_size=3), expected)
        operation.reduce(x, ptr=ptr, index=torch.repeat_interleave(ptr.diff(), output_size=6))
        assert reads.count <= 1  # the largest size, on a CPU only
    with set_checks_enabled(False), Reads() as reads:
        operation.reduce(x, index=index, dim_size=3).sum().backward()
    assert reads.count == 0


@pytest.mark.parametrize("law", sorted(LAWS))
def test_nothing_is_read_from_another_device(law: str) -> None:
    # Large sets are summed in float64; on a CPU their sizes may be looked at.
    operation = Operation(Affine(3), LAWS[law]()).to("meta")
    x, index = torch.empty(5000, 3, device="meta"), torch.empty(5000, dtype=torch.long, device="meta")
    ptr = torch.empty(11, dtype=torch.long, device="meta")
    with set_checks_enabled(False), Reads() as reads:
        for layout in ({"index": index, "dim_size": 10}, {"ptr": ptr}, {"index": index, "ptr": ptr, "dim_size": 10}):
            assert operation.reduce(x, **layout).shape == (10, 3)
    assert reads.count == 0


def test_large_sets_have_the_same_results_with_checks_off() -> None:
    x, index = torch.rand(9000, 2), torch.arange(9000) // 5000
    group = AbelianGroup(Affine(2))
    expected = group.reduce(x, index=index, dim_size=2)
    with set_checks_enabled(False):
        assert torch.equal(group.reduce(x, index=index, dim_size=2), expected)


def test_domains_are_not_checked_and_files_are(tmp_path: Any) -> None:
    group = AbelianGroup(Generator(1, "logarithm", [0.0]))
    with pytest.raises(AbelnetError, match="x: expected x > -0"):
        group.reduce(-torch.ones(2, 1))
    save(group, tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with set_checks_enabled(False):
        assert group.reduce(-torch.ones(2, 1)).isnan().all()
        with pytest.raises(AbelnetError):
            load(tmp_path)
