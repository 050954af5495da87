"""What the options and help texts of all commands share."""

from __future__ import annotations

__all__ = ["METHODS", "Seed", "completing", "examples", "listed"]

from collections.abc import Callable
from typing import Annotated

import typer

# Methods that complete words from several example pairs; the package itself would take seconds to import.
METHODS = (
    "3cosadd",
    "3cosavg",
    "3cosmul",
    "pairdirection",
    "similarity",
    "lrcos",
    "weighted",
    "ridge",
    "joined",
    "spelled",
)
_LARGEST_SEED = 2**62  # seeds of parts of an experiment are derived from it, in 64 bits


def _check_seed(seed: int) -> int:
    if seed > _LARGEST_SEED:
        raise typer.BadParameter(f"{seed} is larger than {_LARGEST_SEED}.")
    return seed


# The limit is not an option's maximum, whose 19 digits help would show.
Seed = Annotated[int, typer.Option(min=0, callback=_check_seed, help="Random seed.")]


def examples(*lines: str) -> str:
    r"""Returns an epilog with command lines verbatim: ``\b`` keeps the help formatter from rewrapping them.

    Long ones are broken after a backslash, as shells allow, to fit 80 columns.
    """
    shown = (f"  {part}" for line in lines for part in line.split("\n"))
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *shown])


def listed(names: tuple[str, ...]) -> str:
    """Returns names in words.

    Example:
        >>> listed(("agn", "asn", "deepsets"))
        'agn, asn or deepsets'
    """
    return f"{', '.join(names[:-1])} or {names[-1]}"


def completing(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Returns what completes the value of an option in a shell."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete
