r"""Operations as set-pooling layers, which have a result for elements outside the domain and for empty sets."""

from __future__ import annotations

__all__ = ["Aggregation"]

from typing import Any, Literal

import torch
from torch import Tensor, nn

from abelnet.bijections.slopes import EVERYWHERE, Region
from abelnet.checks import check_dtype, check_number, is_checking, set_checks_enabled
from abelnet.errors import AbelnetError
from abelnet.laws import Sum
from abelnet.laws.logs import LogSum
from abelnet.multisets import Multisets
from abelnet.operation import Operation
from abelnet.pooling import Pooling
from abelnet.precision import in_own_precision
from abelnet.segments import is_plain

# Initial exponent of the number of elements if it is learned: between the fold and the mean.
_BETWEEN = 0.5


class Aggregation(Pooling):
    r"""Set pooling by an operation, :math:`x_1 \circ \dots \circ x_n`, as a layer of a network.

    .. math:: y = \varphi^{-1}\Big(n^{-\alpha} \sum_i \varphi(x_i)\Big)

    for operations whose law is the sum; others fold without normalization. With :math:`\alpha = 0` it is the fold, with
    1 the quasi-arithmetic mean, which does not drift on sets larger than those of training.

    Where :meth:`abelnet.Operation.reduce` raises, a layer goes on: elements outside the domain of the bijection count
    as the nearest one inside, and an empty set gives the identity, or ``fill`` if there is none. On elements of the
    domain and sets that are not empty it is :meth:`~abelnet.Operation.reduce` itself.

    Arguments:
        operation: The operation :math:`\circ`.
        fill: Result of an empty set if the operation has no identity; PyTorch Geometric has 0 too.
        margin: Distance from an open end of the domain at which elements are kept.
        normalization: The exponent :math:`\alpha` of the number of elements, or ``"learned"`` for one per channel that
            starts at 1/2. Requires the law :class:`~abelnet.Sum` unless it is 0.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> parallel = Aggregation(AbelianGroup(Generator(1, "positive power", [-1.0])))
        >>> x = torch.tensor([[2.0], [2.0], [-5.0]])
        >>> parallel(x, index=torch.tensor([0, 0, 2]), dim_size=3)[:, 0]
        tensor([1.0000e+00, 0.0000e+00, 1.0000e-06], grad_fn=<SelectBackward0>)
        >>> harmonic = Aggregation(parallel.operation, normalization=1.0)
        >>> round(harmonic(torch.tensor([[1.0], [3.0]])).item(), 4)
        1.5
    """

    def __init__(
        self,
        operation: Operation,
        *,
        fill: float = 0.0,
        margin: float = 1e-6,
        normalization: float | Literal["learned"] = 0.0,
    ) -> None:
        super().__init__()
        check_number("fill", fill)
        check_number("margin", margin, above=0)
        self.operation, self.fill, self.margin = operation, float(fill), float(margin)
        if normalization != "learned":
            if isinstance(normalization, str):
                raise AbelnetError(f'normalization: expected a number or "learned", got {normalization!r}')
            check_number("normalization", normalization)
        if normalization != 0 and not isinstance(operation.law, Sum):
            raise AbelnetError(
                f"normalization: expected 0 for an operation over {operation.law.name}, got {normalization!r}; "
                "only sums can be divided by a power of the number of elements"
            )
        self.normalization = normalization
        self.exponent: Tensor | float
        if normalization == "learned":
            like = next(operation.bijection.parameters(), torch.empty(0))
            start = torch.full((operation.dim,), _BETWEEN, dtype=like.dtype, device=like.device)
            self.exponent = nn.Parameter(start)
        else:
            self.exponent = float(normalization)

    is_pure = True

    @property
    def channels(self) -> int:  # type: ignore[override]
        return self.operation.dim

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets the operation, and the exponent if it is learned, to their initial values."""
        self.operation.reset_parameters(seed)
        if isinstance(self.exponent, Tensor):
            nn.init.constant_(self.exponent, _BETWEEN)

    @in_own_precision
    def pool(self, multisets: Multisets) -> Tensor:
        check_dtype("values", multisets.values, self.operation.bijection)
        self.operation.law.check_element_weights(multisets)
        if not is_checking():
            return self._fold(multisets)
        with set_checks_enabled(False):  # what they raise for is dealt with here
            return self._fold(multisets)

    def _fold(self, multisets: Multisets) -> Tensor:
        folding = self.operation.folding
        encode, law, decode = folding
        bijection = self.operation.bijection
        offset = bijection.log_offset
        if offset is not None and multisets.kernels(multisets.values, offset) is not None:
            # Elements outside the domain, and the logarithm, are dealt with while they are folded.
            least = self._ends(bijection.domain, multisets.values)[0].to(offset.dtype) + offset.detach()
            folded = law.reduce_logs(multisets.values, offset, least, multisets)
        else:
            folded = folding.fold(self._inside(multisets.values, bijection.domain), multisets)
        empty = (multisets.sizes == 0)[..., None]
        if self.normalization != 0:
            log = self.exponent * multisets.log_totals[..., None].to(folded.dtype)
            folded = folded - law.unscaled(log) if isinstance(law, LogSum) else folded * (-log).exp()
        has_empty = not is_plain(empty) or bool(empty.any())
        # Not after the inverse: its gradient at the fold of nothing may be NaN, and 0 times NaN is NaN.
        if has_empty:
            some = encode(self._inside(multisets.values.new_ones(self.channels), bijection.domain))
            folded = torch.where(empty, some, folded)
        if law is self.operation.law:
            folded = self._inside(folded, bijection.codomain)
        result = decode(folded)
        if has_empty:
            result = torch.where(empty, self._empty(folded), result)
        if is_plain(result) and bool(result.detach().sum().isfinite()):
            return result
        # Beyond the largest number a result is that number.
        limit = torch.finfo(result.dtype).max
        return result.clamp(-limit, limit)

    def _empty(self, like: Tensor) -> Tensor:
        identity = self.operation.law.identity(self.channels)
        if identity is None or not self.operation.bijection.is_injective:
            return like.new_full((self.channels,), self.fill)
        bijection, identity = self.operation.bijection, identity.to(like.device, like.dtype)
        if bijection.codomain is EVERYWHERE:
            return bijection.inverse(identity)
        with torch.no_grad():  # where there is no identity, gradients are NaN
            found = bijection.inverse(identity)
            return torch.where(found.isfinite(), found, self.fill)

    def _inside(self, x: Tensor, region: Region) -> Tensor:
        """Moves numbers into a region with open ends."""
        if region is EVERYWHERE:
            return x
        ends = self._ends(region, x)
        if is_plain(x) and x.numel() > 0:  # most often all are inside, which two extremes tell
            least, most = (end(x.detach()).double() for end in (torch.amin, torch.amax))
            if bool((least >= ends[0].amax()) & (most <= ends[1].amin())):
                return x
        return torch.maximum(torch.minimum(x, ends[1].to(x.dtype)), ends[0].to(x.dtype))

    def _ends(self, region: Region, like: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the ends between which elements are kept."""
        low, high = (torch.as_tensor(end, dtype=torch.float64, device=like.device) for end in region)
        margin = self.margin * (high - low).clamp(max=1)
        # An end that belongs to the region, such as 0 for squares, is given as the next number beyond it.
        return low + torch.where((low < 0) & (low > -1e-300), 0, margin), high - margin

    def config(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "fill": self.fill,
            "margin": self.margin,
            "normalization": self.normalization,
        }

    def extra_repr(self) -> str:
        return f"fill={self.fill:g}, normalization={self.normalization}"
