"""Edits between words: each makes its own pair, the usual changes of English, and any text as words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abelnet.words.spelling import Edit, Spelling, edits, literal_edits

WORDS = st.text(alphabet="aeiysntré-_A1", max_size=8)


@given(WORDS, WORDS)
def test_each_literal_edit_makes_its_pair(a: str, b: str) -> None:
    for edit in literal_edits(a, b):
        assert edit.apply(a) == b


@given(WORDS, WORDS)
def test_a_pair_spells_its_own_answer_if_half_of_a_word_is_kept(a: str, b: str) -> None:
    spelled = Spelling([(a, b)]).shares(a)
    assert spelled.get(b, 0.0) == (1.0 if literal_edits(a, b) else 0.0)


@pytest.mark.parametrize(
    ("pair", "word", "answer"),
    [
        (("walk", "walked"), "hope", "hoped"),
        (("like", "liked"), "walk", "walked"),
        (("walk", "walking"), "run", "running"),
        (("run", "running"), "make", "making"),
        (("making", "makes"), "running", "runs"),
        (("slow", "slower"), "big", "bigger"),
        (("slow", "slowly"), "happy", "happily"),
        (("happy", "happiness"), "dark", "darkness"),
        (("car", "cars"), "city", "cities"),
        (("cities", "city"), "cars", "car"),
        (("hopes", "hoped"), "walks", "walked"),
        (("do", "undo"), "pack", "unpack"),
        (("able", "unable"), "aware", "unaware"),
        (("machen", "gemacht"), "sagen", "gesagt"),
        (("été", "étés"), "café", "cafés"),
        (("new_york", "new_yorker"), "berlin", "berliner"),
    ],
)
def test_changes(pair: tuple[str, str], word: str, answer: str) -> None:
    assert Spelling([pair]).shares(word)[answer] == 1


@pytest.mark.parametrize(
    "pair", [("france", "paris"), ("good", "well"), ("a", "b"), ("a", "an"), ("", "s"), ("", ""), ("go", "went")]
)
def test_pairs_without_edits(pair: tuple[str, str]) -> None:
    assert literal_edits(*pair) == []
    assert edits(*pair) == set()
    assert Spelling([pair]).shares("word") == {}


def test_short_words_and_other_ends() -> None:
    assert Edit("", "", "s", "").apply("s") is None
    assert Edit("un", "", "", "").apply("happy") is None
    assert Edit("", "", "ing", "", undoubles=True).apply("walking") is None
    assert Edit("", "", "ing", "", undoubles=True).apply("aing") is None
    spelling = Spelling([("unable", "able"), ("cats", "cat")])
    assert spelling.shares("") == {}
    assert spelling.shares("s") == {}


def test_a_word_that_stays_the_same() -> None:
    assert Spelling([("sheep", "sheep"), ("cow", "cows")]).shares("deer") == {"deer": 0.5, "deers": 0.5}


def test_only_used_pairs_count() -> None:
    spelling = Spelling([("walk", "walked"), ("walk", "walks"), ("play", "played")])
    assert spelling.shares("jump", [1]) == {"jumps": 1.0}
    assert spelling.shares("jump", [0, 2])["jumped"] == 1
    assert "jumps" not in spelling.shares("jump", [0, 2])
    shares = spelling.shares("jump")
    assert (shares["jumped"], shares["jumps"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))


def test_explained_by_the_others() -> None:
    assert Spelling([("walk", "walked")]).explained() == (0, 0)
    assert Spelling([("walk", "walked"), ("walk", "walked")]).explained() == (0, 0)
    spelling = Spelling([("walk", "walked"), ("hope", "hoped"), ("go", "went"), ("france", "paris")])
    assert spelling.explained() == (2, 4)
    assert spelling.explained([1, 2]) == (0, 2)
    capitals = Spelling([("france", "paris"), ("italy", "rome"), ("mexico", "mexico-city"), ("algeria", "algiers")])
    assert capitals.explained() == (0, 4)


def test_many_pairs() -> None:
    spelling = Spelling([(f"word{i}", f"word{i}s") for i in range(10_000)])
    assert spelling.shares("tree")["trees"] == 1
    assert spelling.explained() == (100, 100)
    assert spelling.explained([3, 7_777]) == (2, 2)
