"""Questions: the traps of BATS, its splits, Google's sections, and the case of words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abelnet import AbelnetError
from abelnet.words import WordVectors, bats_questions, google_pairs, google_questions
from abelnet.words.questions import named_questions, read_bats, read_google

SHARED = next((p / "shared" for p in Path(__file__).parents if (p / "shared" / "paper").is_dir()), Path("none"))
BATS = SHARED / "data" / "BATS_3.0"
TABLES = SHARED / "paper" / "tables.json"
needs_bats = pytest.mark.skipif(not BATS.is_dir() or not TABLES.is_file(), reason="needs the folder of BATS")


def vocabulary(words: list[str]) -> WordVectors:
    return WordVectors(words, torch.randn(len(words), 3))


def small_bats(folder: Path, pairs: int = 50) -> Path:
    for category, name in (("1_Inflectional", "I01 [noun - plural]"), ("4_Lexicographic", "L03 [hyponyms - misc]")):
        (folder / category).mkdir(parents=True)
        lines = [f"{name[0].lower()}{i}\t{name[0].lower()}s{i}/other{i}" for i in range(pairs)]
        (folder / category / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return folder


def test_traps_of_bats(tmp_path: Path) -> None:
    folder = tmp_path / "3_Encyclopedic_semantics"
    folder.mkdir()
    text = "andorra\tcatalan\r\nburger\thamburger/50/50_burger/bøfsandwich/\nbag\tkit_bag/kit_bag/tote\n\n"
    (folder / "E02 [country - language].txt").write_bytes(text.encode())
    (relation,) = read_bats(tmp_path)
    assert relation.name == "E02 country - language"
    assert relation.category == "Encyclopedic"
    assert relation.pairs == (
        ("andorra", ("catalan",)),
        ("burger", ("hamburger", "50/50_burger", "bøfsandwich")),
        ("bag", ("kit_bag", "tote")),
    )


@given(pairs=st.integers(0, 60), seed=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_split(pairs: int, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = small_bats(tmp_path_factory.mktemp("bats"), pairs or 1)
    known = [f"{letter}{kind}{i}" for letter in "il" for kind in ("", "s") for i in range(pairs)] or ["none"]
    vectors = vocabulary(known)
    splits = bats_questions(vectors, folder, seed=seed)
    test = -(-pairs // 5)
    sizes = {"train": max(0, pairs - 2 * test), "validation": min(test, pairs - test), "test": test}
    seen: list[set[int]] = []
    for name, size in sizes.items():
        questions = getattr(splits, name)
        assert [section.questions for section in questions.sections] == [size * (size - 1)] * 2
        assert [section.used for section in questions.sections] == [pairs] * 2
        a, b, c = questions.words.t()
        assert (a != c).all()
        assert len({tuple(row) for row in questions.words.tolist()}) == len(questions) == 2 * size * (size - 1)
        names = vectors.index_to_key
        assert all(names[x].replace("s", "") == names[y].replace("s", "") for x, y in zip(a, b, strict=True))
        assert all(
            names[x].replace("s", "") == names[y].replace("s", "") for x, y in zip(c, questions.targets, strict=True)
        )
        seen.append(set(a.tolist()))
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert not seen[1] & seen[2]
    again = bats_questions(vectors, folder, seed=seed)
    assert torch.equal(splits.test.words, again.test.words)


def test_answers_that_are_known(tmp_path: Path) -> None:
    folder = tmp_path / "L"
    folder.mkdir()
    lines = "a\tx/y\nb\ty/z\nc\tu\nd\tu/v/x\ne\tx\n"
    (folder / "L01 [hypernyms].txt").write_text(lines)
    vectors = vocabulary(["a", "b", "c", "d", "e", "y", "x"])  # z, u and v are not known
    (section,) = bats_questions(vectors, tmp_path).test.sections
    assert (section.total, section.used) == (5, 4)
    splits = bats_questions(vectors, tmp_path, seed=1)
    parts = [splits.train, splits.validation, splits.test]
    lists = {tuple(row) for part in parts for row in part.answers.tolist()}
    assert {tuple(row for row in rows if row >= 0) for rows in lists} == {(6, 5), (5,), (6,)}
    questions = splits.train
    assert questions.accepts(questions.targets).all()
    assert not questions.accepts(torch.full_like(questions.targets, -1)).any()
    assert not questions.accepts(questions.words[:, 0]).any()


@needs_bats
def test_bats_as_distributed() -> None:
    relations = read_bats(BATS)
    published = json.loads(TABLES.read_text())["bats_pairs"]
    assert [relation.name for relation in sorted(relations, key=lambda r: r.name)] == sorted(
        entry["name"] for entry in published.values()
    )
    for relation in relations:
        entry = published[relation.name[:3]]
        assert (relation.category, len(relation.pairs)) == (entry["category"], entry["pairs"])
        for word, answers in relation.pairs:
            assert not any(set(text) & set("\r\n\t ") or text.endswith("/") for text in (word, *answers))
            assert all("/" not in answer or answer == "50/50_burger" for answer in answers)


@needs_bats
def test_question_counts_are_the_papers_for_pairs_used() -> None:
    tables = json.loads(TABLES.read_text())
    relations = {relation.name[:3]: relation for relation in read_bats(BATS)}
    # A vocabulary that knows as many pairs of each relation as that of the paper did.
    words: dict[str, None] = {}
    for key, entry in tables["bats_pairs"].items():
        if key[0] in "DE":
            for word, answers in relations[key].pairs[: entry["used"]]:
                words |= dict.fromkeys((word, answers[0]))
    vectors = vocabulary(list(words))
    for section in bats_questions(vectors, BATS, case="keep").test.sections:
        key = section.name[:3]
        if key[0] in "DE" and section.used == tables["bats_pairs"][key]["used"]:
            assert section.questions == tables["bats_all_candidates"][key]["questions"], key
    counts = {50: 90, 45: 72, 36: 56, 37: 56, 23: 20, 24: 20, 27: 30}
    for used, questions in counts.items():
        test = -(-used // 5)
        assert test * (test - 1) == questions
        assert questions in {e["questions"] for k, e in tables["bats_all_candidates"].items()}


def test_google_sections_are_the_papers() -> None:
    sections = read_google()
    assert next(iter(sections)) == "capital-common-countries"
    questions = google_questions(WordVectors.default())
    assert len(questions) == 19544
    semantic = sum(section.used for section in questions.sections if section.category == "Semantic")
    assert semantic == 8869
    assert [section.total for section in questions.sections] == [len(lines) for lines in sections.values()]


def test_case(tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(": capitals\nAthens Greece Oslo Norway\n\n: gram1\nbig bigger small smaller\n")
    lower = ["athens", "greece", "oslo", "norway", "big", "bigger", "small", "smaller"]
    mixed = ["Athens", "Greece", "OSLO", "Norway", "big", "bigger", "small", "smaller", "oslo"]
    for words, case, used in [
        (lower, "auto", [1, 1]),
        (lower, "keep", [0, 1]),
        (mixed, "auto", [0, 1]),
        (mixed, "lower", [0, 1]),
        (mixed, "fold", [1, 1]),
    ]:
        questions = google_questions(vocabulary(words), path, case=case)
        assert [section.used for section in questions.sections] == used, (words, case)
        assert [section.category for section in questions.sections] == ["Semantic", "Syntactic"]
    folded = google_questions(vocabulary(mixed), path, case="fold")
    assert folded.words[0].tolist() == [0, 1, 2]
    with pytest.raises(AbelnetError, match="case: expected auto, keep, lower, fold, got 'upper'"):
        google_questions(vocabulary(lower), case="upper")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected sections of questions, got none"),
        (b"a b c d\n", "line 1: expected a colon"),
        (b": s\na b c\n", "line 2: expected four words, got 'a b c'"),
        (b": s\na b c \xff\n", "byte 10: expected UTF-8"),
    ],
)
def test_bad_google_files(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_bytes(content)
    with pytest.raises(AbelnetError, match=message) as caught:
        read_google(tmp_path / "q.txt")
    assert "q.txt" in str(caught.value)


def test_bad_bats(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="expected the BATS folder"):
        read_bats(tmp_path)
    with pytest.raises(AbelnetError, match=r"missing.txt: expected a question file"):
        read_google(tmp_path / "missing.txt")
    folder = tmp_path / "one"
    folder.mkdir()
    path = folder / "X1.txt"
    path.write_text("a\tb\n")
    with pytest.raises(AbelnetError, match=r"X1.txt: expected a name such as"):
        read_bats(tmp_path)
    path = path.rename(folder / "I01 [x].txt")
    for text in ("a b\n", "a\t/\n", "\tb\n"):
        path.write_text("c\td\n" + text)
        with pytest.raises(AbelnetError, match="line 2: expected a word, a tab and its answers"):
            read_bats(tmp_path)


def test_no_pair_of_google_is_in_two_parts() -> None:
    splits = google_pairs(WordVectors.default(), seed=3)
    pairs = [
        {
            tuple(pair)
            for pair in torch.cat((part.words[:, :2], torch.stack((part.words[:, 2], part.targets), 1))).tolist()
        }
        for part in (splits.train, splits.validation, splits.test)
    ]
    assert not pairs[0] & pairs[1]
    assert not pairs[0] & pairs[2]
    assert not pairs[1] & pairs[2]
    assert splits.test.title == "Google pairs test"
    assert sum(map(len, pairs)) == sum(section.total for section in splits.train.sections) == 550


def test_questions_by_name(tmp_path: Path) -> None:
    folder = small_bats(tmp_path / "bats")
    vectors = vocabulary([f"{letter}{i}" for letter in ("i", "is", "l", "ls") for i in range(50)] + ["boy", "girl"])
    named, expected = named_questions(vectors, str(folder), seed=3), bats_questions(vectors, folder, seed=3).test
    assert named.title == expected.title
    assert torch.equal(named.words, expected.words)
    (tmp_path / "own.txt").write_text(": own\nboy girl boy girl\n")
    assert len(named_questions(vectors, str(tmp_path / "own.txt"))) == 1
    assert named_questions(vectors, "google").title == "Google"
