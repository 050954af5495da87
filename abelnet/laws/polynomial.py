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
from abelnet.multisets import Multisets
from abelnet.portable import exact, expm1, log1p
from abelnet.segments import composed_gradients, is_plain
from abelnet.symbols import symbolic_number

if TYPE_CHECKING:
    from sympy import Expr


# Products gamma * w, or their sum over a set, of this magnitude count as near the identity.
_NEAR = 0.5
# With a smaller gamma, gamma * w could underflow, and log(1 + gamma * w) / gamma is w to the last bit.
_TINY = 1e-150
# With smaller products, derivatives by gamma are series: their relative error is the fourth power of this, that of the
# closed form, a difference, the precision of float64 divided by it.
_SMALL = 1e-3
# Below, two terms are enough.
_SMALLER = 1e-8
_LOG1P, _EXPM1 = (-1 / 2, 2 / 3, -3 / 4, 4 / 5), (1 / 2, 1 / 3, 1 / 8, 1 / 30)


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
        dtype = torch.promote_types(u.dtype, v.dtype)
        u, v = u.double(), v.double()
        return (beta * (u + v + shift) + gamma * (u * v)).to(dtype)

    def lift(self, u: Tensor) -> Tensor:
        gamma, beta, shift = self._coefficients()
        u = u.double()
        factor = beta + gamma * u
        zero = is_zero(factor)
        log = _log(torch.where(zero, 0, u + shift), torch.where(zero, 1, factor), gamma)
        return pack(log, factor, zero)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        gamma, beta, shift = self._coefficients()
        total, sign, zeros, rest = unpack(state)
        log = gamma * total
        near = (zeros == 0) & (sign > 0) & (log.abs() < _NEAR)
        smooth = _expm1(torch.where(near, total, 0), gamma) - shift
        log = limit_beside_zeros(torch.where(near, 0, log), zeros, dtype)
        other = (sign * log.exp() * rest - beta) / _nonzero(gamma)
        return torch.where(near, smooth, other).to(dtype)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        folded = self._folded(u, multisets)
        if folded is not None:
            return folded
        least_factor, least_product = self._least(u)
        if least_factor < torch.finfo(torch.float64).tiny:
            return super().reduce(u, multisets)
        # All factors are positive: one state is enough, equal to the first of four to the last bit.
        gamma, beta, shift = self._coefficients()
        w = shift + u
        total = multisets.sum(_log(w, None if least_product > -_NEAR else beta + gamma * u, gamma))
        log = gamma * total
        near = log.abs() < _NEAR
        if not _may_be(near.any()):
            return ((log.exp() - beta) / gamma).to(u.dtype)
        if not _may_be(~near.all()):
            return (_expm1(total, gamma) - shift).to(u.dtype)
        smooth = _expm1(torch.where(near, total, 0), gamma) - shift
        other = (torch.where(near, 0, log).exp() - beta) / _nonzero(gamma)
        return torch.where(near, smooth, other).to(u.dtype)

    def _folded(self, u: Tensor, multisets: Multisets) -> Tensor | None:
        """Returns the fold by compiled kernels; None if there are none, or products vanish or overflow on the way."""
        if (found := multisets.kernels(u, self.gamma, self.shift)) is None:
            return None
        segments, kernels = found
        with torch.no_grad():
            coefficients = [one.expand(u.shape[-1]) for one in self._coefficients()]
            given = torch.stack(coefficients).numpy()
            result = u.new_empty(segments.count, u.shape[-1])
            if not segments.fold(kernels.polynomial, u, [given], [result]):
                return None
        gamma, shift = (one.expand(u.shape[-1]) for one in (self.gamma, self.shift))
        fold: Tensor = _Fold.apply(u, gamma, shift, result, given, multisets)  # type: ignore[no-untyped-call]
        return fold.reshape(*multisets.shape, u.shape[-1])

    @torch.no_grad()
    def _least(self, u: Tensor) -> list[float]:
        r"""Returns the least factor and the least :math:`\gamma w`; -inf if reading them would wait for a device."""
        unknown = [-math.inf, -math.inf]
        if u.device.type != "cpu" or torch.compiler.is_compiling() or u.numel() == 0:
            return unknown
        gamma, beta, shift = self._coefficients()
        # Both are monotonic in u, rounded too, so that the ends decide.
        ends = torch.stack((u.detach().amin(0), u.detach().amax(0))).double()  # aminmax is slow
        least = torch.stack(((beta + gamma * ends).amin(), (gamma * (shift + ends)).amin()))
        try:
            found: list[float] = least.tolist()
        except RuntimeError:  # under vmap
            return unknown
        return found

    def _coefficients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns :math:`\\gamma`, :math:`\\beta = 1 + \\gamma s` and :math:`s`."""
        gamma, shift = self.gamma.double(), self.shift.double()
        beta = 1 + gamma * shift
        # A rounding residue must not be added to a product of small numbers; its derivatives are those of the formula.
        residue = torch.where(beta.abs() < 4 * torch.finfo(beta.dtype).eps, beta, 0).detach()
        return gamma, beta - residue, shift

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
        # Within the pieces: near the identity, exp(t) - 1 is computed as expm1(t).
        return state[0] - shift if gamma == 0 else product_of_states(*state, then=lambda p: (p - beta) / gamma)

    def config(self) -> dict[str, Any]:
        return {"gamma": self.gamma.tolist(), "shift": self.shift.tolist(), "trainable": self.trainable}

    def _symbolic(self, dimension: int) -> list[Expr]:
        """Returns the coefficients in one dimension as sympy numbers."""
        return [symbolic_number(value.detach()[min(dimension, len(value) - 1)]) for value in self._coefficients()]

    def extra_repr(self) -> str:
        return f"gamma={self.gamma.tolist()}, shift={self.shift.tolist()}"


def _log(w: Tensor, factor: Tensor | None, gamma: Tensor) -> Tensor:
    result: Tensor = _Log.apply(w, None if factor is None else factor.detach(), gamma)  # type: ignore[no-untyped-call]
    return result


def _expm1(t: Tensor, gamma: Tensor) -> Tensor:
    result: Tensor = _Expm1.apply(t, gamma)  # type: ignore[no-untyped-call]
    return result


class _Log(torch.autograd.Function):
    r""":math:`\log |1 + \gamma w| / \gamma`, smooth in :math:`\gamma` through 0.

    Near the identity it is exact by log1p, near the absorbing element by the factor :math:`1 + \gamma w` itself, which
    may be None if all are near the identity. Much cheaper than a composition, which keeps a dozen tensors of all
    elements.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(w: Tensor, factor: Tensor | None, gamma: Tensor) -> Tensor:
        z = gamma * w
        log = log1p(z)
        if factor is not None:
            log = torch.where(z > -_NEAR, log, factor.abs().log_())
        log = log.div_(_nonzero(gamma)) if is_plain(w) else log / _nonzero(gamma)
        tiny = gamma.abs() < exact(_TINY, gamma)
        return torch.where(tiny, w, log) if _may_be(tiny.any()) else log

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor | None, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        w, factor, gamma, log = ctx.saved_tensors
        if factor is None:
            factor = (gamma * w).add_(1)
        elif torch.is_grad_enabled():  # the number of the factor, and the derivatives of its formula
            formula = 1 + gamma * w
            factor = factor + (formula - formula.detach())
        of_w = gradient / factor
        return of_w, None, _of_gamma(gradient, w, gamma, log, of_w, _LOG1P) if ctx.needs_input_grad[2] else None


class _Fold(torch.autograd.Function):
    """The fold that compiled kernels have found, with their gradient."""

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, gamma: Tensor, shift: Tensor, result: Tensor, given: Any, multisets: Multisets
    ) -> Tensor:
        ctx.given, ctx.multisets = given, multisets
        ctx.save_for_backward(u, gamma, shift)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        u, gamma, shift = ctx.saved_tensors
        multisets: Multisets = ctx.multisets
        found = multisets.kernels(u)
        if torch.is_grad_enabled() or found is None:  # of higher order

            def plain(u: Tensor, gamma: Tensor, shift: Tensor) -> Tensor:
                law = Polynomial()
                law.gamma, law.shift = gamma, shift
                return Law.reduce(law, u, multisets).reshape(gradient.shape)

            return *composed_gradients(plain, (u, gamma, shift), gradient), None, None, None
        segments, kernels = found
        of_u = torch.empty(u.shape, dtype=u.dtype)
        sums = [torch.zeros(u.shape[-1], dtype=torch.float64) for _ in range(2)]
        segments.run(kernels.polynomial_gradient, u, [ctx.given], [gradient.contiguous()], [of_u], sums)
        return of_u, sums[0].to(gamma.dtype), sums[1].to(shift.dtype), None, None, None


class _Expm1(torch.autograd.Function):
    r""":math:`(e^{\gamma t} - 1) / \gamma`, smooth in :math:`\gamma` through 0; the inverse of :class:`_Log`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(t: Tensor, gamma: Tensor) -> Tensor:
        power = expm1(gamma * t).div_(_nonzero(gamma))
        tiny = gamma.abs() < exact(_TINY, gamma)
        return torch.where(tiny, t, power) if _may_be(tiny.any()) else power

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        t, gamma, power = ctx.saved_tensors
        of_t = gradient * (gamma * t).exp_()
        return of_t, _of_gamma(gradient, t, gamma, power, of_t, _EXPM1) if ctx.needs_input_grad[1] else None


def _nonzero(gamma: Tensor) -> Tensor:
    return torch.where(gamma == 0, 1, gamma)


def _of_gamma(
    gradient: Tensor, x: Tensor, gamma: Tensor, value: Tensor, of_x: Tensor, series: Sequence[float]
) -> Tensor:
    r"""Returns the gradient by :math:`\gamma` of a function :math:`f(\gamma x) / \gamma`, summed over elements.

    Arguments:
        gradient: Gradient by the value, with shape :math:`(*, d)`.
        x: The elements.
        gamma: The coefficient.
        value: The values.
        of_x: Gradient by the elements.
        series: Taylor coefficients of the derivative divided by :math:`x^2`, in powers of :math:`\gamma x`.
    """
    rows = x.detach().reshape(-1, x.shape[-1])
    least, most = rows.amin(0), rows.amax(0)  # aminmax is slow
    size = gamma.detach().abs() * torch.maximum(-least, most)
    small = size < _SMALL
    result = torch.zeros_like(small, dtype=x.dtype)
    # Most often all or none are small, or gamma is still 0, which is known at once on a CPU.
    if _may_be(small.any()):
        power, sums = gradient * x, torch.zeros_like(result)
        for k, c in enumerate(series if _may_be((small & (size > _SMALLER)).any()) else series[:2]):
            power = power * x if torch.is_grad_enabled() else power.mul_(x)
            sums = sums + c * gamma**k * _summed(power)
        result = torch.where(small, sums, result)
    if _may_be(~small.all()):
        difference = (of_x * x).addcmul_(gradient, value, value=-1)
        result = torch.where(small, result, _summed(difference) / _nonzero(gamma))
    return result.sum_to_size(gamma.shape)


def _may_be(x: Tensor) -> bool:
    """Returns whether a condition holds; True if reading it would wait for a device."""
    return not is_plain(x) or bool(x)


def _summed(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1]).sum(0)
