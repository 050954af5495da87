"""The one error of this library; importing it imports nothing else."""

from __future__ import annotations

__all__ = ["AbelnetError"]


class AbelnetError(ValueError):
    """Raised for everything a caller can get wrong: names the argument, what was expected, and what was received."""
