"""Operations as plain data: what they are made of as JSON, and their tensors as safetensors. No pickle."""

from __future__ import annotations

__all__ = ["describe", "rebuild"]

from typing import Any

import numpy as np
import torch

from abelnet.bijections import Affine, Bijection, Chain, Generator, RationalQuadraticSpline, SinhArcsinh
from abelnet.bijections.spline import spline_through
from abelnet.errors import AbelnetError
from abelnet.laws import Constant, Law, Maximum, Minimum, Polynomial, Product, Sum
from abelnet.operation import Operation

_LAWS: dict[str, type[Law]] = {law.__name__: law for law in (Sum, Product, Polynomial, Constant, Maximum, Minimum)}


def describe(operation: Operation) -> dict[str, Any]:
    """What an operation on numbers is made of; together with its state dict it can be built again.

    Example:
        >>> from abelnet import AbelianGroup
        >>> group = AbelianGroup(Generator(1, "power", [2.0]))
        >>> describe(group)
        {'law': 'Sum', 'bijection': ['generator', 'power', [2.0]]}
        >>> rebuild(describe(group), group.state_dict()).is_group
        True
    """
    return {"law": operation.law.name, "bijection": _describe_bijection(operation.bijection)}


def rebuild(content: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Operation:
    """The operation that was described, with these tensors."""
    if content.get("law") not in _LAWS:
        raise AbelnetError(f"law: expected one of {', '.join(_LAWS)}, got {content.get('law')!r}")
    name = content["law"]
    law = Constant(0.0) if name == "Constant" else _LAWS[name]()
    operation = Operation(_build_bijection(content["bijection"]), law)
    operation.load_state_dict(tensors)
    return operation


def _describe_bijection(bijection: Bijection) -> list[Any]:
    match bijection:
        case Chain():
            return ["chain", [_describe_bijection(part) for part in bijection]]
        case Generator():
            return ["generator", bijection.kind, [value.item() for value in bijection.values]]
        case Affine():
            return ["affine"]
        case SinhArcsinh():
            return ["sinh_arcsinh"]
        case RationalQuadraticSpline():
            return ["spline", bijection.raw_widths.shape[1]]
    raise AbelnetError(f"bijection: expected one that can be saved, got {type(bijection).__name__}")


def _build_bijection(content: list[Any]) -> Bijection:
    match content:
        case ["chain", parts]:
            return Chain(*(_build_bijection(part) for part in parts))
        case ["generator", kind, values]:
            return Generator(1, kind, values, dtype=torch.float64)
        case ["affine"]:
            return Affine(1, dtype=torch.float64)
        case ["sinh_arcsinh"]:
            return SinhArcsinh(1, dtype=torch.float64)
        case ["spline", int(bins)]:
            points = np.arange(bins + 1.0)
            return list(spline_through(points, points))[1]
    raise AbelnetError(f"bijection: expected a known one, got {content!r}")
