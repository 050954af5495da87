"""Atomic file writes: a killed process leaves a complete file or none. JSON files are checked when they are read."""

from __future__ import annotations

__all__ = ["check_regular", "read_json", "replacing", "scratch_folder", "write_json", "write_text"]

import json
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from abelnet.errors import AbelnetError

# Longer than any single write takes; files of other machines, and of systems without process ids, are kept so long.
_SECONDS_UNTIL_STALE = 24 * 3600.0
_LARGEST_JSON = 1 << 28
_TEMPORARY = re.compile(r"\.abelnet-(?P<host>[\w-]*)-(?P<pid>\d+)-[0-9a-f]{8}\.tmp$")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path to write to, which replaces ``path`` atomically when the block exits without an error.

    Temporary files in the same folder that killed processes have left are removed first.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder) / "a" / "b.txt") as temporary:
        ...         _ = temporary.write_text("done")
        ...     (Path(folder) / "a" / "b.txt").read_text()
        'done'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    temporary = path.with_name(_temporary_name(path.name))
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # safetensors creates files that only their owner can read
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except SafetensorError as error:
        raise AbelnetError(f"{path}: expected a file that can be written, got: {error}") from None
    except OSError as error:
        if error.filename not in (None, str(temporary)):
            raise
        raise AbelnetError(f"{path}: expected a file that can be written, got: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yields a new folder for temporary files, which is removed at the end; if a process is killed, by the next one.

    Example:
        >>> with scratch_folder() as folder:
        ...     _ = (folder / "rows").write_text("1")
        >>> folder.exists()
        False
    """
    parent = Path(tempfile.gettempdir())
    _sweep(parent)
    folder = parent / _temporary_name("tables")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary_name(name: str) -> str:
    # Cut to stay within 255 bytes, the limit of most file systems; the token tells apart the writes of threads.
    return f"{name[:40]}.abelnet-{_host()}-{os.getpid()}-{secrets.token_hex(4)}.tmp"


def _sweep(folder: Path) -> None:
    """Removes temporary files and folders whose process has ended, or that nothing was written to for a day."""
    try:
        found = [(path, match) for path in folder.iterdir() if (match := _TEMPORARY.search(path.name))]
    except PermissionError:
        return  # a folder may be open for writing only
    for path, match in found:
        with suppress(OSError):  # another process may sweep as well
            ended = match["host"] == _host() and not _is_running(int(match["pid"]))
            if ended or time.time() - path.lstat().st_mtime > _SECONDS_UNTIL_STALE:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _is_running(pid: int) -> bool:
    """Returns whether a process of this machine is running; True where that cannot be asked."""
    if sys.platform == "win32":
        return True  # there, os.kill would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _host() -> str:
    return re.sub(r"[^\w-]", "-", platform.node())[:32]


def check_regular(path: Path) -> None:
    """Raises unless a path, or what it links to, is a regular file: reading a pipe or a device may never end.

    Example:
        >>> check_regular(Path("/dev/null"))
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: /dev/null: expected a regular file, got a folder or a device
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise AbelnetError(f"{path}: expected a regular file, got: {error.strerror or error}") from None
    if not stat.S_ISREG(mode):
        raise AbelnetError(f"{path}: expected a regular file, got a folder or a device")


def write_text(path: Path, text: str) -> None:
    """Writes a text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Writes plain data as JSON, atomically."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path, shape: Any = object, *, remedy: str = "remove it, and run the same command again") -> Any:
    """Reads plain data written by :func:`write_json`.

    Arguments:
        path: The file.
        shape: What the content must be: a type, ``[shape]`` for a list, ``{name: shape}`` for an object with these keys
            and perhaps others, or ``{str: shape}`` for one with any keys.
        remedy: What to do about a file that is damaged, for the error.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_json(Path(folder) / "a.json", {"rows": [1, 2]})
        ...     read_json(Path(folder) / "a.json", {"rows": [int]})
        {'rows': [1, 2]}
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise AbelnetError("expected a regular file, got a folder or a device")
        if status.st_size > _LARGEST_JSON:
            raise AbelnetError(f"expected at most {_LARGEST_JSON} bytes, got {status.st_size}")
        content = json.loads(path.read_text(encoding="utf-8"))
        _check_shape("content", content, shape)
    except OSError as error:
        raise AbelnetError(f"{path}: {error.strerror or error}") from None
    except AbelnetError as error:
        raise AbelnetError(f"{path}: {error}; {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise AbelnetError(
            f"{path}: expected JSON written by abelnet, got a damaged file ({error}); {remedy}"
        ) from None
    return content


def _check_shape(name: str, content: Any, shape: Any) -> None:
    """Raises unless the content has a shape, as in :func:`read_json`."""
    if isinstance(shape, dict):
        _check_shape(name, content, dict)
        for key, part in shape.items():
            for found in content if key is str else [key]:
                if found not in content:
                    raise AbelnetError(f"{name}: expected the key {found!r}, got {list(content)!s:.80}")
                _check_shape(found, content[found], part)
    elif isinstance(shape, list):
        _check_shape(name, content, list)
        for element in content:
            _check_shape(f"{name}, element", element, shape[0])
    elif not isinstance(content, shape):
        expected = getattr(shape, "__name__", shape)
        raise AbelnetError(f"{name}: expected {expected}, got {content!r:.80}")
