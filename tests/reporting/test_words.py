"""Answers to analogy questions as tables."""

from __future__ import annotations

from pathlib import Path

import torch

from abelnet.reporting.words import answer_table, evaluation_table
from abelnet.words.evaluation import evaluate, offset
from abelnet.words.questions import google_questions
from abelnet.words.vectors import WordVectors


def test_evaluation() -> None:
    vectors = WordVectors(
        ["man", "king", "woman", "queen"],
        torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]),
    )
    models = {"wv": offset, "first": lambda a, b, c: a}
    table = evaluation_table(evaluate(vectors, google_questions(vectors), models))
    assert table.headings == ["", "known", "num"] + [
        f"{setting} {model}{what}"
        for setting in ("all", "excluding")
        for model in ("wv", "first")
        for what in ("", " %")
    ]
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert rows["Overall"] == ["", "2", "2", "100.0", "0", "0.0", "2", "100.0", *rows["Overall"][-2:]]
    assert rows["family"][0] == "2/506"
    assert table.title == "Google: correct answers"


def test_no_accuracy_without_questions(tmp_path: Path) -> None:
    vectors = WordVectors(["a", "b", "c", "d", "e"], torch.eye(5))
    (tmp_path / "q.txt").write_text(": known\na b c d\n: unknown\nx y z a\n")
    evaluation = evaluate(vectors, google_questions(vectors, tmp_path / "q.txt"))
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in evaluation_table(evaluation).rows}
    assert rows["unknown"] == ["0/1", "0", "0", "–", "0", "–"]
    assert evaluation.to_dict()["all_candidates"]["unknown"]["wv_percent"] is None
    evaluation.write_csv(tmp_path / "r.csv")
    assert "unknown,all_candidates,wv,0,0,\n" in (tmp_path / "r.csv").read_text().replace("\r", "")


def test_answers() -> None:
    assert answer_table(["king", "man", "woman"], []).title == "king − man + woman"
    table = answer_table(["{king}"], [("|queen|", 1 / 3)])
    assert table.title == "{king}"
    assert [cell.text for cell in table.rows[0]] == ["|queen|", "0.3333"]
