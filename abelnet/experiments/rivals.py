"""Aggregations of other packages and papers, the rivals of ours in experiments, behind one interface.

An aggregation is a module called as ``aggregation(values, index=..., dim_size=...)``, with values of shape
:math:`(m, c)` sorted by index, that returns :math:`(n, c)`. Rivals are those of PyTorch Geometric and genagg, imported
on use. LCM is mended: it pads sets to the largest of the batch, so that results depend on others; here padding is left
out.
"""

from __future__ import annotations

__all__ = [
    "PYG",
    "Between",
    "Monoid",
    "QuasiArithmeticMean",
    "check_packages",
    "make_genagg",
    "make_pna",
    "make_pyg",
]

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from abelnet.bijections import RationalQuadraticSpline
from abelnet.errors import AbelnetError
from abelnet.laws import Mean
from abelnet.operation import Operation

PYG = "torch_geometric"
"""Package of most rivals."""


def check_packages(packages: Mapping[str, Sequence[str]], extra: str) -> None:
    """Raises unless the packages of models, by their names, are installed; an extra of abelnet installs them all."""
    for name, wanted in packages.items():
        for package in wanted:
            if importlib.util.find_spec(package) is None:
                raise AbelnetError(
                    f"model: expected the package {package} for {name!r}, got none; "
                    f'pip install "abelnet[{extra}]", or choose other models'
                )


class _Called(nn.Module):
    """Aggregation of PyTorch Geometric, called as ours are."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, values: Tensor, *, index: Tensor, dim_size: int) -> Tensor:
        result: Tensor = self.inner(values, index=index, dim_size=dim_size)
        return result


class Between(nn.Module):
    """Aggregation between two maps."""

    def __init__(self, inner: nn.Module, before: nn.Module | None = None, after: nn.Module | None = None) -> None:
        super().__init__()
        self.before = before or nn.Identity()
        self.inner = inner
        self.after = after or nn.Identity()

    def forward(self, values: Tensor, *, index: Tensor, dim_size: int) -> Tensor:
        result: Tensor = self.after(self.inner(self.before(values), index=index, dim_size=dim_size))
        return result


class Monoid(nn.Module):
    """LCM of PyTorch Geometric, a binary tree of gated units, in which padding is left out.

    The unit of a pair whose second half is padding would change the first; here the first is passed on as it is.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = _pyg_layer("LCMAggregation", width, width)

    def forward(self, values: Tensor, *, index: Tensor, dim_size: int) -> Tensor:
        layer: Any = self.layer
        x: Tensor
        x, there = layer.to_dense_batch(layer.lin(values).relu(), index, dim_size=dim_size)
        while x.shape[1] > 1:
            if x.shape[1] % 2:
                x, there = nn.functional.pad(x, (0, 0, 0, 1)), nn.functional.pad(there, (0, 1))
            left, right = x[:, ::2], x[:, 1::2]
            both = there[:, 1::2]
            u, v = left[both], right[both]
            merged = layer.gru_cell(torch.cat((u, v)), torch.cat((v, u))).view(2, *u.shape).mean(0)
            x, there = left.masked_scatter(both[..., None], merged), there[:, ::2]
        return x[:, 0]


class QuasiArithmeticMean(nn.Module):
    r"""Quasi-arithmetic mean :math:`\psi^{-1}(\frac{1}{n} \sum \psi(x))` by a learned spline, as in QUANN."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.operation = Operation(RationalQuadraticSpline(channels), Mean())

    def forward(self, values: Tensor, *, index: Tensor, dim_size: int) -> Tensor:
        return self.operation.reduce(values, index=index, dim_size=dim_size)


def _pyg_layer(name: str, *arguments: Any, **options: Any) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.nn import aggr
    layer: nn.Module = getattr(aggr, name)(*arguments, **options)
    return layer


def make_pyg(name: str, *arguments: Any, **options: Any) -> nn.Module:
    """Returns an aggregation of PyTorch Geometric, by the name of its class."""
    return _Called(_pyg_layer(name, *arguments, **options))


def make_pna(channels: int, sizes: Tensor) -> tuple[nn.Module, int]:
    """Returns PNA, which knows a histogram of the sizes of sets, and the number of channels of its results."""
    parts, scalers = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
    return make_pyg("DegreeScalerAggregation", parts, scalers, sizes), len(parts) * len(scalers) * channels


def make_genagg() -> nn.Module:
    """Returns GenAgg with its default curve."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from genagg import GenAgg, MLPAutoencoder
    # The default curve of genagg 2.1.1, whose own initialization needs its compilation by TorchScript. That version
    # calls the curve past its hooks, so the error of its inverse is no part of the loss.
    curve = MLPAutoencoder(enforce_inverse=False, init=None, jit=False)
    for module in curve.modules():
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight)
    return _Called(GenAgg(f=curve))
