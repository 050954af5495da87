"""Examples that come in parts: what is kept of them, however many they are."""

from __future__ import annotations

__all__ = ["Stream"]

import torch

from abelnet.discovery.spectral import COORDINATES, SpectralFit, fits_coordinate
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets

# Of more examples than these a random sample is kept; the closed form takes in all.
_SAMPLE = 20_000
_LARGEST = 1e100  # whose squares, and their sums, are still finite


class Stream:
    """Examples of one dimension that come in parts: sums for the closed form, and a random sample of all.

    Arguments:
        seed: Random seed of the sample.

    Attributes:
        fits: The closed form in each coordinate that all examples have, over all that came.
        seen: How many examples came.
    """

    def __init__(self, seed: int) -> None:
        self.fits = {coordinate: SpectralFit(coordinate=coordinate) for coordinate in COORDINATES}
        self.seen = 0
        self._sample: Multisets | None = None
        self._keys = torch.empty(0, dtype=torch.float64)
        self._generator = torch.Generator().manual_seed(seed)

    @property
    def sample(self) -> Multisets:
        """All examples, or of very many a random sample."""
        if self._sample is None:
            raise AbelnetError("sample: expected examples before it, got none")
        return self._sample

    def take(self, examples: Multisets) -> None:
        """Adds examples: multisets of numbers with their results."""
        numbers = torch.cat((examples.values[:, 0], examples.targets))
        size = float(numbers.abs().max())
        if size > _LARGEST or 0 < size < 1 / _LARGEST:
            raise AbelnetError(f"X, y: expected numbers of sizes from 1e-100 to 1e100, got {size:.3g}; rescale them")
        # A part with a number that has no logarithm, say, ends these coordinates.
        self.fits = {name: fit for name, fit in self.fits.items() if fits_coordinate(examples, name)}
        for fit in self.fits.values():
            if fit.count > 0 or bool((numbers != numbers[0]).any()):
                fit.partial_fit(examples)
        # Every example gets a random key, and those with the smallest are the sample: each has the same chance.
        keys = torch.cat((self._keys, torch.rand(len(examples), generator=self._generator, dtype=torch.float64)))
        kept = keys.argsort(stable=True)[:_SAMPLE].sort().values
        old, new = kept[kept < len(self._keys)], kept[kept >= len(self._keys)] - len(self._keys)
        parts = [] if self._sample is None else [self._sample.take(old)]
        parts += [examples.take(new)] if len(new) > 0 else []
        self._sample, self._keys = Multisets.join(parts), keys[kept]
        self.seen += len(examples)
