r"""Gram matrices of the terms of a dictionary, over examples that come in parts and need no memory.

With rows :math:`a_r` and gradients :math:`J_r` of all terms (:mod:`~abelnet.discovery.vectors.rows`), the matrices

.. math:: S = \sum_r w_r a_r a_r^\top, \quad N = \sum_r w_r J_r D J_r^\top, \quad w_r = 1 / \lVert J_r \rVert^2

add up over parts. The smallest generalized eigenvalues of :math:`S v = \lambda N v` are the squared distances of the
best combinations of terms from invariance, in units of the results: a law on :math:`d` coordinates has :math:`d` that
are as small as the noise, and a gap above them.
"""

from __future__ import annotations

__all__ = ["InvariantFit"]

from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections.terms import Term
from abelnet.discovery.vectors.dictionary import dictionary, is_defined
from abelnet.discovery.vectors.rows import Rows
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]

# Examples are taken in parts of this many, whose gradients fit into memory.
_PART = 4_000
# Diagonal loading, relative to the diagonal: squares of rows are known to rounding.
_LOADING = 1e-13
# Of many terms some combination nearly adds up by chance: only plain ones are used.
_MOST_COMPLEX = 3.2


class InvariantFit:
    """Distance of examples from any law on vectors, in closed form over a stream.

    The dictionary and the units are those of the first examples; a term that later examples are outside the domain of
    is left out.

    Attributes:
        terms: Terms of the dictionary.
        count: Number of examples.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> sets = [np.exp(generator.normal(size=(3, 2))) for _ in range(200)]
        >>> results = np.array([(one[:, 0].sum(), one.prod(1).sum() / one[:, 0].sum()) for one in sets])
        >>> examples = Multisets.from_arrays(sets, results)
        >>> fit = InvariantFit().partial_fit(examples.take(torch.arange(100)))
        >>> rest = fit.empty_copy().partial_fit(examples.take(torch.arange(100, 200)))
        >>> distances = fit.merge(rest).distances(3)
        >>> bool(distances[1] < 1e-3 < 0.05 < distances[2]), fit.count
        (True, 200)
    """

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.count = 0
        self._units: Tensor | None = None
        self._scale = np.empty(0)
        self._s = self._n = np.empty((0, 0))

    def empty_copy(self) -> InvariantFit:
        """Returns a fit with the same terms and units and no examples, to fit elsewhere and merge."""
        fit = InvariantFit()
        fit.terms, fit._units, fit._scale = list(self.terms), self._units, self._scale
        fit._s, fit._n = np.zeros_like(self._s), np.zeros_like(self._n)
        return fit

    def partial_fit(self, examples: Multisets) -> InvariantFit:
        """Adds examples: multisets of vectors with their results."""
        examples = examples.ordered()
        for start in range(0, len(examples), _PART):
            self._take(examples.take(torch.arange(start, min(start + _PART, len(examples)))))
        return self

    def _take(self, examples: Multisets) -> None:
        elements, results = examples.values, examples.targets
        if self._units is None:
            self._start(examples)
        assert self._units is not None  # by the start
        self._keep([k for k, term in enumerate(self.terms) if is_defined(term, elements, results)])
        if not self.terms:
            return
        rows = Rows(examples, self.terms, results, self._units)
        sound = np.isfinite(rows.a).all(1) & np.isfinite(rows.j).all((1, 2))
        # In the scales of the first examples, so that sums over parts are those over all.
        factor = rows.scale / self._scale
        a, j = rows.a[sound] * factor, rows.j[sound] * factor[:, None]
        weights = 1 / np.maximum((j**2).sum((1, 2)), 1e-300)
        self._s = self._s + (a * weights[:, None]).T @ a
        self._n = self._n + np.einsum("rkd,rld,r->kl", j, j, weights, optimize=True)
        self.count += len(examples)

    def _start(self, examples: Multisets) -> None:
        """Chooses terms, units and scales for the first examples."""
        spread = examples.targets.std(0, unbiased=False)
        self._units = torch.where(spread > 0, spread, 1.0)
        terms = dictionary(examples.values, examples.targets)
        self.terms = [term for term in terms if term.complexity <= _MOST_COMPLEX]
        if self.terms:
            self._scale = Rows(examples, self.terms, examples.targets, self._units).scale
        self._s, self._n = np.zeros((2, len(self.terms), len(self.terms)))

    def merge(self, other: InvariantFit) -> InvariantFit:
        """Adds the examples of another fit, made by :meth:`empty_copy` of this one or of the same fit."""
        if self._units is None or other._units is None or not torch.equal(self._units, other._units):
            raise AbelnetError("other: expected a fit in the same units; create it with empty_copy()")
        both = [term for term in self.terms if term in other.terms]
        other._keep([other.terms.index(term) for term in both])
        self._keep([self.terms.index(term) for term in both])
        self._s, self._n = self._s + other._s, self._n + other._n
        self.count += other.count
        return self

    def distances(self, count: int) -> list[float]:
        """Returns the smallest distances from invariance, in standard deviations of the results, ascending."""
        if self.count == 0 or not self.terms:
            return []
        diagonal = np.diag(self._s)
        s = self._s + np.diag(_LOADING * (diagonal + diagonal.mean()) + 1e-300)
        inverse = np.linalg.inv(np.linalg.cholesky(s))
        values = np.linalg.eigvalsh(inverse @ self._n @ inverse.T)[::-1][:count]
        return [float(1 / np.sqrt(max(value, 1e-300))) for value in values]

    def _keep(self, places: list[int]) -> None:
        if len(places) < len(self.terms):
            self.terms = [self.terms[k] for k in places]
            self._s, self._n = self._s[np.ix_(places, places)], self._n[np.ix_(places, places)]
            self._scale = self._scale[places]
