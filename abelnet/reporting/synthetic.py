"""Tables and plots of the experiments, beside the published figures, with the winner of each row marked."""

from __future__ import annotations

__all__ = [
    "Table",
    "best_published",
    "html_page",
    "markdown",
    "print_table",
    "published",
    "synthetic_table",
    "write_synthetic",
]

import base64
import html
import io
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import rich.box
import rich.table
from rich.console import Console
from rich.text import Text

from abelnet.experiments.synthetic.comparison import MODELS, SIZES, median
from abelnet.experiments.synthetic.data import OPERATIONS
from abelnet.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = np.ndarray[Any, Any]

# What φ is up to a factor (groups) or a power (semigroups), where the operation has one of that kind.
_TRUE_CURVES: dict[str, tuple[str, Callable[[Curve], Curve]]] = {
    "sum": ("agn", lambda x: x),
    "sum_plus_one": ("agn", lambda x: x + 1),
    "cbrt": ("agn", lambda x: x**3),
    "product": ("asn", lambda x: x),
    "shifted_product": ("asn", lambda x: 1 + x / 2),
}


def published() -> dict[str, Any]:
    """The figures of the paper."""
    text = resources.files("abelnet.experiments").joinpath("published.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def best_published(operation: str) -> dict[str, float]:
    """The smallest errors of the paper for an operation, whichever model had them."""
    rows = published()["synthetic_rmse"][operation].values()
    return {part: min(row[part] for row in rows) for part in ("small", "large")}


class Table(NamedTuple):
    """A table: its title, its heading, and its rows of cells, each with whether it is a winner of its row."""

    title: str
    heading: list[str]
    rows: list[list[tuple[str, bool]]]


def synthetic_table(results: dict[str, Any]) -> Table:
    """The table of RMSE: fresh seeds as median (smallest to largest), the models that the searches chose, the paper's.

    The winner of each of the three is marked.
    """
    models = list(dict.fromkeys(row["model"] for row in results["rows"]))
    found = {(row["operation"], row["model"]): row for row in results["rows"]}
    heading = ["operation", "sizes", *(MODELS[model].title for model in models)]
    heading += [f"{MODELS[model].title} ({of})" for of in ("searched", "paper") for model in models]
    rows = []
    for operation in dict.fromkeys(row["operation"] for row in results["rows"]):
        for part, sizes in (("small", "2–4"), ("large", "10–12")):
            ours = {model: found[operation, model][part] for model in models}
            chosen = {model: _or_infinite(found[operation, model]["chosen"][part]) for model in models}
            theirs = {model: published()["synthetic_rmse"][operation][model][part] for model in models}
            best = min(models, key=lambda model: median(ours[model]))
            cells = [(OPERATIONS[operation].formula, False), (sizes, False)]
            cells += [(_range(ours[model]), model == best) for model in models]
            for single in (chosen, theirs):
                cells += [(f"{single[model]:.3g}", single[model] == min(single.values())) for model in models]
            rows.append(cells)
    return Table("RMSE, median (range) over seeds, beside the paper's", heading, rows)


def write_synthetic(results: dict[str, Any], folder: str | Path) -> list[Path]:
    """Writes ``table.md``, ``table.html`` and, with matplotlib, the plots; returns the files."""
    folder = Path(folder)
    table = synthetic_table(results)
    experiment = results["experiment"]
    note = (
        f"RMSE, median (smallest – largest) of {experiment['seeds']} fresh seeds, each model tuned with "
        f"{experiment['trials']} trials of {experiment['epochs']} epochs; beside it (searched) the one model that the "
        f"search chose, as it was trained there, which is likely what the paper reports. The best of each row is bold, "
        f"among each of the three. {results['seconds_in_units']:.0f} s of one core in all."
    )
    write_text(folder / "table.md", f"{note}\n\n{markdown(table)}")
    figures = _figures(results)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=120)
    write_text(folder / "table.html", html_page("Synthetic size generalisation", note, [table], figures))
    return [folder / "table.md", folder / "table.html", *(folder / f"{name}.png" for name in figures)]


def _or_infinite(value: float | None) -> float:
    return float("inf") if value is None else value


def _range(values: list[float | None]) -> str:
    sound = [_or_infinite(value) for value in values]
    return f"{median(values):.2e} ({min(sound):.1e} – {max(sound):.1e})"


def markdown(table: Table) -> str:
    """A table in Markdown, its winners bold."""
    lines = ["| " + " | ".join(table.heading) + " |", "|" + "---|" * len(table.heading)]
    lines += ["| " + " | ".join(f"**{text}**" if best else text for text, best in row) + " |" for row in table.rows]
    return "\n".join([*lines, ""])


def print_table(table: Table, console: Console) -> None:
    """Prints a table, its winners bold; where there is no terminal, as wide as it needs."""
    shown = rich.table.Table(title=table.title, box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    for text in table.heading:
        shown.add_column(text, no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(text, style="bold" if best else "") for text, best in row))
    (console if console.is_terminal else Console(width=240)).print(shown, highlight=False)


def html_page(title: str, note: str, tables: Sequence[Table], figures: Mapping[str, Figure] | None = None) -> str:
    """A page that stands on its own: a note, tables with their winners bold, and figures."""
    content = ""
    for table in tables:
        head = "".join(f"<th>{html.escape(text)}</th>" for text in table.heading)
        body = "".join(
            "<tr>"
            + "".join(f"<td{' class=best' if best else ''}>{html.escape(text)}</td>" for text, best in row)
            + "</tr>"
            for row in table.rows
        )
        content += (
            f"<h2>{html.escape(table.title)}</h2>"
            f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )
    for name, figure in (figures or {}).items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        code = base64.b64encode(buffer.getvalue()).decode()
        content += f'<p><img alt="{name}" src="data:image/png;base64,{code}"></p>'
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>abelnet: {html.escape(title)}</title>"
        "<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
        "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
        "th,td{border-bottom:1px solid #ccc;padding:.3rem .6rem;text-align:left;white-space:nowrap}"
        ".best{font-weight:bold}div{overflow-x:auto}img{max-width:100%}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(note)}</p>{content}</html>\n"
    )


def _figures(results: dict[str, Any]) -> dict[str, Figure]:
    """The plots; none where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return {}
    operations = list(dict.fromkeys(row["operation"] for row in results["rows"]))
    figures = {}
    for name, draw in (("error_by_size", _draw_errors), ("learned_curves", _draw_curve)):
        figure = Figure(figsize=(4 * len(operations), 3.6), layout="constrained")
        for axes, operation in zip(np.atleast_1d(figure.subplots(1, len(operations))), operations, strict=True):
            axes.set_title(OPERATIONS[operation].formula)
            draw(axes, operation, results["rows"])
        figures[name] = figure
    return figures


def _draw_errors(axes: Axes, operation: str, rows: list[dict[str, Any]]) -> None:
    for i, row in enumerate(row for row in rows if row["operation"] == operation):
        values = [[_or_infinite(value) for value in row["by_size"][str(size)]] for size in SIZES]
        middle = [median(row["by_size"][str(size)]) for size in SIZES]
        axes.plot(SIZES, middle, color=f"C{i}", marker=".", label=MODELS[row["model"]].title)
        axes.fill_between(SIZES, [min(v) for v in values], [max(v) for v in values], color=f"C{i}", alpha=0.2)
    axes.axvspan(2, 4, color="0.9", zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="multiset size (trained on the shaded ones)", ylabel="RMSE")
    axes.legend()


def _draw_curve(axes: Axes, operation: str, rows: list[dict[str, Any]]) -> None:
    model, curve = _TRUE_CURVES[operation]
    learned = [row["curve"] for row in rows if row["operation"] == operation and row["model"] == model]
    x = np.linspace(-5, 5, 101)
    truth = curve(x)
    axes.plot(x, truth, color="0.6", linewidth=4, label="true φ")
    if learned:
        values = np.array(learned[0])
        if model == "agn":  # φ of a group is given up to a factor
            values = values * (values @ truth) / (values @ values)
        else:  # of a semigroup up to a power, which keeps the sign
            power = _power(values, truth)
            values = np.sign(values) * np.abs(values) ** power
        axes.plot(x, values, color="C3", label=f"learned ({MODELS[model].title})")
    axes.set(xlabel="x", ylabel="φ(x)")
    axes.legend()


def _power(values: Curve, truth: Curve) -> float:
    kept = (np.abs(values) > 1e-3) & (np.abs(truth) > 1e-3) & (np.abs(np.abs(values) - 1) > 1e-3)
    if not kept.any():
        return 1.0
    logs = np.log(np.abs(values[kept]))
    return float(logs @ np.log(np.abs(truth[kept])) / (logs @ logs))
