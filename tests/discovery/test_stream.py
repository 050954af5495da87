from __future__ import annotations

import numpy as np
import pytest
import torch

from abelnet import AbelnetError, LawRegressor, Multisets
from abelnet.discovery.stream import Stream


def batch(count: int, seed: int, low: float = 0.5) -> Multisets:
    x = np.random.default_rng(seed).uniform(low, low + 1.5, (count, 3))
    return Multisets.from_arrays(x, x.sum(1))


def test_merged_streams_are_one_stream() -> None:
    batches = [batch(200, seed) for seed in range(4)]
    whole, start = Stream(0), Stream(0)
    for one in batches:
        whole.take(one)
    start.take(batches[0])
    parts = [start.empty_copy(seed) for seed in (1, 2, 3)]
    for part, one in zip(parts, batches[1:], strict=True):
        part.take(one)
    parts[0].merge(parts[1])
    start.merge(parts[0])
    start.merge(parts[2])
    start.merge(start.empty_copy(4))  # of nothing
    assert (start.count, len(start.sample)) == (800, 800)
    assert start.seen == whole.seen
    assert start.fits.keys() == whole.fits.keys()
    for name, fit in whole.fits.items():
        assert start.fits[name].count == fit.count == 800
        np.testing.assert_allclose(start.fits[name].residual, fit.residual, rtol=1e-9, atol=1e-9)
    assert torch.equal(start.sample.targets.sort().values, whole.sample.targets.sort().values)


def test_a_coordinate_is_ruled_out_by_any_part() -> None:
    start = Stream(0)
    start.take(batch(100, 0))
    other = start.empty_copy(1)
    other.take(batch(100, 1, low=-1.0))
    start.merge(other)
    assert start.fits.keys() == {"x"}


def test_a_sample_of_merged_streams_is_drawn_from_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abelnet.discovery.stream._SAMPLE", 400)
    start = Stream(0)
    start.take(batch(1000, 0))
    other = start.empty_copy(1)
    other.take(batch(3000, 1, low=5.0))
    start.merge(other)
    later = int((start.sample.targets > 7).sum())
    assert len(start.sample) == 400
    assert 250 < later < 350  # three in four


def test_models_without_examples_do_not_merge() -> None:
    model = LawRegressor()
    with pytest.raises(AbelnetError, match="empty_copy: expected a model with examples, got none"):
        model.empty_copy(seed=1)
    with pytest.raises(AbelnetError, match="other: expected a model made by empty_copy"):
        model.merge(LawRegressor())
    with pytest.raises(AbelnetError, match="sample: expected a stream with examples"):
        _ = Stream(0).sample
