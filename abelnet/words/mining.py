r"""Analogies that a vocabulary has of its own: four words of which :math:`d - c` is much like :math:`b - a`."""

from __future__ import annotations

__all__ = ["parallelograms"]

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.errors import AbelnetError, check_count
from abelnet.words.evaluation import offset
from abelnet.words.retrieval import nearest
from abelnet.words.vectors import WordVectors


def parallelograms(
    vectors: WordVectors,
    draws: int = 300_000,
    *,
    likeness: float = 0.65,
    words: int = 30_000,
    neighbours: int = 20,
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> Tensor:
    r"""Questions that no one wrote: rows of :math:`a, b, c, d`, with shape :math:`(n, 4)`.

    A word :math:`a` is drawn, :math:`b` from its neighbours, :math:`c` from its neighbours or from theirs; :math:`d` is
    the answer of :math:`b - a + c`, the three words left out. The four are kept where the sides are alike:
    :math:`\cos(b - a, d - c) \ge` ``likeness``. Most that are kept are analogies indeed: *brussels* is to *belgium*
    what *copenhagen* is to *denmark*.

    Arguments:
        vectors: The vocabulary.
        draws: Number of triples drawn.
        likeness: The least cosine of two opposite sides.
        words: Draw among the first so many words, the most frequent ones.
        neighbours: How many neighbours of a word there are to choose from.
        seed: Fixes the draw.
        on_progress: Called now and then with the part that is done, from 0 to 1.

    Example:
        >>> vectors = WordVectors.default(limit=2000)
        >>> found = parallelograms(vectors, 2000, likeness=0.7)
        >>> a, b, c, d = vectors.units(found).unbind(1)
        >>> bool((F.cosine_similarity(b - a, d - c) > 0.69).all())
        True
    """
    count, draws = min(check_count("words", words), len(vectors)), check_count("draws", draws)
    neighbours = check_count("neighbours", neighbours)
    if count <= neighbours + 3:
        raise AbelnetError(f"vectors: expected more than {neighbours + 3} words to draw from, got {count}")
    units = vectors.units(torch.arange(count))
    near = nearest(units, units, neighbours + 1).indices[:, 1:]
    generator = torch.Generator().manual_seed(seed)

    def neighbour_of(rows: Tensor) -> Tensor:
        return near[rows, torch.randint(neighbours, rows.shape, generator=generator)]

    a = torch.randint(count, (draws,), generator=generator)
    b, c = neighbour_of(a), neighbour_of(a)
    c = torch.where(torch.rand(draws, generator=generator) < 0.5, neighbour_of(c), c)
    given = torch.stack((a, b, c), 1)[(a != b) & (a != c) & (b != c)]
    queries = offset(*units[given].unbind(1))
    d = nearest(units, queries, 4, on_progress=on_progress).excluding(given).indices
    rows: Tensor = torch.unique(torch.cat((given, d), 1), dim=0)
    a, b, c, d = units[rows].unbind(1)
    return rows[F.cosine_similarity(b - a, d - c) >= likeness]
