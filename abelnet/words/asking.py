r"""One analogy :math:`a : b = c : ?`, or the neighbors of one word."""

from __future__ import annotations

__all__ = ["ask"]

from collections.abc import Sequence

import torch

from abelnet.errors import AbelnetError
from abelnet.words.models import named_model
from abelnet.words.vectors import WordVectors


def ask(vectors: WordVectors, words: Sequence[str], model: str = "wv", *, topn: int = 10) -> list[tuple[str, float]]:
    r"""The words nearest by cosine to the answer of a model, without those given.

    Arguments:
        vectors: The vocabulary. Where it is in lower case, the given words are put in lower case too.
        words: Three words :math:`b, a, c` for :math:`a : b = c : ?`, or one word for its neighbors.
        model: ``"wv"`` for :math:`b - a + c`, ``"agn"`` for the embedded model, or a file of a model.
        topn: How many words.

    Returns:
        Words with their cosines, best first.

    Example:
        >>> [word for word, _ in ask(WordVectors.default(), ["king", "man", "woman"], topn=2)]
        ['queen', 'monarch']
    """
    if len(words) not in (1, 3):
        raise AbelnetError(f"words: expected one word or three, got {len(words)}")
    if vectors.is_lower_case:
        words = [word.lower() for word in words]
    if len(words) == 1:
        if model != "wv":
            raise AbelnetError(f"model: expected wv for the neighbors of one word, got {model!r}; give three words")
        return vectors.most_similar(list(words), topn=topn)
    b, a, c = vectors.units(torch.tensor([vectors.index(word) for word in words]))
    with torch.no_grad():
        answer = named_model(model, vectors.dim)(a, b, c)
    nearest = vectors.most_similar([answer], topn=topn + len(words))
    return [(word, cosine) for word, cosine in nearest if word not in words][:topn]
