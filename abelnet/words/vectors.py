"""Word vectors: load, cache, look up, compare and save."""

from __future__ import annotations

__all__ = ["UnknownWordError", "WordVectors", "cache_folder"]

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.words.cleaning import Report, decode, select
from abelnet.words.formats import (
    KINDS,
    kind_of,
    read_entries,
    read_safetensors,
    write_entries,
    write_safetensors,
)
from abelnet.words.retrieval import divisors, nearest, row_norms

EMBEDDED = "glove.6B.100d.30k.safetensors"


class UnknownWordError(AbelnetError, KeyError):
    """Raised for a word that is not in the vocabulary."""

    # KeyError would print the message in quotes.
    def __str__(self) -> str:
        return str(self.args[0])


class WordVectors:
    r"""Vocabulary of :math:`V` words with a vector :math:`v_w \in \mathbb{R}^d` each.

    Vectors are stored as given, in float32, possibly memory-mapped; all comparisons use cosine similarity, with norms
    computed once. The interface follows gensim's ``KeyedVectors``, with tensors.

    Arguments:
        words: Distinct words.
        vectors: Their vectors, with shape :math:`(V, d)`.

    Example:
        >>> vectors = WordVectors(["up", "down", "left"], torch.tensor([[0.0, 1.0], [0.0, -1.0], [-1.0, 0.1]]))
        >>> vectors["down"], "right" in vectors
        (tensor([ 0., -1.]), False)
        >>> vectors.most_similar("up", topn=1)[0][0]
        'left'
    """

    def __init__(self, words: Iterable[str], vectors: Tensor | np.ndarray[Any, Any]) -> None:
        self.index_to_key = list(words)
        table = (
            vectors if isinstance(vectors, Tensor) else torch.from_numpy(np.require(vectors, np.float32, ["C", "W"]))
        )
        if table.ndim != 2 or min(table.shape) == 0 or len(table) != len(self.index_to_key):
            raise AbelnetError(
                f"vectors: expected shape ({len(self.index_to_key)}, d), one row per word, got {tuple(table.shape)}"
            )
        self.vectors = table.detach().to(torch.float32)
        self.report = Report("memory", "memory", *table.shape)
        _ = self.key_to_index

    @classmethod
    def _unchecked(cls, words: list[str] | Tensor, vectors: Tensor, report: Report) -> WordVectors:
        self = cls.__new__(cls)
        if isinstance(words, list):
            self.index_to_key = words
        else:
            self._text = words
        self.vectors = vectors
        self.report = report
        return self

    @cached_property
    def index_to_key(self) -> list[str]:
        """Words by row; decoded on first access if the file is memory-mapped."""
        try:
            return self._text.numpy().tobytes().decode().split("\n")
        except UnicodeDecodeError as error:
            raise AbelnetError(
                f"{self.report.source}, byte {error.start:,} of the words: expected UTF-8, got "
                f"{error.object[error.start : error.start + 4]!r}"
            ) from None

    @cached_property
    def key_to_index(self) -> dict[str, int]:
        """Row of each word."""
        words = self.index_to_key
        rows = dict(zip(words, range(len(words)), strict=True))
        if len(rows) < len(words):
            place = next(row for row, word in enumerate(words) if rows[word] != row)
            raise AbelnetError(
                f"{self.report.source}, word {place + 1:,}: expected distinct words, got {words[place]!r}, "
                f"which is also word {rows[words[place]] + 1:,}"
            )
        return rows

    @cached_property
    def norms(self) -> Tensor:
        r"""Norm of each vector, with shape :math:`(V)`."""
        return row_norms(self.vectors)

    @cached_property
    def is_lower_case(self) -> bool:
        """Whether the 10,000 most frequent words have no uppercase letter, so that questions must be lowercased.

        Rare words of a lowercase vocabulary may still contain stray uppercase letters.
        """
        text = "\n".join(self.index_to_key[:10_000])
        return text == text.lower()

    @property
    def dim(self) -> int:
        """Number of dimensions :math:`d`."""
        return self.vectors.shape[1]

    def __len__(self) -> int:
        return len(self.vectors)

    def __contains__(self, word: object) -> bool:
        return word in self.key_to_index

    def __getitem__(self, word: str | Sequence[str]) -> Tensor:
        """Returns the vector of a word, with shape :math:`(d)`, or of :math:`n` words, with shape :math:`(n, d)`."""
        if isinstance(word, str):
            return self.vectors[self.index(word)]
        return self.vectors[[self.index(one) for one in word]]

    def __repr__(self) -> str:
        return f"WordVectors({self.report})"

    def index(self, word: str) -> int:
        """Returns the row of a word.

        Example:
            >>> WordVectors(["up", "down"], torch.eye(2)).index("Down")
            Traceback (most recent call last):
            ...
            abelnet.words.vectors.UnknownWordError: word: expected a vocabulary word, got 'Down'; did you mean 'down'?
        """
        found = self.key_to_index.get(word)
        if found is None:
            near = [other for other in (str(word).lower(), str(word).capitalize()) if other in self.key_to_index]
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UnknownWordError(f"word: expected a vocabulary word, got {word!r}{hint}")
        return found

    def units(self, rows: Tensor) -> Tensor:
        r"""Returns normalized vectors of the given rows, :math:`(*)` to :math:`(*, d)`; zero vectors stay zero.

        Example:
            >>> WordVectors(["up"], torch.tensor([[0.0, 5.0]])).units(torch.tensor([0]))
            tensor([[0., 1.]])
        """
        return self.vectors[rows] / divisors(self.norms[rows])[..., None]

    def normalised(self) -> WordVectors:
        r"""Returns an in-memory copy with normalized vectors :math:`v_w / \|v_w\|`.

        Example:
            >>> WordVectors(["up"], torch.tensor([[0.0, 5.0]])).normalised()["up"]
            tensor([0., 1.])
        """
        copy = self._unchecked(self.index_to_key, self.vectors / divisors(self.norms)[:, None], self.report)
        copy.__dict__["norms"] = (self.norms != 0).to(torch.float32)
        return copy

    def most_similar(
        self,
        positive: Any = (),
        negative: Any = (),
        topn: int = 10,
        restrict_vocab: int | None = None,
    ) -> list[tuple[str, float]]:
        r"""Finds the words nearest in cosine to :math:`\sum_p v_p / \|v_p\| - \sum_n v_n / \|v_n\|`, inputs excluded.

        Arguments:
            positive: A word, a vector (used as is), or a list of these, each optionally paired with a weight.
            negative: Likewise; the default weight is −1.
            topn: Number of words to return.
            restrict_vocab: Number of most frequent words to search; all if None.

        Returns:
            Words with their cosine similarities, best first.
        """
        limit = len(self) if restrict_vocab is None else min(len(self), check_count("restrict_vocab", restrict_vocab))
        query = torch.zeros(self.dim, dtype=torch.float64)
        given = []
        for default, items in ((1.0, positive), (-1.0, negative)):
            for item in items if isinstance(items, list | tuple) and not _is_weighted(items) else [items]:
                thing, weight = item if _is_weighted(item) else (item, default)
                if isinstance(thing, str):
                    given.append(self.index(thing))
                    query += weight * self.units(torch.tensor(given[-1])).double()
                else:
                    query += weight * self._as_vector(thing)
        if not given and not bool(query.any()):
            raise AbelnetError("positive, negative: expected at least one word or nonzero vector")
        count = min(limit, check_count("topn", topn) + len(given))
        found = nearest(self.vectors[:limit], query.float()[None], count, norms=self.norms[:limit])
        words = self.index_to_key
        pairs = zip(found.indices[0].tolist(), found.scores[0].tolist(), strict=True)
        return [(words[row], score) for row, score in pairs if row not in given][:topn]

    def _as_vector(self, vector: Any) -> Tensor:
        try:
            tensor = torch.as_tensor(vector, dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError):
            raise AbelnetError(f"positive, negative: expected words or vectors, got {vector!r}") from None
        if tensor.shape != (self.dim,):
            raise AbelnetError(
                f"positive, negative: expected vectors of shape ({self.dim},), got {tuple(tensor.shape)}"
            )
        return tensor

    @classmethod
    def default(cls, limit: int | None = None) -> WordVectors:
        """Loads the bundled vectors: 100-d GloVe of the 30,000 most frequent words and of the Google test set.

        Arguments:
            limit: Maximum number of words, most frequent first; all if None.

        Example:
            >>> vectors = WordVectors.default()
            >>> [word for word, _ in vectors.most_similar(["king", "woman"], ["man"], topn=2)]
            ['queen', 'monarch']
        """
        with resources.as_file(resources.files("abelnet.words") / "data" / EMBEDDED) as path:
            return cls._mapped(path)._refined(limit, lower=False)

    @classmethod
    def from_gensim(cls, vectors: Any) -> WordVectors:
        """Converts a gensim ``KeyedVectors``, or any object with ``index_to_key`` and ``vectors``.

        Example:
            >>> from types import SimpleNamespace
            >>> keyed = SimpleNamespace(index_to_key=["up"], vectors=np.array([[0.0, 1.0]]))
            >>> WordVectors.from_gensim(keyed)["up"]
            tensor([0., 1.])
        """
        try:
            return cls(vectors.index_to_key, np.array(vectors.vectors, dtype=np.float32))
        except AttributeError:
            raise AbelnetError(f"vectors: expected a gensim KeyedVectors, got {type(vectors).__name__}") from None

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        limit: int | None = None,
        lower: bool = False,
        strict: bool = False,
        kind: str | None = None,
        cache: str | Path | None = None,
    ) -> WordVectors:
        """Loads word2vec binary and text, GloVe text, gzip of these, and safetensors written by :meth:`save`.

        Repeated words are dropped and invalid UTF-8 bytes are replaced; ``report`` counts them.

        Arguments:
            path: The file.
            limit: Maximum number of entries to read; all if None.
            lower: Whether to lowercase words; the first of those that become equal is kept.
            strict: Whether repeated and undecodable words raise an error instead.
            kind: ``"binary"``, ``"text"`` or ``"safetensors"``; inferred from the file name or contents if None.
            cache: Folder for a copy that is memory-mapped on later loads; see :func:`cache_folder`.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = Path(folder, "v.txt").write_text("up 0 1\\ndown 0 -1\\nup 1 1\\n")
            ...     print(WordVectors.load(Path(folder, "v.txt")).report.duplicates)
            1
        """
        path = Path(path)
        if kind not in (None, *KINDS):
            raise AbelnetError(f"kind: expected {', '.join(KINDS)} or None, got {kind!r}")
        if limit is not None:
            limit = check_count("limit", limit)
        if (kind or kind_of(path)) == "safetensors":
            return cls._mapped(path)._refined(limit, lower)
        if cache is None:
            return cls._read(path, limit, lower, strict, kind)
        return cls._cached(path, Path(cache), {"limit": limit, "lower": lower, "strict": strict, "kind": kind})

    @classmethod
    def _read(cls, path: Path, limit: int | None, lower: bool, strict: bool, kind: str | None) -> WordVectors:
        entries = read_entries(path, limit=limit, kind=kind)
        words, undecodable = decode(str(path), entries.words, strict=strict)
        return cls._unchecked(
            *select(
                str(path), entries.kind, words, entries.vectors, lower=lower, strict=strict, undecodable=undecodable
            )
        )

    @classmethod
    def _cached(cls, path: Path, folder: Path, options: Mapping[str, Any]) -> WordVectors:
        try:
            state = path.stat()
        except OSError as error:
            raise AbelnetError(f"{path}: expected a word vector file, got: {error.strerror}") from None
        key = hashlib.sha256(f"{path.resolve()} {sorted(options.items())}".encode()).hexdigest()[:16]
        copy = folder / f"{path.name}.{key}.safetensors"
        stamp = f"{state.st_size} {state.st_mtime_ns}"
        # A missing or damaged copy is written again; failing to write one is not an error.
        with suppress(AbelnetError, LookupError, TypeError, ValueError):
            tensors, metadata = read_safetensors(copy)
            if metadata["stamp"] == stamp:
                return cls._from_tensors(tensors, Report(**json.loads(metadata["report"])))
        vectors = cls._read(path, **options)
        with suppress(OSError, AbelnetError):
            vectors.save(copy, metadata={"stamp": stamp, "report": json.dumps(asdict(vectors.report))})
        return vectors

    _text: Tensor

    @classmethod
    def _mapped(cls, path: Path) -> WordVectors:
        tensors, _ = read_safetensors(path)
        return cls._from_tensors(tensors, Report(str(path), "safetensors", *tensors["vectors"].shape))

    @classmethod
    def _from_tensors(cls, tensors: dict[str, Tensor], report: Report) -> WordVectors:
        vectors = tensors["vectors"]
        if "scales" in tensors:
            vectors = vectors.to(torch.float32).mul_(tensors["scales"][:, None])
        self = cls._unchecked(tensors["words"], vectors.to(torch.float32), report)
        if "norms" in tensors:
            self.__dict__["norms"] = tensors["norms"]
        return self

    def _refined(self, limit: int | None, lower: bool) -> WordVectors:
        if not lower and (limit is None or limit >= len(self)):
            return self
        words, vectors = self.index_to_key[:limit], self.vectors[:limit]
        return self._unchecked(*select(self.report.source, self.report.kind, words, vectors, lower=lower))

    def save(
        self,
        path: str | Path,
        *,
        quantise: bool = False,
        kind: str | None = None,
        metadata: dict[str, str] | None = None,
    ) -> None:
        """Saves word2vec binary (``.bin``) or text (``.txt``, ``.vec``), ``.gz`` of these, or ``.safetensors``.

        Arguments:
            path: The file, written atomically.
            quantise: Whether to quantize to int8 with one scale per word, a quarter of the size; safetensors only.
            kind: ``"binary"``, ``"text"`` or ``"safetensors"``; inferred from the file name if None.
            metadata: Additional metadata for safetensors.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     WordVectors(["up"], torch.tensor([[0.0, 1.0]])).save(Path(folder, "v.txt"))
            ...     print(Path(folder, "v.txt").read_text())
            1 2
            up 0 1
            <BLANKLINE>
        """
        path = Path(path)
        kind = kind or kind_of(path)
        if kind not in KINDS:
            raise AbelnetError(f"path: expected .bin, .txt, .vec or .safetensors, got {path.name}")
        if quantise and kind != "safetensors":
            raise AbelnetError(f"quantise: expected .safetensors, got {path.name}")
        if kind == "safetensors":
            write_safetensors(path, self.index_to_key, self.vectors, self.norms, quantise=quantise, metadata=metadata)
        else:
            write_entries(path, kind, self.index_to_key, self.vectors)


def _is_weighted(item: Any) -> bool:
    return (
        isinstance(item, tuple)
        and len(item) == 2
        and isinstance(item[1], int | float)
        and not isinstance(item[0], int | float)
    )


def cache_folder() -> Path:
    """Returns the default cache folder of the command line: ``abelnet`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "abelnet"
