r"""Even extension of a curve: the sign of an element is lost."""

from __future__ import annotations

__all__ = ["Even"]

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from abelnet.bijections.base import Bijection, Elementwise
from abelnet.bijections.slopes import FROM_ZERO, Enclosure, Region, describe_region
from abelnet.checks import peek
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from sympy import Expr


class Even(Bijection):
    r"""Even extension of curves on the positive numbers, applied independently to each dimension.

    .. math:: f(x) = g(|x|), \quad f^{-1}(u) = g^{-1}(u) \ge 0

    It is a bijection only of the numbers without sign. An operation over it is still commutative and associative, since
    its results have no sign, but it is no group: :math:`x` and :math:`-x` act alike, as in
    :math:`\sqrt{x^2 + y^2}`.

    Arguments:
        bijection: The curves :math:`g`, defined for :math:`x > 0` or :math:`x \ge 0` only.

    Example:
        >>> from abelnet import AbelianGroup, Even, Generator
        >>> norm = AbelianGroup(Even(Generator(1, "positive power", [2.0])))
        >>> norm(torch.tensor([3.0]), torch.tensor([-4.0])).item()
        5.0
        >>> norm.is_group
        False
    """

    def __init__(self, bijection: Bijection) -> None:
        super().__init__(bijection.dim)
        self.bijection = bijection
        if not any(parameter.is_meta for parameter in bijection.parameters()):  # those have no values until loaded
            self.check_state()

    def check_state(self) -> None:
        low, _ = self.bijection.domain
        if not self.bijection.is_elementwise or peek((torch.as_tensor(low) < FROM_ZERO).any(), False):
            defined = describe_region(self.bijection.domain)
            raise AbelnetError(f"bijection: expected curves on the positive numbers, got one on {defined}")

    @property
    def is_elementwise(self) -> bool:
        return True

    @property
    def is_injective(self) -> bool:
        return False

    @property
    def domain(self) -> Region:
        high = self.bijection.domain[1]
        return -high, high

    def injective_part(self) -> Bijection:
        return self.bijection

    def is_defined(self, x: Tensor) -> Tensor:
        return self.bijection.is_defined(x.abs())

    def describe_domain(self) -> str:
        low, _ = self.bijection.domain
        has_zero = peek((torch.as_tensor(low) < 0).all(), True)
        return super().describe_domain() if has_zero else "x ≠ 0"

    @property
    def codomain(self) -> Region:
        return self.bijection.codomain

    def reset_parameters(self, seed: int | None = None) -> None:
        self.bijection.reset_parameters(seed)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.bijection(x.abs())
        return result

    def inverse(self, y: Tensor) -> Tensor:
        return self.bijection.inverse(y)

    def log_abs_det(self, x: Tensor) -> Tensor:
        return self.bijection.log_abs_det(x.abs())

    def slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        low, high = region
        nearest = torch.maximum(low, -high).clamp(min=0)
        return self.bijection.slope_bounds((nearest, torch.maximum(-low, high)))

    def inverse_slope_bounds(self, region: tuple[Tensor, Tensor]) -> Enclosure:
        return self.bijection.inverse_slope_bounds(region)

    def curves(self) -> list[Elementwise]:
        return self.bijection.curves()

    def expression(self, x: Expr, dimension: int = 0) -> Expr:
        import sympy

        return self.bijection.expression(sympy.Abs(x), dimension)

    def inverse_expression(self, y: Expr, dimension: int = 0) -> Expr:
        return self.bijection.inverse_expression(y, dimension)

    def is_defined_expression(self, x: Any, dimension: int = 0) -> Any:
        import sympy

        return self.bijection.is_defined_expression(sympy.Abs(x), dimension)

    def snapshot(self) -> Bijection:
        return Even(self.bijection.snapshot())

    def config(self) -> dict[str, Any]:
        return {"bijection": self.bijection}
