"""Evaluation beside gensim's, question by question, and its tables."""

from __future__ import annotations

import csv
import json
from importlib import resources
from pathlib import Path

import pytest
import torch
from gensim.models import KeyedVectors

from abelnet import AbelnetError
from abelnet.words import WordVectors, evaluate, google_questions, offset
from abelnet.words.evaluation import Evaluation


@pytest.fixture(scope="module")
def family() -> str:
    """The questions of one section, as text."""
    text = (resources.files("abelnet.words") / "data" / "questions-words.txt").read_text()
    return ": family" + text.split(": family")[1].split("\n:")[0] + "\n"


@pytest.fixture(scope="module")
def small() -> WordVectors:
    vectors = WordVectors.default()
    return WordVectors(vectors.index_to_key[:8000], vectors.vectors[:8000])


@pytest.fixture
def result(small: WordVectors, family: str, tmp_path: Path) -> Evaluation:
    (tmp_path / "family.txt").write_text(family)
    return evaluate(small, google_questions(small, tmp_path / "family.txt"))


def test_gensim_gives_the_same_answers(result: Evaluation, small: WordVectors, family: str, tmp_path: Path) -> None:
    theirs = KeyedVectors(small.dim)
    theirs.add_vectors(small.index_to_key, small.vectors.numpy())
    _, sections = theirs.evaluate_word_analogies(str(tmp_path / "family.txt"), restrict_vocab=None)
    expected = {tuple(word.lower() for word in line) for line in sections[0]["correct"]}
    words = small.index_to_key
    questions = result.questions
    asked = torch.cat((questions.words, questions.targets[:, None]), 1)
    right = {tuple(words[row] for row in line) for line in asked[result.correct[1, 0]].tolist()}
    assert right == expected
    assert len(questions) == len(sections[0]["correct"]) + len(sections[0]["incorrect"])
    assert 0.5 < len(right) / len(questions) < 1


def test_words_given_are_candidates_only_where_all_are(result: Evaluation) -> None:
    given = result.questions.words
    candidates, others = result.predicted[:, 0]
    assert (candidates[:, None] == given).any()
    assert not (others[:, None] == given).any()
    same = (candidates[:, None] != given).all(1)
    assert torch.equal(candidates[same], others[same])


def test_several_models_in_one_pass(small: WordVectors, result: Evaluation) -> None:
    models = {"c": lambda a, b, c: c, "wv": offset, "far": lambda a, b, c: (b - a + c).double() * 1e20}
    together = evaluate(small, result.questions, models)
    assert together.models == ("c", "wv", "far")
    assert torch.equal(together.predicted[:, 1], result.predicted[:, 0])
    assert torch.equal(together.predicted[:, 2], result.predicted[:, 0])
    assert torch.equal(together.predicted[0, 0], result.questions.words[:, 2])
    assert together.rows()[0].correct["all_candidates"]["c"] == 0


def test_tables(result: Evaluation, tmp_path: Path) -> None:
    rows = result.rows()
    assert [row.name for row in rows] == ["Overall", "Semantic", "family"]
    assert rows[0].correct == rows[2].correct
    row = rows[0]
    assert row.percent("excluding_abc", "wv") == 100 * row.correct["excluding_abc"]["wv"] / row.questions
    result.write_json(tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["excluding_abc"]["family"]["wv"] == row.correct["excluding_abc"]["wv"]
    assert content["sections"]["family"] == {"category": "Semantic", "total": 506, "used": row.questions}
    result.write_csv(tmp_path / "r.csv")
    lines = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    assert len(lines) == 2 * len(rows)
    assert int(lines[0]["correct"]) == row.correct["all_candidates"]["wv"]


def test_bad_models(small: WordVectors, result: Evaluation) -> None:
    with pytest.raises(AbelnetError, match="models: expected at least one"):
        evaluate(small, result.questions, {})
    with pytest.raises(AbelnetError, match=r"half: expected outputs of shape \(\d+, 100\), got \(\d+, 50\)"):
        evaluate(small, result.questions, {"half": lambda a, b, c: a[:, :50]})


def test_a_vocabulary_of_three_words_has_no_answer_left(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text(": s\na b c c\n")
    vectors = WordVectors(["a", "b", "c"], torch.eye(3))
    result = evaluate(vectors, google_questions(vectors, tmp_path / "q.txt"))
    assert result.predicted[1].tolist() == [[-1]]
    assert result.correct.sum() <= 1
