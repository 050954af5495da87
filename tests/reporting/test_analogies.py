"""The analogy experiment beside the paper."""

from __future__ import annotations

from report_samples import analogy_results

from abelnet.reporting.analogies import analogy_report, analogy_tables, completion_report
from abelnet.reporting.table import Cell


def test_tables_stand_beside_the_papers() -> None:
    tables = analogy_tables(analogy_results())
    assert len(tables) == 8  # two sets of questions, two settings, categories and sections
    main = tables[0]
    assert main.title == "BATS test, all words are candidates"
    assert main.headings[2:] == [
        "WV",
        "WV+MLP",
        "WV+AGN",
        "WV+AGN, anchored",
        "WV (paper)",
        "WV+MLP (paper)",
        "WV+AGN (paper)",
    ]
    assert [cell.text for cell in main.rows[0]] == [
        "Overall",
        "10",
        "50.0 (50.0 – 50.0)",
        "10.0 (10.0 – 10.0)",
        "85.0 (80.0 – 90.0)",
        "90.0 (90.0 – 90.0)",
        "5.3",
        "17.0",
        "20.8",
    ]
    assert [cell.winner for cell in main.rows[0]] == [False] * 5 + [True, False, False, True]
    assert tables[1].rows[0][0].text == "I01 noun - plural_reg"
    assert tables[1].rows[0][-1] == Cell("7.8", winner=True)  # 7 of 90, found by the code of the relation
    assert tables[6].rows[0][6] == Cell("73.6", winner=True)  # on Google without a, b, c the paper's WV stays ahead


def test_report() -> None:
    report = analogy_report(analogy_results())
    (section,) = report.sections
    assert section.tables == analogy_tables(analogy_results())
    assert "Google News" in report.notes[0]
    assert "2 seeds, each a split of BATS" in report.notes[0]


def test_no_accuracy_without_questions() -> None:
    results = analogy_results()
    for row in results["rows"]:
        table = row["tables"][0]
        name = table["sections"][0]
        if row["seed"] == 1 or row["model"] == "wv":  # one split has questions for some
            table["questions"] = table["questions"] | {name: 0}
            table["correct"] = {setting: counts | {name: 0} for setting, counts in table["correct"].items()}
    row = analogy_tables(results)[1].rows[0]
    assert [cell.text for cell in row[2:6]] == ["–", "10.0", "90.0", "90.0"]
    assert [cell.winner for cell in row[2:6]] == [False, False, True, True]


def test_several_pairs_by_number_and_by_category() -> None:
    rows = []
    for seed in (0, 1):
        for shots, right in (("1", 2), ("all", 4)):
            for method, count in (("a", right), ("b", 3)):
                counts = {"Overall": count, "Semantic": count + seed * (method == "a"), "family": 0}
                correct = {"all_candidates": counts, "excluding_query": counts}
                questions = {"Overall": 10, "Semantic": 5, "family": 0}
                table = {"title": "Google", "sections": ["family"], "questions": questions, "correct": correct}
                rows.append({"method": method, "seed": seed, "shots": shots, "tables": [table]})
    results = {"rows": rows, "experiment": {"seeds": 2, "vectors": None}, "seconds_in_units": 4.0}
    (section,) = completion_report(results).sections
    assert [table.title for table in section.tables[:3]] == [
        "Google, all words are candidates",
        "Google, 1 pair, all words are candidates",
        "Google, all pairs, all words are candidates",
    ]
    by_shots, by_category = section.tables[:2]
    assert by_shots.headings == ["", "1 pair", "all pairs"]
    assert by_shots.rows == [
        [Cell("a"), Cell("20.0 (20.0 – 20.0)"), Cell("40.0 (40.0 – 40.0)", winner=True)],
        [Cell("b"), Cell("30.0 (30.0 – 30.0)", winner=True), Cell("30.0 (30.0 – 30.0)")],
    ]
    assert by_category.headings == ["", "Overall", "Semantic"]
    assert by_category.rows[0][2] == Cell("50.0 (40.0 – 60.0)")
