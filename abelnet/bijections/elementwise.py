r"""Elementwise bijections with closed-form inverses and few parameters: affine and sinh-arcsinh."""

from __future__ import annotations

__all__ = ["Affine", "SinhArcsinh"]

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from abelnet.bijections.base import Elementwise, Line
from abelnet.checks import check_number, check_values
from abelnet.portable import arcsinh, log1p, sinh
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


class Affine(Elementwise):
    r"""Affine transform, applied independently to each dimension.

    .. math:: f(x) = \exp(a) x + b

    Initialized to the identity, or to a shift.

    Arguments:
        dim: Number of dimensions :math:`d`.
        shift: Initial shift :math:`b`.

    Example:
        >>> bijection = Affine(2)
        >>> bijection(torch.tensor([[1.0, 2.0]]))
        tensor([[1., 2.]], grad_fn=<AddBackward0>)
    """

    def __init__(
        self,
        dim: int,
        *,
        shift: float = 0.0,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim)
        check_number("shift", shift)
        self._start = float(shift)
        self.log_scale = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self.shift = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets to the identity and the initial shift; nothing is random."""
        nn.init.zeros_(self.log_scale)
        nn.init.constant_(self.shift, self._start)

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return self.log_scale.exp() * x + self.shift

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        return (y - self.shift) / self.log_scale.exp()

    @property
    def line(self) -> Line:
        return self.log_scale.exp(), self.shift

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return self.log_scale.expand_as(x)

    @property
    def has_straight_tails(self) -> bool:
        return True

    def turning_points(self, dimension: int = 0) -> Tensor:
        return torch.empty(0, dtype=torch.float64)

    def expression(self, x: Expr, dimension: int = 0) -> Expr:
        scale, shift = self._line(dimension)
        return scale * x + shift

    def inverse_expression(self, y: Expr, dimension: int = 0) -> Expr:
        scale, shift = self._line(dimension)
        return (y - shift) / scale

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim, **({"shift": self._start} if self._start else {})}

    def _line(self, dimension: int) -> tuple[Expr, Expr]:
        return (
            symbolic_number(self.log_scale.detach()[dimension].exp()),
            symbolic_number(self.shift.detach()[dimension]),
        )


class SinhArcsinh(Elementwise):
    r"""Sinh-arcsinh transform, applied independently to each dimension.

    .. math:: f(x) = \frac{\lambda}{\delta} \sinh(\delta \operatorname{arcsinh}(x / \lambda))

    Near zero it is the identity; for large inputs it grows as :math:`|x|^\delta`, between power laws and logarithms.
    The inverse is the same transform with :math:`\delta \to 1 / \delta` and :math:`\lambda \to \lambda / \delta`, so
    both directions are exact far outside the range of the training data. Initialized to the identity.

    References:
        Jones & Pewsey, Sinh-arcsinh distributions, Biometrika 2009.

    Arguments:
        dim: Number of dimensions :math:`d`.

    Example:
        >>> bijection = SinhArcsinh(2, dtype=torch.float64)
        >>> x = torch.tensor([[-3.0, 1e6]], dtype=torch.float64)
        >>> torch.allclose(bijection.inverse(bijection(x)), x)
        True
    """

    def __init__(self, dim: int, *, device: torch.device | None = None, dtype: torch.dtype | None = None) -> None:
        super().__init__(dim)
        self.log_tail = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self.log_scale = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets to the identity; nothing is random."""
        nn.init.zeros_(self.log_tail)
        nn.init.zeros_(self.log_scale)

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return _bend(x, self.log_tail.exp(), self.log_scale.exp())

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        tail = self.log_tail.exp()
        return _bend(y, 1 / tail, self.log_scale.exp() / tail)

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        angle = arcsinh(x / self.log_scale.exp())
        return _log_cosh(self.log_tail.exp() * angle) - _log_cosh(angle)

    def turning_points(self, dimension: int = 0) -> Tensor:
        return torch.zeros(1, dtype=torch.float64)

    def expression(self, x: Expr, dimension: int = 0) -> Expr:
        tail, scale = self._shape(dimension)
        return _bent_expression(x, tail, scale)

    def inverse_expression(self, y: Expr, dimension: int = 0) -> Expr:
        tail, scale = self._shape(dimension)
        return _bent_expression(y, 1 / tail, scale / tail)

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim}

    def _shape(self, dimension: int) -> tuple[Expr, Expr]:
        log_tail, log_scale = self.log_tail.detach()[dimension], self.log_scale.detach()[dimension]
        return symbolic_number(log_tail.exp()), symbolic_number(log_scale.exp())


def _bend(x: Tensor, tail: Tensor, scale: Tensor) -> Tensor:
    return scale / tail * sinh(tail * arcsinh(x / scale))


def _bent_expression(x: Expr, tail: Expr, scale: Expr) -> Expr:
    import sympy

    return scale / tail * sympy.sinh(tail * sympy.asinh(x / scale))


def _log_cosh(x: Tensor) -> Tensor:
    x = x.abs()
    return x + log1p(torch.exp(-2 * x)) - math.log(2)
