"""Tab *Learn a law*: the law of a table, with its evidence and its code, and its results on numbers."""

from __future__ import annotations

__all__ = ["learn", "predict"]

import math
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any

import numpy as np
import torch

from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.evidence import NoLawError
from abelnet.discovery.formula import number
from abelnet.discovery.vectors.report import LearnedVectorLaw
from abelnet.engines.columns import Columns
from abelnet.engines.export import export_law
from abelnet.engines.learning import learn_table
from abelnet.engines.text import parse_number
from abelnet.errors import AbelnetError, ExtrapolationWarning
from abelnet.explore.tables import stored
from abelnet.explore.tasks import Arguments
from abelnet.explore.views import section_view
from abelnet.reporting.laws import law_report
from abelnet.sql import DIALECTS

_KEPT = 16  # laws that can be tried on numbers; the oldest is forgotten
_MOST_ELEMENTS = 10_000  # of a set to try
_SHOWN = 5  # elements of the set that the page suggests to try
_SHOWN_ELSEWHERE = ("law", "result", "name", "in words")  # facts
_laws: OrderedDict[str, tuple[LawRegressor, Columns]] = OrderedDict()


def learn(arguments: Arguments, say: Callable[[str], None]) -> dict[str, Any]:
    """Learns the law of a table; examples without a law are refused in a sentence."""
    key = arguments.text("set", "") or None
    columns = Columns(tuple(arguments.texts("values")), key, tuple(arguments.texts("targets")))
    with stored(arguments.text("text")) as path:
        try:
            model = learn_table(path, columns, skip_missing=arguments.flag("skip_missing"), on_step=say)
        except NoLawError as error:
            sentence = str(error).removeprefix("no law: ")
            return {"refusal": sentence[:1].upper() + sentence[1:], "details": list(error.details)}
    name = token_hex(8)
    _laws[name] = model, columns
    while len(_laws) > _KEPT:
        _laws.popitem(last=False)
    say("writing")
    return {
        "id": name,
        "laws": _views(model, columns),
        "code": _code(model, columns, arguments.text("table", "examples").strip() or "examples"),
        "names": list(columns.values) if key is not None else ["value"],
        "results": list(columns.targets),
        "try": _first(model),
        "is_long": key is not None,
    }


def _views(model: LawRegressor, columns: Columns) -> list[dict[str, Any]]:
    sections = law_report(model, columns).sections
    return [
        {
            **section_view(section),
            "formula": law.formula,
            "mathml": law.mathml,
            "title": _title(law),
            "facts": [(name or "note", text) for name, text in section.facts if name not in _SHOWN_ELSEWHERE],
        }
        for law, section in zip(model.laws_, sections, strict=True)
    ]


def _title(law: Any) -> str:
    """Returns the name of a law, or what it is, in words."""
    if isinstance(law, LearnedVectorLaw):
        return law.words
    return law.name or f"{law.kind}: {law.title}"


def _code(model: LawRegressor, columns: Columns, table: str) -> dict[str, Any]:
    """Returns the law in other languages; a reason where it has no text in one."""
    sets = [columns.set] if columns.set is not None else ["set"]
    value = list(columns.values) if columns.set is not None else ["value"]

    def text(to: str, **options: Any) -> str:
        try:
            return export_law(model, to, **options)
        except AbelnetError as error:
            return f"{'--' if to == 'sql' else '#'} {error}"

    sql = {name: text("sql", table=table, set=sets, value=value, dialect=name) for name in DIALECTS}
    return {"sql": sql, "python": text("python"), "latex": text("latex")}


def _first(model: LawRegressor) -> str:
    """Returns the elements of the first example, as text."""
    parts = [
        (block, sample.take(torch.tensor([0]))) for block, sample in zip(model.blocks_, model.sample_, strict=True)
    ]
    rows = np.concatenate([sample.values.numpy() for _, sample in parts], 1)
    order = np.argsort([i for block, _ in parts for i in block])
    rows = rows[:_SHOWN, order]
    return (", " if rows.shape[1] == 1 else "\n").join(", ".join(f"{x:.12g}" for x in row) for row in rows)


def predict(arguments: Arguments, say: Callable[[str], None]) -> dict[str, Any]:
    """Returns the result of a set by a law that was learned, with its interval, and whether it is extrapolated."""
    found = _laws.get(arguments.text("id"))
    if found is None:
        raise AbelnetError("law: it is no longer in memory; learn it again")
    model, columns = found
    elements = _parsed(arguments.text("elements"), columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        results = np.atleast_2d(model.predict([elements]))[0]
        far = np.atleast_2d(model.extrapolated([elements]))[0]
        try:
            low, high = (np.atleast_2d(end)[0] for end in model.predict_interval([elements]))
        except AbelnetError:  # learned without intervals
            low = high = np.full_like(results, math.nan)
    return {
        "size": len(elements),
        "results": [
            {
                "name": name,
                "value": _digits(value),
                "low": _digits(a),
                "high": _digits(b),
                "margin": _digits(max(value - a, b - value), 2),
                "extrapolated": bool(strange),
            }
            for name, value, a, b, strange in zip(columns.targets, results, low, high, far, strict=True)
        ],
    }


def _parsed(text: str, columns: Columns) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns elements that are written with anything between numbers, vectors on a line each."""
    if columns.dim == 1:
        lines: Sequence[Sequence[str]] = [[word] for word in _words(text)]
    else:
        lines = [_words(line) for line in text.splitlines() if line.strip()]
    if not lines:
        raise AbelnetError("elements: expected at least one number, got none")
    if len(lines) > _MOST_ELEMENTS:
        raise AbelnetError(f"elements: expected at most {_MOST_ELEMENTS:,}, got {len(lines):,}")
    rows = []
    for line in lines:
        if len(line) != columns.dim:
            names = ", ".join(columns.values)
            raise AbelnetError(f"elements: expected {columns.dim} numbers on each line ({names}), got {len(line)}")
        row = [parse_number(word) for word in line]
        for word, one in zip(line, row, strict=True):
            if one is None or not math.isfinite(one):
                raise AbelnetError(f"elements: expected numbers, got {word!r:.80}")
        rows.append(row)
    return np.array(rows, dtype=np.float64)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,;\s]+", text.strip()) if word]


def _digits(value: float, digits: int = 8) -> str | None:
    return number(float(value), digits) if math.isfinite(value) else None
