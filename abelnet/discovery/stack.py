"""Parametric laws side by side: one family in one form, with a row for each choice of parameters."""

from __future__ import annotations

__all__ = ["Stack"]

import math
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import FAMILIES
from abelnet.bijections.families import Family
from abelnet.laws import CappedSum
from abelnet.multisets import Multisets

Array = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
# A larger parameter is that of a simpler law, as arcsinh(x / c) of a sum, and its square is not finite.
_LARGEST = 1e100
# Factors of a product beyond this, or its inverse, are those of no law but of a fit that diverges.
_SMALLEST_FACTOR = 1e-100
# Elements times laws in memory at a time.
_CELLS = 1_000_000


class Stack:
    """Laws of one family in one form.

    Arguments:
        kind: Family of the generators, a key of :data:`~abelnet.bijections.FAMILIES`.
        form: ``"sum"``, ``"product"`` or ``"mean"``.
        theta: Parameters of the generators :math:`(P, k)`.
        coefficients: Coefficients of the form :math:`(P, c)`, as those of an :class:`~abelnet.discovery.entry.Entry`.
        bound: Result at which sums are capped, or None.

    Example:
        >>> examples = Multisets.from_arrays([[3.0, 4.0], [6.0, 8.0]], [5.0, 10.0])
        >>> Stack("positive power", "sum", np.array([[1.0], [2.0]]), np.empty((2, 0))).predict(examples)
        array([[ 7., 14.],
               [ 5., 10.]])
    """

    def __init__(self, kind: str, form: str, theta: Array, coefficients: Array, bound: float | None = None) -> None:
        self.kind, self.form, self.theta, self.coefficients, self.bound = kind, form, theta, coefficients, bound
        # Elements are along the last axis, where operations are vectorized.
        self._columns = tuple(torch.from_numpy(theta[:, k : k + 1]) for k in range(theta.shape[1]))

    def __len__(self) -> int:
        return len(self.theta)

    @property
    def family(self) -> Family:
        """Family of the generators."""
        return FAMILIES[self.kind]

    @property
    def shift(self) -> Array:
        """The shift :math:`s` of each sum, :math:`(P, 1)`."""
        return self.coefficients if self.coefficients.shape[1] else np.zeros((len(self), 1))

    @property
    def exponent(self) -> Array:
        """The exponent :math:`a` of the count in each mean, :math:`(P, 1)`."""
        return self.coefficients if self.coefficients.shape[1] else np.ones((len(self), 1))

    @cached_property
    def latent_bound(self) -> Array:
        """The generators at the bound, :math:`(P, 1)`."""
        bound = torch.full((len(self), 1), math.nan if self.bound is None else self.bound, dtype=torch.float64)
        latent: Array = self.family.forward(bound, *self._columns).numpy()
        return latent

    def predict(self, examples: Multisets) -> Array:
        """Returns the result of each multiset by each law, :math:`(P, R)`; NaN if the law has none."""
        # Least squares evaluates a few hundred sets about a thousand times. The fold of the law, which has gradients
        # and is exact near its identity, takes ten times as long as these two sums; a test checks that they agree.
        u = self._latent(examples).numpy()
        starts, more = examples.ptr.numpy()[:-1], examples.sizes.numpy() - 1
        with np.errstate(all="ignore"):
            if self.form == "mean":
                w = np.add.reduceat(u, starts, axis=1) / (more + 1.0) ** self.exponent
            elif self.form == "sum":
                w = np.add.reduceat(u, starts, axis=1) + more * self.shift
                if self.bound is not None:
                    end = self.latent_bound
                    # Sums move away from the identity, toward the bound.
                    w = np.where(end + self.shift > 0, np.minimum(w, end), np.maximum(w, end))
            else:
                absorbing, gamma = self.coefficients[:, :1], self.coefficients[:, 1:]
                factors = u - absorbing
                signs = np.multiply.reduceat(np.sign(factors), starts, axis=1)
                signs = np.where((gamma < 0) & (more % 2 == 1), -signs, signs)
                sizes = np.exp(np.add.reduceat(np.log(np.abs(factors)), starts, axis=1) + more * np.log(np.abs(gamma)))
                w = absorbing + signs * sizes
        results: Array = self.family.inverse(torch.from_numpy(w), *self._columns).numpy()
        return results

    def _latent(self, examples: Multisets) -> Tensor:
        return self.family.forward(examples.values[:, 0], *self._columns).expand(len(self), -1)

    def is_sound(self, examples: Multisets, ends: tuple[float, float]) -> Mask:
        """Returns which laws :math:`(P)` have valid parameters and all elements in their domain.

        Arguments:
            examples: The examples.
            ends: Their smallest and their largest element.
        """
        sound = (np.abs(self.theta) <= _LARGEST).all(1, keepdims=True) & np.asarray(
            self.family.is_valid(*self._columns)
        )
        if self.form == "product":
            size = np.abs(self.coefficients[:, 1:])
            sound &= (size >= _SMALLEST_FACTOR) & (size <= 1 / _SMALLEST_FACTOR)
        low, high = self.family.domain(*self._columns)
        sound = sound & np.asarray(low < ends[0]) & np.asarray(ends[1] < high)
        if self.bound is not None and sound.any():
            # A capped sum is associative on one side of its identity only.
            end = self.latent_bound + self.shift
            sound = sound & np.isfinite(end) & (end != 0)
            law = CappedSum(*(torch.from_numpy(np.where(sound, one, 1.0)[:, 0]) for one in (end, self.shift)))
            sound = sound & law.contains(self._latent(examples).T).all(0).numpy()[:, None]
        return np.asarray(sound)[:, 0]

    def errors(self, examples: Multisets, ends: tuple[float, float], impossible: float) -> Array:
        """Returns the errors of each law, :math:`(P, R)`, between plus and minus an impossible one.

        Arguments:
            examples: The examples.
            ends: Their smallest and their largest element.
            impossible: Error where a law has no result.
        """
        errors = self.predict(examples) - examples.targets.numpy()
        errors[~self.is_sound(examples, ends)] = impossible
        return np.asarray(np.fmin(np.fmax(errors, -impossible), impossible))  # impossible where there is none, too

    def losses(self, examples: Multisets, ends: tuple[float, float]) -> Array:
        """Returns the mean squared error of each law, :math:`(P)`; infinite if it lacks the result of an example."""
        parts = math.ceil(len(self) * len(examples.values) / _CELLS)
        if min(parts, len(self)) > 1:
            places = np.array_split(np.arange(len(self)), min(parts, len(self)))
            return np.concatenate([self._part(one).losses(examples, ends) for one in places])
        with np.errstate(over="ignore"):
            errors = np.square(self.predict(examples) - examples.targets.numpy()) * examples.weights.numpy()
            losses = errors.mean(1)
        return np.where(self.is_sound(examples, ends) & (losses < math.inf), losses, math.inf)

    def _part(self, places: np.ndarray[Any, np.dtype[np.int64]]) -> Stack:
        return Stack(self.kind, self.form, self.theta[places], self.coefficients[places], self.bound)
