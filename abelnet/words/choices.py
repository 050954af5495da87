r"""Analogies between given pairs: the multiple-choice questions of the SAT, and the ratings of SemEval-2012 Task 2.

Neither set is included: both are read from the user's disk, as distributed.
"""

from __future__ import annotations

__all__ = ["Choice", "Judged", "RatedRelation", "judge", "read_sat", "read_semeval", "relational_similarity"]

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch import Tensor

from abelnet.errors import AbelnetError
from abelnet.words.models import AnalogyModel
from abelnet.words.questions import lookup, read_text
from abelnet.words.vectors import WordVectors

_Pair = tuple[str, str]
_PARADIGMS = "subcategories-paradigms.txt"
_RATED = re.compile(r'\s*([-+]?\d+(?:\.\d+)?)\s+"([^":]+):([^":]+)"\s*')


@dataclass(frozen=True)
class Choice:
    """Multiple-choice question: which pair is related as the stem is?

    Attributes:
        stem: The given pair.
        choices: Pairs to choose from.
        answer: Index of the correct one.
    """

    stem: _Pair
    choices: tuple[_Pair, ...]
    answer: int


@dataclass(frozen=True)
class RatedRelation:
    """Relation of SemEval-2012 Task 2, whose pairs people rated by how typical they are of it.

    Attributes:
        name: Name such as ``"1a Taxonomic"``.
        category: One of ten, such as ``"CLASS-INCLUSION"``.
        examples: The pairs that people were shown.
        pairs: Rated pairs.
        ratings: Rating of each pair.
    """

    name: str
    category: str
    examples: tuple[_Pair, ...]
    pairs: tuple[_Pair, ...]
    ratings: tuple[float, ...]


@dataclass(frozen=True)
class Judged:
    """Row of results.

    Attributes:
        name: SAT, or a relation of SemEval-2012.
        total: Number of questions (SAT) or pairs (SemEval-2012).
        used: Number of these with all words in the vocabulary.
        scores: By model, accuracy (%), or the rank correlation (Spearman) with the ratings.
    """

    name: str
    total: int
    used: int
    scores: dict[str, float]


def read_sat(path: str | Path) -> tuple[Choice, ...]:
    """Reads SAT questions as Turney distributes them: blocks of a header, the stem, the choices, and a letter.

    Example:
        >>> import tempfile
        >>> text = "KS type\\nlull trust v:n\\nbalk fortitude v:n\\nbetray loyalty v:n\\nb\\n"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "sat.txt").write_text(text)
        ...     read_sat(Path(folder, "sat.txt"))
        (Choice(stem=('lull', 'trust'), choices=(('balk', 'fortitude'), ('betray', 'loyalty')), answer=1),)
    """
    questions = []
    block: list[tuple[int, str]] = []
    # The end of the file ends a block too.
    for number, line in enumerate([*read_text(path).splitlines(), ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            block.append((number, line.strip()))
        elif block:
            questions.append(_choice(path, block))
            block = []
    if not questions:
        raise AbelnetError(f"{path}: expected SAT questions, got none")
    return tuple(questions)


def _choice(path: str | Path, block: Sequence[tuple[int, str]]) -> Choice:
    (start, _), *pairs, (_, letter) = block if len(block) > 1 else [*block, *block]
    answer = ord(letter) - ord("a") if len(letter) == 1 else -1
    if not 0 <= answer < len(pairs) - 1:
        expected = "a header, a pair, pairs to choose from and the letter of the answer"
        raise AbelnetError(f"{path}, line {start}: expected {expected}, got a block that ends with {letter[:60]!r}")
    words = []
    for number, text in pairs:
        fields = text.split()
        if len(fields) < 2:
            raise AbelnetError(f"{path}, line {number}: expected two words, got {text[:60]!r}")
        words.append((fields[0], fields[1]))
    return Choice(words[0], tuple(words[1:]), answer)


def read_semeval(folder: str | Path) -> tuple[RatedRelation, ...]:
    """Reads SemEval-2012 Task 2 from a folder with its data package and its ratings, somewhere in it.

    Needs ``subcategories-paradigms.txt``, with lines such as ``1, a, CLASS-INCLUSION, Taxonomic, flower:tulip,
    emotion:rage``, and files ``GoldRatings-1a.txt`` with lines such as ``50.0 "weapon:spear"``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "subcategories-paradigms.txt").write_text("1, a, CLASS-INCLUSION, Taxonomic, tree:ash")
        ...     _ = Path(folder, "GoldRatings-1a.txt").write_text('# Score\\n 50.0 "weapon:spear"\\n-55.1 "oak:tree"')
        ...     read_semeval(folder)
        (RatedRelation(name='1a Taxonomic', category='CLASS-INCLUSION', examples=(('tree', 'ash'),),
                       pairs=(('weapon', 'spear'), ('oak', 'tree')), ratings=(50.0, -55.1)),)
    """
    folder = Path(folder)
    ratings = {path.stem.partition("-")[2]: path for path in sorted(folder.rglob("GoldRatings-*.txt"))}
    paradigms = sorted(folder.rglob(_PARADIGMS))
    if not ratings or not paradigms:
        raise AbelnetError(f"{folder}: expected {_PARADIGMS} and files GoldRatings-*.txt of SemEval-2012 Task 2")
    relations = []
    for number, line in enumerate(read_text(paradigms[0]).splitlines(), 1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split(",")]
        examples = [tuple(field.split(":")) for field in fields[4:]]
        if not examples or any(len(pair) != 2 for pair in examples):
            expected = "a number, a letter, two names and pairs such as flower:tulip, all with commas between them"
            raise AbelnetError(f"{paradigms[0]}, line {number}: expected {expected}, got {line[:60]!r}")
        key = fields[0] + fields[1]
        if key in ratings:
            rated = _ratings(ratings[key])
            pairs, values = tuple(pair for pair, _ in rated), tuple(value for _, value in rated)
            relations.append(
                RatedRelation(f"{key} {fields[3]}", fields[2], tuple((a, b) for a, b in examples), pairs, values)
            )
    return tuple(relations)


def _ratings(path: Path) -> list[tuple[_Pair, float]]:
    rated = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        match = _RATED.fullmatch(line)
        if match is None:
            expected = 'a rating and a pair such as 50.0 "weapon:spear"'
            raise AbelnetError(f"{path}, line {number}: expected {expected}, got {line[:60]!r}")
        rated.append(((match[2], match[3]), float(match[1])))
    return rated


def relational_similarity(vectors: WordVectors, model: AnalogyModel, examples: Tensor, pairs: Tensor) -> Tensor:
    r"""Returns how similar the offset of each pair is to the mean offset of the examples.

    .. math:: \cos\Bigl(\sum_i (\varphi(b_i) - \varphi(a_i)), \varphi(d) - \varphi(c)\Bigr)

    Arguments:
        vectors: The vocabulary.
        model: The model in whose coordinates offsets are taken.
        examples: Rows of :math:`a_i` and :math:`b_i`, with shape :math:`(k, 2)`.
        pairs: Rows of :math:`c` and :math:`d`, with shape :math:`(n, 2)`.

    Example:
        >>> from abelnet.words.models import Offset
        >>> vectors = WordVectors(["a", "b", "c"], torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
        >>> pairs = torch.tensor([[0, 1], [1, 0], [1, 2]])
        >>> relational_similarity(vectors, Offset(), pairs[:1], pairs).round().tolist()
        [1.0, -1.0, 0.0]
    """
    rows, index = torch.unique(torch.cat((examples, pairs)), return_inverse=True)
    with torch.no_grad():
        a, b = model.encode(vectors.units(rows))[index].unbind(1)
    offsets = b - a
    return F.cosine_similarity(offsets[: len(examples)].sum(0), offsets[len(examples) :], dim=-1)


def judge(
    vectors: WordVectors, path: str | Path, models: Mapping[str, AnalogyModel], *, case: str = "auto"
) -> tuple[Judged, ...]:
    """Evaluates models on SAT questions or SemEval-2012 Task 2, by :func:`relational_similarity`.

    An SAT question is answered by the pair that is most similar to its stem; questions with unknown words are dropped.
    A relation of SemEval-2012 is scored by the rank correlation of similarities and ratings; unknown pairs are dropped.

    Arguments:
        vectors: The vocabulary.
        path: The file of the SAT questions, or the folder of SemEval-2012.
        models: Models by name.
        case: As in :func:`~abelnet.words.google_questions`.

    Returns:
        One row for the SAT; the mean and a row per relation for SemEval-2012.
    """
    row = lookup(vectors, case)

    def known(pairs: Sequence[_Pair]) -> tuple[Tensor, list[int]]:
        """Returns the rows of the pairs with known words, and the places of these pairs."""
        rows = [(row(a), row(b)) for a, b in pairs]
        places = [place for place, found in enumerate(rows) if None not in found]
        return torch.tensor([rows[place] for place in places], dtype=torch.long).reshape(-1, 2), places

    def similarities(examples: Tensor, pairs: Tensor) -> dict[str, Tensor]:
        return {name: relational_similarity(vectors, model, examples, pairs) for name, model in models.items()}

    judged = []
    if Path(path).is_dir():
        for relation in read_semeval(path):
            (examples, _), (pairs, places) = known(relation.examples), known(relation.pairs)
            ratings = [relation.ratings[place] for place in places]
            if len(examples) and len(set(ratings)) > 1:
                scores = {
                    name: float(spearmanr(similar, ratings).statistic)
                    for name, similar in similarities(examples, pairs).items()
                }
                judged.append(Judged(relation.name, len(relation.pairs), len(pairs), scores))
        if judged:
            mean = {name: sum(one.scores[name] for one in judged) / len(judged) for name in models}
            judged.insert(0, Judged("Mean", sum(one.total for one in judged), sum(one.used for one in judged), mean))
    else:
        questions = read_sat(path)
        right = []
        for question in questions:
            pairs, _ = known((question.stem, *question.choices))
            if len(pairs) > len(question.choices):
                similar = similarities(pairs[:1], pairs[1:])
                right.append({name: int(similar[name].argmax()) == question.answer for name in models})
        if right:
            accuracy = {name: 100 * sum(one[name] for one in right) / len(right) for name in models}
            judged.append(Judged("SAT", len(questions), len(right), accuracy))
    if not judged:
        raise AbelnetError(f"vectors: expected words of {path}, got none")
    return tuple(judged)
