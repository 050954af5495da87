r"""Synthetic data: operations to learn from multisets of 2 to 4 elements and to apply to 10 to 12.

The data are the paper's: five operations on single numbers drawn uniformly from :math:`[-5, 5]`; 500 training,
100 validation and 100 test multisets of sizes 2 to 4, and 100 test multisets of sizes 10 to 12.
"""

from __future__ import annotations

__all__ = ["OPERATIONS", "Dataset", "Learned", "SyntheticOperation", "draw", "learn", "make_dataset"]

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.report import LearnedLaw
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.operation import Operation
from abelnet.verify.defects import LawDefects, law_defects

SMALL_SIZES = (2, 3, 4)
LARGE_SIZES = (10, 11, 12)
_RANGE = 5.0


@dataclass(frozen=True)
class SyntheticOperation:
    """Operation to learn.

    Attributes:
        formula: Formula, as text.
        is_group: Whether it is a group.
        fold: Aggregates a multiset of numbers, with shape :math:`(n)`.
    """

    formula: str
    is_group: bool
    fold: Callable[[Tensor], Tensor]


OPERATIONS = {
    "sum": SyntheticOperation("x + y", True, lambda x: x.sum()),
    "sum_plus_one": SyntheticOperation("x + y + 1", True, lambda x: x.sum() + (len(x) - 1)),
    "cbrt": SyntheticOperation("cbrt(x³ + y³)", True, lambda x: _cbrt((x**3).sum())),
    "product": SyntheticOperation("xy", False, lambda x: x.prod()),
    "shifted_product": SyntheticOperation("x + y + xy/2", False, lambda x: 2 * ((1 + x / 2).prod() - 1)),
}


@dataclass(frozen=True)
class Dataset:
    """The paper's four datasets for one operation: multisets of numbers, with their results as targets."""

    train: Multisets
    validation: Multisets
    small: Multisets
    large: Multisets


def make_dataset(name: str, seed: int, *, dtype: torch.dtype = torch.float64) -> Dataset:
    """Draws the paper's data for one operation.

    Arguments:
        name: Operation, a key of :data:`OPERATIONS`.
        seed: Random seed.

    Example:
        >>> data = make_dataset("sum", seed=0)
        >>> len(data.train), len(data.large)
        (500, 100)
    """
    if name not in OPERATIONS:
        raise AbelnetError(f"name: expected one of {', '.join(OPERATIONS)}, got {name!r}")
    generator = torch.Generator().manual_seed(seed)
    parts = ((500, SMALL_SIZES), (100, SMALL_SIZES), (100, SMALL_SIZES), (100, LARGE_SIZES))
    return Dataset(*(draw(OPERATIONS[name], count, sizes, generator, dtype) for count, sizes in parts))


def rmse(operation: Operation, data: Multisets) -> float:
    """Returns the root mean squared error of an operation on multisets."""
    with torch.no_grad():
        return _squared_error(operation, data).sqrt().item()


@dataclass(frozen=True)
class Learned:
    """Learned operation, with its errors and law defects."""

    law: LearnedLaw
    small: float
    large: float
    defects: LawDefects


def learn(name: str, *, seed: int = 0) -> Learned:
    """Learns one operation from its training multisets alone.

    Arguments:
        name: Operation, a key of :data:`OPERATIONS`.
        seed: Random seed.

    Example:
        >>> learn("shifted_product").law.formula
        'x∘y = x + y + 0.5·x·y'
    """
    data = make_dataset(name, seed)
    (law,) = LawRegressor(seed=seed).fit(data.train).laws_
    samples = _RANGE * (2 * torch.rand(1000, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1)
    operation = law.operation
    return Learned(law, rmse(operation, data.small), rmse(operation, data.large), law_defects(operation, samples))


def _squared_error(operation: Operation, data: Multisets) -> Tensor:
    return (operation.reduce(data)[:, 0] - data.targets).square().mean()


def draw(
    operation: SyntheticOperation,
    count: int,
    sizes: tuple[int, ...],
    generator: torch.Generator,
    dtype: torch.dtype,
) -> Multisets:
    """Draws multisets of numbers from :math:`[-5, 5]`, all sizes equally likely, with their results."""
    drawn = torch.tensor(sizes)[torch.randint(len(sizes), (count,), generator=generator)]
    mask = torch.arange(max(sizes)) < drawn[:, None]
    values = _RANGE * (2 * torch.rand(mask.shape, generator=generator, dtype=torch.float64) - 1)
    targets = torch.stack([operation.fold(one[there]) for one, there in zip(values, mask, strict=True)])
    return Multisets(values[..., None].to(dtype), 1, mask=mask, targets=targets.to(dtype))


def _cbrt(x: Tensor) -> Tensor:
    return x.sign() * x.abs() ** (1 / 3)
