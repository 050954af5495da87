"""Text of users made safe to print: control characters are shown as escapes. Importing it imports nothing else."""

from __future__ import annotations

__all__ = ["printable"]

import unicodedata

# Control and format characters, lone surrogates, and separators of lines: they move the cursor, start the commands of a
# terminal, or change the order of the text around them.
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"  # part of words in some scripts, and of emoji


def printable(text: str) -> str:
    r"""Returns the text on one line, with control characters as backslash escapes.

    Example:
        >>> print(printable("x [mm]\x1b[2J"))
        x [mm]\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(_escape(c) if unicodedata.category(c) in _UNSAFE and c not in _JOINERS else c for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
