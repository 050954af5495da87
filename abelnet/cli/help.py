"""What the help texts of all commands share."""

from __future__ import annotations

__all__ = ["examples"]


def examples(*lines: str) -> str:
    r"""An epilog with command lines as they are: ``\b`` keeps the help formatter from joining and folding them."""
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])
