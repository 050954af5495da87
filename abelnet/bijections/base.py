r"""What a bijection is, and how to chain several."""

from __future__ import annotations

__all__ = ["Bijection", "Chain", "Elementwise"]

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Self, cast

from torch import Tensor, nn

from abelnet.checks import check_count
from abelnet.errors import AbelnetError


class Bijection(nn.Module, ABC):
    r"""A trainable invertible map :math:`f: \mathbb{R}^d \to \mathbb{R}^d` with an analytic inverse.

    Subclasses give :meth:`forward`, :meth:`inverse` and :meth:`log_abs_det`, all for any leading dimensions, and keep
    nothing that is derived from parameters between calls.

    Arguments:
        dim: Number of dimensions :math:`d`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = check_count("dim", dim)

    @property
    def is_elementwise(self) -> bool:
        """Whether it maps each dimension by itself."""
        return False

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Maps :math:`x` of shape :math:`(*, d)` to :math:`f(x)`."""

    @abstractmethod
    def inverse(self, y: Tensor) -> Tensor:
        """Maps :math:`y` of shape :math:`(*, d)` to :math:`f^{-1}(y)`."""

    @abstractmethod
    def log_abs_det(self, x: Tensor) -> Tensor:
        r"""The log-volume change :math:`\log |\det \partial f / \partial x|`, with shape :math:`(*)`."""

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Elementwise(Bijection):
    r"""A bijection that maps each dimension by a curve of its own: :math:`f(x)_i = f_i(x_i)`."""

    @property
    def is_elementwise(self) -> bool:
        return True

    @abstractmethod
    def log_slope(self, x: Tensor) -> Tensor:
        r"""The slopes :math:`\log |f_i'(x_i)|`, with shape :math:`(*, d)`."""

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
        """Keeps only the dimensions of a boolean mask :math:`(d)` of a stacked bijection."""
        raise AbelnetError(f"select: expected a class that can be stacked, got {type(self).__name__}")


class Chain(Bijection):
    r"""One bijection after another.

    .. math:: f(x) = f_k(\dots f_2(f_1(x)))

    Arguments:
        bijections: The maps :math:`f_1, \dots, f_k`, all of the same number of dimensions.

    Example:
        >>> import torch
        >>> from abelnet import Affine, SinhArcsinh
        >>> bijection = Chain(Affine(2), SinhArcsinh(2), Affine(2))
        >>> x = torch.randn(5, 2)
        >>> torch.allclose(bijection.inverse(bijection(x)), x, atol=1e-6)
        True
    """

    def __init__(self, *bijections: Bijection) -> None:
        for bijection in bijections:
            if not isinstance(bijection, Bijection):
                raise AbelnetError(f"bijections: expected each a Bijection, got {type(bijection).__name__}")
        dims = {bijection.dim for bijection in bijections}
        if len(dims) != 1:
            raise AbelnetError(f"bijections: expected one or more of equal dimension, got dimensions {sorted(dims)}")
        super().__init__(dims.pop())
        self.bijections = nn.ModuleList(bijections)

    @property
    def is_elementwise(self) -> bool:
        return all(bijection.is_elementwise for bijection in self)

    def __iter__(self) -> Iterator[Bijection]:
        return iter(cast("list[Bijection]", list(self.bijections)))

    def forward(self, x: Tensor) -> Tensor:
        for bijection in self:
            x = bijection(x)
        return x

    def inverse(self, y: Tensor) -> Tensor:
        for bijection in reversed(list(self)):
            y = bijection.inverse(y)
        return y

    def log_abs_det(self, x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[:-1])
        for bijection in self:
            total = total + bijection.log_abs_det(x)
            x = bijection(x)
        return total

    def extra_repr(self) -> str:
        return ""
