"""What a law was learned from: the ranges of elements, results and sizes."""

from __future__ import annotations

__all__ = ["Seen"]

from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

Range = tuple[float, float]


@dataclass(frozen=True)
class Seen(Configurable):
    """Smallest and largest of the elements, results and sizes that a law was learned from.

    The curve of a law is known where elements and results are; a result that needs it elsewhere is extrapolated.

    Example:
        >>> seen = Seen.of(Multisets.from_arrays([[1.0, 2.0], [2.0, 4.0, 3.0]], [3.0, 9.0]))
        >>> seen.numbers, seen.sizes
        ((1.0, 9.0), (2, 3))
    """

    elements: Range
    results: Range
    sizes: tuple[int, int]

    def __post_init__(self) -> None:
        for name in ("elements", "results", "sizes"):
            ends = getattr(self, name)
            if len(ends) != 2 or not all(isinstance(end, int | float) for end in ends) or not ends[0] <= ends[1]:
                raise AbelnetError(f"{name}: expected the smallest and the largest, got {ends}")
            object.__setattr__(self, name, tuple(ends))

    @staticmethod
    def of(examples: Multisets) -> Seen:
        """Returns the ranges of one-dimensional examples with targets."""
        low, high = _range(examples.sizes)
        return Seen(_range(examples.values), _range(examples.targets), (int(low), int(high)))

    def join(self, other: Seen) -> Seen:
        """Returns the ranges of both."""
        low, high = _hull(self.sizes, other.sizes)
        return Seen(_hull(self.elements, other.elements), _hull(self.results, other.results), (int(low), int(high)))

    @property
    def numbers(self) -> Range:
        """Range of elements and results together."""
        return _hull(self.elements, self.results)

    @property
    def limits(self) -> Range:
        """Range of elements and results together, and a little more, for rounding."""
        low, high = self.numbers
        slack = 1e-12 * max(abs(low), abs(high))
        return low - slack, high + slack

    def covers(self, x: Tensor) -> Tensor:
        """Returns whether each number is in the range of elements and results, up to rounding."""
        low, high = self.limits
        return (x >= low) & (x <= high)

    def describe(self) -> str:
        """Returns the ranges in words."""
        parts = (f"{name} from {low:.6g} to {high:.6g}" for name, (low, high) in asdict(self).items())
        return ", ".join(parts)

    def config(self) -> dict[str, Any]:
        return asdict(self)


def _range(x: Tensor) -> Range:
    return float(x.min()), float(x.max())


def _hull(one: Range, other: Range) -> Range:
    return min(one[0], other[0]), max(one[1], other[1])
