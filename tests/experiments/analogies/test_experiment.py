"""The analogy experiment, small: killed and resumed, and searched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from cases import killed_and_resumed
from safetensors.torch import load_file

import abelnet
from abelnet import AbelnetError
from abelnet.experiments.analogies.experiment import AnalogyExperiment, read_analogies, run_analogies


@pytest.mark.skipif("ABELNET_KILLS" not in os.environ, reason="takes many processes: see make test-kill")
def test_killed_and_resumed_it_comes_to_the_same_results(data: tuple[str, str], tmp_path: Path) -> None:
    options = ["--vectors", data[0], "--bats", data[1], "--seeds", "1", "--epochs", "5", "--jobs", "1"]
    options += [word for model in ("wv", "wv_agn", "several") for word in ("--model", model)]
    whole = killed_and_resumed(["analogies", "run", *options], tmp_path, ["parts/several-0-1.checkpoint"])
    rows = {row["model"]: row for row in whole["rows"]}
    assert list(rows) == ["wv", "wv_agn", "several"]
    assert rows["wv_agn"]["stages"][-1]["loss"] < -0.6
    table = rows["wv"]["tables"][0]
    assert table["title"] == "BATS test"
    assert table["questions"] == {
        "Overall": 24,
        "Inflectional": 12,
        "Encyclopedic": 12,
        "I01 noun - plural_reg": 12,
        "E01 country - capital": 12,
    }
    for name in ("whole", "killed"):
        assert not list((tmp_path / name / "parts").glob("*.checkpoint"))
    model = abelnet.load(tmp_path / "whole" / "models" / "wv_agn-0")
    assert model(*torch.randn(3, 2, 10)).shape == (2, 10)


@pytest.mark.usefixtures("_units_here")
def test_search_then_seeds(data: tuple[str, str], tmp_path: Path) -> None:
    experiment = AnalogyExperiment(data[0], data[1], models=("wv_mlp",), seeds=1, epochs=2, trials=2)
    told: list[str] = []
    results = run_analogies(experiment, tmp_path / "out", on_unit=told.append)
    assert told == ["search of WV+MLP", "WV+MLP, seed 0"]
    assert read_analogies(tmp_path / "out") == results
    (row,) = results["rows"]
    assert 2 <= row["parameters"]["layers"] <= 6
    (stage,) = row["stages"]
    assert stage["settings"]["weight_decay"] == row["parameters"]["weight_decay"]
    with pytest.raises(AbelnetError, match=r"expected .* to be empty or have the same settings"):
        run_analogies(AnalogyExperiment(data[0], data[1], epochs=3), tmp_path / "out")


@pytest.mark.usefixtures("_units_here")
def test_the_second_stage_keeps_averaged_parameters_and_resumes_with_them(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = AnalogyExperiment(data[0], data[1], models=("several",), seeds=1, epochs=2)
    (row,) = run_analogies(experiment, tmp_path / "whole")["rows"]
    first, second = (stage["settings"] for stage in row["stages"])
    assert (first["average"], first["schedule"]) == (None, "cosine")
    assert (second["average"] > 0, second["schedule"]) == (True, "constant")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("abelnet.experiments.analogies.experiment.save", killed)
        with pytest.raises(KeyboardInterrupt):
            run_analogies(experiment, tmp_path / "resumed")
    last = load_file(tmp_path / "resumed" / "parts" / "several-0-1.checkpoint")
    run_analogies(experiment, tmp_path / "resumed")
    whole, resumed = (abelnet.load(tmp_path / name / "models" / "several-0") for name in ("whole", "resumed"))
    for (name, kept), other in zip(whole.named_parameters(), resumed.parameters(), strict=True):
        assert torch.equal(kept, other)
        assert not torch.equal(kept, last[f"parameter.{name}"])


@pytest.mark.usefixtures("_units_here")
def test_the_members_of_an_ensemble_are_trained_from_seeds_of_their_own(data: tuple[str, str], tmp_path: Path) -> None:
    experiment = AnalogyExperiment(data[0], data[1], models=("ensemble",), seeds=1, epochs=1)
    (row,) = run_analogies(experiment, tmp_path)["rows"]
    assert len(row["stages"]) == 6
    assert len({stage["loss"] for stage in row["stages"]}) == 6
    members = list(abelnet.load(tmp_path / "models" / "ensemble-0"))
    assert len({member.group(*torch.ones(2, 10)) for member in members}) == 3
    assert not list((tmp_path / "parts").glob("*.checkpoint"))


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match=r"model: expected one of wv, .* got 'gpt'"):
        AnalogyExperiment(models=("gpt",))
    for name, least in (("seeds", 1), ("epochs", 1), ("limit", 1), ("trials", 0)):
        with pytest.raises(AbelnetError, match=f"^{name}: expected at least {least}, got {least - 1}$"):
            AnalogyExperiment(**{name: least - 1})  # type: ignore[arg-type]
    (tmp_path / "v.txt").write_text("up 0 1\ndown 0 -1\n")
    with pytest.raises(AbelnetError, match="vectors: expected words of Google pairs train, got none"):
        run_analogies(AnalogyExperiment(str(tmp_path / "v.txt"), models=("wv",), seeds=1), tmp_path / "out")
    with pytest.raises(AbelnetError, match=r"folder: expected results.json in .*; run abelnet analogies run first"):
        read_analogies(tmp_path)
    for content in ("{", "[]", '{"experiment": {}, "rows": []}'):
        (tmp_path / "results.json").write_text(content)
        with pytest.raises(AbelnetError, match=r"results\.json: .*; remove it, and run the same command again"):
            read_analogies(tmp_path)
