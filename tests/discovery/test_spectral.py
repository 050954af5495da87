"""The closed form: eigenvalues tell the kind of law, and sums come in parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from abelnet import AbelnetError, Multisets
from abelnet.discovery import spectral
from abelnet.discovery.spectral import SpectralFit
from abelnet.experiments.synthetic.data import OPERATIONS, make_dataset


def test_eigenvalues_tell_group_from_semigroup() -> None:
    for name, operation in OPERATIONS.items():
        data = make_dataset(name, 5).train
        group, _, semigroup, _ = SpectralFit().partial_fit(data).refine(data).solve()
        if operation.is_group:
            assert group.eigenvalue < 1e-5
        else:
            assert group.eigenvalue > 1e-2 > 1e-5 > semigroup.eigenvalue
            assert semigroup.absorbing == pytest.approx({"product": 0.0}.get(name, -2.0), abs=1e-4)


def test_parts_merge_to_the_fit_of_all() -> None:
    data = make_dataset("product", 0).train
    first, second = data.take(torch.arange(300)), data.take(torch.arange(300, 500))
    part = SpectralFit().partial_fit(first)
    other = part.empty_copy().partial_fit(second)
    union = SpectralFit().partial_fit(first).partial_fit(second)
    merged = part.merge(other)
    assert (merged.count, merged.points) == (union.count, union.points)
    for name in ("residual", "square", "total"):
        np.testing.assert_allclose(getattr(merged, name), getattr(union, name), rtol=1e-12, atol=1e-12)
    for one, wanted in zip(merged.solve(), union.solve(), strict=True):
        assert one.eigenvalue == pytest.approx(wanted.eigenvalue, rel=1e-6)
        # A curve that does not explain the examples is not well determined.
        np.testing.assert_allclose(one.curve, wanted.curve, rtol=1e-6, atol=1e-9)
    alone = SpectralFit().partial_fit(first).solve()
    assert merged.solve()[0].eigenvalue != pytest.approx(alone[0].eigenvalue, rel=1e-3)
    with pytest.raises(AbelnetError, match="expected a fit with the same knots"):
        merged.merge(SpectralFit().partial_fit(second))


def test_examples_are_taken_back() -> None:
    data = make_dataset("cbrt", 1).train
    rest, some = data.take(torch.arange(100, 500)), data.take(torch.arange(100))
    whole = SpectralFit().partial_fit(data)
    left, wanted = whole.without(some), whole.empty_copy().partial_fit(rest)
    assert (left.count, left.points) == (wanted.count, wanted.points)
    np.testing.assert_allclose(left.residual, wanted.residual, rtol=1e-9, atol=1e-9 * wanted.residual.max())
    assert left.solve()[0].eigenvalue == pytest.approx(wanted.solve()[0].eigenvalue, rel=1e-6)
    assert whole.count == 500


def test_empty_sets_are_refused() -> None:
    examples = Multisets.from_arrays([[1.0, 2.0], []], [3.0, 0.0])
    with pytest.raises(AbelnetError, match="expected no empty set"):
        SpectralFit().partial_fit(examples)


def test_sets_larger_than_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    sets = [generator.uniform(-3, 3, size) for size in (2, 1, 90, 3, 4, 61, 2)]
    examples = Multisets.from_arrays(sets, [one.sum() for one in sets])
    whole = SpectralFit().partial_fit(examples)
    monkeypatch.setattr(spectral, "_CHUNK", 4)
    parts = whole.empty_copy().partial_fit(examples)
    assert (parts.count, parts.points) == (whole.count, whole.points) == (7, 163 + 7)
    for name in ("residual", "square", "total"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, atol=1e-9)


def test_knots_grow_with_the_first_batch() -> None:
    generator = np.random.default_rng(0)
    values = generator.uniform(-3, 3, (8000, 2))
    examples = Multisets.from_arrays(values, values.sum(1))
    few, many = examples.take(torch.arange(2000)), examples.take(torch.arange(2000, 8000))
    widths = [len(SpectralFit().partial_fit(first).solve_sums()[0].points) for first in (few, examples)]
    assert widths == [3 * (20 + 1) + 1, 3 * (40 + 1) + 1]
    # Later batches do not change them, so that sums add up.
    assert len(SpectralFit().partial_fit(few).partial_fit(many).solve_sums()[0].points) == widths[0]


def test_groups_and_means_need_no_absorbing_element() -> None:
    data = make_dataset("cbrt", 0).train
    fit = SpectralFit().partial_fit(data)
    for one, wanted in zip(fit.solve_sums(1e-4), fit.solve(1e-4)[:2], strict=True):
        assert (one.hypothesis, one.eigenvalue) == (wanted.hypothesis, wanted.eigenvalue)
        np.testing.assert_array_equal(one.curve, wanted.curve)
    with pytest.raises(AbelnetError, match="call partial_fit first"):
        SpectralFit().solve_sums()
