"""SAT questions and the ratings of SemEval-2012, in the formats that they are distributed in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from abelnet import AbelnetError
from abelnet.words.choices import judge, read_sat, read_semeval, relational_similarity
from abelnet.words.models import Offset, default_model
from abelnet.words.vectors import WordVectors

SAT = """# Comments are skipped.

190 FROM REAL SATs
france paris n:n
bread butter n:n
italy rome n:n
loud quiet a:a
b

ML:A4
big bigger a:a
hot xyzzy a:a
dog cat n:n
a

KS type
good better a:a
bad worse a:a
tree leaf n:n
a
"""
PARADIGMS = "1, a, CLASS-INCLUSION, Capital, france:paris, italy:rome\n10, c, OTHER, Nothing, a:b\n"
RATINGS = '#\n#   Score\n 50.0 "germany:berlin"\n 20.5 "spain:madrid"\n  1 "xyzzy:rome"\n-31.0 "dog:cat"\n'


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    return WordVectors.default(20_000)


def semeval(folder: Path) -> Path:
    (folder / "Package").mkdir()
    (folder / "Ratings" / "Testing").mkdir(parents=True)
    (folder / "Package" / "subcategories-paradigms.txt").write_text(PARADIGMS)
    (folder / "Ratings" / "Testing" / "GoldRatings-1a.txt").write_text(RATINGS)
    return folder


def test_sat(vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "sat.txt").write_text(SAT)
    first, second, third = read_sat(tmp_path / "sat.txt")
    assert first.stem == ("france", "paris")
    assert first.choices[first.answer] == ("italy", "rome")
    assert [len(question.choices) for question in (first, second, third)] == [3, 2, 2]
    (row,) = judge(vectors, tmp_path / "sat.txt", {"wv": Offset(), "agn": default_model()})
    assert (row.total, row.used) == (3, 2)
    assert row.scores == {"wv": 100.0, "agn": 100.0}


def test_semeval(vectors: WordVectors, tmp_path: Path) -> None:
    (relation,) = read_semeval(semeval(tmp_path))
    assert (relation.name, relation.category) == ("1a Capital", "CLASS-INCLUSION")
    assert relation.examples == (("france", "paris"), ("italy", "rome"))
    assert dict(zip(relation.pairs, relation.ratings, strict=True))["dog", "cat"] == -31.0
    mean, row = judge(vectors, tmp_path, {"wv": Offset()})
    assert (row.total, row.used) == (4, 3)
    assert mean.scores == row.scores
    assert row.scores["wv"] >= 0.5  # germany and spain may change places, dog does not


def test_the_offset_of_the_model_counts(vectors: WordVectors) -> None:
    rows = torch.tensor([[vectors.index(a), vectors.index(b)] for a, b in (("man", "king"), ("woman", "queen"))])
    model = default_model()
    with torch.no_grad():
        encoded = model.encode(vectors.units(rows))
    expected = torch.cosine_similarity(*(encoded[:, 1] - encoded[:, 0]), dim=0)
    found = relational_similarity(vectors, model, rows[:1], rows[1:])
    assert torch.allclose(found, expected, atol=1e-5)
    assert not torch.allclose(found, relational_similarity(vectors, Offset(), rows[:1], rows[1:]), atol=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected SAT questions, got none"),
        ("KS type", "line 1: expected a header"),
        ("KS\na b\nc d\n", "line 1: expected a header, .* got a block that ends with 'c d'"),
        ("KS\na b\nc d\nb\n", "line 1: expected a header, .* got a block that ends with 'b'"),
        ("KS\na b\nc\na\n", "line 3: expected two words, got 'c'"),
        ("KS\nxyzzy b\nc d\na\n", "vectors: expected words of .*, got none"),
    ],
)
def test_bad_sat(text: str, message: str, vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "sat.txt").write_text(text)
    with pytest.raises(AbelnetError, match=message):
        judge(vectors, tmp_path / "sat.txt", {"wv": Offset()})


def test_bad_semeval(vectors: WordVectors, tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match=r"expected subcategories-paradigms\.txt and files GoldRatings"):
        judge(vectors, tmp_path, {"wv": Offset()})
    folder = semeval(tmp_path)
    ratings = folder / "Ratings" / "Testing" / "GoldRatings-1a.txt"
    ratings.write_text("50.0 weapon spear\n")
    with pytest.raises(AbelnetError, match="line 1: expected a rating and a pair"):
        read_semeval(folder)
    ratings.write_text('50.0 "xyzzy:paris"\n')
    with pytest.raises(AbelnetError, match=r"vectors: expected words of .*, got none"):
        judge(vectors, folder, {"wv": Offset()})
    (folder / "Package" / "subcategories-paradigms.txt").write_text("1, a, CLASS-INCLUSION\n")
    with pytest.raises(AbelnetError, match="line 1: expected a number, a letter, two names and pairs"):
        read_semeval(folder)
