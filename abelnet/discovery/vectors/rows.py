r"""Rows :math:`a_r = \sum_i B(x_{ri}) - B(y_r)` of terms, and errors of invariants in units of the results.

An invariant :math:`f = \sum_k c_k B_k` has :math:`a_r \cdot c = 0` for all examples. Noise :math:`\delta` in a
result changes it by :math:`c^\top J_r \delta`, with :math:`J_r = \partial B / \partial y`. Its error in units of the
results is

.. math:: e^2(c) = \operatorname{mean}_r \frac{(a_r \cdot c)^2}{c^\top J_r D J_r^\top c}

with the variances :math:`D` of the results (the Sampson error): 0.01 is one percent of their spread, whatever
:math:`f` is.
"""

from __future__ import annotations

__all__ = ["DEFINED", "EXACT", "NEW", "Rows", "Solution", "limited", "sum_terms"]

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections.terms import Term
from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]

EXACT = 1e-7
"""Errors below this part of the spread of the results are rounding errors, of squares of the rows."""

NEW = 1e-5
"""An invariant whose gradient along the level sets of known ones is below this part of its size is not new."""

DEFINED = 0.98
"""Fraction of results, moved onto known invariants, at which a term has to be finite."""

# Diagonal loading of matrices that are inverted, relative to their own diagonal.
_LOADING = 1e-13
_ROUNDS = 4
# Solutions whose gradients are in memory at a time.
_CHUNK = 100
# Errors of more than this many standard deviations, estimated from the median of their squares, are outliers.
_OUTLIER, _MEDIAN = 4.0, 0.455
# Smaller errors are rounding.
_ROUNDING = 1e-9


class Solution(NamedTuple):
    """Subset of terms with their best coefficients, in units of their scales.

    Attributes:
        columns: Columns of the terms.
        coefficients: Coefficients of the scaled terms.
        error: Root of the mean squared Sampson error.
    """

    columns: tuple[int, ...]
    coefficients: Array
    error: float


class Rows:
    """Rows of terms over examples, with gradients at the results.

    Arguments:
        examples: Multisets of vectors with their results.
        terms: The terms.
        at: Results, or the points near them at which known invariants add up, :math:`(R, d)`.
        units: Standard deviation of each coordinate of the results, :math:`(d)`.
        normals: Projections onto the gradients of known invariants at these points, in these units,
            :math:`(R, d, d)`; gradients of the terms along their level sets count only.
        sums: Sums of the terms over the elements of each example :math:`(R, K)`, if known.
    """

    def __init__(
        self,
        examples: Multisets,
        terms: Sequence[Term],
        at: Tensor,
        units: Tensor,
        normals: Array | None = None,
        sums: Array | None = None,
    ) -> None:
        self.terms = list(terms)
        self.sums = sum_terms(examples, terms) if sums is None else sums
        of_results = np.stack([term.values(at).numpy() for term in terms], 1)
        a = self.sums - of_results
        for k, term in enumerate(terms):
            if term.period:
                a[:, k] = (a[:, k] + term.period / 2) % term.period - term.period / 2
        j = np.stack([(term.gradient(at) * units).numpy() for term in terms], 1)
        # Columns of one size, so that eigenproblems are well scaled.
        size = np.sqrt(np.mean(of_results**2, 0))
        spread = of_results.std(0)
        reserve = np.where(size > 0, size, np.abs(self.sums).max(0, initial=0.0))
        self.scale = np.where(spread > 1e-9 * size, spread, np.where(reserve > 0, reserve, 1.0))
        self.a, j = a / self.scale, j / self.scale[:, None]
        self.full = np.linalg.norm(j, axis=2)
        if normals is not None:
            j = j - np.einsum("rkd,rde->rke", j, normals)
        self.j = j

    def take(self, columns: Any) -> Rows:
        """Returns some of the terms."""
        one = object.__new__(Rows)
        one.terms, one.scale = [self.terms[k] for k in columns], self.scale[columns]
        one.sums, one.a, one.j, one.full = (
            self.sums[:, columns],
            self.a[:, columns],
            self.j[:, columns],
            self.full[:, columns],
        )
        return one

    def beside(self, other: Rows) -> Rows:
        """Returns the terms of both, on the same examples."""
        one = object.__new__(Rows)
        one.terms = self.terms + other.terms
        one.scale = np.concatenate((self.scale, other.scale))
        for name in ("sums", "a", "j", "full"):
            setattr(one, name, np.concatenate((getattr(self, name), getattr(other, name)), 1))
        return one

    def rows(self, kept: Any) -> Rows:
        """Returns the same terms on some of the examples."""
        one = object.__new__(Rows)
        one.terms, one.scale = self.terms, self.scale
        one.sums, one.a, one.j, one.full = self.sums[kept], self.a[kept], self.j[kept], self.full[kept]
        return one

    def errors(self, columns: Sequence[int], c: Array) -> Array:
        """Returns the squared Sampson error of each example, those of outliers limited."""
        return limited(self._squares(columns, c))[0]

    def _squares(self, columns: Sequence[int], c: Array) -> Array:
        places = list(columns)
        gradient = np.einsum("rkd,k->rd", self.j[:, places], c)
        return _ratio((self.a[:, places] @ c) ** 2, (gradient**2).sum(1))

    def new(self, found: Sequence[Solution], least: float) -> list[Solution]:
        """Returns invariants that are independent of the known ones.

        Arguments:
            found: Invariants.
            least: Smallest part of their gradients, from 0 to 1, along the level sets of known invariants.
        """
        kept: list[Solution] = []
        for _, group in itertools.groupby(found, key=lambda one: len(one.columns)):
            same = list(group)
            for start in range(0, len(same), _CHUNK):
                part = same[start : start + _CHUNK]
                places, c = np.array([one.columns for one in part]), np.stack([one.coefficients for one in part])
                along = sum(self.j[:, places[:, k]] * c[:, k, None] for k in range(c.shape[1]))
                size = sum(self.full[:, places[:, k]] * np.abs(c[:, k]) for k in range(c.shape[1]))
                novelty = np.median(np.linalg.norm(along, axis=2) / (size + 1e-300), axis=0)
                kept += [one for one, is_new in zip(part, novelty > least, strict=True) if is_new]
        return kept

    def best(self, subsets: Places, keep: int) -> list[Solution]:
        """Returns the best of many subsets of terms, all of one size, with their coefficients.

        Arguments:
            subsets: Columns of each subset, :math:`(M, k)`.
            keep: Number of subsets to return.
        """
        if len(subsets) == 0:
            return []
        size = subsets.shape[1]
        if size > 1:
            # Rows in units of their own, as the Sampson error has them for each set of terms.
            weights = 1 / np.maximum((self.j**2).sum((1, 2)), 1e-300)
            s = (self.a * weights[:, None]).T @ self.a / len(self.a)
            n = np.einsum("rkd,rld,r->kl", self.j, self.j, weights, optimize=True) / len(self.j)
            s = s + np.diag(_LOADING * np.diag(s) + 1e-30)
            values = []
            for part in np.array_split(subsets, max(1, len(subsets) // 20_000)):
                rows, columns = part[:, :, None], part[:, None, :]
                values.append(_largest(s[rows, columns], n[rows, columns])[0])
            order = np.argsort(-np.concatenate(values), kind="stable")[:keep]
            subsets = subsets[order]
        return self.solve(subsets)

    def solve(self, subsets: Places) -> list[Solution]:
        """Returns the coefficients of each subset :math:`(M, k)` that minimize the Sampson error, by reweighting."""
        found: list[Solution] = []
        for part in np.array_split(subsets, max(1, subsets.size * len(self.a) // 2_000_000)):
            found += self._solve(part)
        return found

    def _solve(self, subsets: Places) -> list[Solution]:
        count, size = subsets.shape
        # Examples are along the last axis, where operations are vectorized: (M, k, R), (M, k, d R).
        a = np.ascontiguousarray(self.a.T)[subsets]
        j = np.ascontiguousarray(np.moveaxis(self.j, 0, 2))[subsets].reshape(count, size, -1)
        best, c = np.full(count, math.inf), np.ones((count, size))
        kept = c.copy()
        weights = np.ones((count, a.shape[2]))
        dim = self.j.shape[2]
        for _ in range(_ROUNDS + 1 if size > 1 else 1):
            if size > 1:
                roots = np.sqrt(weights)[:, None]
                weighted = a * roots
                s = weighted @ np.swapaxes(weighted, 1, 2)
                flat = j * np.tile(roots, (1, 1, dim))
                n = flat @ np.swapaxes(flat, 1, 2)
                diagonal = np.einsum("mkk->mk", s)
                s = s + np.eye(size) * (_LOADING * diagonal + 1e-300)[:, None]
                c = _largest(s, n)[1]
            gradient = np.square(c[:, None] @ j).reshape(count, dim, -1).sum(1)
            squares = _ratio(np.square(c[:, None] @ a)[:, 0], gradient)
            kept_squares, influence = limited(squares)
            errors = kept_squares.mean(1)
            better = errors < best
            best, kept = np.where(better, errors, best), np.where(better[:, None], c, kept)
            if not better.any():
                break
            floor = 1e-12 * gradient.mean(1, keepdims=True) + 1e-300
            weights = influence / np.maximum(gradient, floor)
            weights /= weights.mean(1, keepdims=True)
        columns = (tuple(map(int, one)) for one in subsets)
        return [
            Solution(one, coefficients, math.sqrt(float(error)))
            for one, coefficients, error in zip(columns, kept, best, strict=True)
        ]

    def refine(self, columns: Sequence[int], c: Array, sweeps: int = 20) -> Solution:
        """Returns coefficients to full precision, from singular vectors rather than squares of the rows."""
        places, best = list(columns), Solution(tuple(columns), c, math.sqrt(float(self.errors(columns, c).mean())))
        if len(places) == 1:
            return best
        a, j = self.a[:, places], self.j[:, places]
        for _ in range(sweeps):
            gradient = np.einsum("rkd,k->rd", j, best.coefficients)
            square = (gradient**2).sum(1)
            influence = limited(self._squares(columns, best.coefficients))[1]
            weights = influence / np.maximum(square, 1e-12 * square.mean())
            n = np.einsum("rkd,rld,r->kl", j, j, weights)
            values, vectors = np.linalg.eigh(n)
            whole = values > 1e-14 * values[-1]
            # Directions without gradient are constants, which have no error of their own.
            units = vectors / np.sqrt(np.where(whole, values, 1e-14 * values[-1]))
            found = units @ np.linalg.svd((a * np.sqrt(weights)[:, None]) @ units, full_matrices=False)[2][-1]
            error = math.sqrt(float(self.errors(columns, found).mean()))
            if not error < best.error * (1 - 1e-9):
                break
            best = Solution(tuple(columns), found, error)
        return best


def sum_terms(examples: Multisets, terms: Sequence[Term]) -> Array:
    """Returns the sum of each term over the elements of each example, :math:`(R, K)`."""
    starts = examples.ptr[:-1].numpy()
    columns = torch.stack([term.values(examples.values) for term in terms], 1).numpy()
    found: Array = np.add.reduceat(columns, starts, axis=0)
    return found


def _ratio(squares: Array, gradients: Array) -> Array:
    """Returns squared errors in units of the results; large where a gradient is 0."""
    return np.asarray(np.minimum(squares, 1e100) / np.maximum(gradients, 1e-200))


def limited(squares: Array) -> tuple[Array, Array]:
    """Returns squared errors that are at most a multiple of their median, along the last axis, and their influence."""
    limit = _OUTLIER**2 * np.median(squares, -1, keepdims=True) / _MEDIAN + _ROUNDING**2
    return np.minimum(squares, limit), limit / np.maximum(squares, limit)


def _largest(s: Array, n: Array) -> tuple[Array, Array]:
    """Returns the largest eigenvalue of :math:`S^{-1} N` and its vector, for each pair of symmetric matrices."""
    inverse = np.linalg.inv(np.linalg.cholesky(s))
    # Where numbers are too far apart for their squares, nothing can be said.
    values, vectors = np.linalg.eigh(np.nan_to_num(inverse @ n @ np.swapaxes(inverse, -1, -2), posinf=0.0, neginf=0.0))
    return values[..., -1], np.einsum("...ji,...j->...i", inverse, vectors[..., -1])
