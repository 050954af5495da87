r"""The associative symmetric polynomials of Theorem 2."""

from __future__ import annotations

__all__ = ["Polynomial"]

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from abelnet.errors import AbelnetError
from abelnet.laws.base import Law, PlainForm, coefficient
from abelnet.laws.constant import Constant
from abelnet.laws.factors import factor_states, is_zero, limit_beside_zeros, pack, product_of_states, unpack
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


class Polynomial(Law):
    r"""Associative symmetric polynomials except constants: a sum at :math:`\gamma = 0`, otherwise a product.

    .. math:: u * v = \beta (u + v + s) + \gamma u v, \quad \beta = 1 + \gamma s

    Theorem 2 of the paper has two non-constant forms, :math:`\alpha + u + v` and
    :math:`\beta (\beta - 1) / \gamma + \beta (u + v) + \gamma u v`. The shift :math:`s` unifies them without a division
    by :math:`\gamma`: the first is :math:`\gamma = 0, s = \alpha`, the second :math:`s = (\beta - 1) / \gamma`. With
    :math:`s = 0` (:math:`\beta = 1`) it is :math:`u + v + \gamma u v`, smooth in :math:`\gamma` through 0. Over a
    multiset, with :math:`w = u + s`,

    .. math:: u_1 * \dots * u_n = \frac{\prod_i (1 + \gamma w_i) - 1}{\gamma} - s ,

    evaluated near the identity as :math:`\operatorname{expm1}(\sum_i \operatorname{log1p}(\gamma w_i)) / \gamma`, with
    series for the ratios where :math:`\gamma w` is small, and elsewhere from the factors :math:`\beta + \gamma u_i` by
    sign and log-magnitude.

    Arguments:
        gamma: Coefficient :math:`\gamma`, a number or a tensor with shape :math:`(d)` or :math:`(1)`. Stored in
            float64 unless ``dtype`` is given; results have the dtype of the elements.
        shift: Shift :math:`s`, likewise.
        trainable: Which of :math:`\gamma` and :math:`s` are parameters: None, ``"gamma"`` or ``"both"``.

    Example:
        >>> law = Polynomial(gamma=0.5)
        >>> law.combine(torch.tensor([2.0]), torch.tensor([4.0]))
        tensor([10.])
        >>> Polynomial.from_coefficients(alpha=3.0, beta=1.0, gamma=0.0).is_group
        True
    """

    channels = 4

    def __init__(
        self,
        gamma: float | Sequence[float] | Tensor = 0.0,
        shift: float | Sequence[float] | Tensor = 0.0,
        *,
        trainable: str | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if trainable not in (None, "gamma", "both"):
            raise AbelnetError(f'trainable: expected None, "gamma" or "both", got {trainable!r}')
        self.trainable = trainable
        self.gamma: Tensor
        self.shift: Tensor
        self._start: dict[str, float | Sequence[float] | Tensor] = {}
        for name, value in (("gamma", gamma), ("shift", shift)):
            tensor = coefficient(name, value, device, dtype)
            self._start[name] = value.detach().clone() if isinstance(value, Tensor) else value
            if trainable == "both" or trainable == name:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for name, parameter in self.named_parameters():
            start = torch.as_tensor(self._start[name], dtype=parameter.dtype, device=parameter.device)
            parameter.copy_(start.reshape(-1))

    @staticmethod
    def from_coefficients(alpha: float, beta: float, gamma: float) -> Law:
        r"""Builds the law :math:`\alpha + \beta (u + v) + \gamma u v`, which is associative iff
        :math:`\alpha \gamma = \beta (\beta - 1)`."""
        if not math.isclose(alpha * gamma, beta * (beta - 1), rel_tol=1e-12, abs_tol=1e-300):
            raise AbelnetError(
                f"alpha, beta, gamma: expected alpha * gamma = beta * (beta - 1), got {alpha}, {beta}, {gamma}, "
                "with which the polynomial is not associative"
            )
        if gamma == 0 and beta == 0:
            return Constant(alpha)
        return Polynomial(gamma, alpha if gamma == 0 else (beta - 1) / gamma)

    @property
    def is_group(self) -> bool:
        return bool((self.gamma == 0).all())

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        gamma, beta, shift = self._coefficients()
        dtype = torch.result_type(u, v)
        u, v = u.double(), v.double()
        return (beta * (u + v + shift) + gamma * (u * v)).to(dtype)

    def lift(self, u: Tensor) -> Tensor:
        gamma, beta, shift = self._coefficients()
        u = u.double()
        factor = beta + gamma * u
        zero = is_zero(factor)
        w = torch.where(zero, 0, u + shift)
        z = gamma * w
        # Near the identity log1p is exact, near the absorbing element the factor itself is.
        near = z.abs() < 0.5
        far = torch.where(near | zero, 1, factor).abs().log() / torch.where(near, 1, gamma)
        return pack(torch.where(near, w * _log1p_ratio(torch.where(near, z, 0)), far), factor, zero)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        gamma, beta, shift = self._coefficients()
        total, sign, zeros, rest = unpack(state)
        log = gamma * total
        near = (zeros == 0) & (sign > 0) & (log.abs() < 0.5)
        smooth = torch.where(near, total, 0)
        smooth = smooth * _expm1_ratio(gamma * smooth) - shift
        log = limit_beside_zeros(torch.where(near, 0, log), zeros, dtype)
        other = (sign * log.exp() * rest - beta) / torch.where(gamma == 0, 1, gamma)
        return torch.where(near, smooth, other).to(dtype)

    def _coefficients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns :math:`\\gamma`, :math:`\\beta = 1 + \\gamma s` and :math:`s`."""
        gamma, shift = self.gamma.double(), self.shift.double()
        beta = 1 + gamma * shift
        # A rounding residue must not be added to a product of small numbers.
        return gamma, torch.where(beta.abs() < 4 * torch.finfo(beta.dtype).eps, 0, beta), shift

    def identity(self, dim: int) -> Tensor:
        return 0 - self.shift.expand(dim)

    def inverse(self, u: Tensor) -> Tensor:
        return (-u - 2 * self.shift).to(u.dtype) if self.is_group else super().inverse(u)

    def absorbing(self, dim: int) -> Tensor | None:
        if bool((self.gamma == 0).any()):
            return None
        return (-1 / self.gamma - self.shift).expand(dim)

    def plain_form(self) -> PlainForm | None:
        gamma, shift = self.gamma.detach(), self.shift.detach()
        if self.is_group:
            return PlainForm("sum", torch.ones_like(gamma), shift)
        return None if bool((gamma == 0).any()) else PlainForm("product", gamma, 1 + gamma * shift)

    def expression(self, u: Expr, v: Expr, dimension: int = 0) -> Expr:
        gamma, beta, shift = self._symbolic(dimension)
        return beta * (u + v + shift) + gamma * u * v

    def lift_expression(self, u: Expr, dimension: int = 0) -> tuple[Expr, ...]:
        gamma, beta, shift = self._symbolic(dimension)
        return (u + shift,) if gamma == 0 else factor_states(beta + gamma * u)

    def lower_expression(self, *state: Expr, dimension: int = 0) -> Expr:
        gamma, beta, shift = self._symbolic(dimension)
        return state[0] - shift if gamma == 0 else (product_of_states(*state) - beta) / gamma

    def config(self) -> dict[str, Any]:
        return {"gamma": self.gamma.tolist(), "shift": self.shift.tolist(), "trainable": self.trainable}

    def _symbolic(self, dimension: int) -> list[Expr]:
        """Returns the coefficients in one dimension as sympy numbers."""
        return [symbolic_number(value.detach()[min(dimension, len(value) - 1)]) for value in self._coefficients()]

    def extra_repr(self) -> str:
        return f"gamma={self.gamma.tolist()}, shift={self.shift.tolist()}"


def _log1p_ratio(z: Tensor) -> Tensor:
    r""":math:`\log(1 + z) / z`, smooth through 0."""
    small = z.abs() < 1e-2
    series = 1 - z * (1 / 2 - z * (1 / 3 - z * (1 / 4 - z * (1 / 5 - z * (1 / 6 - z * (1 / 7 - z / 8))))))
    safe = torch.where(small, 1, z)
    return torch.where(small, series, safe.log1p() / safe)


def _expm1_ratio(z: Tensor) -> Tensor:
    r""":math:`(e^z - 1) / z`, smooth through 0."""
    small = z.abs() < 1e-2
    series = 1 + z / 2 * (1 + z / 3 * (1 + z / 4 * (1 + z / 5 * (1 + z / 6 * (1 + z / 7 * (1 + z / 8))))))
    safe = torch.where(small, 1, z)
    return torch.where(small, series, torch.expm1(safe) / safe)
