r"""Weighted means whose weights are coordinates of the elements: attention pooling as an exact, mergeable law."""

from __future__ import annotations

__all__ = ["WeightedMean"]

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.checks import check_number, is_checking, peek
from abelnet.errors import AbelnetError
from abelnet.laws.base import Law, check_no_empty
from abelnet.multisets import Multisets
from abelnet.portable import exact, expm1, log1p, sigmoid

if TYPE_CHECKING:
    from sympy import Expr


class WeightedMean(Law):
    r"""Center of mass: the first half of the coordinates are logarithms of masses, the second half places.

    .. math:: (a, v)_1 * \dots * (a, v)_n = \Big(\frac{1}{k} \log \frac{1}{n} \sum_i e^{k a_i}, \;
        \frac{\sum_i e^{k a_i} v_i}{\sum_i e^{k a_i}}\Big)

    It is attention pooling, with a mass of its own for each place, and has more results than that: the log-mean-exp of
    masses is kept, and with it what a part of a set counts in the whole. With equal masses it is the mean, with
    :math:`a = v` softmax aggregation, and for large :math:`k` it is the place of the largest mass. As with
    :class:`Mean`, states merge and results do not: masses, moments and the count add, so it streams, merges and
    supports removal.

    Arguments:
        rate: The rate :math:`k` of masses. The larger, the less an encoder has to learn to single out an element.

    Example:
        >>> from abelnet import Generator, Operation
        >>> center = Operation(Generator(2, "affine"), WeightedMean(rate=1.0))
        >>> round(center.reduce(torch.tensor([[math.log(1.0), 4.0], [math.log(3.0), 0.0]]))[1].item(), 5)
        1.0
    """

    channels = 2
    is_associative = False
    is_mean = True
    has_removal = True
    has_real_powers = True

    def __init__(self, rate: float = 1.0) -> None:
        super().__init__()
        check_number("rate", rate, above=0)
        self.rate = float(rate)

    def check_dim(self, dim: int) -> None:
        if dim % 2:
            raise AbelnetError(f"dim: expected an even number, as many masses as places, got {dim}")

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        (a, x), (b, y) = u.chunk(2, -1), v.chunk(2, -1)
        a, b = self.rate * a, self.rate * b
        # The place of the larger mass, moved by a part of the way: nothing overflows. Masses near 1 keep their digits.
        top, gap = torch.maximum(a, b), (a - b).abs()
        mass = torch.where(top.abs() == math.inf, top, top + log1p(expm1(-gap) / 2)) / self.rate
        return torch.cat((mass, torch.lerp(x, y, sigmoid(b - a))), -1)

    def lift(self, u: Tensor) -> Tensor:
        a, x = u.chunk(2, -1)
        mass = (self.rate * a).exp()
        if is_checking() and not peek(mass.isfinite().all(), True):
            largest = math.log(torch.finfo(u.dtype).max) / self.rate
            raise AbelnetError(f"values: expected logarithms of masses up to {largest:g}, got larger ones")
        return torch.cat((mass, mass * x, torch.ones_like(u)), -1)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        mass, moment, count, _ = state.chunk(4, -1)
        return torch.cat(((mass / count).log() / self.rate, moment / mass), -1).to(dtype)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        check_no_empty(self.name, multisets)
        a, x = u.chunk(2, -1)
        limits = torch.finfo(u.dtype)
        # Masses are measured from the largest of each set, which cancels, so that nothing overflows.
        top = multisets.amax(a.detach()).clamp_min(exact(limits.min, a))
        mass = (self.rate * (a - multisets.spread(top))).exp()
        total, moment = multisets.sum(torch.cat((mass, mass * x), -1)).chunk(2, -1)
        # That of an empty set is not used, and must have finite gradients.
        total = total.clamp_min(exact(limits.tiny, total))
        log_mean = total.log() - multisets.log_totals[..., None].to(u.dtype)
        return torch.cat((top + log_mean / self.rate, moment / total), -1)

    def power(self, u: Tensor, n: float) -> Tensor:
        return u

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        raise AbelnetError(f"expression: expected a law of single coordinates, got {self.name}")

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        raise AbelnetError(f"expression: expected a law of single coordinates, got {self.name}")

    def config(self) -> dict[str, Any]:
        return {"rate": self.rate}

    def extra_repr(self) -> str:
        return f"rate={self.rate:g}"
