"""Vocabulary cleaning: decode, lowercase and deduplicate the words of a file, and report what was changed."""

from __future__ import annotations

__all__ = ["Report", "decode", "select"]

from dataclasses import dataclass

from torch import Tensor

from abelnet.errors import AbelnetError


@dataclass(frozen=True)
class Report:
    """Summary of loaded word vectors and of irregular entries.

    Attributes:
        source: Origin of the vectors.
        kind: ``"binary"``, ``"text"``, ``"safetensors"`` or ``"memory"``.
        words: Size of the vocabulary.
        dim: Number of dimensions.
        duplicates: Number of repeated words dropped; the first occurrence, the most frequent, is kept.
        undecodable: Number of words that are not valid UTF-8; invalid bytes are replaced by U+FFFD.
        lowered: Number of words dropped because they repeat another after lowercasing.
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
            (self.duplicates, "repeated words dropped"),
            (self.undecodable, "words not valid UTF-8"),
            (self.lowered, "words dropped that differ from others only by case"),
        )
        return "; ".join([text, *(f"{count:,} {what}" for count, what in odd if count)])


def decode(source: str, text: bytes, *, strict: bool = False) -> tuple[list[str], int]:
    """Decodes words, one per line, from UTF-8, and counts those with invalid bytes, which become U+FFFD.

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
    """Deduplicates words, optionally after lowercasing, keeping the first; returns words, vectors and a report.

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
