r"""Known commutative, associative operations :math:`u * v` on :math:`\mathbb{R}^d`, each acting per dimension."""

from __future__ import annotations

__all__ = ["Constant", "Law", "Maximum", "Minimum", "Polynomial", "Product", "Sum"]

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from abelnet.checks import peek
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets


class Law(nn.Module, ABC):
    r"""A commutative, associative operation :math:`u * v`, with its fold over multisets.

    A fold goes through a *running state*: :meth:`lift` turns an element into one, :meth:`merge` joins two, and
    :meth:`lower` turns a state back into an element, so that

    .. math:: u_1 * \dots * u_n = \mathrm{lower}(\mathrm{lift}(u_1) + \dots + \mathrm{lift}(u_n)) .

    States add (only :class:`Maximum` and :class:`Minimum` join them otherwise), hence one fused sum serves
    :meth:`reduce`, one ``cumsum`` serves :meth:`cumulative`, and a stream needs to keep no more than a state.
    """

    channels: int = 1
    """A state of :math:`d` dimensions has shape :math:`(*, channels \\cdot d)`."""

    @property
    def is_group(self) -> bool:
        """Whether every element has an inverse."""
        return False

    def check_dim(self, dim: int) -> None:
        """Raises unless the coefficients fit elements of :math:`d` dimensions."""
        for name, tensor in (*self.named_parameters(), *self.named_buffers()):
            if tensor.numel() not in (1, dim):
                raise AbelnetError(f"{name}: expected 1 or {dim} coefficients, got {tensor.numel()}")

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return type(self).__name__

    @abstractmethod
    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        """:math:`u * v`, broadcasting."""

    def lift(self, u: Tensor) -> Tensor:
        """The running state of the single element :math:`u`."""
        return u

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        """The element that a running state stands for."""
        return state.to(dtype)

    def empty(self, dim: int) -> Tensor:
        """The running state of no element."""
        return torch.zeros(self.channels * dim, dtype=torch.float64)

    def merge(self, state: Tensor, other: Tensor) -> Tensor:
        """The running state of the elements of both."""
        return state + other

    def gather(self, states: Tensor) -> Tensor:
        """The running state of all elements of a set: :math:`(*, n, k)` to :math:`(*, k)`."""
        return states.sum(-2)

    def scatter(self, states: Tensor, index: Tensor, more: Tensor) -> Tensor:
        """Running states :math:`(G, k)` with further ones :math:`(N, k)` merged into the rows that ``index`` says."""
        return states.index_add(0, index, more)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        """:math:`u_1 * \\dots * u_n` over each set: rows :math:`(N, d)` to :math:`(*, d)`."""
        return self.lower(multisets.sum(self.lift(u)), u.dtype)

    def cumulative(self, u: Tensor) -> Tensor:
        """:math:`u_1, u_1 * u_2, \\dots` along the elements: :math:`(*, n, d)` to :math:`(*, n, d)`."""
        return self.lower(self.lift(u).cumsum(-2), u.dtype)

    def power(self, u: Tensor, n: float) -> Tensor:
        """:math:`u * \\dots * u`, ``n`` times."""
        return self.lower(n * self.lift(u), u.dtype)

    def identity(self, dim: int) -> Tensor | None:
        """The element :math:`e` with :math:`u * e = u`, with shape :math:`(d)`; None where there is none."""
        return None

    def inverse(self, u: Tensor) -> Tensor:
        """The element :math:`u^{-1}` with :math:`u * u^{-1} = e`; groups only."""
        raise AbelnetError(f"inverse: expected a group, got {self.name}, in which not every element has one")


class Sum(Law):
    r"""Addition, the group that every other Abelian group on :math:`\mathbb{R}^d` is a bent copy of.

    .. math:: u * v = u + v, \quad e = 0, \quad u^{-1} = -u

    Example:
        >>> Sum().combine(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([3.])
    """

    @property
    def is_group(self) -> bool:
        return True

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return u + v

    def identity(self, dim: int) -> Tensor:
        return torch.zeros(dim)

    def inverse(self, u: Tensor) -> Tensor:
        return -u


class Product(Law):
    r"""Multiplication: a semigroup with identity 1, in which 0 absorbs.

    .. math:: u * v = u v, \quad
        \prod_i u_i = \Big(\prod_i \operatorname{sign} u_i\Big) \exp \sum_i \log |u_i|

    A multiset is multiplied by sign and log-magnitude in float64, so that nothing overflows on the way to a result
    that does not. Zeros are counted, not multiplied: one zero makes the result exactly 0 and leaves it the gradient
    :math:`\partial \prod / \partial u_i = \prod_{j \neq i} u_j`.

    Example:
        >>> law = Product()
        >>> x = torch.tensor([[1e30], [-1e30], [1e-30], [1e-30]])
        >>> law.reduce(x, Multisets(x, 1))
        tensor([-1.])
        >>> sign, log_magnitude = law.log_reduce(x[:2], Multisets(x[:2], 1))
        >>> sign, log_magnitude
        (tensor([-1.], dtype=torch.float64), tensor([138.1551], dtype=torch.float64))
    """

    channels = 4

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return u * v

    def lift(self, u: Tensor) -> Tensor:
        u = u.double()
        zero = _is_zero(u)
        return _pack(torch.where(zero, 1, u).abs().log(), u, zero)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        log, sign, zeros, rest = _unpack(state)
        return (sign * _limit_beside_zeros(log, zeros, dtype).exp() * rest).to(dtype)

    def log_reduce(self, u: Tensor, multisets: Multisets) -> tuple[Tensor, Tensor]:
        """Sign and log-magnitude of the product over each set, in float64: finite where the product overflows."""
        log, sign, zeros, _ = _unpack(multisets.sum(self.lift(u)))
        return torch.where(zeros == 0, sign, 0), torch.where(zeros == 0, log, -math.inf)

    def power(self, u: Tensor, n: float) -> Tensor:
        return u**n

    def identity(self, dim: int) -> Tensor:
        return torch.ones(dim)


class Polynomial(Law):
    r"""Every associative symmetric polynomial but the constant: the sum at :math:`\gamma = 0`, else a product.

    .. math:: u * v = \beta (u + v + s) + \gamma u v, \quad \beta = 1 + \gamma s

    Theorem 2 of the paper has two non-constant forms, :math:`\alpha + u + v` and
    :math:`\beta (\beta - 1) / \gamma + \beta (u + v) + \gamma u v`. Written with the shift :math:`s` they are one:
    the first is :math:`\gamma = 0, s = \alpha`, the second :math:`s = (\beta - 1) / \gamma`, and nothing is divided by
    :math:`\gamma`. With :math:`s = 0` (:math:`\beta = 1`) it is :math:`u + v + \gamma u v`, smooth in :math:`\gamma`
    through 0. Over a multiset, with :math:`w = u + s`,

    .. math:: u_1 * \dots * u_n = \frac{\prod_i (1 + \gamma w_i) - 1}{\gamma} - s ,

    evaluated near the identity as :math:`\operatorname{expm1}(\sum_i \operatorname{log1p}(\gamma w_i)) / \gamma`, with
    the ratios taken by their series where :math:`\gamma w` is small, and elsewhere from the factors
    :math:`\beta + \gamma u_i` by sign and log-magnitude.

    Arguments:
        gamma: Coefficient :math:`\gamma`, a number or a tensor with shape :math:`(d)` or :math:`(1)`. It is kept in
            float64 unless ``dtype`` says otherwise; results have the dtype of the elements.
        shift: Shift :math:`s`, likewise.
        trainable: Whether :math:`\gamma` and :math:`s` are parameters: neither, ``"gamma"``, or ``"both"``.

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
        gamma: float | Tensor = 0.0,
        shift: float | Tensor = 0.0,
        *,
        trainable: str | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if trainable not in (None, "gamma", "both"):
            raise AbelnetError(f'trainable: expected None, "gamma" or "both", got {trainable!r}')
        self.gamma: Tensor
        self.shift: Tensor
        for name, value in (("gamma", gamma), ("shift", shift)):
            tensor = _coefficient(name, value, device, dtype)
            if trainable == "both" or trainable == name:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)

    @staticmethod
    def from_coefficients(alpha: float, beta: float, gamma: float) -> Law:
        r"""The law :math:`\alpha + \beta (u + v) + \gamma u v`, which is associative iff
        :math:`\alpha \gamma = \beta (\beta - 1)`."""
        if not math.isclose(alpha * gamma, beta * (beta - 1), rel_tol=1e-12, abs_tol=1e-300):
            raise AbelnetError(
                f"alpha, beta, gamma: expected alpha * gamma = beta * (beta - 1), without which "
                f"{alpha} + {beta} (u + v) + {gamma} u v is not associative"
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
        zero = _is_zero(factor)
        w = torch.where(zero, 0, u + shift)
        z = gamma * w
        # Near the identity log1p is exact, near the absorbing element the factor itself is.
        near = z.abs() < 0.5
        far = torch.where(near | zero, 1, factor).abs().log() / torch.where(near, 1, gamma)
        return _pack(torch.where(near, w * _log1p_ratio(torch.where(near, z, 0)), far), factor, zero)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        gamma, beta, shift = self._coefficients()
        total, sign, zeros, rest = _unpack(state)
        log = gamma * total
        near = (zeros == 0) & (sign > 0) & (log.abs() < 0.5)
        smooth = torch.where(near, total, 0)
        smooth = smooth * _expm1_ratio(gamma * smooth) - shift
        log = _limit_beside_zeros(torch.where(near, 0, log), zeros, dtype)
        other = (sign * log.exp() * rest - beta) / torch.where(gamma == 0, 1, gamma)
        return torch.where(near, smooth, other).to(dtype)

    def _coefficients(self) -> tuple[Tensor, Tensor, Tensor]:
        """:math:`\\gamma`, :math:`\\beta = 1 + \\gamma s` and :math:`s`."""
        gamma, shift = self.gamma.double(), self.shift.double()
        beta = 1 + gamma * shift
        # What is left of rounding must not stand beside a product of small numbers.
        return gamma, torch.where(beta.abs() < 4 * torch.finfo(beta.dtype).eps, 0, beta), shift

    def identity(self, dim: int) -> Tensor:
        return 0 - self.shift.expand(dim)

    def inverse(self, u: Tensor) -> Tensor:
        return (-u - 2 * self.shift).to(u.dtype) if self.is_group else super().inverse(u)

    def extra_repr(self) -> str:
        return f"gamma={self.gamma.tolist()}, shift={self.shift.tolist()}"


class Constant(Law):
    r"""The trivial associative symmetric polynomial: any two elements give the same one.

    .. math:: u * v = \alpha

    A single element stays what it is; there is no identity.

    Arguments:
        alpha: The constant :math:`\alpha`, a number or a tensor with shape :math:`(d)` or :math:`(1)`.

    Example:
        >>> Constant(7.0).combine(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([7.])
    """

    channels = 2

    def __init__(
        self, alpha: float | Tensor, *, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.alpha: Tensor
        self.register_buffer("alpha", _coefficient("alpha", alpha, device, dtype))

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return self.alpha.to(torch.result_type(u, v)).expand_as(torch.maximum(u, v))

    def lift(self, u: Tensor) -> Tensor:
        return torch.cat((u, torch.ones_like(u)), -1)

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        first, size = state.chunk(2, -1)
        return torch.where(size == 1, first, self.alpha).to(dtype)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        _check_no_empty(self, multisets)
        return super().reduce(u, multisets)

    def power(self, u: Tensor, n: float) -> Tensor:
        return u if n == 1 else self.combine(u, u)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha.tolist()}"


class Maximum(Law):
    r"""The larger one: an idempotent semigroup with no identity among the real numbers.

    .. math:: u * v = \max(u, v)

    In :meth:`combine` and :meth:`reduce` equal largest elements share the gradient.

    Example:
        >>> Maximum().combine(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([2.])
    """

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return torch.maximum(u, v)

    def merge(self, state: Tensor, other: Tensor) -> Tensor:
        return torch.maximum(state, other)

    def gather(self, states: Tensor) -> Tensor:
        return states.amax(-2)

    def scatter(self, states: Tensor, index: Tensor, more: Tensor) -> Tensor:
        return states.scatter_reduce(0, index[:, None].expand_as(more), more, "amax")

    def empty(self, dim: int) -> Tensor:
        return torch.full((dim,), -math.inf, dtype=torch.float64)

    def reduce(self, u: Tensor, multisets: Multisets) -> Tensor:
        _check_no_empty(self, multisets)
        return self.lower(multisets.amax(self.lift(u)), u.dtype)

    def cumulative(self, u: Tensor) -> Tensor:
        return self.lower(self.lift(u).cummax(-2).values, u.dtype)

    def power(self, u: Tensor, n: float) -> Tensor:
        return u


class Minimum(Maximum):
    r"""The smaller one: :class:`Maximum` upside down.

    .. math:: u * v = \min(u, v)

    Example:
        >>> Minimum().combine(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([1.])
    """

    def combine(self, u: Tensor, v: Tensor) -> Tensor:
        return torch.minimum(u, v)

    def lift(self, u: Tensor) -> Tensor:
        return -u

    def lower(self, state: Tensor, dtype: torch.dtype) -> Tensor:
        return -state.to(dtype)


def _check_no_empty(law: Law, multisets: Multisets) -> None:
    if peek((multisets.sizes == 0).any(), False):
        raise AbelnetError(f"values: expected no empty set, since {law.name} has no identity, got one")


def _coefficient(name: str, value: float | Tensor, device: torch.device | None, dtype: torch.dtype | None) -> Tensor:
    tensor = torch.as_tensor(value, device=device, dtype=dtype or torch.float64).detach().reshape(-1).clone()
    if not tensor.isfinite().all():
        raise AbelnetError(f"{name}: expected finite numbers, got {tensor.tolist()}")
    return tensor


def _is_zero(factor: Tensor) -> Tensor:
    # Denormal factors count as zeros: the gradient of their logarithm would overflow.
    return factor.abs() < torch.finfo(factor.dtype).tiny


def _pack(log: Tensor, factor: Tensor, zero: Tensor) -> Tensor:
    """A product's running state: log-magnitudes, negative factors, zero factors, and the value of those zeros.

    The value makes the gradient right where a factor is zero.
    """
    negative = (factor < 0) & ~zero
    return torch.cat((log, negative.to(log.dtype), zero.to(log.dtype), torch.where(zero, factor, 0)), -1)


def _unpack(state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Log-magnitude and sign of the non-zero factors, number of zero factors, and the product of those."""
    log, negatives, zeros, rest = state.chunk(4, -1)
    return log, 1 - 2 * negatives.remainder(2), zeros, torch.where(zeros == 0, 1, torch.where(zeros == 1, rest, 0))


def _limit_beside_zeros(log: Tensor, zeros: Tensor, dtype: torch.dtype) -> Tensor:
    """Keeps the gradient finite where a zero makes the product 0, whatever the size of the other factors."""
    return torch.where(zeros == 0, log, log.clamp(max=math.log(torch.finfo(dtype).max)))


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
