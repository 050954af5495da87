"""Formatting shared by the help texts of all commands."""

from __future__ import annotations

__all__ = ["examples"]


def examples(*lines: str) -> str:
    r"""Returns an epilog with command lines verbatim: ``\b`` keeps the help formatter from rewrapping them."""
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])
