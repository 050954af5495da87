"""Several example pairs, and answers to look at."""

from __future__ import annotations

from abelnet.experiments.analogies.shots import METHODS, accuracy_by_shots, sample_answers
from abelnet.words.models import Offset
from abelnet.words.questions import google_pairs
from abelnet.words.vectors import WordVectors


def test_accuracy_by_shots() -> None:
    rows = accuracy_by_shots(WordVectors.default(5000), Offset(), shots=(1, 5))
    assert [(row.method, row.shots) for row in rows] == [(method, count) for count in (1, 5) for method in METHODS]
    found = {(row.method, row.shots): row for row in rows}
    # The mean of the group of plain vectors is the mean of plain vectors.
    for count in (1, 5):
        plain, group = found["3CosAvg", count], found["group mean", count]
        assert (plain.all_candidates, plain.excluding_query) == (group.all_candidates, group.excluding_query)
        assert plain.excluding_query > plain.all_candidates
    assert found["LRCos", 5].all_candidates > found["LRCos", 1].all_candidates


def test_answers_are_to_test_questions() -> None:
    vectors = WordVectors.default()
    answers = sample_answers(vectors, {"WV": Offset(), "copy": lambda a, b, c: b}, each=2)
    assert len(answers) == 28
    test = google_pairs(vectors).test
    asked = {tuple(vectors.index_to_key[row] for row in words) for words in test.words.tolist()}
    right = 0
    for one in answers:
        assert one.words in asked
        word, accepted = one.said["WV"]
        assert word not in one.words
        assert accepted == (word == one.answer)
        right += accepted
    assert right > 10
