"""From what a file holds to a vocabulary: words decoded, lowered and made distinct, and a report of what was odd."""

from __future__ import annotations

__all__ = ["Report", "decode", "select"]

from dataclasses import dataclass

from torch import Tensor

from abelnet.errors import AbelnetError


@dataclass(frozen=True)
class Report:
    """What was read, and what was not quite in order.

    Attributes:
        source: Where the vectors come from.
        kind: ``"binary"``, ``"text"``, ``"safetensors"`` or ``"memory"``.
        words: Size of the vocabulary.
        dim: Number of dimensions.
        duplicates: Words that were there before and were left out; the first, the most frequent, is kept.
        undecodable: Words that are not UTF-8; their odd bytes are replaced by U+FFFD.
        lowered: Words that were there before only once they were in lower case, and were left out.
    """

    source: str
    kind: str
    words: int
    dim: int
    duplicates: int = 0
    undecodable: int = 0
    lowered: int = 0

    def __str__(self) -> str:
        text = f"{self.words:,} words of {self.dim} dimensions from {self.source}"
        odd = (
            (self.duplicates, "repeated words left out"),
            (self.undecodable, "words not in UTF-8"),
            (self.lowered, "words left out that differ from others by case"),
        )
        return "; ".join([text, *(f"{count:,} {what}" for count, what in odd if count)])


def decode(source: str, text: bytes, *, strict: bool = False) -> tuple[list[str], int]:
    """Words, one on a line, from UTF-8, and how many of them have bytes that are not and are replaced by U+FFFD.

    Example:
        >>> decode("v.txt", b"na\\xc3\\xafve\\ncaf\\xe9")
        (['naïve', 'caf\ufffd'], 1)
    """
    try:
        return text.decode().split("\n"), 0
    except UnicodeDecodeError:
        lines = text.split(b"\n")
    words = [line.decode(errors="replace") for line in lines]
    odd = [i for i, (word, line) in enumerate(zip(words, lines, strict=True)) if word.encode() != line]
    if strict:
        raise AbelnetError(f"{source}, word {odd[0] + 1:,}: expected UTF-8, got {lines[odd[0]][:40]!r}")
    return words, len(odd)


def select(
    source: str,
    kind: str,
    words: list[str],
    vectors: Tensor,
    *,
    lower: bool = False,
    strict: bool = False,
    undecodable: int = 0,
) -> tuple[list[str], Tensor, Report]:
    """The first of all words that are the same, perhaps in lower case, with their vectors and a report.

    Example:
        >>> import torch
        >>> words, _, report = select("v.txt", "text", ["The", "the", "The"], torch.eye(3), lower=True)
        >>> words, report.duplicates, report.lowered
        (['the'], 1, 1)
    """
    duplicates = len(words) - len(set(words))
    total = len(words)
    if duplicates or lower:
        first: dict[str, int] = {}
        for row, word in enumerate(words):
            first.setdefault(word, row)
        if duplicates and strict:
            place = next(row for row, word in enumerate(words) if first[word] != row)
            raise AbelnetError(
                f"{source}, word {place + 1:,}: expected a new word, got {words[place]!r}, "
                f"which is word {first[words[place]] + 1:,}"
            )
        if lower:
            lowered: dict[str, int] = {}
            for word, row in first.items():
                lowered.setdefault(word.lower(), row)
            first = lowered
        words, vectors = list(first), vectors[list(first.values())]
    merged = total - duplicates - len(words)
    return words, vectors, Report(source, kind, len(words), vectors.shape[1], duplicates, undecodable, merged)
