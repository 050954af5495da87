"""Results published in the paper, for comparison."""

from __future__ import annotations

__all__ = ["best_published", "published"]

import json
from importlib import resources
from typing import Any


def published() -> dict[str, Any]:
    """Returns the paper's results: ``"synthetic_rmse"`` by operation and model, and ``"analogies"`` by question set.

    Example:
        >>> published()["synthetic_rmse"]["sum"]["agn"]["large"]
        0.0366
    """
    text = resources.files("abelnet.experiments").joinpath("published.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def best_published(operation: str) -> dict[str, float]:
    """Returns the smallest errors of the paper on an operation, over all models.

    Arguments:
        operation: A key of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.

    Example:
        >>> best_published("cbrt")
        {'small': 0.0844, 'large': 0.229}
    """
    rows = published()["synthetic_rmse"][operation].values()
    return {part: min(row[part] for row in rows) for part in ("small", "large")}
