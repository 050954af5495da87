"""Small data for the analogy experiment."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from abelnet.words import WordVectors

RELATIONS = {"1_Inflectional": "I01 [noun - plural_reg]", "3_Encyclopedic": "E01 [country - capital]"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def data(tmp_path: Path) -> tuple[str, str]:
    """A folder of BATS with two relations of 20 pairs, and a file of vectors in which each is an offset, bent."""
    generator = torch.Generator().manual_seed(0)
    words, rows = ["boy", "girl", "king", "queen"], [torch.randn(4, 10, generator=generator)]
    for i, (category, name) in enumerate(RELATIONS.items()):
        (tmp_path / "bats" / category).mkdir(parents=True)
        (tmp_path / "bats" / category / f"{name}.txt").write_text("".join(f"a{i}x{j}\tb{i}x{j}\n" for j in range(20)))
        first = torch.randn(20, 10, generator=generator)
        shift = torch.randn(10, generator=generator)
        words += [f"a{i}x{j}" for j in range(20)] + [f"b{i}x{j}" for j in range(20)]
        rows += [first, first + shift + 0.3 * first.square()]
    WordVectors(words, torch.cat(rows)).save(tmp_path / "vectors.txt")
    return str(tmp_path / "vectors.txt"), str(tmp_path / "bats")
