"""Files that take the place of others in one step."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from abelnet.files import replacing, write_text


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old – ∘")

    def fail() -> None:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "old – ∘"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


def test_whoever_may_read_other_files_may_read_these(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with replacing(tmp_path / "model.safetensors") as temporary:
        save_file({"x": torch.zeros(1)}, temporary)
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode
