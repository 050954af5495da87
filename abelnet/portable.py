"""Numbers and functions in a form that every exporter has, since ONNX lacks some of those of torch.

ONNX Runtime has inverse trigonometric and hyperbolic functions in float32 alone; others make them up in float64. ONNX
has neither log1p nor expm1: they would be exported as log(1 + x) and exp(x) - 1, which have no digits left near 0. The
sigmoid of ONNX Runtime has few digits far from 0.
"""

from __future__ import annotations

__all__ = [
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "exact",
    "expm1",
    "hypot",
    "log1p",
    "logaddexp",
    "next_above",
    "searchsorted",
    "sigmoid",
    "sinh",
    "solve",
]

import math

import torch
from torch import Tensor

# Beyond it the arc tangent is a right angle in float64.
_STEEP = 1e30
# A tensor made inside a loop cannot be exported.
_PI = torch.tensor(math.pi, dtype=torch.float64, device="cpu")


def _is_composed(x: Tensor) -> bool:
    return torch.compiler.is_exporting() and x.dtype == torch.float64


def arcsin(x: Tensor) -> Tensor:
    """Returns the arc sine."""
    return arctan(x / ((1 - x) * (1 + x)).sqrt()) if _is_composed(x) else torch.arcsin(x)


def arcsinh(x: Tensor) -> Tensor:
    """Returns the inverse hyperbolic sine."""
    if not _is_composed(x):
        return torch.arcsinh(x)
    size = x.abs()
    return x.sign() * log1p(size + size * (size / (1 + hypot(x, torch.ones_like(x)))))


def arctan(x: Tensor) -> Tensor:
    """Returns the arc tangent."""
    if not _is_composed(x):
        return torch.arctan(x)
    x = x.clamp(-_STEEP, _STEEP)
    angle = torch.arctan(x.float()).double()
    # What rounding to float32 left: the angle between (1, x) and the direction found, which is its own tangent.
    return angle + (x * angle.cos() - angle.sin()) / (angle.cos() + x * angle.sin())


def arctan2(y: Tensor, x: Tensor) -> Tensor:
    """Returns the angle of the point with coordinates x and y, the larger of which is about 1."""
    if not _is_composed(x):
        return torch.arctan2(y, x)
    length = hypot(x, y)
    # Half the angle is below a right angle; beyond the second axis it is measured from the negative half of the first.
    half = torch.where(x >= 0, y / (length + x.abs()), (length + x.abs()) / y)
    angle = 2 * arctan(half)
    flat = torch.where(x >= 0, torch.zeros_like(x), _PI.to(x.device))
    return torch.where(y == 0, flat, angle)


def arctanh(x: Tensor) -> Tensor:
    """Returns the inverse hyperbolic tangent."""
    return (log1p(x) - log1p(-x)) / 2 if _is_composed(x) else torch.arctanh(x)


def sinh(x: Tensor) -> Tensor:
    """Returns the hyperbolic sine."""
    return (x.exp() - (-x).exp()) / 2 if _is_composed(x) else torch.sinh(x)


def exact(number: float, like: Tensor) -> float | Tensor:
    """Returns a number beyond the range of float32, as a tensor while an operation is exported: ONNX would round it.

    Example:
        >>> exact(1e-150, torch.ones(1))
        1e-150
    """
    return torch.tensor(number, dtype=like.dtype, device=like.device) if torch.compiler.is_exporting() else number


def expm1(x: Tensor) -> Tensor:
    """Returns :math:`e^x - 1`, exact near 0.

    Example:
        >>> expm1(torch.tensor(1e-20)).item() > 0
        True
    """
    if not torch.compiler.is_exporting():
        return torch.expm1(x)
    power = x.exp()
    rest = power - 1
    # The rounding of the power is that of its logarithm, and cancels (Kahan). Far from 0 nothing is lost.
    near = (x.abs() < 1) & (rest != 0)
    return torch.where(near, rest * (x / torch.where(near, power, 2).log()), torch.where(x.abs() < 1, x, rest))


def hypot(a: Tensor, b: Tensor) -> Tensor:
    """Returns :math:`\\sqrt{a^2 + b^2}`, where the squares may overflow.

    Example:
        >>> hypot(torch.tensor(3e30), torch.tensor(4e30))
        tensor(5.0000e+30)
    """
    if not torch.compiler.is_exporting():
        return torch.hypot(a, b)
    large = torch.maximum(a.abs(), b.abs())
    unit = torch.where((large > 0) & (large < math.inf), large, 1)
    return large * ((a / unit).square() + (b / unit).square()).sqrt()


def log1p(x: Tensor) -> Tensor:
    """Returns :math:`\\log(1 + x)`, exact near 0.

    Example:
        >>> log1p(torch.tensor(1e-20)).item() > 0
        True
    """
    if not torch.compiler.is_exporting():
        return torch.log1p(x)
    total = 1 + x
    rest = total - 1
    # As with expm1, the rounding of the sum cancels.
    near = (x.abs() < 1) & (rest != 0)
    return torch.where(near, total.log() * (x / torch.where(near, rest, 1)), torch.where(x.abs() < 1, x, total.log()))


def logaddexp(a: Tensor, b: Tensor) -> Tensor:
    """Returns :math:`\\log(e^a + e^b)`; ONNX has no more than what it says, which overflows.

    Example:
        >>> logaddexp(torch.tensor(-1e5), torch.tensor(-1e5))
        tensor(-99999.3047)
    """
    if not torch.compiler.is_exporting():
        return torch.logaddexp(a, b)
    top = torch.maximum(a, b)
    return torch.where(top.abs() == math.inf, top, top + log1p((-(a - b).abs()).exp()))


def next_above(x: Tensor) -> Tensor:
    """Returns the next larger number in float64, or one that is larger by a few units of rounding if it is exported.

    Example:
        >>> (next_above(torch.tensor(1.0)) - 1).item()
        2.220446049250313e-16
    """
    x = x.double()
    if not torch.compiler.is_exporting():
        return torch.nextafter(x, x.new_full((), math.inf))
    limits = torch.finfo(x.dtype)
    return x + (x.abs() * exact(2 * limits.eps, x) + exact(limits.tiny, x))


def searchsorted(edges: Tensor, x: Tensor, *, right: bool = False) -> Tensor:
    """Returns how many of the ascending edges :math:`(k)` are below each number, or at most each if ``right``.

    Example:
        >>> searchsorted(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 2.0, 9.0])).tolist()
        [0, 1, 2]
    """
    if not torch.compiler.is_exporting():
        return torch.searchsorted(edges, x.contiguous(), right=right)
    return ((x[..., None] >= edges) if right else (x[..., None] > edges)).sum(-1)


def sigmoid(x: Tensor) -> Tensor:
    """Returns :math:`1 / (1 + e^{-x})`, exact where it is close to 0.

    Example:
        >>> sigmoid(torch.tensor(0.0))
        tensor(0.5000)
    """
    if not torch.compiler.is_exporting():
        return torch.sigmoid(x)
    power = (-x.abs()).exp()
    return torch.where(x >= 0, 1, power) / (1 + power)


def solve(matrices: Tensor, values: Tensor) -> Tensor:
    """Returns the solutions of small linear systems, which are not finite where there is none.

    Arguments:
        matrices: With shape :math:`(*, d, d)`.
        values: With shape :math:`(*, d)`.

    Example:
        >>> solve(torch.tensor([[0.0, 2.0], [1.0, 0.0]]), torch.tensor([6.0, 5.0]))
        tensor([5., 3.])
    """
    if not torch.compiler.is_exporting():
        found, info = torch.linalg.solve_ex(matrices, values[..., None])
        return torch.where(info[..., None] == 0, found[..., 0], math.nan)
    # Elimination in all rows by the one that has the largest number left in a column.
    rows = torch.cat((matrices, values[..., None]), -1)
    places = torch.arange(values.shape[-1], device=values.device)
    left, chosen = torch.ones_like(values, dtype=torch.bool), []
    for column in range(values.shape[-1]):
        size = torch.where(left, rows[..., column].abs(), -1)
        is_pivot = size.argmax(-1, keepdim=True) == places
        pivot = torch.where(is_pivot[..., None], rows, 0).sum(-2, keepdim=True)
        pivot = pivot / pivot[..., column, None]
        rows = torch.where(is_pivot[..., None], pivot, rows - rows[..., column, None] * pivot)
        left = left & ~is_pivot
        chosen.append(is_pivot)
    return torch.stack([torch.where(one, rows[..., -1], 0).sum(-1) for one in chosen], -1)
