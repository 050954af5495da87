"""Streaming examples, in bounded memory."""

from __future__ import annotations

__all__ = ["Stream"]

import torch
from torch import Tensor

from abelnet.discovery.seen import Seen
from abelnet.discovery.spectral import COORDINATES, SpectralFit, fits_coordinate
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

# Of more examples, a random sample of this size is kept; the closed form uses all.
_SAMPLE = 20_000
_LARGEST = 1e100  # squares, and their sums, are still finite


class Stream:
    """Stream of examples of one dimension: sums for the closed form, and a random sample.

    Arguments:
        seed: Random seed of the sample.

    Attributes:
        fits: Closed-form fit to all examples, for each coordinate whose domain contains them.
        count: Number of examples.
    """

    def __init__(self, seed: int) -> None:
        self.fits = {coordinate: SpectralFit(coordinate=coordinate) for coordinate in COORDINATES}
        self.count = 0
        self._sample: Multisets | None = None
        self._seen: Seen | None = None
        self._keys = torch.empty(0, dtype=torch.float64)
        self._generator = torch.Generator().manual_seed(seed)

    @property
    def sample(self) -> Multisets:
        """All examples, or a random sample if there are many."""
        if self._sample is None:
            raise AbelnetError("sample: expected a stream with examples, got none; call take first")
        return self._sample

    @property
    def seen(self) -> Seen:
        """Ranges of all examples."""
        if self._seen is None:
            raise AbelnetError("seen: expected a stream with examples, got none; call take first")
        return self._seen

    def take(self, examples: Multisets) -> None:
        """Adds a batch of examples: one-dimensional multisets with their results."""
        numbers = torch.cat((examples.values[:, 0], examples.targets))
        size = float(numbers.abs().max())
        if size > _LARGEST or 0 < size < 1 / _LARGEST:
            raise AbelnetError(f"X, y: expected magnitudes from 1e-100 to 1e100, got {size:.3g}; rescale them")
        # A batch with numbers outside the domain of a coordinate, such as the logarithm, rules it out.
        self.fits = {name: fit for name, fit in self.fits.items() if fits_coordinate(examples, name)}
        for fit in self.fits.values():
            if fit.count > 0 or bool((numbers != numbers[0]).any()):
                fit.partial_fit(examples)
        self._keep(examples, torch.rand(len(examples), generator=self._generator, dtype=torch.float64))
        self.count += len(examples)
        self._see(Seen.of(examples))

    def empty_copy(self, seed: int) -> Stream:
        """Returns a stream whose fits have the same knots and no examples, to take examples elsewhere and merge.

        Arguments:
            seed: Random seed of its sample, another one for each copy.
        """
        stream = Stream(seed)
        stream.fits = {name: fit.empty_copy() for name, fit in self.fits.items()}
        return stream

    def merge(self, other: Stream) -> None:
        """Adds the examples of another stream, made by :meth:`empty_copy` of this one or of the same stream."""
        if other.count == 0:
            return
        self.fits = {name: fit for name, fit in self.fits.items() if name in other.fits}
        for name, fit in self.fits.items():
            if fit.count == 0:  # all numbers were equal
                self.fits[name] = other.fits[name]
            elif other.fits[name].count > 0:
                fit.merge(other.fits[name])
        self._keep(other.sample, other._keys)
        self.count += other.count
        self._see(other.seen)

    def _keep(self, examples: Multisets, new_keys: Tensor) -> None:
        # Reservoir sampling: the sample has the smallest random keys, so each example is equally likely.
        keys = torch.cat((self._keys, new_keys))
        kept = keys.argsort(stable=True)[:_SAMPLE].sort().values
        old, new = kept[kept < len(self._keys)], kept[kept >= len(self._keys)] - len(self._keys)
        parts = [] if self._sample is None else [self._sample.take(old)]
        parts += [examples.take(new)] if len(new) > 0 else []
        self._sample, self._keys = Multisets.join(parts), keys[kept]

    def _see(self, ranges: Seen) -> None:
        self._seen = ranges if self._seen is None else self._seen.join(ranges)
