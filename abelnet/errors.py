"""The errors and warnings of this library; importing them imports nothing else."""

from __future__ import annotations

__all__ = ["AbelnetError", "ExtrapolationWarning"]


class AbelnetError(ValueError):
    """Raised for everything a caller can get wrong: names the argument, what was expected, and what was received."""


class ExtrapolationWarning(UserWarning):
    """Issued for results that need a learned curve outside the range of the examples, or that the law does not have."""
