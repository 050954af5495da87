r"""Stack of DeepSets models, trained as one module.

Models of different widths share a stack by exact padding: padded entries start at zero, get no gradient, and stay zero.
"""

from __future__ import annotations

__all__ = ["DeepSetsStack"]

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from abelnet.errors import AbelnetError
from abelnet.nn.baselines import MLP, DeepSets
from abelnet.training.stacks import ModelStack


class DeepSetsStack(ModelStack[DeepSets]):
    """Stack of DeepSets models, sorted from deepest to shallowest.

    Narrower networks are padded with zeros, which ReLU preserves. Shallower ones skip hidden layers: since models are
    sorted by depth, those that have a layer come first, and each layer is computed for these only.

    Arguments:
        models: Models on single numbers with two or more layers, the deeper ones first.

    Example:
        >>> models = [DeepSets(1, 4, middle=4, hidden=8, seed=0), DeepSets(1, 2, middle=6, hidden=5, seed=1)]
        >>> stack = DeepSetsStack(models)
        >>> x, mask = torch.randn(2, 7, 3), torch.ones(2, 7, 3, dtype=torch.bool)
        >>> torch.allclose(stack(x, mask)[1], models[1](x[1, ..., None])[:, 0], atol=1e-6)
        True
    """

    def __init__(self, models: Sequence[DeepSets]) -> None:
        super().__init__()
        depths = [len(model.inner.weights) for model in models]
        if depths != sorted(depths, reverse=True) or depths[-1] < 2:
            raise AbelnetError(f"models: expected the deeper ones first, with two or more layers, got depths {depths}")
        if {model.inner.widths[0] for model in models} != {1}:
            widths = sorted({model.inner.widths[0] for model in models})
            raise AbelnetError(f"models: expected models on single numbers, got dimensions {widths}")
        self.inner = _MLPStack([model.inner for model in models])
        self.outer = _MLPStack([model.outer for model in models])

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Maps multisets of numbers :math:`(M, B, n)`, with a mask of the same shape, to :math:`(M, B)`."""
        # Elements before sets: the sum over elements then runs along contiguous rows.
        columns = torch.where(mask, values, 0).mT.flatten(1)[:, None]
        there = mask.mT.to(values.dtype, memory_format=torch.contiguous_format)
        result: Tensor = self.outer(self.inner(columns, there))
        return result[:, 0]

    def select(self, mask: Tensor) -> None:
        for p in self.parameters():
            p.data = p.data[mask[: len(p)]]

    @torch.no_grad()
    def unstack(self, models: Sequence[DeepSets]) -> None:
        self.inner.unstack([model.inner for model in models])
        self.outer.unstack([model.outer for model in models])


class _MLPStack(nn.Module):
    """Stack of networks on columns: :math:`(M, d, N)` to :math:`(M, d', N)`, or to sums over sets of columns."""

    def __init__(self, networks: Sequence[MLP]) -> None:
        super().__init__()
        first = networks[0]
        width_in, hidden, width_out = (max(network.widths[i] for network in networks) for i in (0, 1, -1))
        widths = [width_in, *[hidden] * (len(first.widths) - 2), width_out]
        like = first.weights[0]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for layer, (before, width) in enumerate(pairwise(widths)):
            last = layer == len(widths) - 2
            count = sum(last or layer < len(network.weights) - 1 for network in networks)
            self.weights.append(like.new_zeros(count, width, before))
            self.biases.append(like.new_zeros(count, width, 1))
        with torch.no_grad():
            for target, source in self._pairs(networks):
                target[tuple(slice(n) for n in source.shape)] = source

    def forward(self, x: Tensor, there: Tensor | None = None) -> Tensor:
        """Maps columns :math:`(M, d, N)`; with a mask :math:`(M, n, B)`, :math:`N = nB`, sums results per set."""
        parameters = (*self.weights, *self.biases)
        result: Tensor = _Layers.apply(x, there, *parameters)  # type: ignore[no-untyped-call]
        return result

    def unstack(self, networks: Sequence[MLP]) -> None:
        for source, target in self._pairs(networks):
            target.copy_(source[tuple(slice(n) for n in target.shape)])

    def _pairs(self, networks: Sequence[MLP]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields each parameter of each network with its place here; last layers share the last place."""
        for i, network in enumerate(networks):
            places = [*range(len(network.weights) - 1), len(self.weights) - 1]
            for place, weight, bias in zip(places, network.weights, network.biases, strict=True):
                yield self.weights[place][i], weight
                yield self.biases[place][i], bias


class _Layers(torch.autograd.Function):
    """Layers of many networks as one autograd node: with small models most time is overhead per node.

    The last layer is affine, so if results are summed it is applied to the sums of its inputs, which are fewer.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor | None, *parameters: Tensor) -> Tensor:
        depth = len(parameters) // 2
        weights, biases = parameters[:depth], parameters[depth:]
        inputs = [x]
        columns = x.shape[-1] if there is None else there.shape[-1]
        last = x.new_empty(len(x), weights[-1].shape[-1], columns)
        for i in range(depth - 1):
            # An outer product needs no matrix product.
            product = torch.addcmul if weights[i].shape[-1] == 1 else torch.baddbmm
            inputs.append(product(biases[i], weights[i], _first(inputs[-1], len(weights[i]))).relu_())
            done = _done_after(weights, i)
            if done.start == done.stop:
                continue
            output = inputs[-1][done]
            if there is None:
                last[done] = output
            else:
                output = output.view(*output.shape[:2], *there.shape[1:])
                torch.sum(output.mul_(there[done, None]), 2, out=last[done])
        sizes = None if there is None else there.sum(1, keepdim=True)
        ctx.shape = (1, columns) if there is None else there.shape[1:]
        ctx.save_for_backward(*inputs, last, *weights, sizes)
        return torch.baddbmm(biases[-1] if sizes is None else biases[-1] * sizes, weights[-1], last)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        depth = len(saved) // 2 - 1
        inputs, last, weights, sizes = saved[:depth], saved[depth], saved[depth + 1 : -1], saved[-1]
        by_weights = [torch.bmm(gradient, last.mT)]
        by_biases = [gradient.sum(-1, keepdim=True) if sizes is None else torch.bmm(gradient, sizes.mT)]
        by_last = torch.bmm(weights[-1].mT, gradient)
        for i in reversed(range(depth - 1)):
            output, done = inputs[i + 1], _done_after(weights, i)
            through = torch.empty_like(output)
            if done.start > 0:
                ahead = _first(through, done.start)
                torch.bmm(weights[i + 1].mT, gradient, out=ahead)
                _through_relu(ahead, _first(output, done.start), ahead)
            if done.start < done.stop:
                shape = (done.stop - done.start, output.shape[1], *ctx.shape)
                _through_relu(
                    by_last[done].view(*shape[:2], 1, -1), output[done].view(shape), through[done].view(shape)
                )
            gradient = through
            by_weights.append(torch.bmm(gradient, _first(inputs[i], len(gradient)).mT))
            by_biases.append(gradient.sum(-1, keepdim=True))
        by_input = torch.bmm(weights[0].mT, gradient) if ctx.needs_input_grad[0] else None
        return (by_input, None, *reversed(by_weights), *reversed(by_biases))


def _first(x: Tensor, count: int) -> Tensor:
    return x if len(x) == count else x[:count]


def _done_after(weights: Sequence[Tensor], layer: int) -> slice:
    """Returns the models whose last hidden layer this is: those that the next hidden layer does not cover."""
    return slice(len(weights[layer + 1]) if layer + 2 < len(weights) else 0, len(weights[layer]))


def _through_relu(gradient: Tensor, output: Tensor, result: Tensor) -> None:
    """Writes the gradient where the output is above 0, and 0 elsewhere, also where a mask has zeroed the output."""
    torch.ops.aten.threshold_backward.grad_input(gradient.expand_as(output), output, 0, grad_input=result)
