"""The Hub with the network off: folders, the cache, model cards, and what is refused."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from huggingface_hub import HfApi, ModelCard
from safetensors import safe_open

import abelnet
from abelnet import AbelnetError, LawRegressor
from abelnet.config import Configurable
from abelnet.integrations.hub import HubModel, from_pretrained, push_to_hub, save_pretrained
from abelnet.nn import GatedBank


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def regressor() -> LawRegressor:
    pairs = np.random.default_rng(0).uniform(1, 2, (40, 2))
    return LawRegressor(polish=False).fit(pairs, np.hypot(*pairs.T))


@pytest.fixture(scope="module")
def models() -> dict[str, Configurable]:
    return {
        "norm": abelnet.AbelianGroup(abelnet.Generator(2, "positive power", [2.0])),
        "glow": abelnet.AbelianGroup(abelnet.glow(3, layers=2, hidden=8, seed=0)),
        "regressor": regressor(),
        "bank": GatedBank(2, seed=0),
    }


WORDS = {
    "norm": "x∘y = (x^2 + y^2)^(1/2)",
    "glow": "operation on vectors of 3 dimensions",
    "regressor": "x∘y = (x^2 + y^2)^(1/2)",
    "bank": "GatedBank",
}


@pytest.mark.parametrize("name", WORDS)
def test_a_folder_and_its_card(name: str, models: dict[str, Any], tmp_path: Path) -> None:
    model = models[name]
    save_pretrained(model, tmp_path, fitted_on="Lengths of **two** legs.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    card = ModelCard.load(tmp_path / "README.md")
    assert card.data.library_name == "abelnet"
    assert type(model).__name__ in card.data.tags
    assert WORDS[name] in card.text
    assert "Lengths of **two** legs." in card.text
    assert 'from_pretrained("user/name")' in card.text
    (tmp_path / "config.json").write_text("not read")
    again = from_pretrained(tmp_path)
    if name == "regressor":
        np.testing.assert_array_equal(again.predict([[1.5, 2.0]]), model.predict([[1.5, 2.0]]))
    else:
        for key, value in model.state_dict().items():
            assert torch.equal(again.state_dict()[key], value)


def test_the_copy_of_the_configuration(models: dict[str, Any], tmp_path: Path) -> None:
    save_pretrained(models["norm"], tmp_path)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert json.loads((tmp_path / "config.json").read_text()) == json.loads(file.metadata()["abelnet"])
    assert "Fitted to" not in (tmp_path / "README.md").read_text()


def test_pushed(models: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is uploaded is a folder that loads; the Hub itself is a folder here."""

    class Repository:
        repo_id = "user/norm"

    def upload(self: HfApi, *, folder_path: Path, **options: Any) -> str:
        shutil.copytree(folder_path, tmp_path / options["repo_id"])
        return "commit"

    monkeypatch.setattr(HfApi, "create_repo", lambda self, **options: Repository())
    monkeypatch.setattr(HfApi, "upload_folder", upload)
    assert push_to_hub(models["norm"], "user/norm", fitted_on="Legs.") == "commit"
    assert not list(tmp_path.rglob("*.bin")) + list(tmp_path.rglob("*.pkl"))
    x = torch.tensor([3.0, 1.0])
    assert torch.equal(from_pretrained(tmp_path / "user/norm")(x, x), models["norm"](x, x))


def test_from_the_cache(models: dict[str, Any], tmp_path: Path) -> None:
    repository, commit = tmp_path / "models--user--norm", "0" * 40
    blob = repository / "blobs" / "1"
    snapshot = repository / "snapshots" / commit
    for folder in (blob.parent, snapshot, repository / "refs"):
        folder.mkdir(parents=True)
    abelnet.save(models["norm"], tmp_path / "saved").rename(blob)
    (snapshot / "model.safetensors").symlink_to(blob)
    (repository / "refs" / "main").write_text(commit)
    again = HubModel.from_pretrained("user/norm", cache_dir=tmp_path).model
    assert torch.equal(again.bijection.values[0], models["norm"].bijection.values[0])


def test_errors_in_one_line(models: dict[str, Any], tmp_path: Path) -> None:
    for call in (
        lambda: from_pretrained("user/none", cache_dir=tmp_path),
        lambda: push_to_hub(models["norm"], "user/none", token="none"),
    ):
        with pytest.raises(AbelnetError, match=r"^(from_pretrained|push_to_hub): expected .* got: .+") as caught:
            call()
        assert "\n" not in str(caught.value)
    with pytest.raises(AbelnetError, match="no such file"):
        from_pretrained(tmp_path)
