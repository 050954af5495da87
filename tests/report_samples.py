"""Results as experiments return them, and reports of every kind, for the renderers."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import torch

from abelnet import LawRegressor
from abelnet.engines.columns import Columns
from abelnet.experiments.analogies.shots import Answered, ShotRow
from abelnet.experiments.certify import Certificate, CertificateRow
from abelnet.experiments.reproduction import Reproduction
from abelnet.experiments.synthetic.chosen import Trained
from abelnet.experiments.synthetic.comparison import SIZES
from abelnet.experiments.synthetic.data import learn
from abelnet.experiments.universality import UniversalityRow
from abelnet.reporting.analogies import analogy_report
from abelnet.reporting.certificates import certificate_report
from abelnet.reporting.graphs import graph_report
from abelnet.reporting.laws import law_overview, law_report
from abelnet.reporting.report import Report, Section
from abelnet.reporting.reproduction import reproduction_overview
from abelnet.reporting.synthetic import synthetic_report
from abelnet.reporting.universality import universality_report
from abelnet.reporting.words import answer_table, evaluation_table
from abelnet.words.evaluation import evaluate, offset
from abelnet.words.questions import google_questions
from abelnet.words.vectors import WordVectors


def synthetic_results() -> dict[str, Any]:
    """Three models on one operation, three seeds, some of them diverged; as it is read from disk."""
    rows = [
        {
            "operation": "cbrt",
            "model": model,
            "small": small,
            "large": [1.0, 2.0, None],
            "chosen": {"small": small[0], "large": None},
            "by_size": [{"size": size, "rmse": [0.1 * size, 0.2 * size, None]} for size in SIZES],
            "curve": None if model == "deepsets" else [-5 + i / 10 for i in range(101)],
        }
        for model, small in (("deepsets", [3.0, 1.0, 2.0]), ("agn", [0.5, 9.0, None]), ("asn", [4.0, 4.0, 4.0]))
    ]
    experiment = {"seeds": 3, "trials": 50, "epochs": 1000}
    results: dict[str, Any] = json.loads(json.dumps({"rows": rows, "experiment": experiment, "seconds_in_units": 10.0}))
    return results


def graph_results() -> dict[str, Any]:
    """Four aggregations on two tasks, three seeds, one of them diverged, one that takes part in one form alone."""
    errors = {
        "bank": [3e-8, 1e-7, 2e-7],
        "sum": [0.2, 0.1, 0.3],
        "min": [4e-8, 4e-8, None],
        "deepsets": [0.4, None, None],
    }
    rows = [
        {
            "task": task,
            "form": form,
            "model": model,
            "selected": {"start": "default", "lr": 0.01, "loss": "robust"},
            "runs": [
                {
                    "seed": seed,
                    "errors": {"small": value, "large": value, "dense": None if value is None else 10 * value},
                    "laws": ["min(x, y)", "x + y", "x + y"] if model == "bank" else None,
                }
                for seed, value in enumerate(values)
            ],
        }
        for task in ("min_plus", "median")
        for form in ("aligned", "generic")
        for model, values in errors.items()
        if (form, model) != ("generic", "min")
    ]
    experiment = {"seeds": 3, "steps": 1000}
    results: dict[str, Any] = json.loads(json.dumps({"rows": rows, "experiment": experiment, "seconds_in_units": 10.0}))
    return results


def analogy_results() -> dict[str, Any]:
    """Right answers of three models: 5, 1 and 9 of 10 in each row, of two seeds."""
    rows = []
    for seed in (0, 1):
        for model, correct in (("wv", 5), ("wv_mlp", 1), ("wv_agn", 9 - seed), ("anchored", 9)):
            tables = []
            for title, names in (("BATS test", ["I01 noun - plural_reg"]), ("Google", ["family"])):
                categories = ["Overall", "Inflectional" if title != "Google" else "Semantic"]
                counts = dict.fromkeys([*categories, *names], correct)
                tables.append(
                    {
                        "title": title,
                        "sections": names,
                        "questions": dict.fromkeys(counts, 10),
                        "correct": {"all_candidates": counts, "excluding_abc": counts},
                    }
                )
            rows.append({"model": model, "seed": seed, "tables": tables, "seconds": 1.0})
    experiment = {"seeds": 2, "bats": "BATS", "vectors": None}
    return {"rows": rows, "experiment": experiment, "seconds": 4.0, "seconds_in_units": 8.0}


@cache
def reproduction() -> Reproduction:
    """Two operations, networks of two seeds, and a table of compound returns."""
    names = ("cbrt", "shifted_product")
    learned = {name: learn(name) for name in names}
    by_size = [{"size": size, "rmse": [1e-3 * size, None], "scale": 2.0} for size in SIZES]
    exact = {name: [entry | {"rmse": [0.0]} for entry in by_size] for name in names}
    curve = [-5 + i / 10 for i in range(101)]
    trained = [
        Trained(name, model, {}, [0.1 * i, 0.3 * i], [1.0, None], by_size, None if model == "deepsets" else curve)
        for name in names
        for i, model in enumerate(("agn", "asn", "deepsets"), 1)
    ]
    certificate = Certificate("cbrt(x³ + y³), learned by AGN", [CertificateRow(100, 0.1, 0.2, 30.0)], ["a note"])
    shots = [ShotRow(method, count, 10.0 * count, 50.0) for method in ("3CosAvg", "group mean") for count in (1, 5)]
    answers = [Answered("family", ("man", "king", "woman"), "queen", {"WV": ("queen", True), "AGN": ("lady", False)})]
    sets = [[0.1, 0.05], [0.2, -0.1, 0.3], [0.07, 0.11], [-0.2, 0.15], [0.02, 0.3, 0.1]] * 4
    table = LawRegressor().fit(sets, [math.prod(1 + one for one in a_set) - 1 for a_set in sets])
    return Reproduction(
        0, 10, 1000, learned, exact, trained, [certificate], analogy_results(), shots, answers, table, 210.0
    )


def reports() -> dict[str, Report]:
    """Reports of every kind, with long numbers and long names."""
    generator = np.random.default_rng(0)
    sets = [generator.uniform(0.1, 3, size) for size in (2, 3, 4, 12) * 15]
    model = LawRegressor(refuse=False, polish=False).fit(sets, [float(np.log(np.exp(one).sum())) for one in sets])
    columns = Columns(("speed of the wind [/s]",), "account", ("y",))
    certificate = Certificate(
        "learned: " + "x + " * 30 + "y", [CertificateRow(1000, 1.23e-5, 12.3456, 1.5e6)] * 3, ["a note " * 30]
    )
    rows = [
        UniversalityRow(dim, 0, name, 1_234_567, [2, 4, 10, 20, 50], [1.23e-5] * 5)
        for dim in (2, 3)
        for name in ("AGN 16 × 1024", "DeepSets")
    ]
    vectors = WordVectors(
        ["man", "king", "woman", "queen"],
        torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]),
    )
    models = {"wv": offset, "/home/someone/models/a-model-with-a-long-name.safetensors": lambda a, b, c: a}
    answers = evaluation_table(evaluate(vectors, google_questions(vectors), models))
    found = answer_table(["king"], [("a_phrase_of_many_words_without_any_space_between_them_" * 2, 0.1234)])
    return {
        "law overview": law_overview(model, columns),
        "law report": law_report(model, columns),
        "certificates": certificate_report([certificate]),
        "universality": universality_report(rows),
        "synthetic": synthetic_report(synthetic_results()),
        "graphs": graph_report(graph_results()),
        "analogies": analogy_report(analogy_results()),
        "reproduction": reproduction_overview(reproduction()),
        "words": Report("Words", [Section(tables=[answers, found])]),
    }
