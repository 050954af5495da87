r"""Analogy questions :math:`a : b = c : d`: the Bigger Analogy Test Set (BATS) and the Google analogy test set."""

from __future__ import annotations

__all__ = [
    "CASES",
    "Asked",
    "Pairs",
    "Questions",
    "Relation",
    "Section",
    "Splits",
    "bats_questions",
    "google_pairs",
    "google_questions",
    "lookup",
    "named_questions",
    "read_bats",
    "read_google",
    "read_text",
]

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.words.vectors import WordVectors

CASES = ("auto", "keep", "lower", "fold")
# Rows of a word and of its answers.
_Pairs = list[tuple[int, list[int]]]
_BATS_CATEGORIES = {"I": "Inflectional", "D": "Derivational", "L": "Lexicographic", "E": "Encyclopedic"}
# Answers are separated by slashes; one contains a slash, between digits: 50/50_burger.
_BETWEEN_ANSWERS = re.compile(r"(?<!\d)/|/(?!\d)")


@dataclass(frozen=True)
class Relation:
    """Relation (subcategory) of BATS.

    Attributes:
        name: Name such as ``"E01 country - capital"``.
        category: Inflectional, Derivational, Lexicographic or Encyclopedic.
        pairs: Words, each with its accepted answers, best first.
    """

    name: str
    category: str
    pairs: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Section:
    """Section of questions, with its coverage by the vocabulary.

    Attributes:
        name: Name of the section.
        category: Category of the section.
        total: Number of questions (Google) or pairs (BATS).
        used: Number of these with all words in the vocabulary.
        questions: Number of questions made from them.
    """

    name: str
    category: str
    total: int
    used: int
    questions: int


@dataclass(frozen=True)
class Asked:
    r"""Words that are asked for, as rows of a vocabulary, with their accepted answers.

    Attributes:
        title: Name of the set.
        sections: Sections, in order.
        section: Section of each question, with shape :math:`(n)`.
        words: Rows of the words that are given, with shape :math:`(n, *)`.
        answers: Lists of accepted answers, with shape :math:`(p, m)`, best first, padded with −1.
        answer: Index of the answer list of each question, with shape :math:`(n)`.
    """

    title: str
    sections: tuple[Section, ...]
    section: Tensor
    words: Tensor
    answers: Tensor
    answer: Tensor

    def __len__(self) -> int:
        return len(self.words)

    @property
    def targets(self) -> Tensor:
        r"""Best answer of each question, with shape :math:`(n)`: the training target."""
        return self.answers[self.answer, 0]

    def accepts(self, rows: Tensor) -> Tensor:
        r"""Returns whether each row is an accepted answer to its question: :math:`(*, n)` to booleans :math:`(*, n)`.

        Example:
            >>> questions = google_questions(WordVectors.default())
            >>> questions.accepts(questions.targets).all()
            tensor(True)
        """
        found = torch.zeros_like(rows, dtype=torch.bool)
        for column in self.answers.t():
            answer = column[self.answer]
            found |= (rows == answer) & (answer >= 0)
        return found


@dataclass(frozen=True)
class Questions(Asked):
    r"""Questions :math:`a : b = c : ?`; ``words`` are the rows of :math:`a, b, c`, with shape :math:`(n, 3)`."""

    def pairs(self) -> Pairs:
        r"""Returns the pairs :math:`c : d` of the questions, each once in its section.

        Example:
            >>> len(google_questions(WordVectors.default()).pairs())
            573
        """
        keys = torch.stack((self.section, self.words[:, 2], self.targets), 1)
        _, inverse = torch.unique(keys, dim=0, return_inverse=True)
        first = torch.full((int(inverse.max()) + 1 if len(keys) else 0,), len(keys))
        first = first.scatter_reduce(0, inverse, torch.arange(len(keys)), "amin").sort().values
        return Pairs(
            self.title, self.sections, self.section[first], self.words[first, 2], self.answers, self.answer[first]
        )


@dataclass(frozen=True)
class Pairs(Asked):
    r"""Pairs :math:`c : d` of relations, one in each section; ``words`` are :math:`c`, with shape :math:`(n)`."""

    @property
    def rows(self) -> Tensor:
        r"""Rows of each word and of its best answer, with shape :math:`(n, 2)`."""
        return torch.stack((self.words, self.targets), 1)

    def joined(self, other: Pairs) -> Pairs:
        """Returns the pairs of both parts of a set, whose sections are the same.

        Example:
            >>> splits = google_pairs(WordVectors.default())
            >>> len(splits.development.pairs().joined(splits.test.pairs()))
            550
        """
        width = max(self.answers.shape[1], other.answers.shape[1])
        lists = [F.pad(part.answers, (0, width - part.answers.shape[1]), value=-1) for part in (self, other)]
        return Pairs(
            self.title,
            self.sections,
            torch.cat((self.section, other.section)),
            torch.cat((self.words, other.words)),
            torch.cat(lists),
            torch.cat((self.answer, other.answer + len(self.answers))),
        )


@dataclass(frozen=True)
class Splits:
    """Train, validation and test questions, split by pairs.

    Attributes:
        train: Questions from 60% of the pairs.
        validation: Questions from 20% of the pairs.
        test: Questions from 20% of the pairs.
        development: Questions from the train and validation pairs together.
    """

    train: Questions
    validation: Questions
    test: Questions
    development: Questions


def read_google(path: str | Path | None = None) -> dict[str, list[tuple[str, str, str, str]]]:
    """Reads the sections of a question file in Google's format; the bundled Google analogy test set if None.

    Example:
        >>> sections = read_google()
        >>> len(sections), sum(len(section) for section in sections.values())
        (14, 19544)
    """
    if path is None:
        source = "questions-words.txt"
        text = (resources.files("abelnet.words") / "data" / source).read_text(encoding="utf-8")
    else:
        source, text = str(path), read_text(path)
    sections: dict[str, list[tuple[str, str, str, str]]] = {}
    current: list[tuple[str, str, str, str]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        if line.startswith(":"):
            current = sections.setdefault(" ".join(fields).removeprefix(":").strip(), [])
        elif current is None or len(fields) != 4:
            expected = "four words" if current is not None else "a colon and the name of a section"
            raise AbelnetError(f"{source}, line {number}: expected {expected}, got {line[:60]!r}")
        else:
            current.append((fields[0], fields[1], fields[2], fields[3]))
    if not sections:
        raise AbelnetError(f"{source}: expected sections of questions, got none")
    return sections


def read_bats(folder: str | Path) -> tuple[Relation, ...]:
    """Reads the relations of BATS from its folder as distributed: one folder per category, one file per relation.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "4_Lexicographic_semantics").mkdir()
        ...     file = Path(folder, "4_Lexicographic_semantics", "L03 [hyponyms - misc].txt")
        ...     _ = file.write_text("burger\\thamburger/50/50_burger/\\n")
        ...     read_bats(folder)
        (Relation(name='L03 hyponyms - misc', category='Lexicographic',
                  pairs=(('burger', ('hamburger', '50/50_burger')),)),)
    """
    folder = Path(folder)
    paths = sorted(folder.glob("*/*.txt"))
    if not paths:
        raise AbelnetError(f"{folder}: expected the BATS folder, with a folder of .txt files for each category")
    relations = []
    for path in paths:
        match = re.fullmatch(r"(([IDLE])\d\d) \[(.*)\]", path.stem)
        if match is None:
            raise AbelnetError(f"{path}: expected a name such as 'I01 [noun - plural_reg].txt'")
        pairs = []
        for number, line in enumerate(read_text(path).split("\n"), 1):
            if not line.strip():
                continue
            word, tab, rest = line.strip().partition("\t")
            answers = tuple(dict.fromkeys(filter(None, _BETWEEN_ANSWERS.split(rest.strip()))))
            if not tab or not word or not answers:
                raise AbelnetError(f"{path}, line {number}: expected a word, a tab and its answers, got {line[:60]!r}")
            pairs.append((word, answers))
        relations.append(Relation(f"{match[1]} {match[3]}", _BATS_CATEGORIES[match[2]], tuple(pairs)))
    return tuple(relations)


def google_questions(vectors: WordVectors, path: str | Path | None = None, *, case: str = "auto") -> Questions:
    r"""Loads the Google analogy test set; questions with out-of-vocabulary words are dropped.

    Arguments:
        vectors: The vocabulary.
        path: Question file in the same format; the bundled set if None.
        case: ``"keep"`` looks up words as written, ``"lower"`` in lowercase, ``"fold"`` ignoring case, preferring the
            most frequent word; ``"auto"`` is ``"lower"`` if the vocabulary is lowercase and ``"keep"`` otherwise.

    Example:
        >>> questions = google_questions(WordVectors.default())
        >>> questions.sections[4]
        Section(name='family', category='Semantic', total=506, used=506, questions=506)
    """
    row = lookup(vectors, case)
    sections: list[Section] = []
    section: list[int] = []
    rows: list[list[int | None]] = []
    for name, lines in read_google(path).items():
        known = [found for line in lines if None not in (found := [row(word) for word in line])]
        section += [len(sections)] * len(known)
        sections.append(Section(name, _google_category(name), len(lines), len(known), len(known)))
        rows += known
    table = torch.tensor(rows, dtype=torch.long).reshape(-1, 4)
    return Questions(
        "Google" if path is None else Path(path).name,
        tuple(sections),
        torch.tensor(section, dtype=torch.long),
        table[:, :3],
        table[:, 3:],
        torch.arange(len(table)),
    )


def bats_questions(vectors: WordVectors, folder: str | Path, *, seed: int = 0, case: str = "auto") -> Splits:
    r"""Splits BATS 60/20/20 by pairs; each part has all ordered combinations of two of its pairs as questions.

    A pair is used if its word and at least one of its answers are in the vocabulary; those answers are accepted, and
    the first of them is :math:`b` and the training target. Of the :math:`n` pairs used in a relation,
    :math:`\lceil n / 5 \rceil` are for testing, as many for validation, and the rest for training; the split of a
    relation does not depend on the others.

    Arguments:
        vectors: The vocabulary.
        folder: The BATS folder as distributed.
        seed: Random seed of the split.
        case: As in :func:`google_questions`.

    Example:
        >>> import tempfile
        >>> words = [f"{prefix}{i}" for i in range(10) for prefix in ("one", "many")]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "1_Inflectional_morphology").mkdir()
        ...     file = Path(folder, "1_Inflectional_morphology", "I01 [noun - plural_reg].txt")
        ...     _ = file.write_text("".join(f"one{i}\tmany{i}\n" for i in range(10)))
        ...     splits = bats_questions(WordVectors(words, torch.eye(20)), folder)
        >>> len(splits.train), len(splits.validation), len(splits.test)
        (30, 2, 2)
    """
    return _splits("BATS", read_bats(folder), lookup(vectors, case), seed)


def named_questions(vectors: WordVectors, name: str, *, seed: int = 0, case: str = "auto") -> Questions:
    """The questions that a command names.

    Arguments:
        vectors: The vocabulary.
        name: ``"google"``, a file in the layout of Google's questions, or the folder of BATS.
        seed: Random seed for the split of BATS, whose test part is asked.
        case: How words are looked up, one of :data:`CASES`.

    Example:
        >>> named_questions(WordVectors.default(), "google").title
        'Google'
    """
    if Path(name).is_dir():
        return bats_questions(vectors, name, seed=seed, case=case).test
    return google_questions(vectors, None if name == "google" else name, case=case)


def google_pairs(vectors: WordVectors, path: str | Path | None = None, *, seed: int = 0, case: str = "auto") -> Splits:
    r"""Splits the pairs of the Google analogy test set, and combines them as :func:`bats_questions` does.

    A pair that occurs in two sections, such as the capital of a common country, is kept in the first only: otherwise
    test pairs could leak into training.

    Arguments:
        vectors: The vocabulary.
        path: Question file in the same format; the bundled set if None.
        seed: Random seed of the split.
        case: As in :func:`google_questions`.

    Example:
        >>> splits = google_pairs(WordVectors.default())
        >>> len(splits.train), len(splits.validation), len(splits.test)
        (8652, 1020, 1020)
    """
    seen: set[tuple[str, str]] = set()
    relations = []
    for name, lines in read_google(path).items():
        pairs = dict.fromkeys(pair for a, b, c, d in lines for pair in ((a, b), (c, d)))
        new = [pair for pair in pairs if pair not in seen]
        seen.update(new)
        relations.append(Relation(name, _google_category(name), tuple((a, (b,)) for a, b in new)))
    return _splits("Google pairs", relations, lookup(vectors, case), seed)


def _splits(title: str, relations: Iterable[Relation], row: Callable[[str], int | None], seed: int) -> Splits:
    seed = check_count("seed", seed, least=0)
    parts: tuple[list[tuple[Relation, int, _Pairs]], ...] = ([], [], [], [])
    for relation in relations:
        known: _Pairs = []
        for word, answers in relation.pairs:
            first = row(word)
            rows = list(dict.fromkeys(found for answer in answers if (found := row(answer)) is not None))
            if first is not None and rows:
                known.append((first, rows))
        order = np.random.default_rng([seed, zlib.crc32(relation.name.encode())]).permutation(len(known))
        fifth = -(-len(known) // 5)
        cuts = (order[2 * fifth :], order[fifth : 2 * fifth], order[:fifth], order[fifth:])
        for part, chosen in zip(parts, cuts, strict=True):
            pairs = [known[i] for i in sorted(chosen)]
            part.append((relation, len(known), pairs))
    names = ("train", "validation", "test", "development")
    return Splits(*(_combined(f"{title} {name}", part) for name, part in zip(names, parts, strict=True)))


def _combined(title: str, part: Sequence[tuple[Relation, int, _Pairs]]) -> Questions:
    sections: list[Section] = []
    section: list[int] = []
    words: list[tuple[int, int, int]] = []
    answers: list[list[int]] = []
    answer: list[int] = []
    for relation, used, pairs in part:
        count = len(pairs) * (len(pairs) - 1)
        section += [len(sections)] * count
        sections.append(Section(relation.name, relation.category, len(relation.pairs), used, count))
        start = len(answers)
        answers += [rows for _, rows in pairs]
        for i, (a, b) in enumerate(pairs):
            for j, (c, _) in enumerate(pairs):
                if i != j:
                    words.append((a, b[0], c))
                    answer.append(start + j)
    width = max((len(rows) for rows in answers), default=1)
    return Questions(
        title,
        tuple(sections),
        torch.tensor(section, dtype=torch.long),
        torch.tensor(words, dtype=torch.long).reshape(-1, 3),
        torch.tensor([rows + [-1] * (width - len(rows)) for rows in answers], dtype=torch.long).reshape(-1, width),
        torch.tensor(answer, dtype=torch.long),
    )


def _google_category(name: str) -> str:
    return "Syntactic" if name.startswith("gram") else "Semantic"


def lookup(vectors: WordVectors, case: str = "auto") -> Callable[[str], int | None]:
    """Returns a function from a word as written in a question to its row, or None.

    Example:
        >>> row = lookup(WordVectors.default())
        >>> row("Paris") == row("paris"), row("xyzzy")
        (True, None)
    """
    if case not in CASES:
        raise AbelnetError(f"case: expected {', '.join(CASES)}, got {case!r}")
    rows = vectors.key_to_index
    if case == "fold":
        folded: dict[str, int] = {}
        for row, word in enumerate(vectors.index_to_key):
            folded.setdefault(word.lower(), row)
        return lambda word: folded.get(word.lower())
    if case == "lower" or (case == "auto" and vectors.is_lower_case):
        return lambda word: rows.get(word.lower())
    return rows.get


def read_text(path: str | Path) -> str:
    """Reads a file of questions or pairs, in UTF-8.

    Example:
        >>> read_text("nowhere.txt")
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: nowhere.txt: expected a question file, got: No such file or directory
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise AbelnetError(f"{path}: expected a question file, got: {error.strerror}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AbelnetError(f"{path}, byte {error.start:,}: expected UTF-8, got {raw[error.start :][:4]!r}") from None
