r"""Composition of bijections."""

from __future__ import annotations

__all__ = ["Chain"]

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import torch
from torch import Tensor, nn

from abelnet.bijections.base import Bijection, Elementwise, Line, draw_seeds
from abelnet.bijections.slopes import EVERYWHERE, Enclosure, Region, enclose_curves, enclose_inverse_curves
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

if TYPE_CHECKING:
    from sympy import Expr


class Chain(Bijection):
    r"""Composition of bijections.

    .. math:: f(x) = f_k(\dots f_2(f_1(x)))

    Arguments:
        bijections: The maps :math:`f_1, \dots, f_k`, all with the same number of dimensions.

    Example:
        >>> import torch
        >>> from abelnet import Affine, SinhArcsinh
        >>> bijection = Chain(Affine(2), SinhArcsinh(2), Affine(2))
        >>> x = torch.randn(5, 2)
        >>> torch.allclose(bijection.inverse(bijection(x)), x, atol=1e-6)
        True
    """

    def __init__(self, *bijections: Bijection) -> None:
        for bijection in bijections:
            if not isinstance(bijection, Bijection):
                raise AbelnetError(f"bijections: expected Bijection instances, got {type(bijection).__name__}")
        dims = {bijection.dim for bijection in bijections}
        if len(dims) != 1:
            raise AbelnetError(f"bijections: expected one or more with equal dim, got {sorted(dims)}")
        super().__init__(dims.pop())
        self.bijections = nn.ModuleList(bijections)

    @property
    def is_elementwise(self) -> bool:
        return all(bijection.is_elementwise for bijection in self)

    @property
    def domain(self) -> Region:
        region = EVERYWHERE
        for bijection in reversed(list(self)):
            region = _preimage(bijection, region)
        return region

    @property
    def codomain(self) -> Region:
        region = EVERYWHERE
        for bijection in self:
            region = _image(bijection, region)
        return region

    def __iter__(self) -> Iterator[Bijection]:
        return iter(cast("list[Bijection]", list(self.bijections)))

    def forward(self, x: Tensor) -> Tensor:
        for bijection in self:
            x = bijection(x)
        return x

    def reset_parameters(self, seed: int | None = None) -> None:
        seeds: list[int | None] = [None] * len(self.bijections)
        if seed is not None:
            seeds = draw_seeds(seed, len(seeds))
        for bijection, own in zip(self, seeds, strict=True):
            bijection.reset_parameters(own)

    def inverse(self, y: Tensor) -> Tensor:
        parts = list(self)
        while parts:
            last = parts.pop()
            line = parts[-1].line if parts else None
            if line is None:
                y = last.inverse(y)
            else:
                y = last.inverse_through(y, line)
                parts.pop()
        return y

    def summed(self, x: Tensor, multisets: Multisets, line: Line | None = None) -> Tensor:
        *before, last = self
        for bijection in before:
            own = bijection.line
            if own is None:
                x, line = bijection(x if line is None else line[0] * x + line[1]), None
            else:
                line = own if line is None else (own[0] * line[0], own[0] * line[1] + own[1])
        return last.summed(x, multisets, line)

    @property
    def has_log_form(self) -> bool:
        return self._last.has_log_form

    @property
    def folds_in_logs(self) -> bool:
        return self._last.folds_in_logs

    def log(self, x: Tensor) -> Tensor:
        return self._last.log(self._before(x))

    def inverse_of_log(self, y: Tensor) -> Tensor:
        return self._before_inverse(self._last.inverse_of_log(y))

    @property
    def log_rate(self) -> Tensor | None:
        return self._last.log_rate

    def log_base(self, x: Tensor) -> Tensor:
        return self._last.log_base(self._before(x))

    def inverse_of_log_base(self, y: Tensor) -> Tensor:
        return self._before_inverse(self._last.inverse_of_log_base(y))

    @property
    def _last(self) -> Bijection:
        return cast("Bijection", self.bijections[-1])

    def _before(self, x: Tensor) -> Tensor:
        """Maps elements by all bijections but the last, whose values may overflow."""
        for bijection in list(self)[:-1]:
            x = bijection(x)
        return x

    def _before_inverse(self, y: Tensor) -> Tensor:
        for bijection in reversed(list(self)[:-1]):
            y = bijection.inverse(y)
        return y

    def log_abs_det(self, x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[:-1])
        for bijection in self:
            total = total + bijection.log_abs_det(x)
            x = bijection(x)
        return total

    def slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        if self.is_elementwise:
            return enclose_curves(self, *region)
        norm = 1.0
        for bijection in self:
            factor, *corners = bijection.slope_bounds(region)
            norm, region = norm * factor, (corners[0], corners[1])
        return Enclosure(norm, *region)

    def inverse_slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        if self.is_elementwise:
            return enclose_inverse_curves(self, *region)
        norm = 1.0
        for bijection in reversed(list(self)):
            factor, *corners = bijection.inverse_slope_bounds(region)
            norm, region = norm * factor, (corners[0], corners[1])
        return Enclosure(norm, *region)

    def expression(self, x: Any, dimension: int = 0) -> Expr:
        return self._composed([(one, one.expression) for one in self], x, dimension)

    def inverse_expression(self, y: Any, dimension: int = 0) -> Expr:
        return self._composed([(one, one.inverse_expression) for one in reversed(list(self))], y, dimension)

    def _composed(self, maps: Sequence[tuple[Bijection, Callable[[Any, int], Expr]]], x: Any, dimension: int) -> Any:
        """Composes expressions: of one number, or of all coordinates if a part mixes them."""
        if self.is_elementwise:
            for _, function in maps:
                x = function(x, dimension)
            return x
        for part, function in maps:
            x = [function(x[i] if part.is_elementwise else x, i) for i in range(self.dim)]
        return x[dimension]

    def parts(self) -> list[Bijection]:
        return [part for bijection in self for part in bijection.parts()]

    def curves(self) -> list[Elementwise]:
        return [curve for bijection in self for curve in bijection.curves()]

    @torch.no_grad()
    def snapshot(self) -> Bijection:
        return type(self)(*(bijection.snapshot() for bijection in self))

    def config(self) -> dict[str, Any]:
        return {"bijections": list(self)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        return cls(*config["bijections"])

    def extra_repr(self) -> str:
        return ""


def _image(bijection: Bijection, region: Region) -> Region:
    """Returns the image of a region under a bijection."""
    if _is_everywhere(region):
        return bijection.codomain
    return _carried(bijection.forward, bijection.domain, bijection.codomain, region, bijection)


def _preimage(bijection: Bijection, region: Region) -> Region:
    """Returns the preimage of a region under a bijection."""
    if _is_everywhere(region):
        return bijection.domain
    return _carried(bijection.inverse, bijection.codomain, bijection.domain, region, bijection)


@torch.no_grad()
def _carried(
    function: Callable[[Tensor], Tensor], source: Region, target: Region, region: Region, bijection: Bijection
) -> Region:
    """Maps a region by monotonic curves; where it exceeds their source, the result extends to the end of the target."""
    if not bijection.is_elementwise:
        raise AbelnetError(f"domain: expected elementwise bijections if it is bounded, got {type(bijection).__name__}")
    corners = (torch.as_tensor(end, dtype=torch.float64).expand(bijection.dim) for end in (*source, *target, *region))
    source_low, source_high, target_low, target_high, low, high = corners
    first = torch.where(
        source_low.isfinite(),
        torch.where(source_high.isfinite(), (2 * source_low + source_high) / 3, source_low + 1),
        torch.where(source_high.isfinite(), source_high - 2, 0.0),
    )
    second = torch.where(source_high.isfinite() & source_low.isfinite(), (source_low + 2 * source_high) / 3, first + 1)
    rises = function(second) > function(first)
    inside_low, inside_high = low > source_low, high < source_high
    at_low, at_high = function(torch.where(inside_low, low, first)), function(torch.where(inside_high, high, first))
    rising = torch.where(inside_low, at_low, target_low), torch.where(inside_high, at_high, target_high)
    falling = torch.where(inside_high, at_high, target_low), torch.where(inside_low, at_low, target_high)
    return torch.where(rises, rising[0], falling[0]), torch.where(rises, rising[1], falling[1])


def _is_everywhere(region: Region) -> bool:
    return region is EVERYWHERE or all(bool(torch.as_tensor(end).isinf().all()) for end in region)
