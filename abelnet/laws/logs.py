r"""Sums of positive numbers that are given by their logarithms: stable folds of exponentials and powers."""

from __future__ import annotations

__all__ = ["LogSum"]

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from abelnet.multisets import Multisets


@dataclass(frozen=True)
class LogSum:
    r"""Log-sum-exp, :math:`u * v = \log(e^u + e^v)`, by which laws that add fold positive numbers.

    Each set is measured from its own largest element, so that nothing overflows, however large or small the numbers
    are. The logarithm of 0 is :math:`-\infty`.

    Arguments:
        exponent: Exponent :math:`a` of the count: the result of :math:`n` elements is less :math:`a \log n`. 0 is the
            sum, 1 the mean.

    Example:
        >>> LogSum().combine(torch.tensor([1000.0]), torch.tensor([1000.0]))
        tensor([1000.6932])
    """

    exponent: float = 0.0

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        """Returns :math:`u * v`, with broadcasting."""
        return torch.logaddexp(u, v) - self.exponent * math.log(2)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        """Returns :math:`u_1 * \\dots * u_n` of each set: rows :math:`(N, d)` to :math:`(*, d)`."""
        limits = torch.finfo(u.dtype)
        # Measured from a constant, the sum has the right gradient by itself. A set of zeros, or of nothing, has no
        # largest element: it gets a logarithm that is as good as -inf, but finite, for the sake of gradients.
        top = multisets.amax(u.detach()).clamp_min(-math.sqrt(limits.max))
        total = multisets.sum((u - multisets.spread(top)).exp())
        result = top + total.clamp_min(limits.tiny).log()
        if self.exponent == 0:
            return result
        return result - self.exponent * multisets.sizes[..., None].clamp_min(1).to(u.dtype).log()

    def cumulative(self, u: Tensor) -> Tensor:
        """Returns the prefix scan :math:`u_1, u_1 * u_2, \\dots` along the elements of :math:`(*, n, d)`."""
        result = u.logcumsumexp(-2)
        count = torch.arange(1, u.shape[-2] + 1, dtype=u.dtype, device=u.device)[:, None]
        return result if self.exponent == 0 else result - self.exponent * count.log()

    def power(self, u: Tensor, n: float) -> Tensor:
        """Returns :math:`u * \\dots * u`, ``n`` copies combined."""
        return u + (1 - self.exponent) * (math.log(n) if n > 0 else -math.inf)
