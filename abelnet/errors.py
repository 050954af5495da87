"""The errors and warnings of this library; importing them imports nothing else."""

from __future__ import annotations

__all__ = ["AbelnetError", "ExtrapolationWarning", "NotFittedError"]


class AbelnetError(ValueError):
    """Raised for everything a caller can get wrong: names the argument, what was expected, and what was received."""


class NotFittedError(AbelnetError, AttributeError):
    """Raised by a method that needs a fitted model; it is scikit-learn's error as well, where that is imported."""


class ExtrapolationWarning(UserWarning):
    """Issued for results that need a learned curve outside the range of the examples, or that the law does not have."""
