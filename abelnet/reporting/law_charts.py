"""Charts of a learned law: its curve φ, its results against those of the examples, and its error by size."""

from __future__ import annotations

__all__ = ["agreement_chart", "curve_chart", "size_chart", "size_errors"]

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from abelnet.discovery.report import LearnedLaw
from abelnet.multisets import Multisets
from abelnet.reporting.charts import Chart, Series

_CURVE_POINTS = 201
_MOST_ELEMENTS = 200  # drawn on the curve
_MOST_EXAMPLES = 1_000  # drawn in comparisons
_WIDE = 20  # ratio of numbers from which their axis is logarithmic


@torch.no_grad()
def curve_chart(law: LearnedLaw, examples: Multisets, name: str) -> Chart:
    """Draws the curve φ of a law over the range of its elements and results, with elements of the examples on it.

    Arguments:
        law: The law.
        examples: Examples in its coordinate, with targets.
        name: Name of the coordinate.

    Example:
        >>> from abelnet import LawRegressor
        >>> model = LawRegressor().fit([[1, 2], [2, 2], [3, 1], [2, 3], [4, 1]], [3, 4, 4, 5, 5])
        >>> [series.name for series in curve_chart(model.laws_[0], model.sample_[0], "price").series]
        ['φ', 'elements of the examples']
    """
    numbers = torch.cat((examples.values[:, 0], examples.targets))
    # Examples that were left out are not what the law was learned from.
    low, high = (float(numbers.min()), float(numbers.max())) if law.seen is None else law.seen.numbers
    x = torch.linspace(low, high, _CURVE_POINTS, dtype=torch.float64)
    elements = examples.values[:: max(1, len(examples.values) // _MOST_ELEMENTS), 0].sort().values
    curve = law.operation.bijection
    series = [
        Series("φ", x.tolist(), curve(x[:, None])[:, 0].tolist()),
        Series("elements of the examples", elements.tolist(), curve(elements[:, None])[:, 0].tolist(), "points"),
    ]
    return Chart(f"The curve φ of {name}", f"x (unit of {name})", "φ(x) (no unit)", series)


def agreement_chart(name: str, targets: Tensor, found: Tensor, outliers: Collection[int] = ()) -> Chart:
    """Draws the results of a law against those of the examples, which are equal on the diagonal.

    Arguments:
        name: Name of the results.
        targets: Results of the examples :math:`(B)`.
        found: Results of the law :math:`(B)`.
        outliers: Places of examples that were left out.
    """
    kept = torch.ones(len(targets), dtype=torch.bool)
    kept[list(outliers)] = False
    parts = [("examples", kept), ("left out, as they disagree", ~kept)]
    low, high = float(targets.min()), float(targets.max())
    series = []
    for title, mask in parts:
        if mask.any():
            x, y = targets[mask], found[mask]
            step = max(1, len(x) // _MOST_EXAMPLES)
            series.append(Series(title, x[::step].tolist(), y[::step].tolist(), "points"))
    series.append(Series("where both agree", [low, high], [low, high], "dashed"))
    return Chart(
        f"{name}: law against examples", f"{name} in the examples (unit of the table)", f"{name} by the law", series
    )


def size_errors(errors: Tensor, sizes: Tensor, outliers: Collection[int] = ()) -> list[tuple[int, int, list[float]]]:
    """Returns, for each size of multisets, the number of examples and the RMSE of each coordinate.

    Arguments:
        errors: Errors :math:`(B, d)`.
        sizes: Sizes :math:`(B)`.
        outliers: Places of examples that do not count.

    Example:
        >>> size_errors(torch.tensor([[3.0], [4.0], [5.0]]), torch.tensor([2, 3, 3]))
        [(2, 1, [3.0]), (3, 2, [4.5276...])]
    """
    kept = torch.ones(len(errors), dtype=torch.bool)
    kept[list(outliers)] = False
    errors, sizes = errors[kept], sizes[kept]
    found = []
    for size in sorted(set(sizes.tolist())):
        of_size = errors[sizes == size]
        found.append((size, len(of_size), of_size.square().mean(0).sqrt().tolist()))
    return found


def size_chart(names: Sequence[str], rows: Sequence[tuple[int, int, list[float]]]) -> Chart:
    """Draws the error of each coordinate by multiset size.

    Arguments:
        names: Names of the coordinates.
        rows: Return value of :func:`size_errors`.
    """
    sizes, found = [size for size, _, _ in rows], [error for _, _, errors in rows for error in errors]
    series = [
        Series(name if len(names) > 1 else "", sizes, [errors[i] for _, _, errors in rows])
        for i, name in enumerate(names)
    ]
    return Chart(
        "Error by multiset size",
        "multiset size (number of elements)",
        "RMSE (unit of the results)",
        series,
        x_log=bool(sizes) and sizes[-1] > _WIDE * sizes[0] > 0,
        y_log=0 < _WIDE * min(found, default=0.0) < max(found, default=0.0),
        from_zero=True,
    )
