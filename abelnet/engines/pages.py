"""Resident memory of libraries: code that only their import needed is given back."""

from __future__ import annotations

__all__ = ["release_code"]

import ctypes
import re
from pathlib import Path

_MAPS = Path("/proc/self/maps")  # Linux alone has it
_DONT_NEED = 4  # MADV_DONTNEED
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ [1-9]\d* +(/.+)")


def release_code(folder: str | Path) -> int:
    """Gives back the resident pages of code of the libraries in a folder; those that are used again are mapped again.

    To register its operators, PyTorch touches 60 MB of its code on import, most of which never runs again. Such pages
    are clean, and the system could take them at any time; until it does, they count as memory of this process. Code
    cannot be written to, so nothing is lost. Does nothing where the system has no list of mappings.

    Arguments:
        folder: Folder of a package that has been imported.

    Returns:
        The number of bytes of code that were mapped.

    Example:
        >>> release_code("/no/such/folder")
        0
    """
    if not _MAPS.exists():
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    size = 0
    for start, end, file in _MAPPING.findall(_MAPS.read_text()):
        if Path(file).is_relative_to(folder):
            begin, length = int(start, 16), int(end, 16) - int(start, 16)
            if advise(begin, length, _DONT_NEED) == 0:
                size += length
    return size
