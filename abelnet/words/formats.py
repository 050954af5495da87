"""Word vector file formats: word2vec binary and text, GloVe text, gzip of these, and safetensors."""

from __future__ import annotations

__all__ = ["KINDS", "Entries", "kind_of", "read_entries", "read_safetensors", "write_entries", "write_safetensors"]

import gzip
import mmap
import re
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedWriter
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from abelnet.errors import AbelnetError
from abelnet.files import check_regular, replacing

KINDS = ("binary", "text", "safetensors")
_SUFFIXES = {".bin": "binary", ".txt": "text", ".vec": "text", ".safetensors": "safetensors"}
_FORMAT = "abelnet word vectors 1"
_CHECKSUM = "crc32"
# Words of a vocabulary are short; a more distant space means that the file is not what its header claims.
_LONGEST_WORD = 4096
_TEXT_PART = _LONGEST_LINE = 1 << 22
# Numbers in text or float32 compress by less than 10.
_RATIO = 50
_ROWS = 4096


@dataclass(frozen=True)
class Entries:
    """Contents of a file: words, undecoded and one per line, and their vectors :math:`(V, d)` in float32."""

    kind: str
    words: bytes
    vectors: Tensor


def kind_of(path: Path) -> str | None:
    """Returns the format given by a file name: one of :data:`KINDS`, or None if it is unknown.

    Example:
        >>> kind_of(Path("GoogleNews-vectors-negative300.bin.gz"))
        'binary'
    """
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def read_entries(path: Path, *, limit: int | None = None, kind: str | None = None) -> Entries:
    """Reads word2vec binary or text, or GloVe text, optionally gzip-compressed.

    Arguments:
        path: The file.
        limit: Maximum number of entries to read; all if None.
        kind: ``"binary"`` or ``"text"``; if None, inferred from the file name, or else from the contents.
    """
    with _unpacked(path) as (file, size):
        if size == 0:
            raise AbelnetError(f"{path}: expected word vectors, got an empty file")
        kind = kind or kind_of(path) or _guess(file)
        if kind == "binary":
            words, vectors = _read_binary(path, file, size, limit)
        else:
            words, vectors = _read_text(path, file, limit)
    if len(vectors) == 0:
        raise AbelnetError(f"{path}: expected at least one word, got none")
    _check_numbers(path, words, vectors)
    return Entries(kind, words, vectors)


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """Yields a file that can be memory-mapped, and its size; gzip is decompressed to disk, never to memory."""
    try:
        check_regular(path)
        file = path.open("rb")
    except OSError as error:
        raise AbelnetError(f"{path}: expected a word vector file, got: {error.strerror}") from None
    with file:
        if file.read(2) != b"\x1f\x8b":
            file.seek(0)
            yield file, path.stat().st_size
            return
        file.seek(0)
        most = _RATIO * path.stat().st_size + _TEXT_PART
        with tempfile.TemporaryFile() as unpacked:
            try:
                with gzip.open(file) as packed:
                    while part := packed.read(1 << 20):
                        unpacked.write(part)
                        if unpacked.tell() > most:
                            raise AbelnetError(
                                f"{path}: expected at most {most:,} bytes, {_RATIO} times its size, got more"
                            )
            except (OSError, EOFError, zlib.error) as error:
                place = f"after {unpacked.tell():,} decompressed bytes"
                raise AbelnetError(f"{path}: expected a complete gzip file, got an error {place}: {error}") from None
            size = unpacked.tell()
            unpacked.seek(0)
            yield unpacked, size


def _guess(file: IO[bytes]) -> str:
    start = file.read(4096)
    file.seek(0)
    return "binary" if re.search(rb"[\x00-\x08\x0e-\x1f]", start) else "text"


def _header(line: bytes) -> tuple[int, int] | None:
    """Returns the number of words and dimensions if this is the first line of a word2vec file."""
    match = re.fullmatch(rb"\s*(\d{1,18})[ \t]+(\d{1,18})\s*", line)
    return (int(match[1]), int(match[2])) if match else None


def _read_binary(path: Path, file: IO[bytes], size: int, limit: int | None) -> tuple[bytes, Tensor]:
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    position = mapped.find(b"\n", 0, 64) + 1
    header = _header(mapped[: position - 1]) if position else None
    if header is None:
        raise AbelnetError(
            f"{path}, byte 0: expected a header with the number of words and dimensions, got {mapped[:24]!r}"
        )
    count, dim = header
    width = 4 * dim
    if min(count, dim) == 0:
        raise AbelnetError(f"{path}, byte 0: expected at least one word and one dimension, got {count:,} and {dim:,}")
    if position + count * (width + 2) > size:
        raise AbelnetError(
            f"{path}, byte 0: expected {count:,} words of {dim:,} dimensions as in the header, got only {size:,} bytes"
        )
    # Entries have different lengths, so they must be scanned one by one: a regular expression does so in C. Text that
    # does not match is consumed to the end as an entry without a word, so each entry starts where the last one ended.
    entry = re.compile(rb"([^ ]{1,%d}) (?s:.{%d})|(?s:.+)" % (_LONGEST_WORD, width))
    wanted = count if limit is None else min(count, limit)
    if wanted == count:
        words = entry.findall(mapped, position)
    else:
        words = [match[1] or b"" for match in islice(entry.finditer(mapped, position), wanted)]
    if words and not words[-1]:
        words.pop()
    found, words = len(words), words[:wanted]
    ends = position - 1 - width + np.cumsum(np.fromiter(map(len, words), np.int64, len(words)) + (1 + width))
    if words:
        position = int(ends[-1]) + 1 + width
    if len(words) < wanted:
        raise AbelnetError(
            f"{path}, byte {position:,}: expected word {len(words) + 1:,} of {count:,} and its {width:,} bytes of "
            f"numbers, got {mapped[position : position + 24]!r} of {size - position:,} bytes left"
        )
    more = mapped[position : position + 64].strip() or size - position > 64
    if found > wanted or (wanted == count and more):
        raise AbelnetError(
            f"{path}, byte {position:,}: expected the end of the file after {count:,} words, "
            f"got {size - position:,} more bytes"
        )
    # Rows of numbers are unaligned; a view with an overlapping item at every byte lets one indexing copy them.
    items = np.ndarray((size - width + 1,), f"V{width}", mapped, strides=(1,))
    vectors = items[ends + 1].view(np.float32).reshape(len(words), dim)
    return _joined(path, words, ends), torch.from_numpy(vectors)


def _joined(path: Path, words: list[bytes], ends: NDArray[np.int64]) -> bytes:
    """Joins words, one per line, without the line break that may precede each in a file."""
    text = b"\n".join(words).removeprefix(b"\n").replace(b"\n\n", b"\n")
    if text.count(b"\n") != max(0, len(words) - 1) or b"\n\n" in text or text[-1:] == b"\n":
        bad = next(i for i, word in enumerate(words) if word == b"\n" or b"\n" in word[1:])
        start = ends[bad] - len(words[bad])
        raise AbelnetError(f"{path}, byte {start:,}: expected word {bad + 1:,}, got {words[bad][:40]!r}")
    return text


def _read_text(path: Path, file: IO[bytes], limit: int | None) -> tuple[bytes, Tensor]:
    words: list[bytes] = []
    parts: list[NDArray[np.float32]] = []
    count = dim = None
    for first, lines in _lines(path, file):
        if first == 1 and (header := _header(lines[0])):
            count, dim = header
            first, lines = 2, lines[1:]
        if dim is None:
            dim = len(lines[0].split()) - 1
        if dim < 1:
            raise AbelnetError(
                f"{path}, line {first}: expected a word and its numbers, got {(lines or [b''])[0][:40]!r}"
            )
        if limit is not None:
            lines = lines[: limit - len(words)]
        if not lines:
            continue
        part_words, part = _parse_lines(path, first, lines, dim)
        words += part_words
        parts.append(part)
        if len(words) == limit:
            break
    wanted = count if limit is None or count is None else min(count, limit)
    if wanted is not None and len(words) != wanted:
        raise AbelnetError(f"{path}, line 1: expected {count:,} words as in the header, got {len(words):,}")
    return b"\n".join(words), torch.from_numpy(np.concatenate(parts)) if parts else torch.empty(0, 1)


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yields lines in chunks, each with the number of its first line; trailing empty lines are dropped."""
    rest, number, empty = b"", 1, 0
    while True:
        part = file.read(_TEXT_PART)
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            line = number + len(lines)
            raise AbelnetError(f"{path}, line {line}: expected at most {_LONGEST_LINE:,} bytes, got {rest[:24]!r}…")
        if not part:
            lines = [rest] if rest else []
        lines = [b""] * empty + lines
        first, number = number - empty, number + len(lines) - empty
        filled = len(lines)
        while filled and not lines[filled - 1].strip():
            filled -= 1
        empty = len(lines) - filled
        if filled:
            yield first, lines[:filled]
        if not part:
            return


def _parse_lines(path: Path, first: int, lines: list[bytes], dim: int) -> tuple[list[bytes], NDArray[np.float32]]:
    words, texts = [], []
    plain = True
    for line in lines:
        word, _, text = line.partition(b" ")
        text = text.strip()
        plain = plain and text.count(b" ") == dim - 1
        words.append(word)
        texts.append(text)
    numbers = _numbers(b" ".join(texts)) if plain else None
    if numbers is None or numbers.size != dim * len(lines) or not all(words):
        # A word may contain spaces, as in GloVe 840B; otherwise the line is malformed.
        words, rows = [], []
        for number, line in enumerate(lines, first):
            fields = line.split()
            row = _numbers(b" ".join(fields[-dim:])) if len(fields) > dim else None
            # A number in the word means a wrong number of values, not a word with spaces.
            if row is None or row.size != dim or any(_numbers(field) is not None for field in fields[1:-dim]):
                raise AbelnetError(f"{path}, line {number}: expected a word and {dim} numbers, got {line[:60]!r}")
            words.append(b" ".join(fields[:-dim]))
            rows.append(row)
        return words, np.stack(rows)
    return words, numbers.reshape(len(lines), dim)


def _numbers(text: bytes) -> NDArray[np.float32] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, dtype=np.float32, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def _check_numbers(path: Path, words: bytes, vectors: Tensor) -> None:
    # Testing the sum is enough for most files; a finite table whose sum overflows passes the second test.
    if bool(torch.isfinite(vectors.sum())):
        return
    for start in range(0, len(vectors), _ROWS):
        bad = ~torch.isfinite(vectors[start : start + _ROWS]).all(1)
        if bool(bad.any()):
            place = start + int(bad.int().argmax())
            word = words.split(b"\n")[place][:40]
            raise AbelnetError(f"{path}, word {place + 1:,} ({word!r}): expected finite numbers, got NaN or infinity")


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Returns memory-mapped tensors and the metadata of a file written by :func:`write_safetensors`."""
    tensors = {}
    check_regular(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            for name in file.keys():  # noqa: SIM118
                tensors[name] = file.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise AbelnetError(f"{path}: expected a valid safetensors file, got: {error}") from None
    shapes = {name: (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for name, tensor in tensors.items()}
    vectors, words = tensors.get("vectors"), tensors.get("words")
    if vectors is None or words is None or vectors.ndim != 2 or words.ndim != 1 or words.dtype != torch.uint8:
        raise AbelnetError(
            f"{path}: expected tensors vectors (V, d) and words (bytes, one word per line), got {shapes}"
        )
    rows = len(vectors)
    lines = int(np.count_nonzero(words.numpy() == ord("\n"))) + 1
    if min(vectors.shape) == 0 or lines != rows:
        raise AbelnetError(f"{path}: expected a word for each of {rows:,} vectors, got {lines:,} words, {shapes}")
    for name, dtype in (("scales", torch.float32), ("norms", torch.float32)):
        if name in tensors and (tensors[name].shape != (rows,) or tensors[name].dtype != dtype):
            raise AbelnetError(f"{path}: expected {rows:,} {name} in float32, got {shapes[name]}")
    if (vectors.dtype == torch.int8) != ("scales" in tensors) or not (
        vectors.is_floating_point() or vectors.dtype == torch.int8
    ):
        raise AbelnetError(f"{path}: expected floating-point vectors, or int8 ones with scales, got {shapes}")
    if metadata.get(_CHECKSUM, crc := _crc(tensors)) != crc:
        raise AbelnetError(f"{path}: expected tensors with the checksum of the file, got others; the file was changed")
    for name in ("vectors", "scales", "norms"):
        # Testing the sum is enough for most; finite numbers whose sum overflows pass the second test.
        x = tensors.get(name, torch.zeros(1))
        if x.is_floating_point() and not bool(x.sum(dtype=torch.float64).isfinite() or x.isfinite().all()):
            raise AbelnetError(f"{path}: expected finite {name}, got NaN or infinity")
    return tensors, metadata


def _crc(tensors: Mapping[str, Tensor]) -> str:
    """CRC-32 of tensors: it guards against damage, at the speed of a disk, and not against forgery."""
    crc = 0
    for name in sorted(tensors):
        x = tensors[name]
        crc = zlib.crc32(f"{name} {x.dtype} {tuple(x.shape)}".encode(), crc)
        crc = zlib.crc32(x.contiguous().reshape(-1).view(torch.uint8).numpy().data, crc)
    return f"{crc:08x}"


def write_safetensors(
    path: Path,
    words: Sequence[str],
    vectors: Tensor,
    norms: Tensor,
    *,
    quantise: bool = False,
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes a file for :func:`read_safetensors`; ``quantise`` stores int8 with one scale per row."""
    bad = next((word for word in words if "\n" in word), None)
    if bad is not None:
        raise AbelnetError(f"{path}: expected words without line breaks, got {bad!r}")
    text = np.frombuffer("\n".join(words).encode(), np.uint8)
    tensors = {"words": torch.from_numpy(text.copy())}
    if quantise:
        scales = vectors.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127
        tensors |= {"vectors": (vectors / scales[:, None]).round().to(torch.int8), "scales": scales}
    else:
        tensors |= {"vectors": vectors.contiguous(), "norms": norms}
    with replacing(path) as temporary:
        save_file(tensors, temporary, {"format": _FORMAT, _CHECKSUM: _crc(tensors)} | (metadata or {}))


def write_entries(path: Path, kind: str, words: Sequence[str], vectors: Tensor) -> None:
    """Writes word2vec ``"binary"`` or ``"text"``, gzip-compressed if the name ends in ``.gz``."""
    bad = next((word for word in words if not word or word.split() != [word]), None)
    if bad is not None:
        raise AbelnetError(f"{path}: expected words without whitespace, as word2vec files require, got {bad!r}")
    table: NDArray[Any] = vectors.numpy()
    # 9 digits round-trip float32.
    line = " ".join(["%.9g"] * table.shape[1])
    with replacing(path) as temporary, _packing(temporary, path.suffix == ".gz") as file:
        file.write(b"%d %d\n" % table.shape)
        for start in range(0, len(words), _ROWS):
            named = zip(words[start : start + _ROWS], table[start : start + _ROWS], strict=True)
            if kind == "binary":
                file.write(b"".join([b"%s %s\n" % (word.encode(), row.tobytes()) for word, row in named]))
            else:
                file.write("".join([f"{word} {line % tuple(row)}\n" for word, row in named]).encode())


def _packing(path: Path, packed: bool) -> gzip.GzipFile | BufferedWriter:
    return gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb")
