r"""Exact nearest-neighbor search by cosine similarity over a whole vocabulary, in constant extra memory.

A matrix product scores a chunk of rows for a few hundred queries, and only the maximum of each block of rows is kept.
The :math:`k` best rows of a query lie in the :math:`k` blocks with the largest maxima, so only those are rescored and
sorted. The cost is little more than that of the matrix product, and no index is built.
"""

from __future__ import annotations

__all__ = ["Nearest", "best", "divisors", "nearest", "row_norms"]

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from abelnet.checks import check_count, check_values
from abelnet.errors import AbelnetError

_BLOCK = 32
# Blocks that are grouped when the best are selected.
_GROUP = 16
# Scores of one chunk, 1024 × 1024 in float32, stay in the cache until their maxima are taken.
_CHUNK = 1024
_QUERIES = 1024
# Blocks gathered before the best are selected: few selections, and at most 8 MB of maxima.
_SPAN = 2048 * _BLOCK
# Numbers in the rows rescored at a time: a buffer that stays in the cache.
_RESCORED = 1 << 19
# Scores computed at a time where they are any function of products.
_SCORED = 1 << 20


class Nearest(NamedTuple):
    r"""Nearest rows of each query, best first: cosine similarities and indices, both with shape :math:`(*, k)`."""

    scores: Tensor
    indices: Tensor

    def excluding(self, excluded: Tensor, k: int = 1) -> Nearest:
        r"""Returns the first :math:`k` rows that are not among the ``excluded`` rows, with shape :math:`(*, e)`.

        Exact if at least :math:`k + e` rows are given. If fewer than :math:`k` remain, the result is padded with row −1
        and score :math:`-\infty`.

        Example:
            >>> found = Nearest(torch.tensor([[0.9, 0.8, 0.7]]), torch.tensor([[4, 7, 1]]))
            >>> found.excluding(torch.tensor([[4, 5]])).indices
            tensor([[7]])
        """
        barred = (self.indices[..., None] == excluded[..., None, :]).any(-1)
        order = barred.int().argsort(dim=-1, stable=True)[..., :k]
        barred = barred.gather(-1, order)
        return Nearest(
            self.scores.gather(-1, order).masked_fill(barred, -torch.inf),
            self.indices.gather(-1, order).masked_fill(barred, -1),
        )


def nearest(
    vectors: Tensor,
    queries: Tensor,
    k: int = 1,
    *,
    norms: Tensor | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Nearest:
    r"""Returns the :math:`k` rows with the largest cosine similarity, exact up to rounding.

    .. math:: \cos(v, q) = \frac{v \cdot q}{\|v\| \|q\|}, \quad 0 \text{ where either is } 0

    Queries may have any leading dimensions, so one pass serves the stacked queries of several models. To exclude
    :math:`e` rows as well, search for :math:`k + e` and use :meth:`Nearest.excluding`.

    Arguments:
        vectors: Rows, with shape :math:`(V, d)`, in memory or memory-mapped; not necessarily normalized.
        queries: Queries, with shape :math:`(*, d)`.
        k: Number of rows to return, at most :math:`V`.
        norms: Norms of the rows, with shape :math:`(V)`; computed if not given.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Example:
        >>> vectors = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
        >>> nearest(vectors, torch.tensor([[0.1, 1.0], [1.0, 1.0]]), k=2).indices
        tensor([[1, 2],
                [2, 0]])
    """
    if vectors.ndim != 2 or min(vectors.shape) == 0:
        raise AbelnetError(f"vectors: expected shape (V, d) with at least one row, got {tuple(vectors.shape)}")
    check_values("vectors", vectors, vectors.shape[1])
    check_values("queries", queries, vectors.shape[1])
    if check_count("k", k) > len(vectors):
        raise AbelnetError(f"k: expected at most {len(vectors)}, the number of rows, got {k}")
    if norms is None:
        norms = row_norms(vectors)
    elif norms.shape != vectors.shape[:1]:
        raise AbelnetError(f"norms: expected shape ({len(vectors)},), got {tuple(norms.shape)}")
    scales = divisors(norms)
    queries = queries.detach().to(vectors.dtype)
    flat = queries.reshape(-1, queries.shape[-1])
    flat = flat / divisors(row_norms(flat))[:, None]
    parts = []
    with torch.no_grad():
        for start in range(0, len(flat), _QUERIES):
            part = flat[start : start + _QUERIES]

            def on_rows(share: float, start: int = start, size: int = len(part)) -> None:
                if on_progress is not None:
                    on_progress((start + share * size) / len(flat))

            blocks = _best_blocks(vectors, scales, part, k, on_rows)
            parts.append(_rescore(vectors, scales, part, blocks, k))
    shape = (*queries.shape[:-1], k)
    if not parts:
        return Nearest(flat.new_empty(shape), torch.empty(shape, dtype=torch.long, device=flat.device))
    scores, indices = (torch.cat(columns).reshape(shape) for columns in zip(*parts, strict=True))
    if bool(scores.isnan().any()):
        raise AbelnetError("vectors, queries: expected finite values, got NaN or infinity")
    return Nearest(scores, indices)


def best(
    vectors: Tensor,
    directions: Tensor,
    score: Callable[[Tensor], Tensor],
    k: int = 1,
    *,
    norms: Tensor | None = None,
    prior: Tensor | None = None,
    bonus: Tensor | None = None,
) -> Nearest:
    r"""Returns the :math:`k` rows with the largest scores, which are any function of products with some directions.

    .. math:: \operatorname{score}_i(v) = f_i\Bigl(\frac{v \cdot q_1}{\|v\|}, \dots, \frac{v \cdot q_m}{\|v\|}\Bigr)

    Methods that multiply cosines need this; for one cosine, :func:`nearest` is faster.

    Arguments:
        vectors: Rows, with shape :math:`(V, d)`.
        directions: The :math:`q_j`, with shape :math:`(m, d)`, not normalized.
        score: The functions :math:`f_i`: maps products of some rows, :math:`(r, m)`, to their scores for :math:`n`
            queries, :math:`(r, n)`, a new tensor each time.
        k: Number of rows to return, at most :math:`V`.
        norms: Norms of the rows, with shape :math:`(V)`; computed if not given.
        prior: Added to the score of each row for all queries, with shape :math:`(V)`; nothing if None.
        bonus: Added to the scores of some rows for each query: sparse, with shape :math:`(n, V)`; nothing if None.

    Returns:
        Rows of each query with their scores, both with shape :math:`(n, k)`.

    Example:
        >>> vectors, directions = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]), torch.eye(2)
        >>> best(vectors, directions, lambda products: products.prod(1, keepdim=True)).indices
        tensor([[2]])
    """
    check_values("vectors", vectors, vectors.shape[-1])
    check_values("directions", directions, vectors.shape[1])
    if check_count("k", k) > len(vectors):
        raise AbelnetError(f"k: expected at most {len(vectors)}, the number of rows, got {k}")
    scales = divisors(row_norms(vectors) if norms is None else norms)
    columns = directions.detach().to(vectors.dtype).t().contiguous()
    step = max(k, _SCORED // max(1, columns.shape[1]))
    entries = None if bonus is None else bonus.coalesce()
    found: Nearest | None = None
    with torch.no_grad():
        for start in range(0, len(vectors), step):
            rows = slice(start, start + step)
            scores = score(vectors[rows] / scales[rows, None] @ columns).t()
            if prior is not None:
                scores = scores + prior[rows]
            if entries is not None:
                queries, places = entries.indices()
                inside = (places >= start) & (places < start + step)
                index = (queries[inside], places[inside] - start)
                scores.index_put_(index, entries.values()[inside], accumulate=True)
            top = scores.topk(min(k, scores.shape[1]), 1)
            part = Nearest(top.values, top.indices + start)
            if found is not None:
                merged = Nearest(torch.cat((found.scores, part.scores), 1), torch.cat((found.indices, part.indices), 1))
                top = merged.scores.topk(k, 1)
                part = Nearest(top.values, merged.indices.gather(1, top.indices))
            found = part
    assert found is not None
    if bool(found.scores.isnan().any()):
        raise AbelnetError("vectors, directions: expected finite values, got NaN or infinity")
    return found


def row_norms(vectors: Tensor) -> Tensor:
    r"""Returns the norm of each row, accumulated in float64: :math:`(V, d)` to :math:`(V)`.

    Example:
        >>> row_norms(torch.tensor([[3e30, 4e30]]))
        tensor([5.0000e+30])
    """
    norms = torch.empty(len(vectors), dtype=vectors.dtype, device=vectors.device)
    for start in range(0, len(vectors), _CHUNK):
        rows = slice(start, start + _CHUNK)
        norms[rows] = torch.linalg.vector_norm(vectors[rows], dim=1, dtype=torch.float64)
    return norms


def divisors(norms: Tensor) -> Tensor:
    """Returns the norms to divide by, with 1 for zero rows, which then have cosine 0.

    Example:
        >>> divisors(torch.tensor([0.0, 2.0]))
        tensor([1., 2.])
    """
    return torch.where(norms == 0, 1, norms)


def _best_blocks(vectors: Tensor, scales: Tensor, queries: Tensor, k: int, on_rows: Callable[[float], None]) -> Tensor:
    """Returns the blocks of rows with the ``k`` largest maxima, for each query."""
    total, dim = vectors.shape
    columns = queries.t().contiguous()
    count = len(queries)
    blocks_in_span = _rounded(min(_SPAN, total), _BLOCK * _GROUP) // _BLOCK
    units = vectors.new_empty(_CHUNK, dim)
    scores = vectors.new_empty(_CHUNK, count)
    maxima = vectors.new_empty(blocks_in_span, count)
    best_scores, best = vectors.new_empty(count, 0), torch.empty(count, 0, dtype=torch.long, device=vectors.device)
    for span in range(0, total, _SPAN):
        stop = min(span + _SPAN, total)
        for start in range(span, stop, _CHUNK):
            size = min(_CHUNK, stop - start)
            whole = _rounded(size, _BLOCK)
            torch.div(vectors[start : start + size], scales[start : start + size, None], out=units[:size])
            torch.mm(units[:size], columns, out=scores[:size])
            if size < whole:
                scores[size:whole] = -torch.inf
            place = (start - span) // _BLOCK
            torch.amax(scores[:whole].view(-1, _BLOCK, count), 1, out=maxima[place : place + whole // _BLOCK])
        blocks = _rounded(stop - span, _BLOCK * _GROUP) // _BLOCK
        maxima[_rounded(stop - span, _BLOCK) // _BLOCK : blocks] = -torch.inf
        found_scores, found = _largest(maxima[:blocks], k)
        best_scores, best = torch.cat((best_scores, found_scores), 1), torch.cat((best, found + span // _BLOCK), 1)
        best_scores, order = best_scores.topk(min(k, best.shape[1]), 1)
        best = best.gather(1, order)
        on_rows(stop / total)
    # In row order, so that ties keep it.
    return best.sort(1).values


def _largest(maxima: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Returns the ``k`` largest of each column and their rows, selecting groups of rows first."""
    count, columns = maxima.shape
    groups = maxima.view(-1, _GROUP, columns).amax(1).t().contiguous()
    best = groups.topk(min(k, groups.shape[1]), 1).indices
    rows = (best[:, :, None] * _GROUP + torch.arange(_GROUP, device=best.device)).flatten(1)
    values = maxima.view(-1).take(rows * columns + torch.arange(columns, device=best.device)[:, None])
    values, order = values.topk(min(k, count, values.shape[1]), 1)
    return values, rows.gather(1, order)


def _rounded(count: int, unit: int) -> int:
    """Rounds up to a multiple of ``unit``."""
    return -(-count // unit) * unit


def _rescore(vectors: Tensor, scales: Tensor, queries: Tensor, blocks: Tensor, k: int) -> Nearest:
    """Returns the ``k`` best rows of the given blocks, for each query."""
    rows = (blocks[:, :, None] * _BLOCK + torch.arange(_BLOCK, device=blocks.device)).flatten(1)
    outside = rows >= len(vectors)
    rows.masked_fill_(outside, 0)
    scores = vectors.new_empty(rows.shape)
    width, dim = rows.shape[1], vectors.shape[1]
    step = min(len(rows), max(1, _RESCORED // (width * dim)))
    buffer = vectors.new_empty(step * width, dim)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        candidates = torch.index_select(vectors, 0, part.flatten(), out=buffer[: part.numel()])
        # A batched product with single columns takes four times as long as this.
        products = candidates.view(len(part), width, dim).mul_(queries[start : start + step, None])
        torch.sum(products, 2, out=scores[start : start + step])
    scores.div_(scales[rows]).masked_fill_(outside, -torch.inf)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return Nearest(scores[:, :k], rows.gather(1, order[:, :k]))
