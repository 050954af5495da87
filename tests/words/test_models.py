"""Models of analogies: their laws, answers from several pairs, and their files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import abelnet
from abelnet import AbelnetError
from abelnet.words import GroupAnalogy, OffsetMLP, offset
from abelnet.words.models import AnalogyEnsemble, Offset, default_model, named_model, named_models


@given(seed=st.integers(0, 2**40), layers=st.integers(1, 4), gain=st.sampled_from([0.0, 0.1, 1.0]))
@settings(max_examples=25, deadline=None)
def test_laws_of_an_analogy(seed: int, layers: int, gain: float) -> None:
    model = GroupAnalogy(6, layers, 8, gain=gain, seed=seed).double()
    a, b, c, e = F.normalize(torch.randn(4, 5, 6, dtype=torch.float64), dim=-1)
    d = model(a, b, c)
    assert torch.allclose(model(a, c, b), d, rtol=1e-9, atol=1e-9)
    assert torch.allclose(model(a, a, c), c, rtol=1e-9, atol=1e-9)
    assert torch.allclose(model(b, a, d), c, rtol=1e-7, atol=1e-7)  # the way back
    assert torch.allclose(model(c, d, e), model(a, b, e), rtol=1e-7, atol=1e-7)  # b is to a what d is to c
    if gain == 0:
        assert torch.allclose(d, offset(a, b, c), rtol=1e-12, atol=1e-12)


def test_mlp_is_one_of_the_offset() -> None:
    model = OffsetMLP(5, layers=3, hidden=7, seed=0)
    a, b, c = torch.randn(3, 4, 5)
    assert model.mlp.widths == [5, 7, 7, 5]
    assert torch.equal(model(a, b, c), model(torch.zeros_like(a), b - a + c, torch.zeros_like(a)))


@pytest.mark.parametrize("model", [GroupAnalogy(12, 2, 9, seed=0), OffsetMLP(12, 3, 50, seed=0)], ids=["agn", "mlp"])
def test_files(model: GroupAnalogy | OffsetMLP, tmp_path: Path) -> None:
    a, b, c = F.normalize(torch.randn(3, 4, 12), dim=-1)
    saved = abelnet.save(model, tmp_path / "whole"), abelnet.save(model, tmp_path / "half", half=True)
    whole, half = (abelnet.load(path) for path in saved)
    assert torch.equal(whole(a, b, c), model(a, b, c))
    assert torch.allclose(half(a, b, c), model(a, b, c), atol=1e-2)
    assert saved[1].stat().st_size < 0.8 * saved[0].stat().st_size
    assert not named_model(str(tmp_path / "whole"), 12).training
    with pytest.raises(AbelnetError, match="model: expected a model for 100-d vectors, got 12-d"):
        named_model(str(tmp_path / "whole"), 100)
    with pytest.raises(AbelnetError, match="model: expected wv, agn or the folder of a model"):
        named_model(str(tmp_path / "none"), 100)
    abelnet.save(abelnet.Sum(), tmp_path / "law")
    with pytest.raises(AbelnetError, match="model: expected an analogy model, got Sum"):
        named_model(str(tmp_path / "law"), 100)


@pytest.mark.parametrize("model", [GroupAnalogy(6, 2, 8, seed=0), OffsetMLP(6, 2, 8, seed=0), Offset()])
def test_many_answers_at_once(model: GroupAnalogy | OffsetMLP | Offset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abelnet.words.models, "_ANSWERS", 4)
    model.double()
    x = torch.randn(5, 6, dtype=torch.float64)
    index = torch.randint(5, (11, 3))
    torch.testing.assert_close(model.analogies(x, index), model(*x[index].unbind(1)))
    assert model.analogies(x, index[:0]).shape == (0, 6)
    pairs, queries = index[:4, :2], index[:7, 2]
    weights = torch.zeros(7, 4, dtype=torch.float64)
    weights[:, 1] = 1.0  # one pair: an analogy
    expected = model(x[pairs[1, 0]], x[pairs[1, 1]], x[queries])
    torch.testing.assert_close(model.completions(x, pairs, queries, weights), expected)


def test_several_pairs_are_a_translation() -> None:
    model = GroupAnalogy(6, 2, 8, seed=0).double()
    x = torch.randn(9, 6, dtype=torch.float64)
    pairs, queries = torch.arange(8).reshape(4, 2), torch.tensor([8])
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
    translation = model.group.translation(x[pairs[:, 0]], x[pairs[:, 1]], weights[0])
    torch.testing.assert_close(model.completions(x, pairs, queries, weights)[0], model.group(translation, x[8]))


def test_embedded_model() -> None:
    assert isinstance(default_model(), nn.Module)


def test_an_ensemble_computes_in_the_direct_product(tmp_path: Path) -> None:
    members = [GroupAnalogy(6, 2, 8, seed=seed) for seed in range(3)]
    ensemble = AnalogyEnsemble(*members).double()
    a, b, c, d = F.normalize(torch.randn(4, 5, 6, dtype=torch.float64), dim=-1)
    each = torch.stack([F.normalize(member(a, b, c), dim=-1) for member in members])
    found = ensemble(a, b, c)
    torch.testing.assert_close(found, each.mean(0))
    # Words are ranked as by the mean of the cosines.
    torch.testing.assert_close(F.normalize(d, dim=-1) @ found.t(), (F.normalize(d, dim=-1) @ each.mT).mean(0))
    torch.testing.assert_close(ensemble(a, c, b), found)
    torch.testing.assert_close(ensemble(a, a, c), c)
    abelnet.save(ensemble, tmp_path)
    torch.testing.assert_close(named_model(str(tmp_path), 6)(a, b, c), found)
    assert AnalogyEnsemble(Offset(), *members).dim == 6
    for wrong, message in (
        ((), "expected one or more with equal dim, got 0"),
        ((members[0], GroupAnalogy(7, 2, 8)), r"expected one or more with equal dim, got 2 with \['6', '7'\]"),
        ((nn.Identity(),), "expected AnalogyModel instances, got Identity"),
    ):
        with pytest.raises(AbelnetError, match=f"^models: {message}"):
            AnalogyEnsemble(*wrong)  # type: ignore[arg-type]


def test_models_have_short_titles_that_differ(tmp_path: Path) -> None:
    group = GroupAnalogy(6, 2, 8, seed=0)
    for name in ("one", "other/same", "same"):
        abelnet.save(group, tmp_path / name)
    one, other, same = (str(tmp_path / name) for name in ("one", "other/same", "same"))
    assert list(named_models(["wv", one, other, one], 6)) == ["wv", "one", "same"]
    assert list(named_models([other, same, one + "/"], 6)) == [other, same, "one"]
