"""Report of ``abelnet reproduce``: the paper's experiments beside its figures, and what this package adds to them."""

from __future__ import annotations

__all__ = ["reproduction_overview", "reproduction_report"]

import math
from collections.abc import Sequence

from abelnet.discovery.formula import number
from abelnet.experiments.analogies.experiment import MODELS as ANALOGY_MODELS
from abelnet.experiments.published import best_published, published
from abelnet.experiments.reproduction import Reproduction
from abelnet.experiments.returns import RETURNS
from abelnet.experiments.synthetic.comparison import MODELS, median
from abelnet.experiments.synthetic.data import OPERATIONS
from abelnet.reporting.analogies import analogy_tables
from abelnet.reporting.certificates import certificate_chart, certificate_table
from abelnet.reporting.charts import Chart, Series
from abelnet.reporting.laws import law_report
from abelnet.reporting.report import Report, Section
from abelnet.reporting.synthetic import curve_chart, errors_chart
from abelnet.reporting.table import Cell, Column, Table

_ORDER = ("deepsets", "agn", "asn")
_LAW = "law in closed form"
_SETTINGS = {
    "all_candidates": "all words are candidates",
    "excluding_query": "all words but the query are candidates",
}


def reproduction_overview(result: Reproduction) -> Report:
    """Returns what fits on a screen: the laws, the networks, the analogies and the sample table."""
    tables = [_law_table(result), _network_table(result), *_accuracies(result), _shot_table(result)]
    (law,) = result.table.laws_
    notes = [
        f"Analogies: accuracy (%) over 30,078 words; {result.epochs} epochs on 60% of the Google pairs.",
        f"returns.csv: {law.formula}" + (f" ({law.name})" if law.name else ""),
        f"Took {result.seconds:.0f} s. For the full experiments see make reproduce-full.",
    ]
    return Report("The paper's experiments", [Section(tables=tables)], notes)


def reproduction_report(result: Reproduction) -> Report:
    """Returns all results with charts, evidence, and the commands that make them."""
    sections = [
        _networks(result),
        _sizes(result),
        _curves(result),
        _laws(result),
        _certificates(result),
        _analogies(result),
        _shots(result),
        _answers(result),
        _table(result),
        _commands(),
    ]
    notes = [
        "The experiments of Abelian Neural Networks (Abe, Maehara and Sato, 2021): commutative, associative operations "
        "x∘y = φ⁻¹(φ(x) + φ(y)) (Abelian group network, AGN) and φ⁻¹(φ(x) · φ(y)) (Abelian semigroup network, ASN), "
        "with φ an invertible network, learned from small multisets and applied to large ones, and to word analogies. "
        "Beside them stand laws that abelnet finds in closed form, and bounds of the error at any size.",
        f"Made in {result.seconds:.0f} s from data that ship with the package, with random seed {result.seed}. The "
        "best result of each row is marked, separately for ours and for the paper's.",
    ]
    return Report("Abelian Neural Networks, reproduced", [one for one in sections if one], notes)


def _networks(result: Reproduction) -> Section:
    notes = [
        "Five operations on numbers from [−5, 5], learned from 500 multisets of 2–4 numbers, tested on 100 "
        "multisets of 2–4 and 100 of 10–12 numbers. DeepSets, AGN and ASN are trained with settings that were "
        "chosen on validation multisets; the laws in closed form are found by symbolic regression on the same "
        "training data.",
        "For the search of settings that the paper describes, with 50 trials for each network, run make "
        "reproduce-full.",
    ]
    return Section(
        "Five operations", tables=[_network_table(result)], notes=notes, commands=_made(result, "abelnet synthetic")
    )


def _network_table(result: Reproduction) -> Table:
    found = {(row.operation, row.model): row for row in result.trained}
    models = [model for model in _ORDER if any(row.model == model for row in result.trained)]
    rows = []
    for name, learned in result.learned.items():
        theirs = published()["synthetic_rmse"][name]
        for part, sizes in (("small", "2–4"), ("large", "10–12")):
            ours = [median(getattr(found[name, model], part)) for model in models]
            paper = [theirs[model][part] for model in models]
            cells = [Cell(OPERATIONS[name].formula), Cell(sizes), *_marked(ours)]
            rows.append([*cells, Cell(_error(getattr(learned, part))), *_marked(paper)])
    titles = [MODELS[model].title for model in models]
    headings = [*titles, _LAW, *(f"{title} (paper)" for title in titles)]
    seeds = len(result.trained[0].small) if result.trained else 0
    notes = [
        f"Networks: median of {seeds} seeds after {result.network_epochs} epochs; the best of the networks is marked. "
        "Laws: errors of rounding are about 1e-15 of the results."
    ]
    columns = [Column("operation"), Column("sizes"), *(Column(heading, "right") for heading in headings)]
    return Table("RMSE on test multisets (unit of the results)", columns, rows, notes)


def _sizes(result: Reproduction) -> Section:
    charts: dict[str, Chart | bytes] = {}
    for name, rows in result.law_errors.items():
        curves = {
            MODELS[row.model].title: (
                [entry["size"] for entry in row.by_size],
                [median(entry["rmse"]) / entry["scale"] for entry in row.by_size],
            )
            for row in sorted(result.trained, key=lambda row: _ORDER.index(row.model))
            if row.operation == name
        }
        # An error of 0 would have no place on the axis.
        exact = [max(entry["rmse"][0] / entry["scale"], _EPSILON) for entry in rows]
        curves[_LAW] = [entry["size"] for entry in rows], exact
        title = f"Error on {OPERATIONS[name].formula}"
        charts[f"errors of {name}"] = errors_chart(title, curves, "RMSE / RMS of the results (no unit)")
    notes = [
        "Trained on multisets of 2–4 numbers, shaded, and measured up to 100. Errors are divided by the root mean "
        "square of the true results, since products of many numbers are large; curves end where a network gives no "
        "finite result or results are beyond single precision. 10⁻¹⁶ is the rounding of double precision."
    ]
    return Section(
        "Error against multiset size", figures=charts, notes=notes, commands=_made(result, "abelnet synthetic")
    )


_EPSILON = 2.0**-53  # rounding of double precision


def _curves(result: Reproduction) -> Section:
    charts: dict[str, Chart | bytes] = {}
    for name in result.learned:
        chart = curve_chart(name, {row.model: row.curve for row in result.trained if row.operation == name})
        if chart is not None:
            charts[f"φ of {name}"] = chart
    notes = [
        "The operation determines φ of a group up to a factor, and that of a semigroup up to a power: the learned "
        "curve is scaled, or raised, to be closest to the true one."
    ]
    return Section(
        "Learned φ against the true one", figures=charts, notes=notes, commands=_made(result, "abelnet synthetic")
    )


def _laws(result: Reproduction) -> Section:
    rows = []
    for name, one in result.learned.items():
        law = one.law
        others = [tried for tried in law.tried if tried.title != law.title]
        runner = f"{others[0].title} ({others[0].rmse:.1e})" if others else "–"
        ends = [law.identity, law.absorbing]
        texts = (
            OPERATIONS[name].formula,
            law.formula.removeprefix("x∘y = "),
            law.kind.partition(":")[0],
            *("none" if end is None else number(end) for end in ends),
            f"{law.rmse:.1e}",
            f"{one.defects.associativity.relative:.0e}",
            runner,
        )
        rows.append([Cell(text) for text in texts])
    headings = ("held-out RMSE", "associativity defect")
    columns = [Column("operation"), Column("law found"), Column("kind"), Column("identity"), Column("absorbing")]
    columns += [Column(heading, "right") for heading in headings]
    columns.append(Column("next candidate (its RMSE)"))
    notes = [
        "Held-out RMSE: of the law fitted to part of the training multisets, on the rest. Associativity defect: the "
        "largest |(x∘y)∘z − x∘(y∘z)| over random elements, relative to the results.",
    ]
    table = Table("Laws found from the same 500 multisets", columns, rows, notes)
    note = (
        "No network is trained for these: a closed form says whether any law fits, and which, and candidates compete."
    )
    return Section("Evidence for each law", tables=[table], notes=[note], commands=_made(result))


def _certificates(result: Reproduction) -> Section:
    notes = [
        "How wrong can a learned group be on multisets that are larger than any it was trained on? The paper's "
        "Theorem 3 bounds the error at any size. The bound of abelnet, from both generators, is never above it, and "
        "far closer to the largest error that is measured."
    ]
    return Section(
        "Certified errors",
        tables=[certificate_table(one) for one in result.certificates],
        figures={f"certificate {i}": certificate_chart(one) for i, one in enumerate(result.certificates, 1)},
        notes=notes,
        commands=_made(result, "abelnet certify cbrt --size 100"),
    )


def _accuracies(result: Reproduction) -> list[Table]:
    return analogy_tables(result.analogies)[::2]  # every second table is by section of the questions


def _analogies(result: Reproduction) -> Section:
    notes = [
        "a : b = c : ?, answered over 30,078 words of GloVe that ship with the package. Models are trained for "
        f"{result.epochs} epochs on 60 % of the Google pairs and tested on 20 %. WV is b − a + c; WV+MLP and WV+AGN "
        "are the paper's; the anchored group starts from WV and is trained to stay close to it.",
        "The paper's figures are of other vectors and other training pairs, so they are beside ours for orientation; "
        "abelnet analogies run takes such vectors, and BATS, from your disk.",
    ]
    return Section(
        "Word analogies",
        tables=[_paper_analogies(result), *_accuracies(result)],
        notes=notes,
        commands=_made(result, "abelnet analogies run --vectors FILE --bats FOLDER"),
    )


def _paper_analogies(result: Reproduction) -> Table:
    """Returns the overall accuracies beside the published ones, whose vectors and pairs are others."""
    titles = {row["model"]: ANALOGY_MODELS[row["model"]].title for row in result.analogies["rows"]}
    rows = []
    for setting, candidates in (("all_candidates", "all"), ("excluding_abc", "but a, b, c")):
        tables = {row["model"]: row["tables"][0] for row in result.analogies["rows"]}
        ours = {
            model: (table["correct"][setting]["Overall"], table["questions"]["Overall"])
            for model, table in tables.items()
        }
        sets = [(f"{next(iter(tables.values()))['title']}, GloVe, ours", ours)]
        for name, theirs in published()["analogies"].items():
            if isinstance(theirs, dict) and setting in theirs:
                overall = theirs[setting]["Overall"]
                found = {model: (overall[model], overall["questions"]) for model in titles if model in overall}
                sets.append((f"{name}, word2vec, paper", found))
        for title, counts in sets:
            percent = {model: 100 * correct / asked for model, (correct, asked) in counts.items()}
            best = max(percent.values())
            cells = [
                Cell(f"{percent[model]:.1f}", percent[model] == best) if model in percent else Cell("–")
                for model in titles
            ]
            rows.append([Cell(title), Cell(candidates), *cells])
    columns = [Column("questions"), Column("candidates"), *(Column(title, "right") for title in titles.values())]
    return Table("Overall accuracy (%), beside the paper's", columns, rows)


def _shots(result: Reproduction) -> Section:
    charts: dict[str, Chart | bytes] = {}
    for setting, meaning in _SETTINGS.items():
        series = [
            Series(
                method,
                [row.shots for row in result.shots if row.method == method],
                [getattr(row, setting) for row in result.shots if row.method == method],
            )
            for method in dict.fromkeys(row.method for row in result.shots)
        ]
        title = f"Accuracy, {meaning}"
        charts[setting] = Chart(title, "example pairs (number)", "accuracy (% of test pairs)", series, x_log=True)
    notes = [
        "Here are some countries with their capitals, complete these: with several example pairs, methods of the "
        "literature (3CosAvg, LRCos), and the translation of the pairs in the coordinates of the learned group (group "
        "mean), alone or joined with a classifier of answers. Test pairs are in no training data."
    ]
    return Section(
        "One and several example pairs",
        tables=[_shot_table(result)],
        figures=charts,
        notes=notes,
        commands=_made(result, "abelnet words evaluate --method joined --model wv --model agn --shots 5"),
    )


def _shot_table(result: Reproduction) -> Table:
    counts = list(dict.fromkeys(row.shots for row in result.shots))
    rows = []
    best = {
        (count, setting): max(getattr(row, setting) for row in result.shots if row.shots == count)
        for count in counts
        for setting in _SETTINGS
    }
    for method in dict.fromkeys(row.method for row in result.shots):
        for setting, label in (("all_candidates", "all"), ("excluding_query", "but the query")):
            values = [(row.shots, getattr(row, setting)) for row in result.shots if row.method == method]
            cells = [Cell(f"{value:.1f}", value == best[count, setting]) for count, value in values]
            rows.append([Cell(method), Cell(label), *cells])
    headings = [f"{count} pair{'s' if count > 1 else ''}" for count in counts]
    columns = [Column("method"), Column("candidates"), *(Column(heading, "right") for heading in headings)]
    notes = ["The best of each number of pairs is marked, separately for both sets of candidates."]
    return Table("Accuracy (%) by the number of example pairs", columns, rows, notes)


def _answers(result: Reproduction) -> Section:
    rows = []
    for one in result.answers:
        a, b, c = one.words
        said = [Cell(f"{'✓' if right else '✗'} {word}") for word, right in one.said.values()]
        rows.append([Cell(f"{a} : {b} = {c} : ?"), Cell(one.answer), *said, Cell(one.section)])
    models = list(result.answers[0].said) if result.answers else []
    columns = [Column("question"), Column("answer"), *map(Column, models), Column("relation")]
    table = Table("One test question of each relation, drawn at random", columns, rows, ["✓ right, ✗ wrong."])
    note = "Candidates are all words but the three of the question, so b and c themselves are no answers."
    return Section(
        "Some analogies",
        tables=[table],
        notes=[note],
        commands=_made(result, "abelnet words ask king man woman --model agn"),
    )


def _table(result: Reproduction) -> Section:
    (section,) = law_report(result.table, RETURNS, "returns.csv").sections
    notes = [
        "Monthly returns of accounts and the total return of each, as a bank would report them: how do returns "
        "combine? The table is returns.csv beside this page; abelnet learn makes such a report of any table.",
    ]
    return Section(
        "A law learned from a table",
        tables=section.tables[:3],
        figures=section.figures,
        notes=notes,
        formula=section.formula,
        facts=section.facts,
        listings=section.listings,
        commands=["abelnet learn returns.csv --set account --value return --target total --out law"],
    )


def _commands() -> Section:
    made = {
        "this page": "make reproduce",
        "networks, searched and trained with five seeds": "abelnet synthetic --out results",
        "analogies with your vectors": "abelnet analogies run --vectors FILE --bats FOLDER --out analogies",
        "both in full": "make reproduce-full VECTORS=FILE BATS=FOLDER",
        "one operation, certified": "abelnet certify cbrt --size 1000",
        "several example pairs": "abelnet words evaluate --method joined --model agn --shots 5",
        "answers to your own questions": "abelnet words ask king man woman",
        "a law of your own table": "abelnet learn TABLE --set COLUMN --value COLUMN --target COLUMN --out law",
    }
    rows = [[Cell(what), Cell(command)] for what, command in made.items()]
    table = Table("What to run", [Column("to make"), Column("command")], rows)
    return Section("How each figure is made", tables=[table])


def _law_table(result: Reproduction) -> Table:
    rows = []
    for name, learned in result.learned.items():
        best = best_published(name)
        errors = (learned.small, best["small"], learned.large, best["large"])
        texts = (
            OPERATIONS[name].formula,
            learned.law.formula.removeprefix("x∘y = "),
            *(f"{error:.1e}" for error in errors),
            f"{learned.defects.associativity.relative:.0e}",
        )
        rows.append([Cell(text) for text in texts])
    headings = ("2–4", "paper", "10–12", "paper", "assoc.")
    return Table(
        f"Learned from 500 multisets of 2–4 numbers, seed {result.seed}",
        [Column("operation"), Column("law found"), *(Column(heading, "right") for heading in headings)],
        rows,
        [
            "2–4, 10–12: RMSE on test multisets of that size, numbers from [−5, 5]; paper: the best of its models.",
            "assoc.: largest relative defect of associativity.",
        ],
    )


def _made(result: Reproduction, *more: str) -> list[str]:
    """Returns the command that makes a section, and others that make more of it."""
    return [f"abelnet reproduce --seed {result.seed}", *more]


def _marked(errors: Sequence[float]) -> list[Cell]:
    best = min(errors)
    return [Cell(_error(error), error == best < math.inf) for error in errors]


def _error(error: float) -> str:
    return f"{error:.1e}" if math.isfinite(error) else "diverged"
