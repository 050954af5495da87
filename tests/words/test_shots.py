"""Evaluation from several example pairs: protocols, examples of each query, and answers."""

from __future__ import annotations

import pytest
import torch

from abelnet import AbelnetError
from abelnet.words import WordVectors, bats_questions, evaluate
from abelnet.words.methods import LRCos, Similarity, ThreeCosAdd, ThreeCosAvg
from abelnet.words.models import Offset
from abelnet.words.questions import Pairs, Section, google_questions
from abelnet.words.shots import evaluate_methods, named_pairs, parse_shots, tasks


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    return WordVectors.default(8000)


def test_leave_one_out_has_all_others(vectors: WordVectors) -> None:
    queries, examples = named_pairs(vectors, "google", protocol="leave-one-out")
    asked = list(tasks(queries, examples))
    assert sum(len(places) for places, _ in asked) == len(queries)
    for places, task in asked:
        assert torch.equal(queries.words[places], task.queries)
        same = task.pairs[:, 0] == task.queries[:, None]
        assert bool(same.any(1).all())
        assert torch.equal(task.weights > 0, ~same)


def test_examples_are_drawn(vectors: WordVectors) -> None:
    queries, examples = named_pairs(vectors, "google", seed=1)
    first, again, other = (list(tasks(queries, examples, 3, seed=seed)) for seed in (0, 0, 1))
    assert all(bool((task.counts <= 3).all()) for _, task in first)
    assert any(bool((task.counts == 3).all()) for _, task in first)
    assert all(torch.equal(x.weights, y.weights) for (_, x), (_, y) in zip(first, again, strict=True))
    assert not all(torch.equal(x.weights, y.weights) for (_, x), (_, y) in zip(first, other, strict=True))
    known = {tuple(row) for row in examples.rows.tolist()}
    assert not known & {tuple(row) for row in queries.rows.tolist()}


def test_answers_are_those_of_each_task(vectors: WordVectors) -> None:
    queries, examples = named_pairs(vectors, "google")
    methods = {"similarity": Similarity(), "3cosavg": ThreeCosAvg(), "lrcos": LRCos(), "3cosadd": ThreeCosAdd()}
    shares: list[float] = []
    result = evaluate_methods(vectors, queries, examples, methods, shots=4, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert torch.equal(result.predicted[0, 0], queries.words)
    assert result.rows()[0].correct["all_candidates"]["similarity"] == 0
    for number, method in enumerate(methods.values()):
        for places, task in tasks(queries, examples, 4):
            found = method.answers(vectors, task, 2)
            assert torch.equal(result.predicted[0, number, places], found.indices[:, 0])
            expected = found.excluding(task.queries[:, None]).indices[:, 0]
            assert torch.equal(result.predicted[1, number, places], expected)
    assert result.to_dict()["excluding_query"]["Overall"]["3cosavg"] > 0


def test_one_example_is_a_question() -> None:
    """Two pairs of a relation, each the example of the other: the two questions of the one-pair protocol."""
    vectors = WordVectors(
        [f"word{i}" for i in range(50)], torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    )
    sections = (Section("one", "all", 2, 2, 2),)
    pairs = Pairs(
        "some", sections, torch.zeros(2).long(), torch.tensor([0, 2]), torch.tensor([[1], [3]]), torch.arange(2)
    )
    result = evaluate_methods(vectors, pairs, pairs, {"3cosadd": ThreeCosAdd()})
    units = vectors.units(torch.arange(4))
    found = (
        torch.stack((units[3] - units[2] + units[0], units[1] - units[0] + units[2]))
        @ vectors.units(torch.arange(50)).t()
    )
    assert torch.equal(result.predicted[0, 0], found.argmax(1))


def test_a_query_without_examples_has_no_answer() -> None:
    vectors = WordVectors(["a", "b"], torch.eye(2))
    sections = (Section("one", "all", 1, 1, 0),)
    pairs = Pairs("some", sections, torch.zeros(1).long(), torch.tensor([0]), torch.tensor([[1]]), torch.arange(1))
    result = evaluate_methods(vectors, pairs, pairs, {"3cosavg": ThreeCosAvg()})
    assert result.predicted.tolist() == [[[-1]], [[-1]]]
    assert not bool(result.correct.any())


def test_questions_and_models_of_the_one_pair_protocol(vectors: WordVectors) -> None:
    """A model encodes each distinct word of all questions once."""

    class Counting(Offset):
        encoded = 0

        def encode(self, x: torch.Tensor) -> torch.Tensor:
            Counting.encoded += len(x)
            return x

    questions = google_questions(vectors)
    result = evaluate(vectors, questions, {"wv": Counting()})
    assert Counting.encoded == len(torch.unique(questions.words))
    assert torch.equal(result.predicted, evaluate(vectors, questions).predicted)


def test_bad_input(vectors: WordVectors) -> None:
    queries, examples = named_pairs(vectors, "google")
    with pytest.raises(AbelnetError, match="methods: expected at least one method"):
        evaluate_methods(vectors, queries, examples, {})
    with pytest.raises(AbelnetError, match="shots: expected at least 1, got 0"):
        evaluate_methods(vectors, queries, examples, {"3cosavg": ThreeCosAvg()}, shots=0)
    with pytest.raises(AbelnetError, match="protocol: expected split or leave-one-out, got 'all'"):
        named_pairs(vectors, "google", protocol="all")
    for text in ("0", "-1", "many", "1.5"):
        with pytest.raises(AbelnetError, match="shots: expected a number of at least 1, or all"):
            parse_shots(text)


def test_leave_one_out_of_bats_has_all_its_pairs(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "1_Inflectional").mkdir()
    text = "".join(f"one{i}\tmany{i}/more{i}\n" for i in range(10)) + "one10\tmany10\n"
    (tmp_path / "1_Inflectional" / "I01 [noun - plural_reg].txt").write_text(text)
    words = [f"{prefix}{i}" for i in range(11) for prefix in ("one", "many")] + ["more3"]
    vectors = WordVectors(words, torch.eye(23))
    queries, examples = named_pairs(vectors, str(tmp_path), protocol="leave-one-out")
    assert queries is examples
    assert sorted(queries.words.tolist()) == list(range(0, 22, 2))
    assert torch.equal(queries.targets, queries.words + 1)
    three = (queries.words == 6).nonzero().item()
    assert queries.answers[queries.answer[three]].tolist() == [7, 22]
    splits = bats_questions(vectors, tmp_path)
    queries, examples = named_pairs(vectors, str(tmp_path))
    assert len(queries), len(examples) == (len(splits.test.pairs()), len(splits.development.pairs()))
