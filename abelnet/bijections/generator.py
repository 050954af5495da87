r"""Bijection by a curve of a known family, one per dimension."""

from __future__ import annotations

__all__ = ["Generator"]

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from abelnet.bijections.base import Elementwise
from abelnet.bijections.families import FAMILIES, Family
from abelnet.bijections.slopes import EVERYWHERE, Region, describe_region
from abelnet.checks import check_values, is_checking, peek
from abelnet.errors import AbelnetError
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


class Generator(Elementwise):
    r"""Curve of a parametric family, applied independently to each dimension.

    =====================================  =====================================  ==========================
    kind                                   :math:`g(x)`                           domain
    =====================================  =====================================  ==========================
    ``affine``                             :math:`x`                              everywhere
    ``power``                              :math:`\operatorname{sign}(x) |x|^p`   everywhere; x > 0 if p < 0
    ``positive power``                     :math:`x^p`                            x ≥ 0; x > 0 if p < 0
    ``exponential``                        :math:`e^{k x}`                        everywhere
    ``centered exponential``               :math:`e^{k (x - c)}`                  everywhere
    ``logarithm``                          :math:`\log(x + c)`                    x > −c
    ``logit``                              :math:`\log(x / (1 - x))`              0 < x < 1
    ``arctanh``                            :math:`\operatorname{arctanh}(x / c)`  −c < x < c
    ``arcsinh``                            :math:`\operatorname{arcsinh}(x / c)`  everywhere, c > 0
    ``reflected logarithm``                :math:`\log(c - x)`                    x < c
    ``reciprocal difference``              :math:`c / x - x`                      x > 0, c > 0
    ``reflected power``                    :math:`(c - x)^p`                      x ≤ c; x < c if p < 0
    ``shifted power``                      :math:`(x + c)^p`                      x ≥ −c; x > −c if p < 0
    ``power of logarithm``                 :math:`(-\log x)^p`                    0 < x ≤ 1
    ``power of logarithm of complement``   :math:`(-\log(1 - x))^p`               0 ≤ x < 1
    ``power of odds``                      :math:`((1 - x) / x)^p`                0 < x ≤ 1
    ``power of complement``                :math:`\lvert 1 - x^a \rvert^b`        0 < x ≤ 1
    ``power of complement of complement``  :math:`\lvert 1 - (1 - x)^a \rvert^b`  0 ≤ x < 1
    ``exponential of reciprocal``          :math:`e^{-k / (1 - x)}`               0 ≤ x ≤ 1, k > 0
    ``arcsine of power``                   :math:`\arcsin(1 - x^p)`               0 ≤ x ≤ 1, p > 0
    ``power of offset logarithm``          :math:`(1 - k \log x)^p - 1`           0 < x ≤ 1, k > 0
    ``exponential of power``               :math:`e^{k (x^{-p} - 1)} - 1`         0 < x ≤ 1, k and p > 0
    =====================================  =====================================  ==========================

    The laws that these generate are listed in :mod:`abelnet.bijections.families`. Powers on the unit interval are
    defined at the end where they are finite.

    Unlike other bijections it may not map onto all real numbers: :meth:`inverse` is NaN outside the codomain.

    Arguments:
        dim: Number of dimensions :math:`d`.
        kind: One of the names above, or a custom :class:`Family`.
        parameters: The values of :math:`p`, :math:`k` or :math:`c`, each a number or a tensor :math:`(d)`.

    Example:
        >>> from abelnet import AbelianGroup, Generator
        >>> lengths = AbelianGroup(Generator(1, "power", [2.0], dtype=torch.float64))
        >>> lengths.reduce(torch.tensor([[3.0], [4.0], [12.0]], dtype=torch.float64)).item()  # (x² + y² + z²)^½
        13.0
    """

    def __init__(
        self,
        dim: int,
        kind: str | Family,
        parameters: Sequence[float | Sequence[float] | Tensor] = (),
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim)
        if not isinstance(kind, Family) and kind not in FAMILIES:
            raise AbelnetError(f"kind: expected one of {', '.join(FAMILIES)}, got {kind!r}")
        self.family = kind if isinstance(kind, Family) else FAMILIES[kind]
        names = self.family.parameters
        if len(parameters) != len(names):
            raise AbelnetError(
                f"parameters: expected {len(names)} for {self.kind} ({', '.join(names)}), got {len(parameters)}"
            )
        self._start = [value.detach().clone() if isinstance(value, Tensor) else value for value in parameters]
        self.values = nn.ParameterList(
            torch.as_tensor(value, dtype=dtype, device=device).expand(dim).clone() for value in parameters
        )
        self.check_state()

    def check_state(self) -> None:
        if any(value.is_meta for value in self.values):
            return  # has no values to check, and comparing them would import torch._dynamo: seconds and 75 MB
        expected = {"finite": "", "nonzero": " other than 0", "positive": " above 0"}
        family = self.family
        for name, value, kind in zip(family.parameters, self.values, family.parameters_are, strict=True):
            allowed = {"finite": True, "nonzero": value != 0, "positive": value > 0}[kind]
            if not peek((value.isfinite() & allowed).all(), True):
                raise AbelnetError(f"{name}: expected a finite number{expected[kind]}, got {value.tolist()}")

    @property
    def kind(self) -> str:
        """Name of the family."""
        return self.family.name

    @property
    def domain(self) -> Region:
        return self.family.domain(*(value.detach() for value in self.values))

    @property
    def codomain(self) -> Region:
        return self.family.codomain(*(value.detach() for value in self.values))

    @torch.no_grad()
    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets to the given parameters; nothing is random."""
        for value, start in zip(self.values, self._start, strict=True):
            value.copy_(torch.as_tensor(start, dtype=value.dtype, device=value.device))

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        self._check_domain(x)
        return self.family.forward(x, *self.values)

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        x = self.family.inverse(y, *self.values)
        if self.codomain is EVERYWHERE:
            return x
        low, high = self.codomain
        return torch.where((y > low) & (y < high), x, math.nan)

    @property
    def is_identity(self) -> bool:
        return self.family.is_identity

    @property
    def has_log_form(self) -> bool:
        return self.family.has_log_form

    @property
    def folds_in_logs(self) -> bool:
        return self.has_log_form and self.family.overflows(self.values[0].dtype)

    def log(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        self._check_domain(x)
        return self.family.log(x, *self.values)

    def inverse_of_log(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        return self.family.inverse_of_log(y, *self.values)

    @property
    def log_rate(self) -> Tensor | None:
        rate = self.family.log_rate(*self.values)
        assert rate is None or isinstance(rate, Tensor)
        return rate

    @property
    def log_offset(self) -> Tensor | None:
        offset = self.family.log_offset(*self.values)
        return None if offset is None else torch.as_tensor(offset, dtype=self.values[0].dtype).expand(self.dim)

    def log_base(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        self._check_domain(x)
        return self.family.log_base(x, *self.values)

    def inverse_of_log_base(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        return self.family.inverse_of_log_base(y, *self.values)

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return self.family.log_slope(x, *self.values).expand_as(x)

    def turning_points(self, dimension: int = 0) -> Tensor:
        theta = (float(value.detach()[dimension]) for value in self.values)
        return torch.tensor(self.family.turning_points(*theta), dtype=torch.float64)

    def expression(self, x: Expr, dimension: int = 0) -> Expr:
        return self.family.expression(x, *self._theta(dimension))

    def inverse_expression(self, y: Expr, dimension: int = 0) -> Expr:
        return self.family.inverse_expression(y, *self._theta(dimension))

    def config(self) -> dict[str, Any]:
        kind = self.kind if FAMILIES.get(self.kind) == self.family else self.family
        return {"dim": self.dim, "kind": kind, "parameters": [value.tolist() for value in self.values]}

    def extra_repr(self) -> str:
        values = (f"{name}={value.tolist()}" for name, value in zip(self.family.parameters, self.values, strict=True))
        return ", ".join((f"dim={self.dim}", f"kind={self.kind}", *values))

    def _theta(self, dimension: int) -> list[Expr]:
        return [symbolic_number(value.detach()[dimension]) for value in self.values]

    def _check_domain(self, x: Tensor) -> None:
        if not is_checking() or self.domain is EVERYWHERE:
            return
        low, high = self.domain
        outside = ((x <= low) | (x >= high)).any()
        if peek(outside, False):
            raise AbelnetError(
                f"x: expected {describe_region(self.domain)}, where {self.family.formula} is defined, got "
                f"{float(x.min()):g} to {float(x.max()):g}"
            )
