"""The tables of the analogy experiment, in the layout of the paper and beside its figures."""

from __future__ import annotations

__all__ = ["analogy_tables", "write_analogies"]

from pathlib import Path
from statistics import mean
from typing import Any

from abelnet.experiments.analogies.experiment import MODELS
from abelnet.files import write_text
from abelnet.reporting.synthetic import Table, html_page, markdown, published

_SETTINGS = {"all_candidates": "all words are candidates", "excluding_abc": "all but a, b and c are candidates"}


def analogy_tables(results: dict[str, Any]) -> list[Table]:
    """All tables: for each set of questions and each setting, overall and by category, then by section.

    Ours are right answers in a hundred, mean (smallest – largest) over the seeds; the paper's are from other vectors.
    The winner of each row is marked, among ours and among the paper's.
    """
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in results["rows"]:
        for table in row["tables"]:
            found.setdefault(table["title"], {}).setdefault(row["model"], []).append(table)
    tables = []
    for title, by_model in found.items():
        first = next(iter(by_model.values()))[0]
        categories = [name for name in first["questions"] if name not in first["sections"]]
        for setting, meaning in _SETTINGS.items():
            theirs = published()["analogies"].get(title, {}).get(setting, {})
            for part in (categories, first["sections"]):
                rows = [_row(name, setting, by_model, theirs) for name in part]
                heading = ["", "num", *(MODELS[model].title for model in by_model)]
                if theirs:
                    heading += [f"{MODELS[model].title} (paper)" for model in by_model if model in theirs["Overall"]]
                tables.append(Table(f"{title}, {meaning}", heading, rows))
    return tables


def _row(
    name: str, setting: str, by_model: dict[str, list[dict[str, Any]]], theirs: dict[str, dict[str, int]]
) -> list[tuple[str, bool]]:
    percents = {
        model: [_percent(table["correct"][setting][name], table["questions"][name]) for table in tables]
        for model, tables in by_model.items()
    }
    best = max(mean(values) for values in percents.values())
    questions = mean(table["questions"][name] for table in next(iter(by_model.values())))
    cells = [(name, False), (f"{questions:.0f}", False)]
    for values in percents.values():
        spread = f" ({min(values):.1f} – {max(values):.1f})" if len(values) > 1 else ""
        cells.append((f"{mean(values):.1f}{spread}", mean(values) == best > 0))
    if theirs:
        row = theirs[name if name in theirs else name.partition(" ")[0]]
        known = {model: row[model] for model in by_model if model in row}
        cells += [
            (f"{_percent(correct, row['questions']):.1f}", correct == max(known.values()) > 0)
            for correct in known.values()
        ]
    return cells


def _percent(correct: int, questions: int) -> float:
    return 100 * correct / questions if questions else 0.0


def write_analogies(results: dict[str, Any], folder: str | Path) -> list[Path]:
    """Writes ``tables.md`` and ``tables.html``; returns the files."""
    folder = Path(folder)
    experiment = results["experiment"]
    trained_on = "BATS" if experiment["bats"] else "the pairs of Google's questions"
    note = (
        f"Right answers in a hundred, mean (smallest – largest) of {experiment['seeds']} seeds, each a split of "
        f"{trained_on} and a training of its own; vectors: {experiment['vectors'] or 'embedded'}. The paper's figures "
        f"are from other vectors: {published()['analogies']['vectors']}. The best of each row is bold, among ours and "
        f"among the paper's. {results['seconds_in_units']:.0f} s of one core in all."
    )
    tables = analogy_tables(results)
    text = "\n".join(f"### {table.title}\n\n{markdown(table)}" for table in tables)
    write_text(folder / "tables.md", f"{note}\n\n{text}")
    write_text(folder / "tables.html", html_page("Word analogies", note, tables))
    return [folder / "tables.md", folder / "tables.html"]
