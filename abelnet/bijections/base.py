r"""Base classes of bijections."""

from __future__ import annotations

__all__ = ["Bijection", "Elementwise", "Line", "draw_seeds", "seeded"]

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from abelnet.bijections.slopes import (
    EVERYWHERE,
    Enclosure,
    Region,
    describe_region,
    enclose_curves,
    enclose_inverse_curves,
)
from abelnet.checks import check_count
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets
from abelnet.symbols import is_between

if TYPE_CHECKING:
    from sympy import Expr

    from abelnet.bijections.pieces import Pieces

Line = tuple[Tensor, Tensor]
"""Scale, which is positive, and shift of each dimension, with shape :math:`(d)`."""

# Parameters per dimension; a bijection with more is a curve, not a formula.
_MOST_NUMBERS = 3


class Bijection(Configurable, nn.Module, ABC):
    r"""Trainable invertible map :math:`f` on :math:`\mathbb{R}^d` with a closed-form inverse.

    Subclasses implement :meth:`forward`, :meth:`inverse` and :meth:`log_abs_det` for any leading dimensions, and cache
    nothing derived from parameters between calls. They also implement what else is known about the map: :meth:`config`
    for saving, :meth:`slope_bounds` for certificates, and :meth:`expression` for formulas.

    Arguments:
        dim: Number of dimensions :math:`d`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = check_count("dim", dim)

    @property
    def is_elementwise(self) -> bool:
        """Whether each dimension is mapped independently."""
        return False

    @property
    def is_short(self) -> bool:
        """Whether it has few enough parameters for a formula; otherwise it is a curve."""
        return sum(parameter.numel() for parameter in self.parameters()) <= _MOST_NUMBERS * self.dim

    @property
    def is_injective(self) -> bool:
        """Whether different elements have different images; without it, there are no inverse elements."""
        return True

    @property
    def domain(self) -> Region:
        """Lower and upper limit of :math:`x`, exclusive: numbers, or tensors with shape :math:`(d)`."""
        return EVERYWHERE

    def parts(self) -> list[Bijection]:
        """Returns the maps that are composed, in order; the bijection itself if it is not a composition."""
        return [self]

    def injective_part(self) -> Bijection:
        """Returns the bijection itself, or its part on numbers without sign if it loses signs."""
        return self

    def is_defined(self, x: Tensor) -> Tensor:
        """Returns whether each number of :math:`x`, of shape :math:`(*, d)`, is in the domain."""
        low, high = self.domain
        return (x > low) & (x < high)

    def describe_domain(self) -> str:
        """Returns the domain as a condition, such as ``x > 0``."""
        return describe_region(self.domain)

    def probes(self) -> Tensor:
        """Returns elements of every scale, within the domain where it is limited, with shape :math:`(n, d)`."""
        low, high = (torch.as_tensor(end, dtype=torch.float64).expand(self.dim) for end in self.domain)
        steps = torch.logspace(-12, 12, 25, dtype=torch.float64)[:, None]
        up = torch.where(low.isfinite(), low, 0) + steps
        down = torch.where(high.isfinite(), high, 0) - steps
        # Close to the ends as well: where sums are limited, only elements near the identity have results.
        between, nearer = (
            low + (high - low) * torch.linspace(-end, end, 25, dtype=torch.float64).sigmoid()[:, None]
            for end in (12, 27.6)  # up to 1e-12 of the width from the ends
        )
        both = low.isfinite() & high.isfinite()
        return torch.cat((torch.where(both, between, up), torch.where(both, nearer, down)))

    @property
    def codomain(self) -> Region:
        """Lower and upper limit of :math:`f(x)`, exclusive: numbers, or tensors with shape :math:`(d)`."""
        return EVERYWHERE

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Maps :math:`x` of shape :math:`(*, d)` to :math:`f(x)`."""

    @abstractmethod
    def inverse(self, y: Tensor) -> Tensor:
        """Maps :math:`y` of shape :math:`(*, d)` to :math:`f^{-1}(y)`."""

    @property
    def line(self) -> Line | None:
        """Scale and shift if the map is affine in each dimension; else None."""
        return None

    def summed(self, x: Tensor, multisets: Multisets, line: Line | None = None) -> Tensor:
        r"""Returns :math:`\sum_i f(a x_i + b)` of each set: rows :math:`(N, d)` to :math:`(*, d)`.

        Arguments:
            x: Rows.
            multisets: The sets.
            line: Scale :math:`a`, which is positive, and shift :math:`b`; 1 and 0 if None.
        """
        return multisets.sum(self(x if line is None else line[0] * x + line[1]))

    def inverse_through(self, y: Tensor, line: Line) -> Tensor:
        """Returns :math:`x` with :math:`f(a x + b) = y`; arguments are those of :meth:`inverse` and :meth:`summed`."""
        return (self.inverse(y) - line[1]) / line[0]

    @abstractmethod
    def log_abs_det(self, x: Tensor) -> Tensor:
        r"""Returns the log-determinant :math:`\log |\det \partial f / \partial x|`, with shape :math:`(*)`."""

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets parameters to the initial values of the constructor, and draws anew what it draws at random.

        Arguments:
            seed: Random seed; torch's global generator is used if not given.
        """
        if next(self.parameters(), None) is not None:
            raise AbelnetError(f"reset_parameters: expected {type(self).__name__}, which has parameters, to define it")

    @property
    def is_identity(self) -> bool:
        r"""Whether :math:`f(x) = x` whatever the parameters."""
        return False

    @property
    def has_log_form(self) -> bool:
        """Whether :math:`f` is positive and :meth:`log` and :meth:`inverse_of_log` are defined."""
        return False

    @property
    def folds_in_logs(self) -> bool:
        """Whether elements are added by their logarithms, since :math:`f` may overflow."""
        return self.has_log_form

    def log(self, x: Tensor) -> Tensor:
        r"""Maps :math:`x` of shape :math:`(*, d)` to :math:`\log f(x)`, finite where :math:`f(x)` overflows."""
        raise AbelnetError(f"log: expected a bijection with a logarithmic form, got {type(self).__name__}")

    def inverse_of_log(self, y: Tensor) -> Tensor:
        """Maps :math:`y` of shape :math:`(*, d)` to :math:`f^{-1}(e^y)`."""
        raise AbelnetError(f"inverse_of_log: expected a bijection with a logarithmic form, got {type(self).__name__}")

    @property
    def log_rate(self) -> Tensor | None:
        r"""The factor :math:`k`, :math:`(d)`, if :math:`\log f(x) = k \, b(x)` with a simpler :math:`b`; else None."""
        return None

    def log_base(self, x: Tensor) -> Tensor:
        """Maps :math:`x` of shape :math:`(*, d)` to :math:`b(x)`, where there is a :attr:`log_rate`."""
        raise AbelnetError(f"log_base: expected a bijection whose logarithm has a rate, got {type(self).__name__}")

    def inverse_of_log_base(self, y: Tensor) -> Tensor:
        """Maps :math:`y` of shape :math:`(*, d)` to :math:`b^{-1}(y)`, where there is a :attr:`log_rate`."""
        raise AbelnetError(
            f"inverse_of_log_base: expected a bijection whose logarithm has a rate, got {type(self).__name__}"
        )

    @property
    def log_offset(self) -> Tensor | None:
        r"""The offset :math:`c`, :math:`(d)`, if elements are folded by :math:`\log(x + c)`; else None."""
        return None

    def slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        r"""Bounds the norm of the Jacobian and the values over a box; proved in exact arithmetic.

        Arguments:
            region: Lower and upper corner, each with shape :math:`(d)`, in float64.
        """
        raise AbelnetError(f"slope_bounds: expected a bijection with proved slope bounds, got {type(self).__name__}")

    def inverse_slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        """Returns :meth:`slope_bounds` of the inverse, over a box of values."""
        raise AbelnetError(f"inverse_slope_bounds: expected proved slope bounds, got {type(self).__name__}")

    def expression(self, x: Any, dimension: int = 0) -> Expr:
        """Returns :math:`f(x)` in one dimension as a sympy expression; raises if there is no closed form.

        Arguments:
            x: The number in this dimension; a sequence of all :math:`d` if dimensions are not mapped independently.
            dimension: Index of the dimension.
        """
        raise AbelnetError(f"expression: expected a bijection with a closed form, got {type(self).__name__}")

    def inverse_expression(self, y: Any, dimension: int = 0) -> Expr:
        """Returns :math:`f^{-1}(y)` in one dimension, likewise."""
        raise AbelnetError(f"inverse_expression: expected a bijection with a closed form, got {type(self).__name__}")

    def pieces(self, x: Expr, dimension: int = 0) -> Pieces | None:
        """Returns :meth:`expression` as pieces, if it is a curve of many."""
        return None

    def inverse_pieces(self, y: Expr, dimension: int = 0) -> Pieces | None:
        """Returns :meth:`inverse_expression` as pieces, likewise."""
        return None

    def is_defined_expression(self, x: Any, dimension: int = 0) -> Any:
        """Returns :meth:`is_defined` in one dimension as a sympy condition; arguments are those of expressions."""
        number = x[dimension] if isinstance(x, Sequence) else x
        return is_between(number, *(float(torch.as_tensor(end).expand(self.dim)[dimension]) for end in self.domain))

    def curves(self) -> list[Elementwise]:
        """Returns the curves that are composed, in order; elementwise bijections only."""
        raise AbelnetError(f"bijection: expected an elementwise bijection, got {type(self).__name__}")

    @torch.no_grad()
    def snapshot(self) -> Bijection:
        """Returns a frozen copy in float64, in the form that is fastest to evaluate."""
        return copy.deepcopy(self).double().requires_grad_(False)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Elementwise(Bijection):
    r"""Bijection that maps each dimension by its own monotonic curve: :math:`f(x)_i = f_i(x_i)`.

    Subclasses implement :meth:`forward`, :meth:`inverse` and :meth:`log_slope`, and :meth:`turning_points` for
    certified slopes.
    """

    @property
    def is_elementwise(self) -> bool:
        return True

    @property
    def has_straight_tails(self) -> bool:
        """Whether the curves are linear beyond their outermost turning points."""
        return False

    @abstractmethod
    def log_slope(self, x: Tensor) -> Tensor:
        r"""Returns the log-slopes :math:`\log |f_i'(x_i)|`, with shape :math:`(*, d)`."""

    def log_abs_det(self, x: Tensor) -> Tensor:
        return self.log_slope(x).sum(-1)

    @classmethod
    def stacked(cls, bijections: Sequence[Self]) -> Self:
        """One bijection with the dimensions of several, one after another; trained, it trains each as if alone."""
        raise AbelnetError(f"bijections: expected a class that can be stacked, such as Monotonic, got {cls.__name__}")

    def unstack(self, bijections: Sequence[Self]) -> None:
        """Copies the dimensions of a stacked bijection back into those that it was made of."""
        raise AbelnetError(f"unstack: expected a class that can be stacked, got {type(self).__name__}")

    def select(self, mask: Tensor) -> None:
        """Keeps only the dimensions of a boolean mask :math:`(d)`.

        Example:
            >>> import torch
            >>> from abelnet import Affine
            >>> bijection = Affine(3)
            >>> bijection.select(torch.tensor([True, False, True]))
            >>> bijection
            Affine(dim=2)
        """
        for parameter in self.parameters():
            parameter.data = parameter.data[mask]
        self.dim = int(mask.sum())

    def turning_points(self, dimension: int = 0) -> Tensor:
        """Returns points, in float64, between which the slope in one dimension is monotonic."""
        raise AbelnetError(f"turning_points: expected a curve with known turning points, got {type(self).__name__}")

    def slopes_between(self, places: Tensor, dimension: int = 0) -> tuple[Tensor, Tensor]:
        """Returns the smallest and largest slope between adjacent ascending points :math:`(n)`.

        The points must include all turning points.
        """
        slopes = self.log_slope(places[:, None].expand(-1, self.dim))[:, dimension].exp()
        slopes = slopes.nan_to_num(1.0, math.inf)  # 0 times log 0: the power 1 at 0
        return torch.minimum(slopes[1:], slopes[:-1]), torch.maximum(slopes[1:], slopes[:-1])

    def slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        return enclose_curves(self, *region)

    def inverse_slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        return enclose_inverse_curves(self, *region)

    def curves(self) -> list[Elementwise]:
        return [self]


def draw_seeds(seed: int, count: int) -> list[int | None]:
    """Draws random seeds, one for each part of a bijection."""
    return torch.randint(2**62, (count,), generator=torch.Generator().manual_seed(seed), device="cpu").tolist()


def seeded(seed: int | None, device: torch.device) -> torch.Generator | None:
    """Returns a random generator of a device; None without a seed, and on the meta device, where nothing is drawn."""
    return None if seed is None or device.type == "meta" else torch.Generator(device).manual_seed(seed)
