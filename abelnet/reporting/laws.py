"""What was learned from a table, as a page that needs nothing but a browser."""

from __future__ import annotations

__all__ = ["errors_by_size", "law_page", "worst_examples"]

import html
import math
from collections.abc import Sequence

import numpy as np
import torch

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.formula import number
from abelnet.discovery.report import LearnedLaw
from abelnet.multisets import Multisets

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "td,th{padding:.2rem .8rem;border-bottom:1px solid #ddd;text-align:right}"
    "td:first-child,th:first-child{text-align:left}pre{background:#f6f6f6;padding:1rem;font-size:1.1rem}"
    "svg{background:#fafafa;border:1px solid #ddd}"
)


def errors_by_size(law: LearnedLaw, examples: Multisets) -> list[tuple[int, int, float]]:
    """Size, number of examples, and RMSE of the law on them."""
    errors = _errors(law, examples)
    rows = []
    for size in sorted(set(examples.sizes.tolist())):
        of_size = errors[examples.sizes == size]
        rows.append((size, len(of_size), math.sqrt(float(of_size.square().mean()))))
    return rows


def worst_examples(law: LearnedLaw, examples: Multisets, count: int = 10) -> list[tuple[list[float], float, float]]:
    """The multisets that the law fits worst, with their results and the law's."""
    errors = _errors(law, examples)
    rows = []
    for i in errors.abs().argsort(descending=True)[:count].tolist():
        target, begin, end = float(examples.targets[i]), *examples.ptr[i : i + 2].tolist()
        rows.append((examples.values[begin:end, 0].tolist(), target, target + float(errors[i])))
    return rows


def law_page(model: LawRegressor, columns: Sequence[str]) -> str:
    """The page: for each dimension the law, the evidence, errors by size, the curve φ, and the worst examples."""
    parts = [
        _section(law, examples, name) for law, examples, name in zip(model.laws_, model.sample_, columns, strict=True)
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>The law of {html.escape(", ".join(columns))}'
        f"</title><style>{_STYLE}</style><body><h1>How it combines</h1>{''.join(parts)}</body></html>\n"
    )


def _section(law: LearnedLaw, examples: Multisets, name: str) -> str:
    tried = [(title, str(count), f"{rmse:.3g}") for title, count, rmse in law.tried[:12]]
    eigenvalues = [(key, f"{value:.2g}") for key, value in law.eigenvalues.items()]
    sizes = [(str(size), str(count), f"{rmse:.3g}") for size, count, rmse in errors_by_size(law, examples)]
    worst = [
        (", ".join(f"{v:.6g}" for v in values[:8]) + (" …" if len(values) > 8 else ""), f"{y:.6g}", f"{z:.6g}")
        for values, y, z in worst_examples(law, examples)
    ]
    return "".join(
        (
            f"<h2>{html.escape(name)}</h2><pre>{html.escape(law.summary())}</pre>",
            "<h3>Laws that were tried</h3>",
            _table(("law", "parameters", "held-out RMSE"), tried),
            "<h3>Distance from any law of a kind (0: exact, about 1: none)</h3>" if eigenvalues else "",
            _table(("hypothesis", "eigenvalue"), eigenvalues) if eigenvalues else "",
            "<h3>Error by size of the multiset</h3>",
            _table(("size", "examples", "RMSE"), sizes),
            "<h3>The curve φ</h3>",
            _curve(law, examples),
            "<h3>Examples fitted worst</h3>",
            _table(("elements", "result", "law"), worst),
        )
    )


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


@torch.no_grad()
def _curve(law: LearnedLaw, examples: Multisets) -> str:
    """φ over the range of the values, drawn and as a short table."""
    values = examples.values
    xs = torch.linspace(float(values.min()), float(values.max()), 201, dtype=torch.float64)
    ys = law.operation.bijection(xs[:, None])[:, 0]
    sound = ys.isfinite()
    x, y = xs[sound].numpy(), ys[sound].numpy()
    if len(x) < 2 or np.ptp(y) == 0 or np.ptp(x) == 0:
        return ""
    width, height, edge = 560, 320, 40
    px = edge + (x - x[0]) / np.ptp(x) * (width - 2 * edge)
    py = height - edge - (y - y.min()) / np.ptp(y) * (height - 2 * edge)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True))
    labels = (
        f'<text x="{edge}" y="{height - 12}">{x[0]:.4g}</text>'
        f'<text x="{width - edge}" y="{height - 12}" text-anchor="end">{x[-1]:.4g}</text>'
        f'<text x="6" y="{height - edge}">{y.min():.4g}</text><text x="6" y="{edge}">{y.max():.4g}</text>'
    )
    drawing = (
        f'<svg width="{width}" height="{height}" role="img" aria-label="the curve φ"><g font-size="12">{labels}</g>'
        f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="2"/></svg>'
    )
    rows = [(number(float(x[i])), number(float(y[i]))) for i in range(0, len(x), max(1, len(x) // 10))]
    return drawing + _table(("x", "φ(x)"), rows)


@torch.no_grad()
def _errors(law: LearnedLaw, examples: Multisets) -> torch.Tensor:
    return law.operation.reduce(examples)[:, 0] - examples.targets
