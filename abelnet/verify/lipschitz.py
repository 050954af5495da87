r"""Proved Lipschitz constants of a bijection on a region: exact for curves, upper bounds for maps of vectors.

The bounds come from :meth:`~abelnet.Bijection.slope_bounds`; sampled lower bounds show how loose they can be at most.
The bounds are proved in exact arithmetic; rounding is not accounted for.
"""

from __future__ import annotations

__all__ = ["Lipschitz", "lipschitz"]

from dataclasses import dataclass

import torch
from torch import Tensor

from abelnet.bijections import Bijection
from abelnet.bijections.slopes import EVERYWHERE, Region
from abelnet.errors import AbelnetError


@dataclass(frozen=True)
class Lipschitz:
    """Lipschitz constants of a bijection on a region and of its inverse on the values there, in the Euclidean norm.

    Attributes:
        forward: Proved upper bound on the constant :math:`K_1` of the bijection.
        inverse: Proved upper bound on the constant :math:`K_2` of its inverse.
        forward_sampled: Largest norm of the Jacobian at sampled points, a lower bound on :math:`K_1`.
        inverse_sampled: Likewise for the inverse, a lower bound on :math:`K_2`.
        exact: Whether the proved bounds are attained.
    """

    forward: float
    inverse: float
    forward_sampled: float
    inverse_sampled: float
    exact: bool

    @property
    def statement(self) -> str:
        """The proved and the sampled constants."""
        sign = "=" if self.exact else "≤"
        return (
            f"proved: K1 {sign} {self.forward:.6g}, K2 {sign} {self.inverse:.6g}; "
            f"sampled: K1 ≥ {self.forward_sampled:.6g}, K2 ≥ {self.inverse_sampled:.6g}"
        )


@torch.no_grad()
def lipschitz(bijection: Bijection, region: Region = EVERYWHERE, *, samples: int = 256, seed: int = 0) -> Lipschitz:
    r"""Bounds the Lipschitz constants of a bijection on a box, and of its inverse on the bounding box of the image.

    .. math:: |f(x) - f(y)| \le K_1 |x - y|, \qquad |f^{-1}(u) - f^{-1}(v)| \le K_2 |u - v|

    Exact for ``Affine``, ``SinhArcsinh``, ``Generator``, ``Monotonic`` and ``RationalQuadraticSpline``. A chain of
    these is cut into short pieces, on which the slopes of its parts multiply. ``Triangular`` is bounded by interval
    arithmetic on cells of the box. Couplings are bounded layer by layer, which may be far from tight; the sampled
    constants show how far at most.

    Arguments:
        bijection: The map :math:`f`.
        region: Lower and upper corner, numbers or tensors with shape :math:`(d)`; may be infinite.
        samples: Number of points for the sampled lower bounds.
        seed: Random seed of the sampled points.

    Example:
        >>> from abelnet import SinhArcsinh
        >>> bijection = SinhArcsinh(1, dtype=torch.float64)
        >>> _ = torch.nn.init.constant_(bijection.log_tail, torch.log(torch.tensor(3.0)))
        >>> constants = lipschitz(bijection, (-1.0, 1.0))
        >>> round(constants.forward, 6), constants.inverse  # cosh(3 t) / cosh(t) = 4 cosh²(t) - 3, with sinh(t) = 1
        (5.0, 1.0)
    """
    bijection = bijection.snapshot()
    low, high = _box(region, bijection.dim)
    forward, *image = bijection.slope_bounds((low, high))
    inverse = bijection.inverse_slope_bounds((image[0], image[1])).norm
    generator = torch.Generator().manual_seed(seed)
    draw = torch.rand(samples, bijection.dim, generator=generator, dtype=torch.float64)
    near, far = low.clamp(min=-1e3), high.clamp(max=1e3)
    values = torch.linalg.svdvals(_jacobians(bijection, near + draw * (far - near)))
    return Lipschitz(
        forward,
        inverse,
        float(values.max()),
        1 / float(values.min()),
        bijection.is_elementwise and len(bijection.curves()) == 1,
    )


def _box(region: Region, dim: int) -> tuple[Tensor, Tensor]:
    low, high = (torch.as_tensor(end, dtype=torch.float64).expand(dim).clone() for end in region)
    if not bool((low < high).all()):
        raise AbelnetError(f"region: expected the lower corner below the upper one, got {region}")
    return low, high


def _jacobians(bijection: Bijection, points: Tensor) -> Tensor:
    """Returns Jacobians at points, :math:`(n, d)` to :math:`(n, d, d)`: rows are independent, so one sum suffices."""
    jacobian: Tensor = torch.autograd.functional.jacobian(lambda x: bijection(x).sum(0), points)  # type: ignore[no-untyped-call]
    return jacobian.transpose(0, 1)
