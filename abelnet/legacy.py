"""Files of version 0.1.0, translated to the current format: data in, data out."""

from __future__ import annotations

__all__ = ["translate"]

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from abelnet.errors import AbelnetError

_WORD_MODELS = {"mlp": "abelnet.words.OffsetMLP", "agn": "abelnet.words.GroupAnalogy"}


def translate(
    path: Path, metadata: dict[str, Any] | None, tensors: dict[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Returns the content and tensors of a file without a format version, in the current format.

    Arguments:
        path: The file.
        metadata: Its metadata: the configuration of a word model.
        tensors: Its tensors. Those of a word model may be in float16.
    """
    if metadata is not None and metadata.get("model") in _WORD_MODELS:
        arguments = dict(metadata)
        tree = {"$class": _WORD_MODELS[arguments.pop("model")], "config": arguments}
        return {"model": tree}, {name: x.float() if x.is_floating_point() else x for name, x in tensors.items()}
    description = path.with_name("model.json")
    if metadata is None and description.is_file():
        return {"model": _regressor(json.loads(description.read_text(encoding="utf-8")))}, _renamed(tensors)
    raise AbelnetError("model: expected one written by abelnet.save, got another safetensors file")


def _regressor(content: dict[str, Any]) -> dict[str, Any]:
    laws = [_object("discovery.LearnedLaw", **_law(fields)) for fields in content["laws"]]
    return _object("discovery.LawRegressor", flat=content["flat"], laws=laws)


def _law(fields: dict[str, Any]) -> dict[str, Any]:
    operation = fields["operation"]
    law = (
        {"gamma": 0.0} if operation["law"] == "Polynomial" else {"alpha": 0.0} if operation["law"] == "Constant" else {}
    )
    kept = {key: fields[key] for key in ("title", "rmse", "explained", "tried", "eigenvalues")}
    bijection = _bijection(operation["bijection"])
    return kept | {
        "operation": _object("operation.Operation", bijection=bijection, law=_object(f"laws.{operation['law']}", **law))
    }


def _bijection(content: list[Any]) -> dict[str, Any]:
    match content:
        case ["chain", parts]:
            return _object("bijections.Chain", bijections=[_bijection(part) for part in parts])
        case ["generator", kind, values]:
            return _object("bijections.Generator", dim=1, kind=kind, parameters=values)
        case ["affine"]:
            return _object("bijections.Affine", dim=1)
        case ["sinh_arcsinh"]:
            return _object("bijections.SinhArcsinh", dim=1)
        case ["spline", int(bins)]:
            # All splines that version 0.1.0 saved were made by spline_through.
            return _object("bijections.RationalQuadraticSpline", dim=1, bins=bins, bound=1.0, min_slope=1e-12)
    raise AbelnetError(f"bijection: expected a known kind, got {content!r}")


def _object(name: str, **config: Any) -> dict[str, Any]:
    return {"$class": f"abelnet.{name}", "config": config}


def _renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Renames tensors, which were stored as ``0.bijection.…``; a law without any had the placeholder ``none``."""
    named = ((*name.partition(".")[::2], x) for name, x in tensors.items() if name != "none")
    return {f"laws.{number}.operation.{name}": x.to(torch.float64) for number, name, x in named}
