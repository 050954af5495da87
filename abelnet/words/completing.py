r"""Words completed from example pairs: *here are countries with their capitals, complete these*."""

from __future__ import annotations

__all__ = ["Completion", "Examples", "complete", "parse_pair", "read_pairs", "relation_pairs"]

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.words.methods import Method, Task
from abelnet.words.questions import read_text
from abelnet.words.shots import named_pairs
from abelnet.words.vectors import WordVectors

_BETWEEN_WORDS = re.compile(r"[:\t,]\s*|\s+")
# Names that an error lists before it stops.
_LISTED = 50


@dataclass(frozen=True)
class Examples:
    r"""Example pairs of a relation, as rows of a vocabulary.

    Attributes:
        rows: Rows of :math:`a_i` and :math:`b_i`, with shape :math:`(p, 2)`.
        notes: What was left out, in words.
    """

    rows: Tensor
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, vectors: WordVectors, pairs: Iterable[tuple[str, str]], *, strict: bool = True) -> Examples:
        """Looks up pairs of words. A repeated pair counts once.

        Arguments:
            vectors: The vocabulary. Where it is in lower case, the words are put in lower case too.
            pairs: The pairs.
            strict: Whether unknown words, and pairs of a word with itself, raise an error; otherwise such pairs are
                left out, which ``notes`` say.

        Example:
            >>> examples = Examples.of(WordVectors.default(), [("France", "Paris"), ("france", "paris")])
            >>> len(examples.rows), examples.notes
            (1, ('1 repeated pair is used once',))
        """
        rows = vectors.key_to_index
        found: dict[tuple[int, int], None] = {}
        repeated = equal = unknown = 0
        for pair in pairs:
            a, b = (word.lower() for word in pair) if vectors.is_lower_case else pair
            if strict:
                _ = vectors.index(a), vectors.index(b)
                if a == b:
                    raise AbelnetError(f"pair: expected two different words, got {a}:{b}")
            if a not in rows or b not in rows:
                unknown += 1
            elif a == b:
                equal += 1
            elif (key := (rows[a], rows[b])) in found:
                repeated += 1
            else:
                found[key] = None
        notes = (
            _counted(repeated, "repeated pair is used once", "repeated pairs are used once"),
            _counted(equal, "pair of a word with itself is left out", "pairs of a word with itself are left out"),
            _counted(unknown, "pair has an unknown word and is left out", "pairs have unknown words and are left out"),
        )
        return cls(torch.tensor(list(found), dtype=torch.long).reshape(-1, 2), tuple(filter(None, notes)))

    def joined(self, other: Examples) -> Examples:
        """Returns the pairs and notes of both."""
        return Examples(torch.unique(torch.cat((self.rows, other.rows)), dim=0), self.notes + other.notes)

    def reversed_words(self, vectors: WordVectors, words: Iterable[str]) -> dict[str, str]:
        """Returns words that are answers of the examples and not asked for in any, each with such a pair.

        They are most likely meant the other way round: pairs are completed from their first word to the second.

        Example:
            >>> vectors = WordVectors.default()
            >>> Examples.of(vectors, [("berlin", "germany"), ("rome", "italy")]).reversed_words(vectors, ["germany"])
            {'germany': 'berlin:germany'}
        """
        asked = set(self.rows[:, 0].tolist())
        sources = {b: a for a, b in reversed(self.rows.tolist())}
        names = vectors.index_to_key
        rows = {word: vectors.index(word.lower() if vectors.is_lower_case else word) for word in words}
        return {
            word: f"{names[sources[row]]}:{names[row]}"
            for word, row in rows.items()
            if row in sources and row not in asked
        }


@dataclass(frozen=True)
class Completion:
    """Answers for one word.

    Attributes:
        word: The word.
        answers: Words with their scores, best first, by the name of the method.
    """

    word: str
    answers: dict[str, list[tuple[str, float]]]


def complete(
    vectors: WordVectors,
    examples: Examples,
    words: Sequence[str],
    methods: Mapping[str, Method],
    *,
    topn: int = 5,
) -> list[Completion]:
    r"""Completes words from example pairs. A word is not an answer to itself.

    Arguments:
        vectors: The vocabulary. Where it is in lower case, the words are put in lower case too.
        examples: The example pairs; one with the word itself is not used for it.
        words: Words to complete.
        methods: Methods by name.
        topn: Number of answers.

    Example:
        >>> from abelnet.words.methods import ThreeCosAvg
        >>> vectors = WordVectors.default()
        >>> examples = Examples.of(vectors, [("france", "paris"), ("italy", "rome")])
        >>> (found,) = complete(vectors, examples, ["germany"], {"3cosavg": ThreeCosAvg()}, topn=2)
        >>> [word for word, _ in found.answers["3cosavg"]]
        ['berlin', 'vienna']
    """
    check_count("topn", topn)
    if len(examples.rows) == 0:
        raise AbelnetError("pairs: expected at least one example pair, got none; give some, such as france:paris")
    if not words:
        raise AbelnetError("words: expected at least one word to complete, got none")
    words = [word.lower() for word in words] if vectors.is_lower_case else list(words)
    queries = torch.tensor([vectors.index(word) for word in words])
    used = examples.rows[:, 0] != queries[:, None]
    for word, usable in zip(words, used, strict=True):
        if not bool(usable.any()):
            raise AbelnetError(f"pairs: expected an example other than {word} itself, got none")
    task = Task.of(examples.rows, queries, used)
    k = min(topn + 1, len(vectors))
    found = {
        name: method.answers(vectors, task, k).excluding(queries[:, None], k - 1) for name, method in methods.items()
    }
    return [
        Completion(
            word,
            {
                name: [
                    (vectors.index_to_key[row], score)
                    for row, score in zip(best.indices[i].tolist(), best.scores[i].tolist(), strict=True)
                ]
                for name, best in found.items()
            },
        )
        for i, word in enumerate(words)
    ]


def parse_pair(text: str) -> tuple[str, str]:
    """Returns both words of a pair that is written as ``a:b``.

    Example:
        >>> parse_pair("france:paris")
        ('france', 'paris')
    """
    words = text.split(":")
    if len(words) != 2 or not all(map(str.strip, words)):
        raise AbelnetError(f"pair: expected two words with a colon between them, as in france:paris, got {text!r}")
    return words[0].strip(), words[1].strip()


def read_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Reads a file of pairs, one per line: two words with a colon, a comma, a tab or spaces between them.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "pairs.txt").write_text("france:paris\\nitaly rome\\n")
        ...     read_pairs(Path(folder, "pairs.txt"))
        [('france', 'paris'), ('italy', 'rome')]
    """
    pairs = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        words = _BETWEEN_WORDS.split(line.strip())
        if len(words) != 2 or not all(words):
            raise AbelnetError(f"{path}, line {number}: expected two words, got {line.strip()[:60]!r}")
        pairs.append((words[0], words[1]))
    return pairs


def relation_pairs(vectors: WordVectors, relation: str, questions: str = "google") -> Examples:
    """Returns the pairs of a relation of a question set that are in the vocabulary.

    Arguments:
        vectors: The vocabulary.
        relation: Name of the relation, or a part of it that no other has.
        questions: ``"google"``, a file in the layout of Google's questions, or the folder of BATS.

    Example:
        >>> len(relation_pairs(WordVectors.default(), "currency").rows)
        30
    """
    pairs, _ = named_pairs(vectors, questions, protocol="leave-one-out")
    names = [section.name for section in pairs.sections]
    wanted = relation.casefold()
    numbers = [i for i, name in enumerate(names) if name.casefold() == wanted]
    numbers = numbers or [i for i, name in enumerate(names) if wanted in name.casefold()]
    if len(numbers) != 1:
        near = ", ".join([names[i] for i in numbers] or names[:_LISTED])
        expected = "one of" if not numbers else "a name that only one has of"
        raise AbelnetError(f"relation: expected {expected} {near}, got {relation!r}")
    return Examples(pairs.rows[pairs.section == numbers[0]])


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}" if count else ""
