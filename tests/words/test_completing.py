"""Words completed from example pairs, and hostile input."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from abelnet import AbelnetError
from abelnet.words.completing import Examples, complete, parse_pair, read_pairs, relation_pairs
from abelnet.words.methods import Joined, ThreeCosAvg
from abelnet.words.models import default_model
from abelnet.words.vectors import UnknownWordError, WordVectors

CAPITALS = [("france", "paris"), ("Italy", "Rome"), ("japan", "tokyo")]


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    return WordVectors.default()


def test_capitals(vectors: WordVectors) -> None:
    methods = {"wv": Joined(), "agn": Joined(default_model())}
    germany, spain = complete(vectors, Examples.of(vectors, CAPITALS), ["Germany", "spain"], methods, topn=4)
    assert (germany.word, spain.word) == ("germany", "spain")
    for found, capital in ((germany, "berlin"), (spain, "madrid")):
        for answers in found.answers.values():
            assert len(answers) == 4
            assert answers[0][0] == capital
            assert [score for _, score in answers] == sorted((score for _, score in answers), reverse=True)
            assert found.word not in dict(answers)


def test_an_example_is_not_its_own(vectors: WordVectors) -> None:
    examples, fewer = (Examples.of(vectors, pairs) for pairs in (CAPITALS, CAPITALS[1:]))
    methods = {"wv": ThreeCosAvg()}
    (found,) = complete(vectors, examples, ["france"], methods)
    (expected,) = complete(vectors, fewer, ["france"], methods)
    assert [word for word, _ in found.answers["wv"]] == [word for word, _ in expected.answers["wv"]]
    with pytest.raises(AbelnetError, match="pairs: expected an example other than france itself, got none"):
        complete(vectors, Examples.of(vectors, CAPITALS[:1]), ["france"], methods)


def test_hostile_pairs(vectors: WordVectors) -> None:
    with pytest.raises(UnknownWordError, match="expected a vocabulary word, got 'xyzzy'"):
        Examples.of(vectors, [("france", "xyzzy")])
    with pytest.raises(AbelnetError, match="pair: expected two different words, got paris:paris"):
        Examples.of(vectors, [("paris", "Paris")])
    with pytest.raises(AbelnetError, match="pairs: expected at least one example pair, got none"):
        complete(vectors, Examples.of(vectors, []), ["germany"], {"wv": ThreeCosAvg()})
    with pytest.raises(AbelnetError, match="words: expected at least one word to complete, got none"):
        complete(vectors, Examples.of(vectors, CAPITALS), [], {"wv": ThreeCosAvg()})
    with pytest.raises(UnknownWordError, match="got 'xyzzy'"):
        complete(vectors, Examples.of(vectors, CAPITALS), ["xyzzy"], {"wv": ThreeCosAvg()})
    loose = Examples.of(
        vectors, [*CAPITALS, *CAPITALS, ("paris", "paris"), ("xyzzy", "paris"), ("x", "xyzzy")], strict=False
    )
    assert len(loose.rows) == 3
    assert loose.notes == (
        "3 repeated pairs are used once",
        "1 pair of a word with itself is left out",
        "2 pairs have unknown words and are left out",
    )


def test_ten_thousand_pairs(vectors: WordVectors) -> None:
    words = vectors.index_to_key
    examples = Examples.of(vectors, zip(words[:10_000], words[10_000:20_000], strict=True))
    assert len(examples.rows) == 10_000
    (found,) = complete(vectors, examples, ["germany"], {"wv": Joined()}, topn=3)
    assert len(found.answers["wv"]) == 3


@pytest.mark.parametrize("text", ["paris", "", ":", "a:", ":b", "a:b:c"])
def test_bad_pairs(text: str) -> None:
    with pytest.raises(AbelnetError, match="pair: expected two words with a colon between them"):
        parse_pair(text)


def test_files_of_pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("\ufefffrance:paris\n\nitaly\trome\njapan, tokyo\nspain   madrid\n")
    assert read_pairs(tmp_path / "pairs.txt") == [
        ("france", "paris"),
        ("italy", "rome"),
        ("japan", "tokyo"),
        ("spain", "madrid"),
    ]
    (tmp_path / "bad.txt").write_text("france:paris\nitaly\n")
    with pytest.raises(AbelnetError, match=r"bad.txt, line 2: expected two words, got 'italy'"):
        read_pairs(tmp_path / "bad.txt")
    with pytest.raises(AbelnetError, match=r"none.txt: expected a question file, got: No such file"):
        read_pairs(tmp_path / "none.txt")


def test_relations_by_name(vectors: WordVectors) -> None:
    examples = relation_pairs(vectors, "Capital-World")
    assert [vectors.index("france"), vectors.index("paris")] in examples.rows.flip(1).tolist()
    with pytest.raises(
        AbelnetError, match="expected a name that only one has of gram8-plural, gram9-plural-verbs, got"
    ):
        relation_pairs(vectors, "plural")
    with pytest.raises(AbelnetError, match=r"relation: expected one of capital-common-countries, .* got 'magic'"):
        relation_pairs(vectors, "magic")


def test_case_is_kept_where_the_vocabulary_has_it() -> None:
    vectors = WordVectors(["Paris", "paris", "Rome", "rome"], torch.eye(4))
    examples = Examples.of(vectors, [("Paris", "paris")])
    assert examples.rows.tolist() == [[0, 1]]
    (found,) = complete(vectors, examples, ["Rome"], {"wv": ThreeCosAvg()}, topn=9)
    assert len(found.answers["wv"]) == 3
