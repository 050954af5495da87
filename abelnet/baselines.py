r"""The paper's rivals: multilayer perceptrons, and DeepSets made of two of them."""

from __future__ import annotations

__all__ = ["MLP", "DeepSets"]

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from abelnet.errors import AbelnetError, check_values


class MLP(nn.Module):
    r"""A multilayer perceptron with ReLU between its layers, or many of them side by side.

    .. math:: f(x) = W_L \operatorname{relu}(\dots \operatorname{relu}(W_1 x + b_1) \dots) + b_L

    With a list of seeds it holds one network for each, whose parameters have a leading dimension :math:`M`, and maps
    :math:`(M, *, d)` to :math:`(M, *, d')`: network :math:`m` sees the :math:`m`-th input only.

    Arguments:
        widths: Width of the input, of each hidden layer, and of the output.
        seed: Fixes the start; a list of seeds makes as many networks. Otherwise torch's own random state does.

    Example:
        >>> MLP([2, 8, 3], seed=0)(torch.randn(5, 2)).shape
        torch.Size([5, 3])
        >>> MLP([2, 8, 3], seed=[0, 1])(torch.randn(2, 5, 2)).shape
        torch.Size([2, 5, 3])
    """

    def __init__(
        self,
        widths: Sequence[int],
        *,
        seed: int | Sequence[int] | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if len(widths) < 2 or min(widths) < 1:
            raise AbelnetError(f"widths: expected two or more positive numbers, got {list(widths)}")
        self.widths = list(widths)
        self.models = None if seed is None or isinstance(seed, int) else len(seed)
        self._lead = () if self.models is None else (self.models,)
        pairs = list(pairwise(widths))
        self.weights = nn.ParameterList(torch.empty(*self._lead, b, a, device=device, dtype=dtype) for a, b in pairs)
        self.biases = nn.ParameterList(torch.empty(*self._lead, b, 1, device=device, dtype=dtype) for _, b in pairs)
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int | Sequence[int] | None = None) -> None:
        """Start with the weights of ``nn.Linear``, each network by its own seed."""
        seeds = [seed] if seed is None or isinstance(seed, int) else seed
        for i, one in enumerate(seeds):
            generator = None if one is None else torch.Generator(self.biases[0].device).manual_seed(one)
            for weight, bias in zip(self.weights, self.biases, strict=True):
                bound = 1 / math.sqrt(weight.shape[-1])
                for parameter in (weight, bias):
                    target = parameter if self.models is None else parameter[i]
                    with torch.no_grad():
                        target.uniform_(-bound, bound, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """Maps :math:`(*, d)` to :math:`(*, d')`, or :math:`(M, *, d)` to :math:`(M, *, d')`."""
        check_values("x", x, self.widths[0])
        rows = x.reshape(*self._lead, -1, x.shape[-1])
        return self.forward_columns(rows.mT).mT.reshape(*x.shape[:-1], self.widths[-1])

    def forward_columns(self, x: Tensor) -> Tensor:
        """Maps columns :math:`(d, N)` to :math:`(d', N)`, or :math:`(M, d, N)` to :math:`(M, d', N)`."""
        if self.models is not None:
            result: Tensor = _Layers.apply(x, *self.weights, *self.biases)  # type: ignore[no-untyped-call]
            return result
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.addmm(bias, weight, x)
            if i < last:
                x = x.relu_()
        return x

    def extra_repr(self) -> str:
        return f"widths={self.widths}" + ("" if self.models is None else f", models={self.models}")


class _Layers(torch.autograd.Function):
    """The layers of many networks as one node: with small models most time goes into nodes, not into arithmetic."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        depth = len(parameters) // 2
        inputs = []
        for i, (weight, bias) in enumerate(zip(parameters[:depth], parameters[depth:], strict=True)):
            inputs.append(x)
            # An outer product is no work for a matrix product.
            product = torch.addcmul if weight.shape[-1] == 1 else torch.baddbmm
            x = product(bias, weight, x)
            if i < depth - 1:
                x.relu_()
        ctx.save_for_backward(*inputs, *parameters[:depth])
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        depth = len(ctx.saved_tensors) // 2
        inputs, weights = ctx.saved_tensors[:depth], ctx.saved_tensors[depth:]
        by_weights, by_biases = [], []
        for i in reversed(range(depth)):
            by_weights.append(torch.bmm(gradient, inputs[i].mT))
            by_biases.append(gradient.sum(-1, keepdim=True))
            if i > 0:
                gradient = torch.bmm(weights[i].mT, gradient)
                torch.ops.aten.threshold_backward.grad_input(gradient, inputs[i], 0, grad_input=gradient)
        by_input = torch.bmm(weights[0].mT, gradient) if ctx.needs_input_grad[0] else None
        return (by_input, *reversed(by_weights), *reversed(by_biases))


class DeepSets(nn.Module):
    r"""A permutation invariant function of a multiset, the baseline of the paper.

    .. math:: f(\{x_1, \dots, x_n\}) = \rho\Big(\sum_i \varphi(x_i)\Big)

    References:
        Zaheer et al., Deep sets, NeurIPS 2017.

    Arguments:
        dim: Number of dimensions :math:`d` of an element and of the result.
        layers: Number of linear layers of :math:`\varphi` and of :math:`\rho`.
        middle: Width of the sum.
        hidden: Width of the hidden layers.
        seed: Fixes the start; a list of seeds makes as many models side by side, as in :class:`MLP`.

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
        seed: int | Sequence[int] | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise AbelnetError(f"layers: expected at least 1, got {layers}")
        between = [hidden] * (layers - 1)
        first: int | list[int] | None
        second: int | list[int] | None
        if seed is None or isinstance(seed, int):
            first, second = _two_seeds(seed)
        else:
            first, second = (list(seeds) for seeds in zip(*map(_two_seeds, seed), strict=True))
        self.inner = MLP([dim, *between, middle], seed=first, device=device, dtype=dtype)
        self.outer = MLP([middle, *between, dim], seed=second, device=device, dtype=dtype)

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Maps multisets :math:`(*, n, d)`, with a boolean mask :math:`(*, n)`, to :math:`(*, d)`."""
        check_values("values", values, self.inner.widths[0])
        if mask is not None:
            values = torch.where(mask[..., None], values, 0)
        *lead, n, d = values.shape
        models = () if self.inner.models is None else (self.inner.models,)
        # Elements before sets: the sum over elements then runs along contiguous rows.
        columns = values.reshape(*models, -1, n, d).movedim(-1, -3).mT
        u = self.inner.forward_columns(columns.reshape(*models, d, -1))
        u = u.reshape(*u.shape[:-1], n, -1)
        if mask is not None:
            u = u * mask.reshape(*models, 1, -1, n).mT
        return self.outer.forward_columns(u.sum(-2)).mT.reshape(*lead, d)


def _two_seeds(seed: int | None) -> tuple[int | None, int | None]:
    if seed is None:
        return None, None
    drawn = torch.randint(2**62, (2,), generator=torch.Generator().manual_seed(seed)).tolist()
    return drawn[0], drawn[1]
