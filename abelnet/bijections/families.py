r"""The generators of the laws of practice: few parameters, exact, and at home only where they are defined."""

from __future__ import annotations

__all__ = ["GENERATORS", "Generator", "GeneratorKind"]

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from abelnet.bijections.base import Elementwise
from abelnet.checks import check_values, peek
from abelnet.errors import AbelnetError

Number = float | Tensor


@dataclass(frozen=True)
class GeneratorKind:
    """A family of generators :math:`g_\\theta`, as functions of values and parameters.

    Attributes:
        parameters: Names of the parameters :math:`\\theta`.
        formula: What it is, in words of the parameters.
        forward: :math:`g_\\theta(x)`.
        inverse: :math:`g_\\theta^{-1}(u)`; NaN where :math:`u` is no value of :math:`g_\\theta`.
        log_slope: :math:`\\log |g_\\theta'(x)|`.
        domain: Lowest and highest :math:`x`, exclusive.
    """

    parameters: tuple[str, ...]
    formula: str
    forward: Callable[..., Tensor]
    inverse: Callable[..., Tensor]
    log_slope: Callable[..., Tensor]
    domain: Callable[..., tuple[Number, Number]]


def _everywhere(*_: Number) -> tuple[float, float]:
    return -math.inf, math.inf


def _log_cosh(x: Tensor) -> Tensor:
    x = x.abs()
    return x + torch.log1p(torch.exp(-2 * x)) - math.log(2)


GENERATORS: dict[str, GeneratorKind] = {
    "affine": GeneratorKind((), "x", lambda x: x * 1, lambda u: u * 1, lambda x: torch.zeros_like(x), _everywhere),
    "power": GeneratorKind(
        ("p",),
        "sign(x) |x|^p",
        lambda x, p: x.sign() * x.abs() ** p,
        lambda u, p: u.sign() * u.abs() ** (1 / p),
        lambda x, p: torch.log(abs(torch.as_tensor(p))) + (p - 1) * x.abs().log(),
        # A power below zero turns the line inside out at 0.
        lambda p: (-math.inf if float(torch.as_tensor(p).min()) > 0 else 0.0, math.inf),
    ),
    "exponential": GeneratorKind(
        ("k",),
        "exp(k x)",
        lambda x, k: torch.exp(k * x),
        lambda u, k: torch.where(u > 0, u, math.nan).log() / k,
        lambda x, k: torch.log(abs(torch.as_tensor(k))) + k * x,
        _everywhere,
    ),
    "logarithm": GeneratorKind(
        ("c",),
        "log(x + c)",
        lambda x, c: torch.log(x + c),
        lambda u, c: torch.exp(u) - c,
        lambda x, c: -torch.log(x + c),
        lambda c: (-c, math.inf),
    ),
    "logit": GeneratorKind(
        (),
        "log(x / (1 - x))",
        lambda x: torch.log(x) - torch.log1p(-x),
        lambda u: torch.sigmoid(u),
        lambda x: -torch.log(x) - torch.log1p(-x),
        lambda: (0.0, 1.0),
    ),
    "arctanh": GeneratorKind(
        ("c",),
        "arctanh(x / c)",
        lambda x, c: torch.arctanh(x / c),
        lambda u, c: torch.tanh(u) * c,
        lambda x, c: -torch.log(c * (1 - (x / c) ** 2)),
        lambda c: (-c, c),
    ),
    "arcsinh": GeneratorKind(
        ("c",),
        "arcsinh(x / c)",
        lambda x, c: torch.arcsinh(x / c),
        lambda u, c: torch.sinh(u) * c,
        lambda x, c: -_log_cosh(torch.arcsinh(x / c)) - torch.log(torch.as_tensor(c)),
        _everywhere,
    ),
}


class Generator(Elementwise):
    r"""A generator of a known family, one per dimension.

    ================  ===========================================  =========================
    kind              :math:`g(x)`                                 where
    ================  ===========================================  =========================
    ``affine``        :math:`x`                                    everywhere
    ``power``         :math:`\operatorname{sign}(x) |x|^p`         everywhere; :math:`x > 0` for :math:`p < 0`
    ``exponential``   :math:`e^{k x}`                              everywhere
    ``logarithm``     :math:`\log(x + c)`                          :math:`x > -c`
    ``logit``         :math:`\log(x / (1 - x))`                    :math:`0 < x < 1`
    ``arctanh``       :math:`\operatorname{arctanh}(x / c)`        :math:`|x| < c`
    ``arcsinh``       :math:`\operatorname{arcsinh}(x / c)`        everywhere
    ================  ===========================================  =========================

    Unlike other bijections it need not reach all real numbers: what lies beyond its values has no inverse, and
    :meth:`inverse` says NaN there.

    Arguments:
        dim: Number of dimensions :math:`d`.
        kind: One of the names above.
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
        kind: str,
        parameters: Sequence[Number] = (),
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim)
        if kind not in GENERATORS:
            raise AbelnetError(f"kind: expected one of {', '.join(GENERATORS)}, got {kind!r}")
        self.kind = kind
        names = GENERATORS[kind].parameters
        if len(parameters) != len(names):
            raise AbelnetError(
                f"parameters: expected {len(names)} of {kind} ({', '.join(names)}), got {len(parameters)}"
            )
        self.values = nn.ParameterList()
        for name, value in zip(names, parameters, strict=True):
            start = torch.as_tensor(value, dtype=dtype, device=device).expand(dim).clone()
            if not bool((start.isfinite() & ((start != 0) if name in "pk" else True)).all()):
                raise AbelnetError(f"{name}: expected a finite number other than 0, got {start.tolist()}")
            self.values.append(start)

    def forward(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        self._check_domain(x)
        return GENERATORS[self.kind].forward(x, *self.values)

    def inverse(self, y: Tensor) -> Tensor:
        check_values("y", y, self.dim)
        return GENERATORS[self.kind].inverse(y, *self.values)

    def log_slope(self, x: Tensor) -> Tensor:
        check_values("x", x, self.dim)
        return GENERATORS[self.kind].log_slope(x, *self.values).expand_as(x)

    def extra_repr(self) -> str:
        names = GENERATORS[self.kind].parameters
        values = (f"{name}={value.tolist()}" for name, value in zip(names, self.values, strict=True))
        return ", ".join((f"dim={self.dim}", f"kind={self.kind}", *values))

    def _check_domain(self, x: Tensor) -> None:
        low, high = GENERATORS[self.kind].domain(*(value.detach() for value in self.values))
        outside = ((x <= low) | (x >= high)).any()
        if peek(outside, False):
            ends = [float(torch.as_tensor(end).reshape(-1)[0]) for end in (low, high)]
            raise AbelnetError(
                f"x: expected values between {ends[0]:g} and {ends[1]:g}, where {GENERATORS[self.kind].formula} is "
                f"defined, got {float(x.min()):g} to {float(x.max()):g}"
            )
