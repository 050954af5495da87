r"""Baselines of the paper: multilayer perceptrons, and DeepSets built from two of them."""

from __future__ import annotations

__all__ = ["MLP", "DeepSets"]

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn

from abelnet.bijections.base import draw_seeds, seeded
from abelnet.checks import check_one_dtype, check_values
from abelnet.config import Configurable
from abelnet.errors import AbelnetError


class MLP(Configurable, nn.Module):
    r"""Multilayer perceptron with ReLU activations.

    .. math:: f(x) = W_L \operatorname{relu}(\dots \operatorname{relu}(W_1 x + b_1) \dots) + b_L

    Arguments:
        widths: Widths of the input, the hidden layers and the output.
        initialization: ``"linear"`` draws parameters as ``nn.Linear`` does, ``"he"`` as suits ReLU (He et al., 2015):
            with weights of standard deviation :math:`\sqrt{2 / m}` for :math:`m` inputs, and biases of 0, many layers
            keep the size of what they pass on.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> MLP([2, 8, 3], seed=0)(torch.randn(5, 2)).shape
        torch.Size([5, 3])
    """

    def __init__(
        self,
        widths: Sequence[int],
        initialization: Literal["linear", "he"] = "linear",
        *,
        seed: int | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if len(widths) < 2 or min(widths) < 1:
            raise AbelnetError(f"widths: expected two or more positive numbers, got {list(widths)}")
        if initialization not in ("linear", "he"):
            raise AbelnetError(f'initialization: expected "linear" or "he", got {initialization!r}')
        self.widths, self.initialization = list(widths), initialization
        pairs = list(pairwise(widths))
        self.weights = nn.ParameterList(torch.empty(b, a, device=device, dtype=dtype) for a, b in pairs)
        self.biases = nn.ParameterList(torch.empty(b, 1, device=device, dtype=dtype) for _, b in pairs)
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Draws initial parameters."""
        generator = seeded(seed, self.biases[0].device)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            if self.initialization == "he":
                nn.init.kaiming_uniform_(weight, nonlinearity="relu", generator=generator)
                nn.init.zeros_(bias)
                continue
            bound = 1 / math.sqrt(weight.shape[-1])
            nn.init.uniform_(weight, -bound, bound, generator=generator)
            nn.init.uniform_(bias, -bound, bound, generator=generator)

    def check_state(self) -> None:
        check_one_dtype("parameters", self)

    def forward(self, x: Tensor) -> Tensor:
        """Maps :math:`(*, d)` to :math:`(*, d')`."""
        check_values("x", x, self.widths[0])
        columns = x.reshape(-1, x.shape[-1]).t()
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            columns = torch.addmm(bias, weight, columns)
            if i < last:
                columns = columns.relu_()
        return columns.t().reshape(*x.shape[:-1], self.widths[-1])

    def config(self) -> dict[str, Any]:
        return {"widths": self.widths, "initialization": self.initialization}

    def extra_repr(self) -> str:
        return f"widths={self.widths}"


class DeepSets(Configurable, nn.Module):
    r"""Permutation-invariant function of a multiset by sum pooling, the baseline of the paper.

    .. math:: f(\{x_1, \dots, x_n\}) = \rho\Big(\sum_i \varphi(x_i)\Big)

    References:
        Zaheer et al., Deep sets, NeurIPS 2017.

    Arguments:
        dim: Number of dimensions :math:`d` of elements and results.
        layers: Number of linear layers of :math:`\varphi` and of :math:`\rho`.
        middle: Width of the pooled sum.
        hidden: Width of the hidden layers.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> DeepSets(1, layers=3, middle=8, hidden=16, seed=0)(torch.randn(5, 4, 1)).shape
        torch.Size([5, 1])
    """

    def __init__(
        self,
        dim: int,
        layers: int = 3,
        middle: int = 16,
        hidden: int = 16,
        *,
        seed: int | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise AbelnetError(f"layers: expected at least 1, got {layers}")
        between = [hidden] * (layers - 1)
        first, second = (None, None) if seed is None else draw_seeds(seed, 2)
        self.inner = MLP([dim, *between, middle], seed=first, device=device, dtype=dtype)
        self.outer = MLP([middle, *between, dim], seed=second, device=device, dtype=dtype)

    def check_state(self) -> None:
        check_one_dtype("parameters", self)

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Maps multisets :math:`(*, n, d)`, with a boolean mask :math:`(*, n)`, to :math:`(*, d)`."""
        check_values("values", values, self.inner.widths[0])
        if mask is None:
            return self.outer(self.inner(values).sum(-2))  # type: ignore[no-any-return]
        values = torch.where(mask[..., None], values, 0)
        return self.outer((self.inner(values) * mask[..., None]).sum(-2))  # type: ignore[no-any-return]

    def config(self) -> dict[str, Any]:
        dim, *between, middle = self.inner.widths
        # Without hidden layers their width is nowhere to be seen, and makes no difference.
        hidden = between[0] if between else 1
        return {"dim": dim, "layers": len(between) + 1, "middle": middle, "hidden": hidden}
